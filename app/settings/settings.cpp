// SPDX-License-Identifier: GPL-3.0-or-later
// The INI file: one section per concern, words instead of numbers for choices, so that a person can
// read and mend it. Every reader checks what it finds: the file is foreign input.
#include "app/settings/settings.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>

#include <algorithm>
#include <array>
#include <utility>

namespace memscape {

namespace {

QString standardPath()
{
    const QSettings standard(QSettings::IniFormat, QSettings::UserScope, QStringLiteral("memscape"),
                             QStringLiteral("memscape"));
    return standard.fileName();
}

using Migration = void (*)(QSettings&);

/// 0 → 1: a file without a version is empty or written by hand in today's names.
void adoptUnversioned(QSettings&) { }

// One entry per step; the n-th leads from version n to n + 1.
constexpr std::array<Migration, Settings::version> migrations = {adoptUnversioned};

template <typename Choice, std::size_t n> using Words = std::array<std::pair<Choice, const char*>, n>;

template <typename Choice, std::size_t n>
Choice choiceFrom(const Words<Choice, n>& words, const QString& text, Choice fallback)
{
    for (const auto& [choice, word] : words) {
        if (text == QLatin1String(word))
            return choice;
    }
    return fallback;
}

template <typename Choice, std::size_t n> QString wordFor(const Words<Choice, n>& words, Choice choice)
{
    for (const auto& [known, word] : words) {
        if (known == choice)
            return QLatin1String(word);
    }
    return {};
}

constexpr Words<ThemeChoice, 3> themeWords{
    {{ThemeChoice::System, "system"}, {ThemeChoice::Light, "light"}, {ThemeChoice::Dark, "dark"}}};
constexpr Words<ByteStyle, 2> byteWords{{{ByteStyle::Binary, "binary"}, {ByteStyle::Decimal, "decimal"}}};

QString truth(bool on)
{
    return on ? QStringLiteral("true") : QStringLiteral("false");
}

QStringList cleanPaths(const QStringList& paths)
{
    QStringList clean;
    for (const QString& path : paths) {
        if (!path.isEmpty() && !clean.contains(path))
            clean.append(path);
    }
    return clean;
}

} // namespace

Settings::Settings(QObject* parent)
    : Settings(standardPath(), parent)
{ }

Settings::Settings(const QString& path, QObject* parent)
    : QObject(parent)
    , m_settings(path, QSettings::IniFormat)
{
    if (m_settings.status() == QSettings::FormatError)
        QFile::copy(path, path + QStringLiteral(".broken"));
    migrate();
}

void Settings::migrate()
{
    const int found = std::max(0, m_settings.value(QStringLiteral("version"), 0).toInt());
    if (found >= version)
        return;
    for (int step = found; step < version; ++step)
        migrations[static_cast<std::size_t>(step)](m_settings);
    m_settings.setValue(QStringLiteral("version"), version);
}

void Settings::set(const QString& name, const QVariant& value, Key key)
{
    if (m_settings.value(name) == value)
        return;
    m_settings.setValue(name, value);
    emit changed(key);
}

bool Settings::isTrue(const QString& name) const
{
    return m_settings.value(name).toString() == truth(true);
}

ThemeChoice Settings::theme() const
{
    return choiceFrom(themeWords, m_settings.value(QStringLiteral("view/theme")).toString(), ThemeChoice::System);
}

void Settings::setTheme(ThemeChoice theme)
{
    set(QStringLiteral("view/theme"), wordFor(themeWords, theme), Key::Theme);
}

ByteStyle Settings::byteStyle() const
{
    return choiceFrom(byteWords, m_settings.value(QStringLiteral("view/bytes")).toString(), ByteStyle::Binary);
}

void Settings::setByteStyle(ByteStyle style)
{
    set(QStringLiteral("view/bytes"), wordFor(byteWords, style), Key::ByteStyle);
}

int Settings::fontZoom() const
{
    bool isNumber = false;
    const int percent = m_settings.value(QStringLiteral("view/zoom"), 100).toInt(&isNumber);
    return isNumber ? std::clamp(percent, 50, 300) : 100;
}

void Settings::setFontZoom(int percent)
{
    const int clamped = std::clamp(percent, 50, 300);
    if (clamped != fontZoom())
        set(QStringLiteral("view/zoom"), QString::number(clamped), Key::FontZoom);
}

bool Settings::showBases() const
{
    return isTrue(QStringLiteral("view/bases"));
}

void Settings::setShowBases(bool show)
{
    set(QStringLiteral("view/bases"), truth(show), Key::Bases);
}

int Settings::firstSteps() const
{
    return m_settings.value(QStringLiteral("view/firstSteps"), 0).toInt();
}

void Settings::setFirstSteps(int done)
{
    if (done != firstSteps())
        set(QStringLiteral("view/firstSteps"), QString::number(done), Key::FirstSteps);
}

bool Settings::isUnfolded(const QString& section) const
{
    return m_settings.value(QStringLiteral("view/unfolded")).toStringList().contains(section);
}

void Settings::setUnfolded(const QString& section, bool unfolded)
{
    QStringList sections = m_settings.value(QStringLiteral("view/unfolded")).toStringList();
    sections.removeAll(section);
    if (unfolded)
        sections << section;
    set(QStringLiteral("view/unfolded"), sections, Key::Folds);
}

bool Settings::reducedMotion() const
{
    return isTrue(QStringLiteral("view/reducedMotion"));
}

void Settings::setReducedMotion(bool reduced)
{
    set(QStringLiteral("view/reducedMotion"), truth(reduced), Key::ReducedMotion);
}

QStringList Settings::recentFiles() const
{
    return cleanPaths(m_settings.value(QStringLiteral("files/recent")).toStringList()).mid(0, recentLimit);
}

void Settings::addRecentFile(const QString& path)
{
    const QString absolute = QFileInfo(path).absoluteFilePath();
    QStringList recent = recentFiles();
    recent.removeAll(absolute);
    recent.prepend(absolute);
    set(QStringLiteral("files/recent"), recent.mid(0, recentLimit), Key::RecentFiles);
}

void Settings::removeRecentFile(const QString& path)
{
    QStringList recent = recentFiles();
    recent.removeAll(QFileInfo(path).absoluteFilePath());
    set(QStringLiteral("files/recent"), recent, Key::RecentFiles);
}

void Settings::clearRecentFiles()
{
    if (recentFiles().isEmpty())
        return;
    m_settings.remove(QStringLiteral("files/recent"));
    emit changed(Key::RecentFiles);
}

std::vector<SavedWorker> Settings::workers() const
{
    std::vector<SavedWorker> workers;
    auto& settings = const_cast<QSettings&>(m_settings); // groups are state of the reader
    const int count = settings.beginReadArray(QStringLiteral("workers"));
    for (int index = 0; index < count; ++index) {
        settings.setArrayIndex(index);
        SavedWorker worker{settings.value(QStringLiteral("name")).toString(),
                           settings.value(QStringLiteral("command")).toString()};
        if (!worker.name.isEmpty() && !worker.command.isEmpty())
            workers.push_back(std::move(worker));
    }
    settings.endArray();
    return workers;
}

void Settings::setWorkers(const std::vector<SavedWorker>& workers)
{
    if (workers == this->workers())
        return;
    m_settings.remove(QStringLiteral("workers"));
    m_settings.beginWriteArray(QStringLiteral("workers"), static_cast<int>(workers.size()));
    for (std::size_t index = 0; index < workers.size(); ++index) {
        m_settings.setArrayIndex(static_cast<int>(index));
        m_settings.setValue(QStringLiteral("name"), workers[index].name);
        m_settings.setValue(QStringLiteral("command"), workers[index].command);
    }
    m_settings.endArray();
    emit changed(Key::Workers);
}

QString Settings::student() const
{
    return m_settings.value(QStringLiteral("labs/student")).toString().left(200);
}

void Settings::setStudent(const QString& name)
{
    set(QStringLiteral("labs/student"), name.trimmed(), Key::Student);
}

QStringList Settings::deviceFiles() const
{
    return cleanPaths(m_settings.value(QStringLiteral("files/devices")).toStringList());
}

void Settings::setDeviceFiles(const QStringList& paths)
{
    set(QStringLiteral("files/devices"), cleanPaths(paths), Key::DeviceFiles);
}

ExportDefaults Settings::exportDefaults() const
{
    ExportDefaults defaults;
    const QString format = m_settings.value(QStringLiteral("export/format")).toString();
    if (QStringList{QStringLiteral("png"), QStringLiteral("svg"), QStringLiteral("pdf")}.contains(format))
        defaults.format = format;
    const QStringList size = m_settings.value(QStringLiteral("export/size")).toString().split(QLatin1Char('x'));
    if (size.size() == 2) {
        const QSize read(size[0].toInt(), size[1].toInt());
        if (read.width() >= 100 && read.height() >= 100 && read.width() <= 20000 && read.height() <= 20000)
            defaults.size = read;
    }
    defaults.followTheme = m_settings.value(QStringLiteral("export/colours")).toString() == QLatin1String("theme");
    defaults.folder = m_settings.value(QStringLiteral("export/folder")).toString();
    return defaults;
}

void Settings::setExportDefaults(const ExportDefaults& defaults)
{
    if (defaults == exportDefaults())
        return;
    m_settings.setValue(QStringLiteral("export/format"), defaults.format);
    m_settings.setValue(QStringLiteral("export/size"),
                        QStringLiteral("%1x%2").arg(defaults.size.width()).arg(defaults.size.height()));
    m_settings.setValue(QStringLiteral("export/colours"),
                        defaults.followTheme ? QStringLiteral("theme") : QStringLiteral("light"));
    m_settings.setValue(QStringLiteral("export/folder"), defaults.folder);
    emit changed(Key::Export);
}

QString Settings::lastFolder(const QString& kind) const
{
    const QString folder = m_settings.value(QStringLiteral("folders/") + kind).toString();
    return QFileInfo(folder).isDir() ? folder : QDir::homePath();
}

void Settings::setLastFolder(const QString& kind, const QString& folder)
{
    set(QStringLiteral("folders/") + kind, folder, Key::LastFolder);
}

QString Settings::python() const
{
    return m_settings.value(QStringLiteral("workers/python")).toString();
}

void Settings::setPython(const QString& path)
{
    set(QStringLiteral("workers/python"), path.trimmed(), Key::Python);
}

QString Settings::shortcut(const QString& action) const
{
    const QVariant value = m_settings.value(QStringLiteral("shortcuts/") + action);
    return value.isValid() ? value.toString() : QString();
}

void Settings::setShortcut(const QString& action, const QString& keys)
{
    const QString name = QStringLiteral("shortcuts/") + action;
    if (!keys.isNull()) {
        set(name, keys, Key::Shortcuts);
    } else if (m_settings.contains(name)) {
        m_settings.remove(name);
        emit changed(Key::Shortcuts);
    }
}

} // namespace memscape

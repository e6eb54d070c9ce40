// SPDX-License-Identifier: GPL-3.0-or-later
// What a path is, by its name and its first bytes, and where it then goes.
#include "app/window/study_files.h"

#include "app/document/pages.h"
#include "app/pages/sheet.h"
#include "app/workers/devices.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/network/model_files.h"
#include "core/snapshot/snapshot_reader.h"

#include <nlohmann/json.hpp>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QImageReader>
#include <QStringList>

#include <utility>

namespace memscape {

namespace {

constexpr auto openTopic = "open";
constexpr qint64 largestConfig = 4 << 20; ///< B; a network's configuration is a few kB

/// By its name, or by what every network file or Hugging Face configuration says. A broken config.json is one too: the
/// page shows its error.
bool isModelFile(const QString& path)
{
    const QFileInfo file(path);
    if (file.isDir())
        return QFileInfo::exists(QDir(path).filePath(QStringLiteral("config.json")));
    const QString name = file.fileName().toLower();
    if (name.endsWith(QStringLiteral(".safetensors")) || name.endsWith(QStringLiteral(".safetensors.index.json"))
        || name.endsWith(QStringLiteral(".gguf")))
        return true;
    if (name.endsWith(QStringLiteral(".json")) && saysNetworkFile(path.toStdString()))
        return true;
    if (name != QStringLiteral("config.json") && file.size() > largestConfig)
        return false;
    const auto content = name.endsWith(QStringLiteral(".json")) && file.size() <= largestConfig
        ? readFile(std::filesystem::path(path.toStdString()))
        : Result<std::string>(std::string());
    const auto json = content ? parseJson(*content) : Result<Json>(Json());
    if (!json || !json->is_object())
        return name == QStringLiteral("config.json");
    return !json->contains("format")
        && (name == QStringLiteral("config.json") || json->contains("model_type") || json->contains("architectures"));
}

/// What exports write to be looked at: no study can be made of it again.
bool isForEyes(const QString& path)
{
    const QString suffix = QFileInfo(path).suffix().toLower();
    for (const char* known : {"png", "svg", "pdf", "html", "md", "csv"}) {
        if (suffix == QLatin1String(known))
            return QFileInfo::exists(path);
    }
    return false;
}

/// What an exported page keeps of what it shows; empty: it is no such picture.
QByteArray recordInside(const QString& path)
{
    if (QFileInfo(path).suffix().toLower() != QStringLiteral("png"))
        return {};
    return QImageReader(path).text(QString::fromLatin1(recordInPicture)).toUtf8();
}

Result<Record> recordOf(const QByteArray& text)
{
    MEMSCAPE_TRY(json, parseJson(std::string_view(text.constData(), std::size_t(text.size()))));
    return recordFromJson(json);
}

} // namespace

bool isSnapshotFile(const QString& path)
{
    const QString suffix = QFileInfo(path).suffix().toLower();
    for (const char* known : {"pickle", "pkl", "memscape-run"}) {
        if (suffix == QLatin1String(known))
            return true;
    }
    QFile file(path);
    if (!QFileInfo(path).isFile() || !file.open(QIODevice::ReadOnly))
        return false;
    const QByteArray beginning = file.read(2);
    return looksLikePickle(std::string_view(beginning.constData(), std::size_t(beginning.size())));
}

void StudyFiles::open()
{
    const QString path = askOpen();
    if (!path.isEmpty())
        openPath(path);
}

void StudyFiles::openPaths(const QStringList& paths)
{
    m_opensSeveral = paths.size() > 1;
    for (const QString& path : paths)
        openPath(path);
    m_opensSeveral = false;
}

/// What is wrong with a file goes when the next one is opened; of several at once each is said.
void StudyFiles::openFailed(const Error& error, const QString& path)
{
    m_banner.showError(error, path, {}, m_opensSeveral ? QString() : QString::fromLatin1(openTopic));
}

bool StudyFiles::openPath(const QString& path)
{
    if (!m_opensSeveral)
        m_banner.closeTopic(QString::fromLatin1(openTopic));
    if (isModelFile(path)) {
        emit modelFileOpened(path);
        return true;
    }
    if (isSnapshotFile(path)) {
        m_settings.setLastFolder(QStringLiteral("study"), QFileInfo(path).absolutePath());
        m_settings.addRecentFile(QFileInfo(path).absoluteFilePath());
        emit pageFileOpened(QLatin1String(snapshotPageId), path);
        return true;
    }
    const bool isLab = QFileInfo(path).isDir() && QFileInfo::exists(path + QStringLiteral("/lab.json"));
    if (isLab || QFileInfo(path).suffix().toLower() == QStringLiteral("mlab")) {
        emit pageFileOpened(QLatin1String(labsPageId), path);
        return true;
    }
    if (const QByteArray inside = recordInside(path); !inside.isEmpty()) {
        auto record = recordOf(inside);
        if (record)
            addRecord(std::move(*record), path);
        else
            openFailed(record.error(), path);
        return record.has_value();
    }
    if (isForEyes(path)) {
        openFailed(
            {"file.kind",
             "no study can be made of " + QFileInfo(path).fileName().toStdString(),
             {},
             "it is there to be looked at: open the study that it came from, its data as JSON, or the PNG of a page"},
            path);
        return false;
    }
    auto file = readDocument(path);
    const auto format = file ? file->format() : Result<std::string>(fail(file.error()));
    if (!format) {
        Error error = format.error();
        if (error.message.find(path.toStdString()) == std::string::npos) {
            const std::string name = QFileInfo(path).fileName().toStdString();
            error.place = error.place.empty() ? name : name + ", " + error.place;
        }
        openFailed(error, path);
        if (error.code == "file.missing")
            m_settings.removeRecentFile(path);
        return false;
    }
    m_settings.setLastFolder(QStringLiteral("study"), QFileInfo(path).absolutePath());
    if (*format == "memscape-chain") {
        emit chainFileOpened(path);
        return true;
    }
    if (*format == "memscape-device") {
        return addDeviceFile(path);
    }
    const bool empty = m_document.records().empty() && m_document.fileName().isEmpty() && !m_document.isModified();
    if (*format == "memscape-record" && !empty)
        return addRecord(path);
    // A record, and records that were exported together, do not say what the window showed.
    const auto view = file->json().find("view");
    const bool isOfWindow = view != file->json().end() && view->is_object() && view->contains("page");
    const bool opened = openStudy(path, *file);
    if (opened && !isOfWindow)
        emit recordOpened();
    return opened;
}

bool StudyFiles::openStudy(const QString& path, const Document& file)
{
    const bool mayBeSaved = m_document.isModified(); // into that very file
    if (!mayClose())
        return false;
    const auto opened = mayBeSaved ? m_document.open(path) : m_document.open(path, file);
    if (!opened) {
        openFailed(opened.error(), path);
        if (opened.error().code == "file.missing")
            m_settings.removeRecentFile(path);
        return false;
    }
    m_settings.addRecentFile(path);
    showOpeningNotes();
    showSize();
    showReadOnly();
    return true;
}

void StudyFiles::openExample()
{
    if (!mayClose())
        return;
    std::vector<Record> records;
    const QDir folder(QStringLiteral(":/examples"));
    for (const QString& name : folder.entryList({QStringLiteral("*.json")}, QDir::Files, QDir::Name)) {
        QFile file(folder.filePath(name));
        static_cast<void>(file.open(QIODevice::ReadOnly)); // what cannot be read is no record
        auto record = recordOf(file.readAll());
        if (!record) {
            m_banner.showError(record.error(), file.fileName());
            return;
        }
        records.push_back(std::move(*record));
    }
    tellMachinesApart(records);
    m_document.newStudy();
    m_document.addRecords(std::move(records), tr("Open the example"));
    emit recordOpened();
}

bool StudyFiles::addRecord(const QString& path)
{
    auto record = readRecord(std::filesystem::path(path.toStdString()));
    if (!record) {
        openFailed(record.error(), path);
        return false;
    }
    addRecord(std::move(*record), path);
    return true;
}

void StudyFiles::addRecord(Record record, const QString& path)
{
    const QString experiment = QString::fromStdString(record.experiment);
    std::vector<Record> records;
    records.push_back(std::move(record));
    tellMachinesApart(records);
    m_document.addRecords(std::move(records), tr("Import %1").arg(QFileInfo(path).fileName()));
    emit recordsAdded(experiment);
}

bool StudyFiles::addDeviceFile(const QString& path)
{
    if (const auto device = readDeviceFile(path); !device) {
        openFailed(device.error(), path);
        return false;
    }
    QStringList files = m_settings.deviceFiles();
    const QString absolute = QFileInfo(path).absoluteFilePath();
    if (!files.contains(absolute)) {
        files << absolute;
        m_settings.setDeviceFiles(files);
    }
    emit deviceFileOpened(absolute);
    return true;
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/lab_store.h"

#include "app/settings/words.h"
#include "core/base/file.h"
#include "core/experiment/document.h"
#include "core/lab/lab_hash.h"

#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>

namespace memscape {

namespace {

constexpr std::size_t answersLimit = 64u << 20; ///< B, as LabAttempt reads
constexpr int longestName = 40;                 ///< of a folder, before its hash

/// In small letters; what is no letter or digit becomes "-".
QString plainName(const QString& name)
{
    QString plain;
    for (const QChar letter : name.trimmed().toLower().left(longestName))
        plain += letter.isLetterOrNumber() ? letter : QLatin1Char('-');
    return plain;
}

/// "Ada L." as the name of a folder: a hash keeps names apart that look the same in plain letters.
QString folderOf(const QString& student)
{
    const QString name = student.trimmed().toLower();
    QString folder = plainName(student);
    if (folder != name || folder.isEmpty())
        folder += QStringLiteral("-%1").arg(labHash(name.toStdString()) & 0xffffffffu, 8, 16, QLatin1Char('0'));
    return folder;
}

Error inAnswers(Error error, const QString& path)
{
    if (!error.code.starts_with("file."))
        error.place = path.toStdString() + (error.place.empty() ? "" : ", " + error.place);
    return error;
}

} // namespace

QString labAnswersFolder()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + QStringLiteral("/memscape/labs");
}

QString labAnswersPath(const std::string& lab, const QString& student)
{
    return QStringLiteral("%1/%2/%3.mlab").arg(labAnswersFolder(), folderOf(student), toQString(lab));
}

QString handInName(const std::string& student, const std::string& lab)
{
    QStringList parts = plainName(toQString(student)).split(u'-', Qt::SkipEmptyParts);
    parts << toQString(lab);
    return parts.join(u'-') + QStringLiteral(".mlab");
}

Result<std::string> labOfAnswers(const QString& path)
{
    MEMSCAPE_TRY(text, readFile(pathOf(path), answersLimit));
    const auto json = parseJson(text);
    if (!json)
        return fail(inAnswers(json.error(), path));
    const JsonReader reader(*json);
    const auto format = reader.string("format", "");
    if (!format || *format != "memscape-answers")
        return fail("document.format", "these are no answers to a lab",
                    "answers begin with {\"format\": \"memscape-answers\"", path.toStdString());
    auto lab = reader.string("lab");
    if (!lab)
        return fail(inAnswers(lab.error(), path));
    return *lab;
}

Result<LabAnswersFile> readLabAnswers(std::shared_ptr<const Lab> lab, const QString& path)
{
    MEMSCAPE_TRY(text, readFile(pathOf(path), answersLimit));
    auto attempt = LabAttempt::parse(std::move(lab), text);
    if (!attempt)
        return fail(inAnswers(attempt.error(), path));
    LabAnswersFile file{std::move(*attempt), {}};
    if (const auto json = parseJson(text, {.bytes = answersLimit})) // "at" is ours; the attempt keeps it unread
        file.at = JsonReader(*json).string("at", "").value_or("");
    return file;
}

Result<void> writeLabAnswers(const QString& path, const LabAttempt& attempt, const std::string& at)
{
    Json json = attempt.toJson();
    json["at"] = at;
    QDir().mkpath(QFileInfo(path).absolutePath()); // where it fails, writing says why
    return writeFileAtomically(pathOf(path), jsonText(json));
}

Result<QString> setBrokenAside(const QString& path)
{
    QString aside = path + QStringLiteral(".broken");
    for (int i = 2; QFileInfo::exists(aside); ++i)
        aside = path + QStringLiteral(".broken-%1").arg(i);
    if (!QFile::rename(path, aside))
        return fail("file.write", "the file could not be renamed", "make its folder writable", path.toStdString());
    return aside;
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// A recovery file is {"format": "memscape-recovery", "version": 1, "file", "base_hash", "time",
// "study"}, with a lock file beside it: whose process is gone, can be recovered. The study is
// copied on the GUI thread; turning it into text and writing it happens on another.
#include "app/document/autosave.h"

#include "app/document/study_document.h"
#include "app/settings/words.h"
#include "core/base/file.h"
#include "core/base/json_shape.h"

#include <QDir>
#include <QFileInfo>
#include <QLockFile>
#include <QStandardPaths>
#include <QUuid>

#include <algorithm>

namespace memscape {

namespace {

constexpr std::string_view recoveryFormat = "memscape-recovery";

QString recoveryLockPath(const QString& path)
{
    return path + QStringLiteral(".lock");
}

std::unique_ptr<QLockFile> tryLock(const QString& path)
{
    auto lock = std::make_unique<QLockFile>(recoveryLockPath(path));
    lock->setStaleLockTime(0);
    return lock->tryLock(0) ? std::move(lock) : nullptr;
}

struct Recovery
{
    RecoverableStudy about;
    QByteArray baseHash;
    Study study;
};

Result<Recovery> readRecovery(const QString& path)
{
    MEMSCAPE_TRY(text, readFile(pathOf(path)));
    MEMSCAPE_TRY(json, parseJson(text));
    const JsonReader reader(json);
    MEMSCAPE_TRY(format, reader.string("format"));
    if (format != recoveryFormat)
        return fail("document.format", "not a recovery file", {}, path.toStdString());
    MEMSCAPE_TRY(file, reader.string("file", ""));
    MEMSCAPE_TRY(hash, reader.string("base_hash", ""));
    MEMSCAPE_TRY(time, reader.string("time", ""));
    MEMSCAPE_TRY(node, reader.at("study"));
    Recovery recovery;
    MEMSCAPE_SET(recovery.study, studyFromJson(node.node()));
    recovery.baseHash = QByteArray::fromHex(QByteArray::fromStdString(hash));
    RecoverableStudy& about = recovery.about;
    about.path = path;
    about.fileName = QString::fromStdString(file);
    about.time = QDateTime::fromString(QString::fromStdString(time), Qt::ISODateWithMs);
    about.records = recovery.study.records.size();
    about.name = QString::fromStdString(recovery.study.title);
    if (about.name.isEmpty())
        about.name = QFileInfo(about.fileName).fileName();
    if (about.name.isEmpty())
        about.name = StudyDocument::tr("Untitled study");
    return recovery;
}

Result<void> writeRecovery(const QString& path, Json header, const Study& study)
{
    header["study"] = studyToJson(study);
    const std::string text = jsonText(header);
    MEMSCAPE_CHECK(checkReadable(text));
    return writeFileAtomically(pathOf(path), text, FileMode::Private);
}

} // namespace

QString recoveryFolder()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + QStringLiteral("/memscape/recovery");
}

std::vector<RecoverableStudy> recoverableStudies(const QString& folder, std::vector<Error>* problems)
{
    std::vector<RecoverableStudy> found;
    const QDir dir(folder);
    for (const QString& name : dir.entryList({QStringLiteral("*.json")}, QDir::Files)) {
        const QString path = dir.filePath(name);
        if (!tryLock(path)) // its program is still there
            continue;
        auto recovery = readRecovery(path);
        if (recovery)
            found.push_back(std::move(recovery->about));
        else if (problems)
            problems->push_back(recovery.error());
    }
    std::ranges::sort(found, [](const auto& a, const auto& b) { return a.time > b.time; });
    return found;
}

void discardRecovery(const RecoverableStudy& study)
{
    QFile::remove(study.path);
    QFile::remove(recoveryLockPath(study.path));
}

Autosave::Autosave(StudyDocument* document, const QString& folder)
    : Autosave(document, folder, Times{})
{ }

Autosave::Autosave(StudyDocument* document, const QString& folder, Times times)
    : m_document(document)
    , m_folder(folder)
    , m_path(QStringLiteral("%1/%2.json").arg(folder, QUuid::createUuid().toString(QUuid::WithoutBraces)))
{
    m_thread.setMaxThreadCount(1);
    m_idle.setSingleShot(true);
    m_idle.setInterval(times.idle);
    m_atMost.setSingleShot(true);
    m_atMost.setInterval(times.atMost);
    connect(&m_idle, &QTimer::timeout, this, &Autosave::start);
    connect(&m_atMost, &QTimer::timeout, this, &Autosave::start);
    connect(document, &StudyDocument::changed, this, &Autosave::schedule);
}

Autosave::~Autosave()
{
    remove();
}

void Autosave::schedule()
{
    if (!m_document->isModified()) {
        remove();
        return;
    }
    m_idle.start();
    if (!m_atMost.isActive())
        m_atMost.start();
}

Json Autosave::header() const
{
    const QString now = QDateTime::currentDateTimeUtc().toString(Qt::ISODateWithMs);
    return {{"format", recoveryFormat},
            {"version", 1},
            {"file", m_document->fileName().toStdString()},
            {"base_hash", m_document->baseHash().toHex().toStdString()},
            {"time", now.toStdString()}};
}

Result<void> Autosave::holdLock()
{
    if (m_lock)
        return {};
    if (QDir().mkpath(m_folder))
        m_lock = tryLock(m_path);
    if (!m_lock) {
        return fail("file.permission", tr("cannot write recovery files to %1").arg(m_folder).toStdString(),
                    tr("save often, or make the folder writable").toStdString());
    }
    return {};
}

void Autosave::start()
{
    m_idle.stop();
    m_atMost.stop();
    if (auto held = holdLock(); !held) {
        report(held);
        return;
    }
    m_thread.start([this, path = m_path, header = header(), study = m_document->study()] {
        const auto written = writeRecovery(path, header, study);
        QMetaObject::invokeMethod(
            this, [this, written] { report(written); }, Qt::QueuedConnection);
    });
}

Result<void> Autosave::saveNow()
{
    if (!m_document->isModified())
        return {};
    m_idle.stop();
    m_atMost.stop();
    m_thread.waitForDone();
    MEMSCAPE_CHECK(holdLock());
    return writeRecovery(m_path, header(), m_document->study());
}

void Autosave::report(const Result<void>& result)
{
    const bool failedBefore = std::exchange(m_reported, !result);
    if (!result && !failedBefore)
        emit failed(result.error());
}

void Autosave::remove()
{
    m_idle.stop();
    m_atMost.stop();
    if (!m_lock)
        return;
    m_thread.waitForDone(); // a write on its way would put the file back
    QFile::remove(m_path);
    m_lock.reset();
}

Result<void> Autosave::recover(const RecoverableStudy& study)
{
    const auto lock = tryLock(study.path);
    if (!lock) {
        return fail("document.locked", tr("another window is recovering %1").arg(study.name).toStdString());
    }
    MEMSCAPE_TRY(recovery, readRecovery(study.path));
    m_document->restore(std::move(recovery.study), recovery.about.fileName, recovery.baseHash);
    MEMSCAPE_CHECK(saveNow()); // ours is on disk before the old one goes
    QFile::remove(study.path);
    return {};
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// The study's file: open, save, lock, watch. What is on disk is known by its hash, so that a
// touched but equal file asks nothing, and a change that the watcher missed is still noticed by
// save().
#include "app/document/study_document.h"
#include "app/settings/words.h"
#include "core/base/file.h"
#include "core/base/json_shape.h"
#include "core/device/catalogue.h"

#include <QCryptographicHash>
#include <QFileInfo>
#include <QFileSystemWatcher>
#include <QLockFile>
#include <QTimer>
#include <QUndoStack>

namespace memscape {

namespace {

std::string utf8(const QString& text)
{
    return text.toStdString();
}

QByteArray hashOf(std::string_view text)
{
    return QCryptographicHash::hash(QByteArrayView(text.data(), static_cast<qsizetype>(text.size())),
                                    QCryptographicHash::Sha256);
}

/// Empty when the file cannot be read.
QByteArray hashOfFile(const QString& path)
{
    const auto text = readFile(pathOf(path));
    return text ? hashOf(*text) : QByteArray();
}

/// ".strides.memscape.lock" beside the file itself: two links to one file share the lock.
QString lockPath(const QString& path)
{
    const QFileInfo info(path);
    const QString canonical = info.canonicalFilePath();
    const QFileInfo real(canonical.isEmpty() ? info.absoluteFilePath() : canonical);
    return real.absolutePath() + QStringLiteral("/.") + real.fileName() + QStringLiteral(".lock");
}

/// The file's name in front of the place inside it.
template <typename T> Result<T> inFile(Result<T> result, const QString& path)
{
    if (!result) {
        std::string& place = result.error().place;
        place = place.empty() ? utf8(path) : utf8(path) + ", " + place;
    }
    return result;
}

bool mayWrite(const QString& path)
{
    const QFileInfo info(path);
    return info.isWritable() && QFileInfo(info.absolutePath()).isWritable();
}

} // namespace

QString StudyDocument::displayName() const
{
    return m_fileName.isEmpty() ? tr("Untitled study") : QFileInfo(m_fileName).fileName();
}

/// An error when another window has the file. A folder that cannot hold a lock file locks nothing.
std::optional<Error> StudyDocument::lockFor(const QString& path, std::unique_ptr<QLockFile>& lock) const
{
    auto candidate = std::make_unique<QLockFile>(lockPath(path));
    candidate->setStaleLockTime(0); // never by age; a lock whose process is gone is stale anyhow
    if (candidate->tryLock(0)) {
        lock = std::move(candidate);
        return {};
    }
    if (candidate->error() != QLockFile::LockFailedError)
        return {};
    qint64 process = 0;
    QString host, program;
    candidate->getLockInfo(&process, &host, &program);
    return Error{"document.locked",
                 utf8(tr("%1 is open in another window (%2, process %3 on %4)")
                          .arg(QFileInfo(path).fileName(), program)
                          .arg(process)
                          .arg(host)),
                 utf8(path), utf8(tr("close it there, or save under another name"))};
}

void StudyDocument::replaceStudy(Study study)
{
    m_study = std::move(study);
    readView();
    m_study.view = Json::object(); // kept in m_pages from here on
    m_changedOnDisk = false;
    m_sizeNote.reset();
    m_undo->clear();
    m_undo->setClean();
    emitEvent(StudyReset{});
    emitEvent(FileChanged{});
}

void StudyDocument::setFileName(const QString& path)
{
    m_fileName = path.isEmpty() ? path : QFileInfo(path).absoluteFilePath();
    m_stamp = {{}, -1}; // look at the next notice
    watch();
}

void StudyDocument::newStudy()
{
    m_lock.reset();
    m_readOnly.reset();
    m_hash.clear();
    setFileName({});
    replaceStudy({});
}

/// Takes the lock of `path`, keeping one that is already ours; sets m_readOnly when it is taken.
bool StudyDocument::adoptLock(const QString& path)
{
    m_readOnly.reset();
    if (m_lock && lockPath(path) == lockPath(m_fileName))
        return true;
    m_lock.reset();
    m_readOnly = lockFor(path, m_lock);
    return !m_readOnly;
}

void tellMachinesApart(std::vector<Record>& records)
{
    const Device here = describeHost();
    for (Record& record : records) {
        Device& device = record.device;
        const std::string elsewhere = "cpu of " + device.name;
        const bool isHere = isSameProcessor(device, here);
        if (device.id == "cpu" && !isHere)
            device.id = elsewhere;
        else if (device.id == elsewhere && isHere)
            device.id = "cpu"; // back on its machine
    }
}

Result<Document> readDocument(const QString& path)
{
    MEMSCAPE_TRY(text, readFile(pathOf(path)));
    return Document::parse(std::move(text));
}

Result<void> StudyDocument::open(const QString& path)
{
    auto file = readDocument(path);
    if (!file && !file.error().code.starts_with("file."))
        file = inFile(std::move(file), path);
    MEMSCAPE_TRY(read, std::move(file));
    return open(path, read);
}

Result<void> StudyDocument::open(const QString& path, const Document& file)
{
    if (file.format() == "memscape-record") {
        MEMSCAPE_TRY(record, inFile(file.record(), path));
        newStudy(); // without a file: saving must not put a study in the place of a record
        Study study;
        study.records.push_back(std::move(record));
        tellMachinesApart(study.records);
        replaceStudy(std::move(study));
        return {};
    }
    MEMSCAPE_TRY(study, inFile(file.study(), path));
    adoptLock(path);
    if (study.newer) {
        m_readOnly = Error{"document.newer",
                           utf8(tr("%1 was written by a newer Memscape").arg(QFileInfo(path).fileName())), utf8(path),
                           utf8(tr("update Memscape, or save a copy under another name: what this "
                                   "version does not know may be lost in the copy"))};
    } else if (!m_readOnly && !mayWrite(path)) {
        m_readOnly = Error{"file.permission", utf8(tr("%1 may not be written").arg(QFileInfo(path).fileName())),
                           utf8(path), utf8(tr("save under another name"))};
    }
    m_hash = hashOf(file.text());
    auto sizeNote = heavyStudyNote(file.text(), study, m_heavyBytes);
    setFileName(path);
    tellMachinesApart(study.records);
    replaceStudy(std::move(study));
    m_sizeNote = std::move(sizeNote);
    return {};
}

Result<void> StudyDocument::reload()
{
    if (m_fileName.isEmpty())
        return fail("document.untitled", utf8(tr("this study was never saved")));
    return open(m_fileName);
}

void StudyDocument::restore(Study study, const QString& fileName, const QByteArray& baseHash)
{
    m_readOnly.reset();
    if (fileName.isEmpty())
        m_lock.reset();
    else
        adoptLock(fileName);
    m_hash = baseHash;
    setFileName(fileName);
    replaceStudy(std::move(study));
    m_undo->resetClean();
    checkDisk();
}

Result<void> StudyDocument::save(Overwrite overwrite)
{
    if (m_fileName.isEmpty()) {
        return fail("document.untitled", utf8(tr("this study has no file yet")), utf8(tr("choose a name")));
    }
    if (m_readOnly)
        return fail(*m_readOnly);
    const QByteArray onDisk = hashOfFile(m_fileName);
    if (overwrite == Overwrite::No && !onDisk.isEmpty() && onDisk != m_hash) {
        return fail("document.changed", utf8(tr("%1 was changed by another program").arg(displayName())),
                    utf8(tr("overwrite it, reload it, or save under another name")), utf8(m_fileName));
    }
    return write(m_fileName);
}

Result<void> StudyDocument::saveAs(const QString& path)
{
    const QString absolute = QFileInfo(path).absoluteFilePath();
    if (!m_fileName.isEmpty() && lockPath(absolute) == lockPath(m_fileName))
        return save(Overwrite::Yes); // the file dialog has asked
    std::unique_ptr<QLockFile> lock;
    if (auto taken = lockFor(absolute, lock))
        return fail(std::move(*taken));
    MEMSCAPE_CHECK(write(absolute));
    m_lock = std::move(lock);
    m_readOnly.reset();
    m_study.newer = false;
    setFileName(absolute);
    emitEvent(FileChanged{});
    return {};
}

void StudyDocument::editAnyway()
{
    if (!m_readOnly || m_readOnly->code != "document.locked")
        return;
    m_readOnly.reset();
    emitEvent(FileChanged{});
}

Result<void> StudyDocument::write(const QString& path)
{
    const std::string content = text();
    MEMSCAPE_CHECK(checkReadable(content)); // what is on disk stays when this one could not be opened
    MEMSCAPE_CHECK(writeFileAtomically(pathOf(path), content));
    m_hash = hashOf(content);
    m_sizeNote = heavyStudyNote(content, m_study, m_heavyBytes);
    m_changedOnDisk = false;
    m_stamp = {{}, -1}; // look at the next notice
    m_undo->setClean();
    if (path == m_fileName) {
        watch(); // the file is a new one under the old name
        emitEvent(FileChanged{});
    }
    return {};
}

void StudyDocument::watch()
{
    m_diskTimer->stop();
    const QStringList watched = m_watcher->files() + m_watcher->directories();
    if (!watched.isEmpty())
        m_watcher->removePaths(watched);
    if (m_fileName.isEmpty())
        return;
    // The folder too: a file that is replaced by renaming is another file.
    const QFileInfo info(m_fileName);
    if (info.exists())
        m_watcher->addPath(m_fileName);
    if (QFileInfo::exists(info.absolutePath()))
        m_watcher->addPath(info.absolutePath());
}

void StudyDocument::checkDisk()
{
    if (m_fileName.isEmpty())
        return;
    if (!m_watcher->files().contains(m_fileName) && QFileInfo::exists(m_fileName))
        m_watcher->addPath(m_fileName);
    // Most notices are about other files of the folder.
    const QFileInfo info(m_fileName);
    const std::pair stamp(info.lastModified(), info.size());
    if (stamp == m_stamp)
        return;
    m_stamp = stamp;
    const bool changed = hashOfFile(m_fileName) != m_hash;
    if (changed == m_changedOnDisk)
        return;
    m_changedOnDisk = changed;
    emitEvent(FileChanged{});
}

} // namespace memscape

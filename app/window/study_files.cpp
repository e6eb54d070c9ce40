// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/study_files.h"

#include "app/labs/lab_store.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLocale>
#include <QMenu>
#include <QMessageBox>

#include <utility>

namespace memscape {

namespace {

constexpr auto diskTopic = "disk";
constexpr auto readOnlyTopic = "readonly";
constexpr auto saveTopic = "save";
constexpr auto sizeTopic = "size";

SaveAnswer askInBox(QWidget* window, const QString& name, bool stopsRun)
{
    QMessageBox box(QMessageBox::Question, StudyFiles::tr("Save changes?"),
                    stopsRun ? StudyFiles::tr("A measurement is running: closing stops it.")
                             : StudyFiles::tr("“%1” has changes that are not saved.").arg(name),
                    QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, window);
    QString loss = stopsRun ? StudyFiles::tr("Without saving, what it has measured so far and other changes "
                                             "of “%1” are lost. Cancel lets it go on.")
                                  .arg(name)
                            : StudyFiles::tr("Without saving they are lost.");
    if (QDir(labAnswersFolder()).exists()) // whose answers the question seems to be about
        loss += u' ' + StudyFiles::tr("Answers to labs are kept in any case.");
    box.setInformativeText(loss);
    box.setDefaultButton(QMessageBox::Save);
    switch (box.exec()) {
    case QMessageBox::Save: return SaveAnswer::Save;
    case QMessageBox::Discard: return SaveAnswer::Discard;
    default: return SaveAnswer::Cancel;
    }
}

} // namespace

StudyFiles::StudyFiles(StudyDocument& document, Settings& settings, Banner& banner, QWidget* window)
    : QObject(window)
    , m_document(document)
    , m_settings(settings)
    , m_banner(banner)
    , m_window(window)
{
    askSave = [this] { return askInBox(m_window, m_document.displayName(), m_stopsRun); };
    askOpen = [this] {
        return QFileDialog::getOpenFileName(
            m_window, tr("Open"), m_settings.lastFolder(QStringLiteral("study")),
            tr("Memscape files and snapshots (*.memscape *.json *.pickle *.pkl *.memscape-run);;"
               "All files (*)"));
    };
    askSaveName = [this] {
        const QString folder = m_settings.lastFolder(QStringLiteral("study"));
        const QString name =
            m_document.fileName().isEmpty() ? QDir(folder).filePath(tr("study.memscape")) : m_document.fileName();
        QString path =
            QFileDialog::getSaveFileName(m_window, tr("Save study as"), name, tr("Memscape study (*.memscape)"));
        if (!path.isEmpty() && QFileInfo(path).suffix().isEmpty())
            path += QStringLiteral(".memscape");
        return path;
    };
    connect(&document, &StudyDocument::changed, this, &StudyFiles::documentChanged);
}

void StudyFiles::documentChanged(const ChangeEvent& event)
{
    if (std::holds_alternative<StudyReset>(event)) { // these were about the study before
        m_banner.closeTopic(QString::fromLatin1(saveTopic));
        m_banner.closeTopic(QString::fromLatin1(sizeTopic));
        m_saidSize = false;
    }
    if (!std::holds_alternative<FileChanged>(event))
        return;
    const QString topic = QString::fromLatin1(diskTopic);
    if (!m_document.changedOnDisk()) {
        m_banner.closeTopic(topic);
        return;
    }
    m_banner.put({BannerKind::Warning,
                  tr("%1 was changed by another program.").arg(m_document.displayName()),
                  tr("This window still shows your version."),
                  {},
                  {{tr("Reload"), [this] { reload(); }}},
                  topic});
}

SaveAnswer StudyFiles::beforeClosing(bool stopsRun)
{
    if (!m_document.isModified() && !stopsRun)
        return SaveAnswer::Discard;
    m_stopsRun = stopsRun;
    const SaveAnswer answer = askSave();
    m_stopsRun = false;
    return answer == SaveAnswer::Save && !save() ? SaveAnswer::Cancel : answer;
}

bool StudyFiles::mayClose()
{
    return beforeClosing(false) != SaveAnswer::Cancel;
}

void StudyFiles::newStudy()
{
    if (mayClose())
        m_document.newStudy();
}

void StudyFiles::showOpeningNotes()
{
    for (const Error& note : m_document.openingNotes()) {
        BannerMessage message;
        message.kind = BannerKind::Warning;
        message.text = QString::fromStdString(note.text());
        m_banner.put(message);
    }
}

/// Once for a study that has grown heavy, not at every save.
void StudyFiles::showSize()
{
    const auto& note = m_document.sizeNote();
    const bool wasSaid = std::exchange(m_saidSize, note.has_value());
    if (!note)
        m_banner.closeTopic(QString::fromLatin1(sizeTopic));
    else if (!wasSaid)
        m_banner.put({BannerKind::Warning,
                      QString::fromStdString(note->message),
                      QString::fromStdString(note->hint),
                      QString::fromStdString(note->text()),
                      {},
                      QString::fromLatin1(sizeTopic)});
}

void StudyFiles::showReadOnly()
{
    const auto& reason = m_document.readOnlyReason();
    m_banner.closeTopic(QString::fromLatin1(readOnlyTopic));
    if (!reason)
        return;
    BannerMessage message{BannerKind::Warning,
                          QString::fromStdString(reason->message),
                          QString::fromStdString(reason->hint),
                          {},
                          {{tr("Save as…"), [this] { saveAs(); }}},
                          QString::fromLatin1(readOnlyTopic)};
    if (reason->code == "document.locked")
        message.actions << BannerAction{tr("Edit anyway"), [this] { m_document.editAnyway(); }};
    m_banner.put(message);
}

bool StudyFiles::save()
{
    if (m_document.fileName().isEmpty())
        return saveAs();
    const auto written = m_document.save();
    if (!written)
        return saveFailed(written.error());
    saved();
    return true;
}

bool StudyFiles::saveAs()
{
    const QString path = askSaveName();
    if (path.isEmpty())
        return false;
    const auto written = m_document.saveAs(path);
    if (!written)
        return saveFailed(written.error());
    m_settings.setLastFolder(QStringLiteral("study"), QFileInfo(path).absolutePath());
    saved();
    return true;
}

void StudyFiles::saved()
{
    m_settings.addRecentFile(m_document.fileName());
    m_banner.closeTopic(QString::fromLatin1(diskTopic));
    m_banner.closeTopic(QString::fromLatin1(readOnlyTopic));
    m_banner.closeTopic(QString::fromLatin1(saveTopic));
    showSize();
}

bool StudyFiles::saveFailed(const Error& error)
{
    if (error.code == "document.untitled")
        return saveAs();
    BannerMessage message{BannerKind::Problem,
                          QString::fromStdString(error.message),
                          QString::fromStdString(error.hint),
                          QString::fromStdString(error.text()),
                          {{tr("Save as…"), [this] { saveAs(); }}},
                          QString::fromLatin1(saveTopic)};
    if (error.code == "document.changed") {
        message.actions << BannerAction{tr("Overwrite"), [this] {
                                            if (const auto again = m_document.save(StudyDocument::Overwrite::Yes);
                                                !again)
                                                m_banner.showError(again.error());
                                            else
                                                saved();
                                        }};
        message.actions << BannerAction{tr("Reload"), [this] { reload(); }};
    }
    m_banner.put(message);
    return false;
}

void StudyFiles::reload()
{
    if (m_document.fileName().isEmpty())
        return;
    if (m_document.isModified() && askSave() != SaveAnswer::Discard)
        return;
    if (const auto read = m_document.reload(); !read)
        m_banner.showError(read.error(), m_document.fileName());
    else {
        m_banner.closeTopic(QString::fromLatin1(diskTopic));
        showSize();
    }
}

void StudyFiles::offerRecovery(Autosave& autosave)
{
    for (const RecoverableStudy& study : recoverableStudies()) {
        BannerMessage message;
        message.kind = BannerKind::Warning;
        message.text = tr("“%1” was open when Memscape ended unexpectedly (%2).")
                           .arg(study.name, QLocale().toString(study.time, QLocale::ShortFormat));
        message.hint = tr("Its unsaved changes were kept.");
        message.actions = {{tr("Recover"),
                            [this, &autosave, study] {
                                if (!mayClose())
                                    return;
                                if (const auto done = autosave.recover(study); !done)
                                    m_banner.showError(done.error(), study.path);
                            }},
                           {tr("Discard"), [this, &autosave, study] { discard(autosave, study); }}};
        message.topic = study.path;
        m_banner.put(message);
    }
}

void StudyFiles::discard(Autosave& autosave, const RecoverableStudy& study)
{
    const std::filesystem::path path(study.path.toStdString());
    const auto kept = readFile(path); // until the message goes: a slip of the hand costs nothing
    discardRecovery(study);
    if (!kept)
        return;
    m_banner.put({BannerKind::Info,
                  tr("The recovered changes of “%1” were deleted.").arg(study.name),
                  {},
                  {},
                  {{tr("Undo"),
                    [this, &autosave, path, kept = *kept] {
                        if (const auto written = writeFileAtomically(path, kept); !written)
                            m_banner.showError(written.error());
                        else
                            offerRecovery(autosave);
                    }}},
                  study.path,
                  {},
                  true}); // what was deleted can be had back as long as it stands
}

void StudyFiles::fillRecent(QMenu& menu)
{
    menu.clear();
    const QStringList files = m_settings.recentFiles();
    for (const QString& path : files) {
        QAction* action = menu.addAction(QFileInfo(path).fileName());
        action->setToolTip(path);
        action->setEnabled(QFileInfo::exists(path));
        connect(action, &QAction::triggered, this, [this, path] { openPath(path); });
    }
    if (files.isEmpty())
        menu.addAction(tr("No files yet"))->setEnabled(false);
    menu.addSeparator();
    QAction* clear = menu.addAction(tr("Clear list"));
    clear->setEnabled(!files.isEmpty());
    connect(clear, &QAction::triggered, this, [this, files] {
        m_settings.clearRecentFiles();
        m_banner.put({BannerKind::Info,
                      tr("The list of recent files is empty now."),
                      {},
                      {},
                      {{tr("Undo"),
                        [this, files] {
                            for (qsizetype i = files.size(); i-- > 0;)
                                m_settings.addRecentFile(files.at(i));
                        }}},
                      QStringLiteral("recent")});
    });
}

} // namespace memscape

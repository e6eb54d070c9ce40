// SPDX-License-Identifier: GPL-3.0-or-later
// Files of the window: new, open, save, recent, drops, reload, recovery. Problems become banners
// with what can be done about them; the one question that is asked in a box is whether to save
// before a study is closed.
#pragma once

#include "app/document/autosave.h"
#include "app/document/study_document.h"
#include "app/settings/settings.h"
#include "app/window/banner.h"

#include <QObject>

#include <functional>
#include <memory>

class QMenu;

namespace memscape {

enum class SaveAnswer { Save, Discard, Cancel };

/// A PyTorch snapshot or a run file, by its name or by its first bytes. A broken one is one too: its error is shown.
bool isSnapshotFile(const QString& path);

class StudyFiles : public QObject
{
    Q_OBJECT

public:
    StudyFiles(StudyDocument& document, Settings& settings, Banner& banner, QWidget* window);

    /// Questions to the person, so that tests can answer them.
    std::function<SaveAnswer()> askSave;
    std::function<QString()> askOpen;
    std::function<QString()> askSaveName;

    void newStudy();
    void open();
    /// A study is opened; records are added to the study that is open (an empty untitled one
    /// becomes it); a snapshot goes to its page; a device file joins the device list; the file of a network goes to the
    /// page it is for.
    bool openPath(const QString& path);
    /// The records that come with the program, as a new study.
    void openExample();
    void openPaths(const QStringList& paths);
    bool save();
    bool saveAs();
    void reload();
    /// True when nothing would be lost: saved, discarded on purpose, or unmodified.
    bool mayClose();
    /// The same before the window is closed, which stops a run: that is asked about even when all is saved. With Save
    /// the study is written already (what the run makes of its points is not); Cancel also when that failed.
    SaveAnswer beforeClosing(bool stopsRun);
    /// Offer what a killed Memscape left behind.
    void offerRecovery(Autosave& autosave);
    void fillRecent(QMenu& menu);

signals:
    void deviceFileOpened(const QString& path);
    void modelFileOpened(const QString& path); ///< config.json or safetensors of a network
    void chainFileOpened(const QString& path);
    void pageFileOpened(const QString& page, const QString& path); ///< of that tool page
    void recordsAdded(const QString& experiment);
    void recordOpened(); ///< a record file became the study: show it with its own parameters

private:
    void documentChanged(const ChangeEvent& event);
    bool openStudy(const QString& path, const Document& file);
    bool addRecord(const QString& path);
    void addRecord(Record record, const QString& path);
    bool addDeviceFile(const QString& path);
    void openFailed(const Error& error, const QString& path);
    bool saveFailed(const Error& error);
    void saved();
    void discard(Autosave& autosave, const RecoverableStudy& study);
    void showOpeningNotes();
    void showSize();
    void showReadOnly();

    StudyDocument& m_document;
    Settings& m_settings;
    Banner& m_banner;
    QWidget* m_window;
    bool m_saidSize = false; ///< that this study is heavy
    bool m_opensSeveral = false;
    bool m_stopsRun = false; ///< what the question that stands is about
};

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// The study that a window shows: a core Study with a file, a history and one `changed` signal.
// Pages hold no numbers of their own; they read this and call the functions under "Edits", each of
// which is one step of the undo history.
//
// State of a page (parameters, device, view settings) is kept here per experiment and written to
// Study.view: {"page": "stride", "pages": {"stride": {"parameters", "device", "settings"}},
// "settings"}.
//
// Two windows on one study: a lock file beside it names its process; the second window opens it
// read-only, with a banner (readOnlyReason). A file that another program changed is never
// overwritten unasked: save() answers document.changed and the caller decides.
#pragma once

#include "app/document/change_event.h"
#include "core/experiment/document.h"
#include "core/experiment/study_size.h"

#include <QDateTime>
#include <QObject>
#include <QString>

#include <functional>
#include <map>
#include <memory>
#include <optional>

class QFileSystemWatcher;
class QLockFile;
class QTimer;
class QUndoCommand;
class QUndoStack;

namespace memscape {

/// What a page remembers. `parameters` is empty until the user has set one.
struct PageState
{
    std::optional<Parameters> parameters;
    std::string device;
    std::map<std::string, Json> settings; ///< null: not set
    Json foreign;                         ///< unknown keys; all of it, when this program does not know the experiment

    bool operator==(const PageState&) const = default;
};

/// Errors: file.* (the message names the file), json.* (it does not).
Result<Document> readDocument(const QString& path);

/// "cpu" of another machine is not this one: it gets an id of its own ("cpu of AMD EPYC"), so that its
/// measurements do not stand beside predictions for this machine; and the plain one where it is this.
void tellMachinesApart(std::vector<Record>& records);

class StudyDocument : public QObject
{
    Q_OBJECT
public:
    explicit StudyDocument(QObject* parent = nullptr);
    ~StudyDocument() override;

    // The file. ---------------------------------------------------------------------------------
    QString fileName() const { return m_fileName; } ///< absolute; empty when never saved
    /// "strides.memscape", or "Untitled study": for the window title.
    QString displayName() const;
    bool isModified() const;
    bool isReadOnly() const { return m_readOnly.has_value(); }
    /// Why save() will refuse: document.newer, document.locked (names the process), file.permission.
    const std::optional<Error>& readOnlyReason() const { return m_readOnly; }
    /// Another program changed or removed the file since we read or wrote it.
    bool changedOnDisk() const { return m_changedOnDisk; }
    /// Look now. Watching does it by itself, but network file systems send no notification: call it when
    /// the window is activated.
    void checkDisk();
    /// What was left out on opening (a page's parameters that no longer fit, say), for a banner.
    const std::vector<Error>& openingNotes() const { return m_openingNotes; }

    /// study.heavy: the study as it was opened or saved last is so large that a message is shown.
    const std::optional<Error>& sizeNote() const { return m_sizeNote; }
    void setHeavyBytes(std::size_t bytes) { m_heavyBytes = bytes; } ///< so that tests need no large file

    void newStudy();
    /// The old study stays when this fails. A record file opens as an untitled study of one.
    /// Errors: file.*, json.*, document.*.
    Result<void> open(const QString& path);
    /// The same with the present content of the file, after the user has seen it.
    Result<void> open(const QString& path, const Document& file);
    /// Discards modifications and reads the file again.
    Result<void> reload();
    enum class Overwrite { No, Yes };
    /// Errors: document.untitled (ask for a name), document.changed (changed on disk: ask whether
    /// to overwrite, reload or save under another name), readOnlyReason(), file.*.
    Result<void> save(Overwrite overwrite = Overwrite::No);
    /// Also the way out of read-only. Errors: document.locked when another window has that file.
    Result<void> saveAs(const QString& path);
    /// Take a locked study over: it can be saved again. Does nothing for other reasons.
    void editAnyway();
    /// Put in a study that was found after a crash: `baseHash` is the file as it was when that
    /// study was last saved, so that a later save notices other changes. The result is modified.
    void restore(Study study, const QString& fileName, const QByteArray& baseHash);
    QByteArray baseHash() const { return m_hash; }

    /// What a page of an experiment opens with; the schema's defaults until this is set.
    void setStandard(std::function<Parameters(const std::string&)> standard) { m_standard = std::move(standard); }

    // What is in it. ----------------------------------------------------------------------------
    /// The study as it would be saved now, view included.
    Study study() const;
    /// The exact bytes that save() writes.
    std::string text() const;
    const std::string& title() const { return m_study.title; }
    const std::vector<Record>& records() const { return m_study.records; }
    const std::string& page() const { return m_page; }
    /// Of that experiment's page; its defaults when none were set.
    Parameters parameters(const std::string& experiment) const;
    /// Device id; empty when none was chosen.
    std::string device(const std::string& experiment) const;
    /// Device id that was chosen last, on whichever page; empty when none was.
    std::string lastDevice() const { return device(""); }
    /// A saved view setting; null when not set. Empty experiment: of the whole study.
    Json viewSetting(const std::string& experiment, const std::string& key) const;

    // Edits: each is one undoable step; nothing happens when nothing would change. --------------
    QUndoStack* undoStack() const { return m_undo; }
    /// A new number for one drag: edits of the same parameter with the same gesture become one
    /// step, which vanishes when the drag ends where it began. 0 never merges.
    int newGesture() { return ++m_gesture; }
    void setParameter(const std::string& experiment, const std::string& key, const ParameterValue& value,
                      int gesture = 0);
    /// The same with what follows from it: `next` has the new value of `key`.
    void setParameter(const std::string& experiment, const std::string& key, Parameters next, int gesture = 0);
    void setSweep(const std::string& experiment, const std::optional<Sweep>& sweep);
    /// Several at once ("Reset to defaults", "Use this record's parameters"): `text` names the
    /// step.
    void setParameters(const std::string& experiment, const Parameters& parameters, const QString& text);
    void setDevice(const std::string& experiment, const std::string& device);
    void setViewSetting(const std::string& experiment, const std::string& key, const Json& value);
    /// At the end; returns its index.
    std::size_t addRecord(Record record);
    /// As one step, "Import 3 records".
    void addRecords(std::vector<Record> records, const QString& text);
    void removeRecord(std::size_t index);
    void removeRecords(const std::vector<std::size_t>& indices); ///< as one step of the history
    void renameRecord(std::size_t index, const std::string& name);
    void setRecordNote(std::size_t index, const std::string& note, int gesture = 0);
    void setRecordPinned(std::size_t index, bool pinned);
    /// The one with which the others of its experiment are compared; the one before is it no longer.
    void setBaseline(std::size_t index, bool baseline);
    /// Saved, but neither a step nor a modification. Undoing an edit of another page shows it.
    void setPage(const std::string& experiment);
    /// The same as a step of the history: undoing it leads back.
    void visitPage(const std::string& page);

signals:
    void changed(const memscape::ChangeEvent& event);

private:
    friend class StudyEditor; // what the undo commands may touch
    void emitEvent(const ChangeEvent& event) { emit changed(event); }
    void push(QUndoCommand* command);
    void pushParameters(const std::string& experiment, Parameters parameters, const QString& text,
                        const std::string& slot, int gesture);
    void pushRecordFlag(std::size_t index, const QString& text, bool Record::*field, bool value);
    void pushRecordText(std::size_t index, const QString& text, std::string Record::*field, const std::string& value,
                        int gesture);
    const PageState* findPage(const std::string& experiment) const;
    Parameters standard(const std::string& experiment) const; ///< of a page without parameters of its own
    void show(const std::string& experiment, bool byHand);

    void replaceStudy(Study study);
    void readView();
    Json viewJson() const;
    Result<void> write(const QString& path);
    std::optional<Error> lockFor(const QString& path, std::unique_ptr<QLockFile>& lock) const;
    void watch();
    bool adoptLock(const QString& path);
    void setFileName(const QString& path);

    Study m_study;
    std::string m_page;
    std::map<std::string, PageState> m_pages; // key "" holds the settings and the last device of the whole study
    Json m_foreignView;                       // unknown keys of Study.view

    QUndoStack* m_undo;
    std::function<Parameters(const std::string&)> m_standard;
    int m_gesture = 0;
    std::pair<std::string, int> m_firstEdit; ///< experiment and gesture that gave a page parameters of its own
    QString m_fileName;
    QByteArray m_hash; // of the file as we last read or wrote it
    std::optional<Error> m_readOnly;
    bool m_changedOnDisk = false;
    std::pair<QDateTime, qint64> m_stamp{{}, -1}; // of the file that m_changedOnDisk is about
    std::vector<Error> m_openingNotes;
    std::optional<Error> m_sizeNote;
    std::size_t m_heavyBytes = heavyStudyBytes;
    std::unique_ptr<QLockFile> m_lock;
    QFileSystemWatcher* m_watcher;
    QTimer* m_diskTimer;
};

} // namespace memscape

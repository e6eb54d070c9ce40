// SPDX-License-Identifier: GPL-3.0-or-later
// The records of a page: click shows one as the measurement, pin draws it beside, two selected ones
// are compared, F2 renames in place, Del deletes (undo brings it back), a note says what it was.
#pragma once

#include "app/pages/records/records_model.h"

#include <QWidget>

class QLabel;
class QListView;
class QPlainTextEdit;
class QToolButton;

namespace memscape {

class RecordsList : public QWidget
{
    Q_OBJECT

public:
    RecordsList(StudyDocument& document, const std::string& experiment, QWidget* parent = nullptr);

    RecordsModel* model() const { return m_model; }
    QListView* view() const { return m_view; }
    /// The two selected records compared, as it stands in the strip; empty without two.
    QString comparisonText() const;

    /// Its menu, asked for from elsewhere: at that place of the screen.
    void menuFor(int recordIndex, const QPoint& at);

signals:
    void chosen(int recordIndex);
    /// Put the record's parameters and device back on the page.
    void parametersWanted(int recordIndex);
    void exportWanted(int recordIndex);
    void revealWanted(QWidget* what); ///< something that one asked for may be out of sight

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildTools();
    QToolButton* tool(const char* icon, const QString& tip, void (RecordsList::*action)());
    std::vector<std::size_t> selected() const;
    void togglePin();
    void toggleBaseline();
    void rename();
    void remove();
    void editNote();
    void noteEdited();
    void contextMenu(const QPoint& at);
    void openMenu(const QPoint& atScreen);
    void contextMenuByKey();
    void selectionChanged();
    void refreshNote();
    void refresh();
    void fitHeight();
    void selectReturned(int row);

    StudyDocument& m_document;
    RecordsModel* m_model;
    QListView* m_view;
    QWidget* m_tools;
    QLabel* m_empty;
    QLabel* m_hint;
    QLabel* m_comparison;
    QPlainTextEdit* m_note;
    int m_noteOf = -1;
    int m_noteGesture = 0;
    bool m_isReturning = false; ///< records come back, one by one, by a step of the history
};

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// Who holds the bytes: the same blocks as a flame graph or as a table, by stack, module, operator, line or category;
// those alive at the moment, or those allocated in the range. Summing runs beside the window's thread.
#pragma once

#include "app/pages/background_work.h"
#include "app/pages/snapshot/flame_view.h"
#include "app/pages/snapshot/numbers_table.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QStackedWidget;

namespace memscape {

class GroupsPane : public QWidget
{
    Q_OBJECT

public:
    enum class Kind { Flame, Table };

    explicit GroupsPane(Kind kind, QWidget* parent = nullptr);

    void setShown(const SnapshotShown& shown);
    FlameView* flame() const { return m_flame; }
    NumbersTable* table() const { return m_table; }
    QComboBox* by() const { return m_by; }
    QComboBox* of() const { return m_of; }
    QLineEdit* filter() const { return m_filter; }
    bool isBusy() const { return m_isStale || m_work.isBusy(); }
    QString summary() const;

signals:
    void hoverText(const QString& text);
    void momentWanted(std::size_t moment);

protected:
    void showEvent(QShowEvent* event) override;

private:
    struct Answer;
    void refresh();
    void show(const Answer& answer);
    SnapshotGrouping grouping() const;

    const Kind m_kind;
    SnapshotShown m_shown;
    QComboBox* m_by;
    QComboBox* m_of;
    QLineEdit* m_filter;
    QLabel* m_summary;
    FlameView* m_flame;
    NumbersTable* m_table;
    std::vector<SnapshotGroup> m_groups; ///< rows of the table
    bool m_isChosen = false;             ///< by hand, by what they are summed
    bool m_isStale = false;              ///< summed when it is seen
    BackgroundWork m_work;
};

/// The table of groups: bytes, share, blocks, the largest of them.
Numbers numbersOf(const std::vector<SnapshotGroup>& groups, SnapshotGrouping grouping,
                  const SnapshotCategories& categories);

} // namespace memscape

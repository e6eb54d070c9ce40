// SPDX-License-Identifier: GPL-3.0-or-later
// Two snapshots side by side: their figures, and who holds more at the peak, by category, line or stack.
#pragma once

#include "app/pages/background_work.h"
#include "app/pages/snapshot/numbers_table.h"
#include "app/pages/snapshot/snapshot_opener.h"
#include "core/snapshot/snapshot_comparison.h"

#include <QWidget>

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;

namespace memscape {

class ComparePane : public QWidget
{
    Q_OBJECT

public:
    explicit ComparePane(QWidget* parent = nullptr);

    /// The snapshot of the page; null: none.
    void setThis(std::shared_ptr<const SnapshotDevice> device, const QString& name, ByteStyle bytes);
    /// Opens the other one; empty closes it.
    void setOther(const QString& path);
    QString other() const { return m_path; }
    bool isBusy() const { return m_opener.isBusy() || m_work.isBusy(); }
    const SnapshotComparison* comparison() const { return m_comparison.get(); }
    NumbersTable* table() const { return m_table; }
    QComboBox* by() const { return m_by; }
    QString stateText() const;

signals:
    void closeWanted();
    void otherWanted(); ///< choose another file

private:
    void compare();
    void show();
    void say(const QString& words, const char* tone);

    SnapshotOpener m_opener;
    BackgroundWork m_work;
    std::shared_ptr<const SnapshotDevice> m_this, m_other;
    std::shared_ptr<const SnapshotComparison> m_comparison;
    QString m_name, m_path;
    ByteStyle m_bytes = ByteStyle::Binary;
    QComboBox* m_by;
    QLineEdit* m_filter;
    QLabel* m_state;
    NumbersTable* m_table;
};

/// Differences as a table: this one, the other one, the change from this to the other.
Numbers numbersOf(const std::vector<SnapshotDifference>& differences, const QString& heading);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// What a person prefers: look, units, workers, shortcuts, exports. Everything takes effect at once;
// there is nothing to confirm.
#pragma once

#include "app/settings/settings.h"
#include "app/window/actions.h"

#include <QDialog>

class QLabel;
class QLayout;
class QTableWidget;
class QTabWidget;

namespace memscape {

class SettingsDialog : public QDialog
{
    Q_OBJECT

public:
    SettingsDialog(Settings& settings, Actions& actions, QWidget* parent = nullptr);

    void showWorkers();

signals:
    void addWorkerWanted();

private:
    QWidget* lookPage();
    QWidget* workersPage();
    QLayout* pythonRow(QWidget* page);
    QWidget* shortcutsPage();
    QWidget* exportPage();
    void fillWorkers();
    void removeWorker();
    void changeShortcut(const QString& id, const QString& keys);

    Settings& m_settings;
    Actions& m_actions;
    QTabWidget* m_tabs;
    QTableWidget* m_workers;
    QLabel* m_conflicts;
};

} // namespace memscape

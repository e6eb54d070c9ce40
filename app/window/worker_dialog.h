// SPDX-License-Identifier: GPL-3.0-or-later
// "Add device from command…": a name and the command that starts a worker somewhere. What is wrong
// with either is said under the fields, while one types.
#pragma once

#include "app/settings/settings.h"

#include <QDialog>

class QLabel;
class QLineEdit;
class QPushButton;

namespace memscape {

class WorkerDialog : public QDialog
{
    Q_OBJECT

public:
    explicit WorkerDialog(const std::vector<SavedWorker>& known, QWidget* parent = nullptr);

    SavedWorker worker() const;

private:
    void check();

    std::vector<SavedWorker> m_known;
    QLineEdit* m_name;
    QLineEdit* m_command;
    QLabel* m_problem;
    QPushButton* m_add;
};

} // namespace memscape

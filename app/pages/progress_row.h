// SPDX-License-Identifier: GPL-3.0-or-later
// How far a measurement is: a bar, what is measured now, how long it has taken, Stop.
#pragma once

#include "app/pages/run_controller.h"

#include <QTimer>
#include <QWidget>

class QLabel;
class QProgressBar;
class QPushButton;

namespace memscape {

/// At the pace so far; none in the first seconds and the first twentieth, which are too short for an estimate.
std::optional<int> remainingSeconds(int done, int total, double elapsed);

class ProgressRow : public QWidget
{
    Q_OBJECT

public:
    explicit ProgressRow(RunController& runs, QWidget* parent = nullptr);

private:
    void refresh();

    RunController& m_runs;
    QProgressBar* m_bar;
    QLabel* m_label;
    QPushButton* m_wait;
    QPushButton* m_stop;
    QTimer m_seconds;
};

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/progress_row.h"

#include "app/pages/cards/card.h"
#include "app/settings/words.h"

#include <QHBoxLayout>
#include <QProgressBar>
#include <QPushButton>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QString progressText(const RunningMeasurement& run, const QString& where)
{
    if (run.stopping)
        return ProgressRow::tr("stopping…");
    if (run.silent)
        return ProgressRow::tr("The worker has sent nothing for a while.");
    // The page may be another one by now, or show another device.
    const auto experiment = findExperiment(run.experiment);
    const QString what = experiment ? toQString((*experiment)->title()) : ProgressRow::tr("Calibration");
    QString text = ProgressRow::tr("%1 on %2: %3").arg(what, where, run.label);
    if (run.total > 0)
        text += ProgressRow::tr(" · %1 of %2").arg(run.done).arg(run.total);
    const qint64 seconds = run.elapsed.elapsed() / 1000;
    if (seconds >= 2)
        text += ProgressRow::tr(" · %1 s").arg(seconds);
    if (const auto remaining = remainingSeconds(run.done, run.total, double(seconds)))
        text += ProgressRow::tr(", about %1 s more").arg(*remaining);
    return text;
}

} // namespace

std::optional<int> remainingSeconds(int done, int total, double elapsed)
{
    if (elapsed < 3 || done <= 0 || done >= total || done < total * 0.05)
        return {};
    return std::max(1, int(std::ceil(elapsed * (total - done) / done)));
}

ProgressRow::ProgressRow(RunController& runs, QWidget* parent)
    : QWidget(parent)
    , m_runs(runs)
    , m_bar(new QProgressBar(this))
    , m_label(toneLabel({}, "dim", this))
    , m_wait(new QPushButton(tr("Keep waiting"), this))
    , m_stop(new QPushButton(tr("Stop"), this))
{
    setObjectName(QStringLiteral("progress"));
    m_bar->setTextVisible(false);
    m_bar->setAccessibleName(tr("Progress of the measurement"));
    m_stop->setProperty("role", "danger");
    m_stop->setObjectName(QStringLiteral("stop"));
    m_stop->setToolTip(tr("Stops within a second; points measured so far are kept"));
    m_wait->setVisible(false);
    auto* row = new QHBoxLayout;
    row->addWidget(m_label, 1);
    row->addWidget(m_wait);
    row->addWidget(m_stop);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 8, 0, 0);
    column->setSpacing(6);
    column->addWidget(m_bar);
    column->addLayout(row);
    connect(m_stop, &QPushButton::clicked, &m_runs, &RunController::stop);
    connect(m_wait, &QPushButton::clicked, &m_runs, &RunController::keepWaiting);
    connect(&m_runs, &RunController::changed, this, &ProgressRow::refresh);
    m_seconds.setInterval(1000);
    connect(&m_seconds, &QTimer::timeout, this, &ProgressRow::refresh);
    refresh();
}

void ProgressRow::refresh()
{
    const auto& run = m_runs.current();
    setVisible(run.has_value());
    if (!run) {
        m_seconds.stop();
        return;
    }
    if (!m_seconds.isActive())
        m_seconds.start();
    m_bar->setRange(0, run->total);
    m_bar->setValue(run->done);
    m_label->setText(progressText(*run, m_runs.where()));
    m_stop->setEnabled(!run->stopping);
    m_wait->setVisible(run->silent && !run->stopping);
}

} // namespace memscape

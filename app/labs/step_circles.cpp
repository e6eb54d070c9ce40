// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/step_circles.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QHBoxLayout>
#include <QPainter>

namespace memscape {

StepState stepState(const LabAttempt& attempt, const std::string& step)
{
    return attempt.isLocked(step) ? StepState::Locked
        : attempt.isDone(step)    ? StepState::Done
        : attempt.isOpen(step)    ? StepState::Open
                                  : StepState::Closed;
}

QString stepStateText(StepState state)
{
    switch (state) {
    case StepState::Done: return tr("done");
    case StepState::Locked: return tr("locked");
    case StepState::Open: return tr("open");
    case StepState::Closed: break;
    }
    return tr("not open yet");
}

StepCircle::StepCircle(int number, QWidget* parent)
    : QAbstractButton(parent)
    , m_number(number)
{
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
}

void StepCircle::set(StepState state, bool isShown, const QString& title)
{
    m_state = state;
    m_isShown = isShown;
    const QString name = tr("Step %1, %2: %3").arg(m_number).arg(title, stepStateText(state));
    setAccessibleName(isShown ? tr("%1 (shown)").arg(name) : name);
    setToolTip(name);
    update();
}

QSize StepCircle::sizeHint() const
{
    const int side = int(24 * plotUnit());
    return {side, side};
}

void StepCircle::paintEvent(QPaintEvent*)
{
    const Theme& theme = currentTheme();
    const bool isDone = m_state == StepState::Done || m_state == StepState::Locked;
    const double side = std::min(width(), height()) - 3.0;
    const QRectF box((width() - side) / 2, (height() - side) / 2, side, side);
    const QColor fill = m_isShown ? theme.predicted : isDone ? theme.good : theme.raised;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(fill);
    painter.setPen(QPen(hasFocus() ? theme.text : m_isShown || isDone ? fill : theme.border, hasFocus() ? 2 : 1));
    painter.drawEllipse(box);
    painter.setFont(plotFont(0.9, true));
    painter.setPen(m_isShown || isDone ? theme.onAccent : m_state == StepState::Closed ? theme.textFaint : theme.text);
    painter.drawText(box, Qt::AlignCenter, isDone && !m_isShown ? QStringLiteral("✓") : QString::number(m_number));
}

StepCircles::StepCircles(QWidget* parent)
    : QWidget(parent)
{
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(8);
    row->addStretch(1);
    setAccessibleName(tr("Steps"));
}

void StepCircles::display(const LabAttempt& attempt, const std::string& shown)
{
    const auto& steps = attempt.lab().steps;
    auto* row = static_cast<QHBoxLayout*>(layout());
    while (m_circles.size() > steps.size()) {
        delete m_circles.back();
        m_circles.pop_back();
    }
    while (m_circles.size() < steps.size()) {
        const int index = int(m_circles.size());
        auto* circle = new StepCircle(index + 1, this);
        row->insertWidget(index, circle);
        circle->show();
        connect(circle, &QAbstractButton::clicked, this,
                [this, index] { emit wanted(toQString(m_ids[std::size_t(index)])); });
        m_circles.push_back(circle);
    }
    row->setSpacing(steps.size() > 9 ? 3 : 8);
    m_ids.clear();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        m_ids.push_back(steps[i].id);
        m_circles[i]->set(stepState(attempt, steps[i].id), steps[i].id == shown, toQString(steps[i].title));
    }
    update();
}

/// The line between them.
void StepCircles::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setPen(QPen(currentTheme().border, 2));
    for (std::size_t i = 0; i + 1 < m_circles.size(); ++i) {
        const QRect from = m_circles[i]->geometry(), to = m_circles[i + 1]->geometry();
        painter.drawLine(from.right() + 1, from.center().y(), to.left() - 1, from.center().y());
    }
}

} // namespace memscape

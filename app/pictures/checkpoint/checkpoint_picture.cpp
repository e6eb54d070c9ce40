// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/checkpoint/checkpoint_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/parameter.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QString valueOf(const Parameters& parameters, const char* key)
{
    for (const auto& [name, value] : parameters.values()) {
        if (name == key)
            return QString::fromStdString(valueText(value));
    }
    return {};
}

/// A path: the file's own name says enough.
QString chainName(const QString& chain)
{
    return chain.contains(u'/') ? chain.section(u'/', -1) : chain;
}

QString titleOf(const ScheduleState& state, const Parameters& parameters)
{
    const QString strategy = strategyLabel(valueOf(parameters, "strategy"));
    QString title = chainName(valueOf(parameters, "chain")) + QStringLiteral(" · ") + strategy;
    if (const QString budget = valueOf(parameters, "budget"); budget.startsWith(QStringLiteral("slots:")))
        title += CheckpointPicture::tr(" with %1 states").arg(budget.mid(6));
    else if (std::isfinite(state.budget))
        title += CheckpointPicture::tr(" for %1").arg(state.units.memory(state.budget));
    return title;
}

} // namespace

CheckpointPicture::CheckpointPicture(QWidget* parent)
    : WalkPicture({400, 210, 460}, parent)
{
    setAccessibleName(tr("Checkpoint schedule"));
}

void CheckpointPicture::read(const PictureValues& values)
{
    ScheduleState state;
    if (values.predicted)
        state = readSchedule(values.predicted->detail);
    else
        state.missing = problem();
    state.units.bytes = byteStyle();
    state.title = titleOf(state, values.parameters);
    if (values.measured) {
        state.measured = measuredPoints(*values.measured, state);
        for (const MeasuredPoint& point : state.measured)
            state.highest = std::max(state.highest, point.memory);
    }
    setSchedule(std::move(state));
}

void CheckpointPicture::setSchedule(ScheduleState state)
{
    m_state = std::move(state);
    setSteps(int(m_state.steps.size()), m_state.peak);
    forget();
}

void CheckpointPicture::forget()
{
    m_still = {};
    update();
}

ScheduleLayout CheckpointPicture::layoutNow() const
{
    return layoutSchedule(m_state, m_axis, cursorText(), QRectF(rect()));
}

QString CheckpointPicture::summary() const
{
    if (m_state.empty())
        return m_state.missing.isEmpty() ? tr("No schedule.") : tr("No schedule: %1").arg(m_state.missing);
    int recomputed = 0;
    for (const ScheduleStep& step : m_state.steps)
        recomputed += step.isRecomputation ? 1 : 0;
    const ScheduleStep& peak = m_state.steps[std::size_t(m_state.peak)];
    return tr("%1: %2 stages in %3 steps, %4 of them run again. Peak %5 at step %6, %7. Cursor at step %8: %9.")
        .arg(m_state.title)
        .arg(m_state.length)
        .arg(m_state.steps.size())
        .arg(recomputed)
        .arg(m_state.units.memory(peak.during))
        .arg(m_state.peak + 1)
        .arg(m_state.name(m_state.peak))
        .arg(cursor() + 1)
        .arg(cursorText());
}

void CheckpointPicture::setAxis(ScheduleAxis axis)
{
    m_axis = axis;
    forget();
}

/// In an export; on screen what stands still is painted once.
void CheckpointPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool) const
{
    const ScheduleLayout layout = layoutSchedule(m_state, m_axis, cursorText(), rect);
    const SchedulePen pen{painter, m_state, layout, theme};
    pen.still();
    pen.moving(cursor());
}

void CheckpointPicture::paintEvent(QPaintEvent*)
{
    const Theme& theme = currentTheme();
    const ScheduleLayout layout = layoutNow();
    const QSize pixels = size() * devicePixelRatioF();
    if (m_still.size() != pixels) {
        m_still = QPixmap(pixels);
        m_still.setDevicePixelRatio(devicePixelRatioF());
        m_still.fill(theme.background);
        QPainter still(&m_still);
        SchedulePen{still, m_state, layout, theme, PlayButton::Play}.still();
    }
    QPainter painter(this);
    painter.drawPixmap(0, 0, m_still);
    SchedulePen{painter, m_state, layout, theme, playSign()}.moving(cursor());
    paintFocusRing(painter, theme);
}

} // namespace memscape

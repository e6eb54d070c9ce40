// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/batch-size/batch_layout.h"

#include "app/pictures/common/fitting_text.h"
#include "app/plots/plot_style.h"

#include <QCoreApplication>
#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// A range that holds every finite value, with some room.
class Range
{
public:
    void add(double value)
    {
        if (!std::isfinite(value) || value <= 0)
            return;
        m_low = std::min(m_low, value);
        m_high = std::max(m_high, value);
    }
    BatchAxis logarithmic(double room) const
    {
        if (m_low > m_high)
            return {1, 10, true};
        const double factor = std::pow(std::max(2.0, m_high / m_low), room);
        return {m_low / factor, m_high * factor, true};
    }
    BatchAxis fromZero() const { return {0, m_high > 0 ? 1.15 * m_high : 1, false}; }

private:
    double m_low = 1e300, m_high = -1;
};

BatchPanel panelIn(const QRectF& frame)
{
    const double u = plotUnit();
    BatchPanel panel;
    panel.frame = frame;
    panel.title = QRectF(frame.left() + 8 * u, frame.top() + 3 * u, frame.width() - 16 * u, 17 * u);
    panel.area = frame.adjusted(50 * u, 24 * u, -12 * u, -18 * u);
    return panel;
}

void scaleBatches(const BatchState& state, BatchLayout& layout)
{
    Range batches, memory, throughput;
    for (const BatchMark& mark : state.curve) {
        batches.add(mark.batch);
        memory.add(mark.memory);
        throughput.add(mark.throughput);
    }
    memory.add(state.capacity);
    for (const BatchMark& mark : state.measured) {
        throughput.add(mark.throughput);
        memory.add(mark.memory);
    }
    layout.memory.x = layout.throughput.x = batches.logarithmic(0.02);
    layout.memory.y = memory.logarithmic(0.08);
    layout.throughput.y = throughput.fromZero();
}

void scaleTarget(const BatchState& state, BatchLayout& layout)
{
    Range steps, examples, memory, throughput;
    const auto add = [&](const BatchMark& mark) {
        steps.add(mark.steps);
        examples.add(mark.examples);
    };
    std::ranges::for_each(state.curve, add);
    std::ranges::for_each(state.measured, add);
    layout.target.x = steps.logarithmic(0.05);
    layout.target.y = examples.logarithmic(0.1);
    for (const BatchMark& mark : state.front) {
        memory.add(mark.allocated);
        throughput.add(mark.throughput);
    }
    layout.front.x = memory.logarithmic(0.06);
    layout.front.y = throughput.fromZero();
}

/// At the foot, as high as its lines are.
void placeReason(const BatchState& state, const QRectF& inner, BatchLayout& layout)
{
    const double u = plotUnit(), left = state.sweetSpot > 0 ? 20 * u : 0;
    const QFontMetricsF metrics(plotFont(0.82));
    layout.reasonText = state.sweetSpot > 0
        ? QCoreApplication::translate("BatchPicture", "Sweet spot %1: %2")
              .arg(state.sweetSpot, 0, 'f', 0)
              .arg(state.sweetReason)
        : QCoreApplication::translate("BatchPicture", "No sweet spot: %1").arg(state.sweetReason);
    const double width = inner.width() - left;
    layout.reasonText = fittingText(layout.reasonText, plotFont(0.82), width, 3.5 * metrics.height());
    const double needed = metrics.boundingRect(QRectF(0, 0, width, 1e4), Qt::TextWordWrap, layout.reasonText).height();
    const double lines = std::max(2 * metrics.height(), needed) + 3 * u;
    layout.reason = QRectF(inner.left(), inner.bottom() - lines, inner.width(), lines);
}

} // namespace

double BatchAxis::share(double value) const
{
    if (isLog)
        return (std::log(std::max(value, 1e-300)) - std::log(low)) / (std::log(high) - std::log(low));
    return (value - low) / (high - low);
}

double BatchAxis::value(double share) const
{
    if (isLog)
        return std::exp(std::log(low) + share * (std::log(high) - std::log(low)));
    return low + share * (high - low);
}

std::vector<double> BatchAxis::ticks(int most, double base) const
{
    std::vector<double> made;
    if (isLog) {
        const double unit = std::log(base);
        const int first = int(std::ceil(std::log(low) / unit - 1e-9)),
                  last = int(std::floor(std::log(high) / unit + 1e-9));
        const int room = std::max(1, most - 1), step = std::max(1, (last - first + room - 1) / room);
        for (int power = first; power <= last; power += step)
            made.push_back(std::pow(base, power));
        for (const double factor : {5.0, 2.0}) { // less than a decade or two: in between
            for (int power = first - 1; base == 10 && made.size() < 2 && power <= last; ++power) {
                const double value = factor * std::pow(base, power);
                if (value >= low && value <= high)
                    made.push_back(value);
            }
        }
        if (made.size() < 2 && base == 10)
            return BatchAxis{low, high, false}.ticks(most);
        std::ranges::sort(made);
        return made;
    }
    const double rough = (high - low) / most, ten = std::pow(10, std::floor(std::log10(rough)));
    double step = ten;
    for (const double factor : {2.0, 5.0, 10.0}) {
        if (step < rough)
            step = factor * ten;
    }
    for (double value = std::ceil(low / step) * step; value <= high; value += step)
        made.push_back(value);
    return made;
}

BatchLayout layoutBatch(const BatchState& state, const QRectF& rect)
{
    const double u = plotUnit(), gap = 8 * u;
    BatchLayout layout;
    const QRectF inner = rect.adjusted(12 * u, 4 * u, -12 * u, -6 * u);
    layout.title = QRectF(inner.topLeft(), QSizeF(inner.width(), 22 * u));
    placeReason(state, inner, layout);
    layout.hasSchedule = rect.height() >= 350 * u;
    const double stripHeight = layout.hasSchedule ? 72 * u : 0;
    const QRectF strip(inner.left(), layout.reason.top() - 3 * u - stripHeight, inner.width(), stripHeight);
    const double top = layout.title.bottom() + 4 * u;
    const double bottom = layout.hasSchedule ? strip.top() - gap : layout.reason.top() - 3 * u;
    const double height = (bottom - top - gap) / 2, width = (inner.width() - gap) / 2;
    const auto cell = [&](int row, int column) {
        return QRectF(inner.left() + column * (width + gap), top + row * (height + gap), width, height);
    };
    layout.memory = panelIn(cell(0, 0));
    layout.throughput = panelIn(cell(0, 1));
    layout.target = panelIn(cell(1, 0));
    layout.front = panelIn(cell(1, 1));
    scaleBatches(state, layout);
    scaleTarget(state, layout);
    if (!layout.hasSchedule)
        return layout;
    layout.schedule = panelIn(strip);
    layout.schedule.area = strip.adjusted(50 * u, 23 * u, -190 * u, -15 * u);
    layout.play = QRectF(strip.left() + 8 * u, strip.top() + 2 * u, 18 * u, 18 * u);
    layout.schedule.title.setLeft(layout.play.right() + 6 * u);
    layout.scheduleText =
        QRectF(layout.schedule.area.right() + 14 * u, strip.top() + 20 * u, 170 * u, strip.height() - 24 * u);
    Range steps, batches;
    for (const BatchSchedulePoint& point : state.schedule) {
        batches.add(std::max(1.0, point.batch));
        batches.add(std::max(1.0, point.noise));
    }
    layout.schedule.x = {0, std::max(1.0, state.scheduleSteps), false};
    layout.schedule.y = batches.logarithmic(0.1);
    return layout;
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/checkpoint/checkpoint_layout.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double cellsShare = 0.64; ///< of the width
constexpr double headroom = 1.06;   ///< of the memory axis
constexpr double lossLeast = 6;     ///< px: room for the loss beside many thin stages

/// The next of 1, 2, 5, 10, 20, … that is at least `least`.
int roundStep(double least)
{
    int decade = 1;
    while (decade < 100'000'000) {
        for (const int factor : {1, 2, 5}) {
            if (factor * decade >= least)
                return factor * decade;
        }
        decade *= 10;
    }
    return decade;
}

void placeHead(const ScheduleState& state, ScheduleAxis axis, ScheduleLayout& layout, double height)
{
    const double u = plotUnit();
    const QFontMetricsF bold(plotFont(1.05, true)), small(plotFont(0.85));
    const QRectF row(layout.area.left(), layout.area.top(), layout.area.width(), height);
    layout.axisText = axis == ScheduleAxis::Rows ? tr("one row = one step") : tr("height = time");
    const double button = small.horizontalAdvance(layout.axisText) + 26 * u;
    layout.axisButton = QRectF(row.right() - button, row.top() + 1, button, height - 2);
    const QString hint = tr("one column = one stage");
    const double hintWidth = small.horizontalAdvance(hint) + 4;
    const double title = bold.horizontalAdvance(state.title) + 4;
    const double free = row.width() - button - 24 * u;
    if (title + hintWidth + 16 * u <= free)
        layout.hint = {QRectF(layout.axisButton.left() - hintWidth - 10 * u, row.top(), hintWidth, height), hint};
    layout.title = {QRectF(row.left(), row.top(), std::min(title, free), height), state.title};
    layout.title.text = bold.elidedText(state.title, Qt::ElideRight, layout.title.rect.width());
}

void placeLegend(const ScheduleState& state, ScheduleLayout& layout, const QRectF& row)
{
    const double u = plotUnit();
    const QFontMetricsF small(plotFont(0.85));
    struct Entry
    {
        LegendShape shape;
        QString text;
    };
    std::vector<Entry> entries{{LegendShape::Forward, tr("forward")},
                               {LegendShape::Recompute, tr("recompute")},
                               {LegendShape::Backward, tr("backward")},
                               {LegendShape::Value, tr("kept x")},
                               {LegendShape::Saved, tr("saved x̄")}};
    if (!state.empty())
        entries.push_back({LegendShape::Peak, tr("peak")});
    if (!state.measured.empty())
        entries.push_back({LegendShape::Measured, tr("measured")});
    const QString help = tr("space plays · ↑ ↓ step · drag");
    double x = row.left();
    for (const Entry& entry : entries) {
        const double swatch = 13 * u, text = small.horizontalAdvance(entry.text) + 2;
        if (x + swatch + 6 * u + text > row.right())
            break;
        layout.legend.push_back({QRectF(x, row.center().y() - 5 * u, swatch, 10 * u),
                                 QRectF(x + swatch + 6 * u, row.top(), text, row.height()), entry.shape, entry.text});
        x += swatch + 6 * u + text + 14 * u;
    }
    const double width = small.horizontalAdvance(help) + 2;
    if (x + width <= row.right())
        layout.help = {QRectF(row.right() - width, row.top(), width, row.height()), help};
}

void placeColumns(const ScheduleState& state, ScheduleLayout& layout, double height)
{
    const QFontMetricsF tiny(plotFont(0.72));
    const double top = layout.cells.top() - height - 4;
    const int length = std::max(1, state.length);
    const double widest = tiny.horizontalAdvance(QString::number(length)) + 6;
    const int every = roundStep(widest / layout.columnWidth);
    const auto place = [&](double centre, const QString& text) {
        const double width = tiny.horizontalAdvance(text) + 2;
        QRectF rect(centre - width / 2, top, width, height);
        rect.moveLeft(std::max(rect.left(), layout.area.left()));
        layout.columns.push_back({rect, text});
    };
    for (int stage = 0; stage < state.length; ++stage) {
        if (every == 1 || (stage + 1) % every == 0 || stage == 0)
            place(layout.columnLeft(stage) + layout.columnWidth / 2, QString::number(stage + 1));
    }
    // "1" beside a "2" that stands close, and the loss beside the last number, give way.
    for (std::size_t i = 1; i < layout.columns.size();) {
        if (layout.columns[i].rect.left() < layout.columns[i - 1].rect.right() + 2)
            layout.columns.erase(layout.columns.begin() + std::ptrdiff_t(i));
        else
            ++i;
    }
    const QString loss = tr("loss");
    const double width = tiny.horizontalAdvance(loss) + 2;
    QRectF rect(layout.cells.right() - width, top, width, height);
    const double column = layout.cells.right() - layout.columnLeft(state.length);
    if (column > width)
        rect.moveCenter(QPointF(layout.columnLeft(state.length) + column / 2, rect.center().y()));
    while (!layout.columns.empty() && layout.columns.back().rect.right() + 3 > rect.left())
        layout.columns.pop_back();
    if (!state.empty())
        layout.columns.push_back({rect, loss});
}

/// Round values of the memory axis; none that would touch the words at its ends.
void placeTicks(const ScheduleState& state, ScheduleLayout& layout, double height)
{
    const QFontMetricsF tiny(plotFont(0.72));
    const double rough = layout.memoryHigh / 5;
    const double decade = std::pow(10.0, std::floor(std::log10(std::max(rough, 1e-12))));
    double step = decade;
    for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
        step = factor * decade;
        if (step >= rough)
            break;
    }
    if (state.units.isBytes && state.units.bytes == ByteStyle::Binary)
        step = std::exp2(std::ceil(std::log2(std::max(rough, 1.0))));
    double right = layout.memory.left() - 100;
    for (double value = 0; value <= layout.memoryHigh * 1.0001; value += step) {
        const QString text = value == 0 ? QStringLiteral("0") : state.units.memory(value);
        const double width = tiny.horizontalAdvance(text) + 2, x = layout.memoryX(value);
        QRectF rect(x - width / 2, layout.memory.bottom() + 1, width, height);
        rect.moveLeft(std::max(rect.left(), layout.memory.left()));
        if (rect.left() < right + 6 || rect.right() > layout.area.right())
            continue;
        right = rect.right();
        layout.ticks.push_back({rect, text});
        layout.tickValues.push_back(value);
    }
}

void placeMemoryHead(const ScheduleState& state, ScheduleLayout& layout, double height)
{
    const QFontMetricsF small(plotFont(0.8));
    const double top = layout.memory.top() - height;
    const QString head = tr("live memory →");
    layout.memoryHead = {QRectF(layout.memory.left(), top, small.horizontalAdvance(head) + 2, height), head};
    if (!std::isfinite(state.budget) || state.empty())
        return;
    const QString long_ = tr("budget %1").arg(state.units.memory(state.budget)), short_ = tr("budget");
    for (const QString& text : {long_, short_}) {
        const double width = small.horizontalAdvance(text) + 2;
        QRectF rect(layout.memoryX(state.budget) - width / 2, top, width, height);
        rect.moveRight(std::min(rect.right(), layout.area.right()));
        if (rect.left() > layout.memoryHead.rect.right() + 6) {
            layout.budget = {rect, text};
            return;
        }
    }
    layout.memoryHead = {};
    const double width = small.horizontalAdvance(long_) + 2;
    QRectF rect(layout.memoryX(state.budget) - width / 2, top, width, height);
    rect.moveLeft(std::max(rect.left(), layout.memory.left()));
    layout.budget = {rect, long_};
}

} // namespace

int ScheduleLayout::stepAt(double y) const
{
    const int steps = int(edges.size()) - 1;
    if (steps < 1)
        return -1;
    const auto after = std::ranges::upper_bound(edges, y) - edges.begin();
    return std::clamp(int(after) - 1, 0, steps - 1);
}

double ScheduleLayout::yOf(double step) const
{
    if (edges.empty())
        return cells.top();
    const double last = double(edges.size() - 1);
    const double at = std::clamp(step, 0.0, last);
    const auto whole = std::min(std::size_t(at), edges.size() - 2);
    return edges[whole] + (at - double(whole)) * (edges[whole + 1] - edges[whole]);
}

double ScheduleLayout::stepMiddle(int step) const
{
    return yOf(step + 0.5);
}

QRectF ScheduleLayout::cell(const ScheduleState& state, int step) const
{
    const ChainOperation& operation = state.steps[std::size_t(step)].operation;
    const int stage = operation.kind == OperationKind::Loss ? state.length
        : operation.kind == OperationKind::DiscardSaved     ? operation.stage - 1
                                                            : operation.stage;
    const double left = columnLeft(stage), right = stage >= state.length ? cells.right() : columnLeft(stage + 1);
    const double top = edges[std::size_t(step)];
    return {left, top, std::max(right - left, 0.0), edges[std::size_t(step) + 1] - top};
}

std::vector<QRectF> ScheduleLayout::pieces() const
{
    std::vector<QRectF> all{title.rect, axisButton, playButton, words.rect, cells, memory};
    for (const ScheduleText* one : {&hint, &memoryHead, &budget, &help}) {
        if (!one->text.isEmpty())
            all.push_back(one->rect);
    }
    for (const auto* texts : {&columns, &ticks}) {
        for (const ScheduleText& one : *texts)
            all.push_back(one.rect);
    }
    for (const ScheduleLegend& entry : legend) {
        all.push_back(entry.swatch);
        all.push_back(entry.rect);
    }
    return all;
}

ScheduleLayout layoutSchedule(const ScheduleState& state, ScheduleAxis axis, const QString& words, const QRectF& rect)
{
    const double u = plotUnit();
    ScheduleLayout layout;
    layout.area = rect.adjusted(16 * u, 8 * u, -16 * u, -6 * u);
    const double head = QFontMetricsF(plotFont(1.05, true)).height() + 4 * u;
    const double line = QFontMetricsF(plotFont(0.85)).height() + 3 * u;
    const double tiny = QFontMetricsF(plotFont(0.8)).height();
    placeHead(state, axis, layout, head);

    const double top = layout.area.top() + head + tiny + 4 * u + 4;
    const double bottom = std::max(top + 20 * u, layout.area.bottom() - 2 * line - tiny - 4 * u);
    const double split = layout.area.left() + cellsShare * layout.area.width();
    layout.cells = QRectF(layout.area.left(), top, split - layout.area.left(), bottom - top);
    layout.memory = QRectF(split + 26 * u, top, layout.area.right() - split - 26 * u, bottom - top);
    layout.memoryHigh = std::max({state.highest, std::isfinite(state.budget) ? state.budget : 0.0, 1e-9}) * headroom;
    const double columns = std::max(1, state.length) + 1;
    const double loss = std::max(lossLeast * u, layout.cells.width() / columns);
    layout.columnWidth = (layout.cells.width() - loss) / (columns - 1);
    placeColumns(state, layout, tiny);
    placeMemoryHead(state, layout, tiny);
    placeTicks(state, layout, tiny);

    layout.edges = axis == ScheduleAxis::Rows ? state.rows() : state.times();
    const double begin = layout.edges.front(), length = std::max(layout.edges.back() - begin, 1e-300);
    for (double& edge : layout.edges)
        edge = top + (edge - begin) / length * (bottom - top);

    const double wordsTop = bottom + tiny + 3 * u;
    layout.playButton = QRectF(layout.area.left(), wordsTop, line, line);
    layout.words = {QRectF(layout.playButton.right() + 8 * u, wordsTop,
                           layout.area.right() - layout.playButton.right() - 8 * u, line),
                    QFontMetricsF(plotFont(0.92, true))
                        .elidedText(words, Qt::ElideRight, layout.area.right() - layout.playButton.right() - 8 * u)};
    placeLegend(state, layout, QRectF(layout.area.left(), wordsTop + line, layout.area.width(), line));
    return layout;
}

} // namespace memscape

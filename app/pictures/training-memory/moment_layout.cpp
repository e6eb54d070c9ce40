// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/training-memory/moment_layout.h"

#include "app/plots/plot_data.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>

namespace memscape {

namespace {

constexpr double narrowest = 300; ///< a column of the list

QString headingOf(const MomentState& state)
{
    return state.isPeak ? tr("Alive at the peak") : tr("Alive at the cursor");
}

/// "event 3797 · backward · model.layers.31.self_attn · softmax"
QString placeOf(const MomentState& state)
{
    if (state.moment.event < 0)
        return {};
    QString place = tr("event %1").arg(state.moment.event) + QStringLiteral(" · ")
        + placeText(state.moment.phase, state.moment.module, state.moment.name);
    if (state.moment.microBatch > 0)
        place += tr(" · micro-batch %1").arg(state.moment.microBatch + 1);
    return place;
}

QString rowName(const LiveTensor& tensor)
{
    QString name = placeText({}, tensor.module, tensor.name);
    if (name.isEmpty())
        name = tensor.category;
    return tensor.count > 1 ? name + QStringLiteral(" ×%1").arg(tensor.count) : name;
}

void placeRows(const MomentState& state, MomentLayout& layout)
{
    const double u = plotUnit();
    const QFontMetricsF plain(plotFont(0.88)), bold(plotFont(0.88, true));
    const double height = plain.height() + 5 * u, gap = 22 * u;
    const int live = int(state.moment.live.size());
    layout.rowsInAll = live + (state.moment.restCount > 0 ? 1 : 0);
    const int columns = std::max(1, int((layout.list.width() + gap) / (narrowest * u + gap)));
    const int down = std::max(0, int(layout.list.height() / height));
    const int first = std::clamp(state.firstRow, 0, std::max(0, layout.rowsInAll - down * columns));
    const double width = (layout.list.width() - (columns - 1) * gap) / columns;
    for (int k = 0; k < down * columns && first + k < layout.rowsInAll; ++k) {
        const int i = first + k;
        LiveRow row;
        row.live = i;
        row.rect = QRectF(layout.list.left() + (k / down) * (width + gap), layout.list.top() + (k % down) * height,
                          width, height);
        const bool rest = i >= live;
        row.sizeText = memoryText(rest ? state.moment.restBytes : state.moment.live[std::size_t(i)].bytes, state.bytes);
        row.nameText = rest ? tr("%n more", state.moment.restCount) : rowName(state.moment.live[std::size_t(i)]);
        const double size = bold.horizontalAdvance(row.sizeText) + 2;
        row.swatch = QRectF(row.rect.left() + 2 * u, row.rect.center().y() - 5 * u, 10 * u, 10 * u);
        row.size = QRectF(row.rect.right() - size - 2 * u, row.rect.top(), size, height);
        row.name =
            QRectF(row.swatch.right() + 8 * u, row.rect.top(), row.size.left() - row.swatch.right() - 14 * u, height);
        row.nameText = plain.elidedText(row.nameText, Qt::ElideMiddle, std::max(0.0, row.name.width()));
        layout.rows.push_back(row);
    }
}

/// Title and search side by side.
void placeHead(const MomentState&, MomentLayout& layout, const QRectF& row, const QString& foundText)
{
    const double u = plotUnit();
    const QFontMetricsF head(plotFont(0.95, true)), small(plotFont(0.82));
    const double search = std::min(210 * u, 0.36 * row.width());
    layout.search = QRectF(row.right() - search, row.top(), search, row.height());
    const QString title = tr("One training step, tensor by tensor");
    const double free = layout.search.left() - 10 * u - row.left();
    layout.titleText = head.elidedText(title, Qt::ElideRight, free);
    layout.title = QRectF(row.left(), row.top(), head.horizontalAdvance(layout.titleText) + 2, row.height());
    const double left = layout.title.right() + 14 * u;
    layout.foundText = small.elidedText(foundText, Qt::ElideRight, std::max(0.0, layout.search.left() - 10 * u - left));
    layout.found = QRectF(left, row.top(), std::max(0.0, layout.search.left() - 10 * u - left), row.height());
}

/// Of the categories of this step, in as many rows as it takes; their bottom.
double placeLegend(const MomentState& state, MomentLayout& layout, const QRectF& area)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.8));
    const double height = metrics.height() + 2 * u;
    double x = area.left(), y = area.top();
    for (const TimelineCategory& category : state.timeline.categories) {
        const double width = 14 * u + metrics.horizontalAdvance(category.label) + 12 * u;
        if (x + width > area.right() && x > area.left()) {
            x = area.left();
            y += height;
        }
        layout.legend.push_back({QRectF(x, y, width, height), QRectF(x, y + height / 2 - 4 * u, 9 * u, 9 * u),
                                 category.label, category.key});
        x += width;
    }
    return y + height;
}

/// Heading, total and place on one line; under it the list.
void placeList(const MomentState& state, MomentLayout& layout, const QRectF& area)
{
    const double u = plotUnit();
    const QFontMetricsF head(plotFont(0.95, true)), small(plotFont(0.85));
    const auto box = [&](double left, double width) { return QRectF(left, area.top(), width, head.height() + 4 * u); };
    layout.totalText = state.moment.event < 0 ? QString() : memoryText(state.moment.allocated, state.bytes);
    layout.headingText = headingOf(state);
    layout.heading = box(area.left(), std::min(area.width(), head.horizontalAdvance(layout.headingText) + 4));
    const double total = head.horizontalAdvance(layout.totalText) + 4;
    layout.total = box(area.right() - total, layout.totalText.isEmpty() ? 0 : total);
    const double left = layout.heading.right() + 12 * u;
    layout.place = box(left, std::max(0.0, layout.total.left() - 10 * u - left));
    layout.placeText = small.elidedText(placeOf(state), Qt::ElideMiddle, layout.place.width());
    layout.list = area.adjusted(0, head.height() + 6 * u, 0, 0);
    placeRows(state, layout);
}

} // namespace

std::optional<double> MomentState::shownCapacity() const
{
    if (!step || step->empty() || !timeline.capacity)
        return std::nullopt;
    const double highest = *std::ranges::max_element(step->totals);
    return highest > nearLimitShare * *timeline.capacity ? timeline.capacity : std::nullopt;
}

StepView MomentState::whole() const
{
    if (!step || step->empty())
        return {};
    const double highest = *std::ranges::max_element(step->totals);
    return {double(step->first), double(step->last) + 1, 0,
            1.04 * std::max({highest, shownCapacity().value_or(0), 1.0})};
}

std::vector<QRectF> MomentLayout::pieces() const
{
    std::vector<QRectF> rects{title, found, search, axis, chart, flame, heading, total, place};
    for (const LegendItem& item : legend)
        rects.push_back(item.rect);
    for (const LiveRow& row : rows)
        rects.insert(rects.end(), {row.swatch, row.name, row.size});
    std::erase_if(rects, [](const QRectF& rect) { return rect.isEmpty(); });
    return rects;
}

MomentLayout layoutMoment(const MomentState& state, const QRectF& rect, const QString& foundText)
{
    const double u = plotUnit();
    MomentLayout layout;
    const QRectF area = rect.adjusted(14 * u, 6 * u, -14 * u, -6 * u);
    placeHead(state, layout, QRectF(area.left(), area.top(), area.width(), 24 * u), foundText);
    const double top = placeLegend(state, layout, area.adjusted(0, 28 * u, 0, 0)) + 6 * u;
    const double room = std::max(0.0, area.bottom() - top);
    const double rowHeight = QFontMetricsF(plotFont(0.88)).height() + 5 * u;
    const double list =
        room < 260 * u ? 0 : std::max(26 * u + 2 * rowHeight, 26 * u + std::floor(0.24 * room / rowHeight) * rowHeight);
    const int wanted = state.step ? state.step->rows : 1;
    const double most = room < 260 * u ? 2 : std::max(2.0, std::floor(0.2 * room / flameRowHeight()));
    const double flame = std::min(double(std::max(1, wanted)), most) * flameRowHeight();
    const double left = area.left() + 52 * u;
    const double bottom = area.bottom() - list - (list > 0 ? 8 * u : 0);
    layout.flame = QRectF(left, bottom - flame, area.right() - left, flame);
    layout.chart = QRectF(left, top, area.right() - left, std::max(0.0, layout.flame.top() - 3 * u - top));
    layout.axis = QRectF(area.left(), top, left - 6 * u - area.left(), layout.chart.height());
    if (list > 0)
        placeList(state, layout, QRectF(area.left(), area.bottom() - list, area.width(), list));
    return layout;
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// Title, legend and the name of the y axis above a plot; the crosshair's card.
#include "app/plots/plot_paint.h"
#include "app/plots/ticks.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

struct CardRow
{
    CurveStyle style;
    QString name, value;
};

/// Of a curve's sample in the legend: a square for an area, room for a dashed line otherwise.
double swatchWidth(const Curve& curve)
{
    return (curve.role == CurveRole::Area ? 11 : 28) * plotUnit();
}

std::vector<CardRow> cardRows(const PlotState& state, const Sample& sample, const Theme& theme)
{
    std::vector<CardRow> rows;
    for (std::size_t c = 0; c < sample.index.size(); ++c) {
        if (sample.index[c] < 0)
            continue;
        const auto i = static_cast<std::size_t>(sample.index[c]);
        rows.push_back({styleOf(state.curves[c], theme), state.curves[c].name,
                        axisReadoutText(state.y, state.cleaned[c].y[i]) + baselineText(state, sample, c)});
    }
    return rows;
}

QRectF cardPlace(QSizeF size, QPointF point, const QRectF& inside)
{
    QRectF card(point + QPointF(16, -size.height() - 16), size);
    if (card.right() > inside.right() - 4)
        card.moveRight(point.x() - 16);
    if (card.top() < inside.top() + 4)
        card.moveTop(point.y() + 16);
    card.moveBottom(std::min(card.bottom(), inside.bottom() - 4));
    card.moveLeft(std::max(card.left(), inside.left() + 4));
    card.moveTop(std::max(card.top(), inside.top() + 4));
    return card;
}

void paintCard(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme,
               const Sample& sample, QPointF at)
{
    const double u = plotUnit();
    const QFont head = plotFont(0.92, true);
    const QFont body = plotFont(0.85);
    const QFontMetricsF headMetrics(head);
    const QFontMetricsF bodyMetrics(body);
    const auto rows = cardRows(state, sample, theme);
    const QString value = axisValueText(state.x, sample.x, 4);
    const QString title = state.x.names.isEmpty() ? state.x.label + QLatin1Char(' ') + value : value;
    double names = 0;
    double values = 0;
    for (const CardRow& row : rows) {
        names = std::max(names, bodyMetrics.horizontalAdvance(row.name));
        values = std::max(values, bodyMetrics.horizontalAdvance(row.value));
    }
    const double swatch = 20 * u;
    const double line = bodyMetrics.height() + 3 * u;
    const double width =
        std::max(headMetrics.horizontalAdvance(title), swatch + 8 * u + names + 14 * u + values) + 24 * u;
    const QRectF card =
        cardPlace({width, headMetrics.height() + 18 * u + line * static_cast<double>(rows.size())}, at, map.rect);
    painter.setPen(QPen(theme.border, 1));
    painter.setBrush(theme.raised);
    painter.drawRoundedRect(card, 5 * u, 5 * u);
    painter.setFont(head);
    painter.setPen(theme.text);
    painter.drawText(QPointF(card.left() + 12 * u, card.top() + 8 * u + headMetrics.ascent()), title);
    painter.setFont(body);
    double top = card.top() + 12 * u + headMetrics.height();
    for (const CardRow& row : rows) {
        paintSwatch(painter, QRectF(card.left() + 12 * u, top, swatch, line), row.style, theme.raised);
        const QRectF text(card.left() + 20 * u + swatch, top, card.width() - 32 * u - swatch, line);
        painter.setPen(theme.textDim);
        painter.drawText(text, Qt::AlignLeft | Qt::AlignVCenter, row.name);
        painter.setPen(theme.text);
        painter.drawText(text, Qt::AlignRight | Qt::AlignVCenter, row.value);
        top += line;
    }
}

/// The legend in one row of that rectangle, its longest names shortened alike; nothing where less than `least` of a
/// shortened name would be left.
std::vector<LegendEntry> legendInARow(const PlotState& state, const QRectF& place, double least)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.88));
    std::vector<double> names;
    double room = place.width() + 14 * u;
    for (const Curve& curve : state.curves) {
        if (!curve.listed)
            continue;
        names.push_back(metrics.horizontalAdvance(curve.name));
        room -= swatchWidth(curve) + 26 * u; // before the name 8, behind it 4, between two entries 14
    }
    std::ranges::sort(names);
    double widest = names.empty() ? 0 : names.back();
    for (std::size_t i = 0; i < names.size(); ++i) {
        const double share = room / double(names.size() - i);
        if (names[i] > share) {
            if (share < least)
                return {};
            widest = share;
            break;
        }
        room -= names[i];
    }
    std::vector<LegendEntry> entries;
    double x = place.left();
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        if (!state.curves[c].listed)
            continue;
        const double width =
            swatchWidth(state.curves[c]) + 12 * u + std::min(metrics.horizontalAdvance(state.curves[c].name), widest);
        entries.push_back({c, QRectF(x, place.top(), width, place.height())});
        x += width + 14 * u;
    }
    return entries;
}

/// Whether a name stands in less room than it needs.
bool isShortened(const PlotState& state, const std::vector<LegendEntry>& entries)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.88));
    return std::ranges::any_of(entries, [&](const LegendEntry& entry) {
        const Curve& curve = state.curves[entry.curve];
        return entry.rect.width() + 0.5 < swatchWidth(curve) + 12 * u + metrics.horizontalAdvance(curve.name);
    });
}

} // namespace

PlotHeader layoutHeader(const PlotState& state, double width, double height)
{
    PlotHeader header;
    const double u = plotUnit();
    const QFontMetricsF titleMetrics(plotFont(1.1, true));
    const QFontMetricsF textMetrics(plotFont(0.88));
    const double row = std::max(titleMetrics.height(), textMetrics.height() + 4 * u);
    const double titleWidth = state.title.isEmpty() ? 0 : titleMetrics.horizontalAdvance(state.title) + 8;
    header.title = QRectF(8 * u, 6 * u, std::min(titleWidth, width - 16 * u), row);

    double total = 0;
    for (const Curve& curve : state.curves)
        total += !curve.listed ? 0 : swatchWidth(curve) + 8 * u + textMetrics.horizontalAdvance(curve.name) + 18 * u;
    const bool beside = titleWidth + total + 40 * u <= width;
    double x = beside ? width - total - 4 * u : 8 * u;
    double y = beside || titleWidth == 0 ? 6 * u : 6 * u + row;
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        if (!state.curves[c].listed)
            continue;
        const double entry =
            swatchWidth(state.curves[c]) + 8 * u + textMetrics.horizontalAdvance(state.curves[c].name) + 4 * u;
        if (!beside && x > 9 * u && x + entry > width - 8 * u) {
            x = 8 * u;
            y += row;
        }
        header.legend.push_back({c, QRectF(x, y, entry, row)});
        x += entry + 14 * u;
    }
    double bottom = std::max(header.title.bottom(), header.legend.empty() ? 0.0 : y + row);
    if (state.title.isEmpty() && header.legend.empty())
        bottom = 4 * u;
    const double axis = 40 * u; // below the curves: numbers and a name
    const bool isLow = bottom + textMetrics.height() + 12 * u > 0.4 * (height - axis);
    if (isLow && !beside && titleWidth > 0) {
        std::vector<LegendEntry> whole = std::move(header.legend);
        const double wholeBottom = bottom;
        const double left = header.title.right() + 24 * u;
        header.legend = legendInARow(state, QRectF(left, header.title.top(), width - 8 * u - left, row), 40 * u);
        const bool isTight = header.legend.empty() || isShortened(state, header.legend);
        if (isTight && header.title.bottom() + row < 0.4 * (height - axis)) {
            auto below = legendInARow(state, QRectF(8 * u, header.title.bottom(), width - 16 * u, row), 24 * u);
            if (header.legend.empty() || !isShortened(state, below))
                header.legend = std::move(below);
        }
        const bool isCut = header.legend.empty() || isShortened(state, header.legend);
        if (isCut && height - axis - wholeBottom > 110 * u)
            header.legend = std::move(whole); // rows with all names still leave the curves most of the height
        bottom = header.legend.empty() ? header.title.bottom() : header.legend.back().rect.bottom();
    }
    if (!state.y.label.isEmpty() && state.hasAxes() && !isLow) {
        header.yLabel = QRectF(8 * u, bottom, width - 16 * u, textMetrics.height());
        bottom = header.yLabel.bottom();
    }
    // Half of the topmost number of the axis stands above the axis.
    header.height = bottom + (header.yLabel.isNull() ? 8 : 12) * u;
    return header;
}

void paintHeader(QPainter& painter, const PlotState& state, const PlotHeader& header, const Theme& theme, int hovered)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const double u = plotUnit();
    const QFont titleFont = plotFont(1.1, true);
    painter.setFont(titleFont);
    painter.setPen(theme.text);
    painter.drawText(header.title, Qt::AlignLeft | Qt::AlignVCenter,
                     QFontMetricsF(titleFont).elidedText(state.title, Qt::ElideRight, header.title.width()));
    painter.setFont(plotFont(0.88));
    for (const LegendEntry& entry : header.legend) {
        const Curve& curve = state.curves[entry.curve];
        painter.setOpacity(curve.visible ? 1.0 : 0.4);
        const double sample = swatchWidth(curve);
        const QRectF swatch(entry.rect.left(), entry.rect.top(), sample, entry.rect.height());
        paintSwatch(painter, swatch, styleOf(curve, theme), theme.background);
        painter.setPen(static_cast<int>(entry.curve) == hovered ? theme.text : theme.textDim);
        const QRectF name = entry.rect.adjusted(sample + 8 * u, 0, 0, 0);
        painter.drawText(name, Qt::AlignLeft | Qt::AlignVCenter,
                         QFontMetricsF(painter.font()).elidedText(curve.name, Qt::ElideRight, name.width()));
    }
    painter.setOpacity(1);
    painter.setFont(plotFont(0.85));
    painter.setPen(theme.textFaint);
    if (!header.yLabel.isNull())
        painter.drawText(header.yLabel, Qt::AlignLeft | Qt::AlignVCenter, state.y.label);
    painter.restore();
}

void paintCrosshair(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme,
                    const Crosshair& crosshair)
{
    if (!crosshair.sample.found)
        return;
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const double x = map.toX(crosshair.sample.x);
    painter.setPen(QPen(theme.textFaint, 1, Qt::DotLine));
    painter.drawLine(QPointF(x, map.rect.top()), QPointF(x, map.rect.bottom()));
    // The card hangs on the point that is nearest to the pointer.
    QPointF anchor(x, map.rect.center().y());
    double nearest = 1e18;
    for (std::size_t c = 0; c < crosshair.sample.index.size(); ++c) {
        if (crosshair.sample.index[c] < 0 || state.curves[c].role == CurveRole::Area)
            continue; // an area's own bytes are not where its edge is
        const double y = map.toY(state.cleaned[c].y[static_cast<std::size_t>(crosshair.sample.index[c])]);
        if (!std::isfinite(y) || y < map.rect.top() - 1 || y > map.rect.bottom() + 1)
            continue;
        painter.setPen(QPen(styleOf(state.curves[c], theme).colour, 1.5));
        painter.setBrush(Qt::NoBrush);
        painter.drawEllipse(QPointF(x, y), 7, 7);
        if (std::fabs(y - crosshair.pointer.y()) < nearest) {
            nearest = std::fabs(y - crosshair.pointer.y());
            anchor.setY(y);
        }
    }
    paintCard(painter, state, map, theme, crosshair.sample, anchor);
    painter.restore();
}

void paintRubberBand(QPainter& painter, const QRectF& rect, const Theme& theme)
{
    painter.save();
    QColor tint = theme.predicted;
    tint.setAlphaF(0.15F);
    painter.setBrush(tint);
    painter.setPen(QPen(theme.predicted, 1, Qt::DashLine));
    painter.drawRect(rect);
    painter.restore();
}

void paintFocus(QPainter& painter, const QRectF& rect, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.predicted, 1.2));
    painter.drawRoundedRect(rect.adjusted(1.5, 1.5, -1.5, -1.5), 5, 5);
    painter.restore();
}

} // namespace memscape

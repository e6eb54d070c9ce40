// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of a whole over an axis: areas stacked in the order of the curves, the stretches of the
// axis named under it, and cards that point at a place. Areas share their points; one that is
// hidden by the legend leaves the stack, and the rest moves down.
#include "app/plots/plot_paint.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QPolygonF stretch(const std::vector<double>& x, const std::vector<double>& low, const std::vector<double>& high,
                  const PlotMapper& map)
{
    const auto place = [&map](double value) { // nothing is below the foot of a logarithmic axis
        const double pixel = map.toY(value);
        return std::isfinite(pixel) ? pixel : map.rect.bottom();
    };
    QPolygonF outline;
    outline.reserve(qsizetype(2 * x.size()));
    for (std::size_t i = 0; i < x.size(); ++i)
        outline << QPointF(map.toX(x[i]), place(high[i]));
    for (std::size_t i = x.size(); i-- > 0;)
        outline << QPointF(map.toX(x[i]), place(low[i]));
    return outline;
}

bool isArea(const Curve& curve)
{
    return curve.visible && curve.role == CurveRole::Area;
}

} // namespace

std::vector<double> areaTotals(const std::vector<Curve>& curves)
{
    std::vector<double> totals;
    for (const Curve& curve : curves) {
        if (!isArea(curve))
            continue;
        totals.resize(std::max(totals.size(), curve.y.size()));
        for (std::size_t i = 0; i < curve.y.size(); ++i)
            totals[i] += std::isfinite(curve.y[i]) ? curve.y[i] : 0;
    }
    return totals;
}

void paintAreas(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    std::vector<double> low;
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const CleanCurve& curve = state.cleaned[c];
        if (!isArea(state.curves[c]))
            continue;
        low.resize(curve.y.size(), 0);
        std::vector<double> high = low;
        for (std::size_t i = 0; i < high.size(); ++i)
            high[i] += std::isfinite(curve.y[i]) ? curve.y[i] : 0;
        painter.setPen(Qt::NoPen);
        painter.setBrush(styleOf(state.curves[c], theme).colour);
        painter.drawPolygon(stretch(curve.x, low, high, map));
        low = std::move(high);
    }
}

void paintBandsOfCurves(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const CleanCurve& curve = state.cleaned[c];
        const CurveStyle style = styleOf(state.curves[c], theme);
        if (!state.curves[c].visible || !style.isBanded || curve.low.empty())
            continue;
        QColor faint = style.colour;
        faint.setAlphaF(0.14F);
        painter.setPen(Qt::NoPen);
        painter.setBrush(faint);
        if (state.x.names.isEmpty())
            painter.drawPolygon(stretch(curve.x, curve.low, curve.high, map));
        for (std::size_t i = 0; i < curve.x.size() && !state.x.names.isEmpty(); ++i)
            painter.drawPolygon(stretch({curve.x[i] - levelReach, curve.x[i] + levelReach},
                                        {curve.low[i], curve.low[i]}, {curve.high[i], curve.high[i]}, map));
    }
}

void paintPhases(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    const double u = plotUnit();
    const QFont font = plotFont(0.85);
    const QFontMetricsF metrics(font);
    painter.setFont(font);
    double free = map.rect.left(); // where the next name may begin
    for (const Band& phase : state.phases) {
        const double left = std::clamp(map.toX(phase.from), map.rect.left(), map.rect.right());
        const double right = std::clamp(map.toX(phase.to), map.rect.left(), map.rect.right());
        if (!(right > left))
            continue;
        const double gap = right - left > 4 * u ? u : 0;
        painter.fillRect(QRectF(left + gap, map.rect.bottom() + 5 * u, right - left - 2 * gap, 3 * u), theme.textFaint);
        const double width = metrics.horizontalAdvance(phase.label) + 2;
        QRectF name((left + right - width) / 2, map.rect.bottom() + 10 * u, width, metrics.height());
        name.moveRight(std::min(name.right(), map.rect.right()));
        if (name.left() < free) { // a short phase: its name gives way if that keeps it near
            name.moveLeft(free);
            if (name.left() > right || name.right() > map.rect.right() + 20 * u)
                continue;
        }
        painter.setPen(theme.textDim);
        painter.drawText(name, Qt::AlignCenter, phase.label);
        free = name.right() + 8 * u;
    }
}

constexpr double mostCard = 0.5; ///< of the plot's height that a card may cover

QRectF calloutCard(const Callout& callout, const PlotMapper& map)
{
    const double u = plotUnit();
    const QFontMetricsF bold(plotFont(0.92, true)), plain(plotFont(0.85));
    const double width =
        std::min(std::max(bold.horizontalAdvance(callout.title), plain.horizontalAdvance(callout.text)) + 24 * u,
                 map.rect.width() - 8 * u);
    const QSizeF size(width, bold.height() + plain.height() + 18 * u);
    const QPointF at(map.toX(callout.x), map.toY(callout.y));
    QRectF card(QPointF(at.x() + 14 * u, at.y() - size.height() - 10 * u), size);
    if (card.right() > map.rect.right() - 4 * u)
        card.moveRight(std::max(at.x() - 14 * u, map.rect.left() + size.width() + 4 * u));
    if (card.top() < map.rect.top() + 4 * u)
        card.moveTop(std::min(at.y() + 14 * u, map.rect.bottom() - size.height() - 4 * u));
    card.moveBottom(std::min(card.bottom(), map.rect.bottom() - 28 * u)); // there stand the pills
    return card;
}

void paintCallouts(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    const double u = plotUnit();
    for (const Callout& callout : state.callouts) {
        const QPointF at(map.toX(callout.x), map.toY(callout.y));
        if (!map.rect.adjusted(-1, -1, 1, 1).contains(at))
            continue;
        const QRectF card = calloutCard(callout, map);
        painter.setPen(QPen(theme.background, 1.5));
        painter.setBrush(theme.bad);
        painter.drawEllipse(at, 6 * u, 6 * u);
        if (card.height() > mostCard * map.rect.height())
            continue; // it would be all that is seen; the page says it in words too
        painter.setPen(QPen(theme.bad, 1));
        painter.setBrush(theme.raised);
        painter.drawRoundedRect(card, 5 * u, 5 * u);
        const QRectF inner = card.adjusted(12 * u, 7 * u, -10 * u, -7 * u);
        painter.setFont(plotFont(0.92, true));
        painter.setPen(theme.bad);
        painter.drawText(inner, Qt::AlignLeft | Qt::AlignTop, callout.title);
        const QFont small = plotFont(0.85);
        painter.setFont(small);
        painter.setPen(theme.textDim);
        painter.drawText(inner, Qt::AlignLeft | Qt::AlignBottom,
                         QFontMetricsF(small).elidedText(callout.text, Qt::ElideMiddle, inner.width()));
    }
}

} // namespace memscape

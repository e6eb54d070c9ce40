// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/stairs.h"

#include "app/plots/plot_style.h"

#include <algorithm>
#include <cmath>

namespace memscape {

QPolygonF outlineOf(const Stairs& stairs)
{
    QPolygonF upper, lower;
    for (std::size_t i = 0; i < stairs.low.size(); ++i) {
        const double from = stairs.edges[stairs.first + i], to = stairs.edges[stairs.first + i + 1];
        const auto add = [&](QPolygonF& line, double height) {
            if (!line.isEmpty() && std::abs(line.back().y() - height) < 0.2)
                line.back().setX(to);
            else
                line << QPointF(from, height) << QPointF(to, height);
        };
        add(upper, stairs.high[i]);
        add(lower, stairs.low[i]);
    }
    std::ranges::reverse(lower);
    return upper + lower;
}

QRectF longestStretch(const Stairs& stairs, const QRectF& area, double leastHeight)
{
    const double slack = 0.5 * plotUnit();
    QRectF best;
    for (std::size_t i = 0; i < stairs.low.size();) {
        std::size_t end = i + 1;
        while (end < stairs.low.size() && std::abs(stairs.low[end] - stairs.low[i]) < slack
               && std::abs(stairs.high[end] - stairs.high[i]) < slack)
            ++end;
        const QRectF stretch = QRectF(QPointF(stairs.edges[stairs.first + i], stairs.high[i]),
                                      QPointF(stairs.edges[stairs.first + end], stairs.low[i]))
            & area;
        if (stretch.height() >= leastHeight && stretch.width() > best.width())
            best = stretch;
        i = end;
    }
    return best;
}

int columnAt(const std::vector<double>& edges, double x)
{
    if (edges.size() < 2 || x < edges.front() || x >= edges.back())
        return -1;
    return int(std::ranges::upper_bound(edges, x) - edges.begin()) - 1;
}

bool contains(const Stairs& stairs, int column, double y)
{
    const int i = column - int(stairs.first);
    return column >= 0 && i >= 0 && i < int(stairs.low.size()) && y <= stairs.low[std::size_t(i)]
        && y > stairs.high[std::size_t(i)];
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/treemap_layout.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Longer to shorter side of the worst rectangle of a row of that area along that side.
double worst(double largest, double smallest, double sum, double side)
{
    const double thickness = sum / side;
    return std::max(largest / (thickness * thickness), thickness * thickness / smallest);
}

/// Puts areas [from, to) along the shorter side of what is left, and takes their strip off it.
void placeRow(const std::vector<double>& areas, std::size_t from, std::size_t to, QRectF& left,
              std::vector<QRectF>& rects)
{
    double sum = 0;
    for (std::size_t i = from; i < to; ++i)
        sum += std::max(0.0, areas[i]);
    const bool upright =
        left.width() >= left.height(); // the strip stands on the left, its cells above each other
    const double side = upright ? left.height() : left.width();
    const double thickness = side > 0 ? sum / side : 0;
    double at = upright ? left.top() : left.left();
    for (std::size_t i = from; i < to; ++i) {
        const double length = thickness > 0 ? std::max(0.0, areas[i]) / thickness : 0;
        rects[i] = upright ? QRectF(left.left(), at, thickness, length)
                           : QRectF(at, left.top(), length, thickness);
        at += length;
    }
    if (upright)
        left.setLeft(std::min(left.right(), left.left() + thickness));
    else
        left.setTop(std::min(left.bottom(), left.top() + thickness));
}

} // namespace

std::vector<QRectF> squarify(const std::vector<double>& values, const QRectF& rect)
{
    std::vector<QRectF> rects(values.size());
    double total = 0;
    for (const double value : values)
        total += std::isfinite(value) ? std::max(0.0, value) : 0;
    if (!(total > 0) || rect.isEmpty())
        return rects;
    std::vector<double> areas(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        areas[i] = std::isfinite(values[i]) && values[i] > 0
            ? values[i] / total * rect.width() * rect.height()
            : 0;
    QRectF left = rect;
    for (std::size_t from = 0; from < areas.size();) {
        if (areas[from] <= 0) {
            ++from;
            continue;
        }
        const double side = std::min(left.width(), left.height());
        double sum = areas[from], largest = sum, smallest = sum;
        std::size_t to = from + 1;
        for (; to < areas.size() && areas[to] > 0; ++to) {
            const double more = areas[to];
            const double next =
                worst(std::max(largest, more), std::min(smallest, more), sum + more, side);
            if (!(side > 0) || next > worst(largest, smallest, sum, side))
                break;
            sum += more;
            largest = std::max(largest, more);
            smallest = std::min(smallest, more);
        }
        placeRow(areas, from, to, left, rects);
        from = to;
    }
    return rects;
}

} // namespace memscape

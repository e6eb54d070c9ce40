// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/curve_drawing.h"

#include "core/base/number.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t samples = 241; ///< finer than a mouse moves on a common screen
constexpr std::size_t near = 7;      ///< samples: a stroke that ends so near to a point was meant to reach it

} // namespace

CurveDrawing::CurveDrawing(std::vector<double> asked, bool logY)
    : m_asked(std::move(asked))
    , m_logY(logY)
{
    if (m_asked.empty())
        return;
    const auto [low, high] = std::ranges::minmax_element(m_asked);
    m_isLogX = *low > 0;
    m_x = m_asked; // exactly; the others lie between
    for (std::size_t i = 1; i + 1 < samples; ++i) {
        const double share = double(i) / double(samples - 1);
        m_x.push_back(m_isLogX ? *low * std::pow(*high / *low, share) : *low + share * (*high - *low));
    }
    std::ranges::sort(m_x);
    m_x.erase(std::unique(m_x.begin(), m_x.end()), m_x.end());
    m_y.assign(m_x.size(), nan);
}

double CurveDrawing::between(double a, double b, double share) const
{
    return m_logY && a > 0 && b > 0 ? a * std::pow(b / a, share) : a + share * (b - a);
}

void CurveDrawing::stroke(double fromX, double fromY, double toX, double toY)
{
    if (m_x.empty() || !std::isfinite(fromX) || !std::isfinite(fromY) || !std::isfinite(toX) || !std::isfinite(toY))
        return;
    if (fromX > toX) {
        std::swap(fromX, toX);
        std::swap(fromY, toY);
    }
    const auto share = [&](double x) {
        return m_isLogX && fromX > 0 ? std::log(x / fromX) / std::log(toX / fromX) : (x - fromX) / (toX - fromX);
    };
    bool isPassed = false;
    for (std::size_t i = 0; i < m_x.size(); ++i)
        if (m_x[i] >= fromX && m_x[i] <= toX) {
            m_y[i] = toX > fromX ? between(fromY, toY, share(m_x[i])) : toY;
            isPassed = true;
        }
    if (!isPassed) // between two samples, or outside
        m_y[nearestSample(toX)] = toY;
}

void CurveDrawing::setValues(const std::vector<double>& y)
{
    clear();
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < m_asked.size() && i < y.size(); ++i)
        if (std::isfinite(y[i]))
            points.emplace_back(m_asked[i], y[i]);
    std::ranges::sort(points);
    if (!points.empty())
        stroke(points.front().first, points.front().second, points.front().first, points.front().second);
    for (std::size_t i = 1; i < points.size(); ++i)
        stroke(points[i - 1].first, points[i - 1].second, points[i].first, points[i].second);
}

void CurveDrawing::setValue(std::size_t index, double y)
{
    std::vector<double> all = values();
    if (index >= all.size())
        return;
    all[index] = y;
    setValues(all);
}

void CurveDrawing::clear()
{
    std::ranges::fill(m_y, nan);
}

std::size_t CurveDrawing::nearestSample(double x) const
{
    const auto above = std::ranges::lower_bound(m_x, x);
    if (above == m_x.end())
        return m_x.size() - 1;
    const auto index = std::size_t(above - m_x.begin());
    return index > 0 && x - m_x[index - 1] < m_x[index] - x ? index - 1 : index;
}

double CurveDrawing::nearest(std::size_t index) const
{
    for (std::size_t step = 0; step <= near; ++step) {
        if (index + step < m_y.size() && std::isfinite(m_y[index + step]))
            return m_y[index + step];
        if (index >= step && std::isfinite(m_y[index - step]))
            return m_y[index - step];
    }
    return nan;
}

std::vector<double> CurveDrawing::values() const
{
    std::vector<double> values;
    for (const double x : m_asked)
        values.push_back(nearest(nearestSample(x)));
    return values;
}

bool CurveDrawing::isEmpty() const
{
    return std::ranges::none_of(m_y, [](double y) { return std::isfinite(y); });
}

} // namespace memscape

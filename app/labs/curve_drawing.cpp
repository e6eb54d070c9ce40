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
    const auto [low, high] = std::minmax_element(m_asked.begin(), m_asked.end());
    m_isLogX = *low > 0;
    for (std::size_t i = 0; i < samples; ++i) {
        const double share = double(i) / double(samples - 1);
        m_x.push_back(m_isLogX ? *low * std::pow(*high / *low, share) : *low + share * (*high - *low));
    }
    m_y.assign(samples, nan);
}

double CurveDrawing::placeOf(double x) const
{
    const double low = m_x.front(), high = m_x.back();
    if (!(high > low))
        return 0;
    const double share = m_isLogX ? std::log(std::max(x, low) / low) / std::log(high / low) : (x - low) / (high - low);
    return std::clamp(share, 0.0, 1.0) * double(samples - 1);
}

double CurveDrawing::between(double a, double b, double share) const
{
    return m_logY && a > 0 && b > 0 ? a * std::pow(b / a, share) : a + share * (b - a);
}

void CurveDrawing::stroke(double fromX, double fromY, double toX, double toY)
{
    if (m_x.empty() || !std::isfinite(fromX) || !std::isfinite(fromY) || !std::isfinite(toX) || !std::isfinite(toY))
        return;
    double from = placeOf(fromX), to = placeOf(toX);
    if (from > to) {
        std::swap(from, to);
        std::swap(fromY, toY);
    }
    const auto first = std::size_t(std::lround(from)), last = std::size_t(std::lround(to));
    for (std::size_t i = first; i <= last; ++i)
        m_y[i] = last == first ? toY : between(fromY, toY, double(i - first) / double(last - first));
}

void CurveDrawing::setValues(const std::vector<double>& y)
{
    clear();
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < m_asked.size() && i < y.size(); ++i)
        if (std::isfinite(y[i]))
            points.emplace_back(m_asked[i], y[i]);
    std::sort(points.begin(), points.end());
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
    std::fill(m_y.begin(), m_y.end(), nan);
}

double CurveDrawing::nearest(std::size_t index) const
{
    for (std::size_t step = 1; step <= near; ++step) {
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
    for (const double x : m_asked) {
        const double place = placeOf(x);
        const auto below = std::size_t(place), above = std::min(below + 1, samples - 1);
        const double share = place - double(below);
        const double y = share < 1e-9 ? m_y[below]
            : share > 1 - 1e-9        ? m_y[above]
                                      : between(m_y[below], m_y[above], share);
        values.push_back(std::isfinite(y) ? y : nearest(below));
    }
    return values;
}

bool CurveDrawing::isEmpty() const
{
    return std::none_of(m_y.begin(), m_y.end(), [](double y) { return std::isfinite(y); });
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/plot_data.h"

#include "app/plots/ticks.h"
#include "app/settings/words.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace memscape {

namespace {

bool showable(double value, bool log)
{
    return std::isfinite(value) && (!log || value > 0);
}

struct Extent
{
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();

    void add(double value, bool log)
    {
        if (!showable(value, log))
            return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    bool empty() const { return !(low <= high); }
};

// Limits around what there is: a share of padding, more room for a single value.
AxisRange padded(const Extent& extent, const AxisSpec& axis, double before, double after)
{
    const bool log = axis.log != 0;
    if (extent.empty())
        return log ? AxisRange{1, 10, true} : AxisRange{0, 1, false};
    if (log) {
        const double span = std::log(extent.high / extent.low);
        if (span < 1e-9)
            return sane({extent.low / 2, extent.high * 2, true});
        return sane({extent.low * std::exp(-before * span), extent.high * std::exp(after * span), true});
    }
    const double low = axis.fromZero ? std::min(0.0, extent.low) : extent.low;
    const double high = axis.fromZero ? std::max(0.0, extent.high) : extent.high;
    const double span = high - low;
    if (!(span > 1e-12 * std::max(std::fabs(low), std::fabs(high)))) {
        const double room = low == 0 ? 1 : std::fabs(low) * 0.5;
        return {axis.fromZero && low >= 0 ? 0 : low - room, high + room, false};
    }
    const bool flush = axis.fromZero && low == 0;
    return sane({flush ? 0 : low - before * span, high + after * span, false});
}

} // namespace

double AxisRange::toShare(double value) const
{
    if (log)
        return value > 0 ? std::log(value / low) / std::log(high / low) : nan;
    return (value - low) / (high - low);
}

double AxisRange::fromShare(double share) const
{
    return log ? low * std::exp(share * std::log(high / low)) : low + share * (high - low);
}

CleanCurve clean(const Curve& curve, bool logX, bool logY)
{
    CleanCurve result;
    const std::size_t count = std::min(curve.x.size(), curve.y.size());
    const bool band = curve.low.size() >= count && curve.high.size() >= count && count > 0;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto before = [&](std::size_t a, std::size_t b) { return curve.x[a] < curve.x[b]; };
    std::erase_if(order, [&](std::size_t i) { return !showable(curve.x[i], logX); });
    if (!std::ranges::is_sorted(order, before))
        std::ranges::stable_sort(order, before);
    for (std::size_t i = 0; i < count; ++i) {
        const bool number = std::isfinite(curve.x[i]) && std::isfinite(curve.y[i]);
        if (!number || !showable(curve.x[i], logX) || !showable(curve.y[i], logY))
            ++result.hidden;
        if (!number)
            ++result.notFinite;
    }
    for (auto* column : {&result.x, &result.y, &result.low, &result.high})
        column->reserve(order.size());
    for (const std::size_t i : order) {
        result.x.push_back(curve.x[i]);
        result.y.push_back(showable(curve.y[i], logY) ? curve.y[i] : nan);
        if (band) {
            result.low.push_back(showable(curve.low[i], logY) ? curve.low[i] : nan);
            result.high.push_back(showable(curve.high[i], logY) ? curve.high[i] : nan);
        }
    }
    return result;
}

AxisRange xRange(const AxisSpec& axis, const std::vector<Curve>& curves)
{
    const bool log = axis.log != 0;
    if (axis.range)
        return sane({axis.range->first, axis.range->second, log});
    if (!axis.names.isEmpty())
        return {-0.5, static_cast<double>(axis.names.size()) - 0.5, false};
    Extent extent;
    for (const Curve& curve : curves) {
        if (!curve.visible)
            continue;
        const std::size_t count = std::min(curve.x.size(), curve.y.size());
        for (std::size_t i = 0; i < count; ++i) {
            if (std::isfinite(curve.y[i]))
                extent.add(curve.x[i], log);
        }
    }
    return padded(extent, axis, 0.02, 0.02);
}

AxisRange yRange(const AxisSpec& axis, const std::vector<Curve>& curves, bool logX,
                 const std::vector<HorizontalLine>& lines)
{
    const bool log = axis.log != 0;
    if (axis.range)
        return sane({axis.range->first, axis.range->second, log});
    Extent extent;
    for (const Curve& curve : curves) {
        if (!curve.visible || curve.role == CurveRole::Area)
            continue;
        const std::size_t count = std::min(curve.x.size(), curve.y.size());
        const bool band = curve.low.size() >= count && curve.high.size() >= count;
        for (std::size_t i = 0; i < count; ++i) {
            if (!showable(curve.x[i], logX) || !std::isfinite(curve.y[i]))
                continue;
            extent.add(curve.y[i], log);
            if (band) {
                extent.add(curve.low[i], log);
                extent.add(curve.high[i], log);
            }
        }
    }
    for (const double total : areaTotals(curves))
        extent.add(total, log);
    if (!extent.empty()) {
        const double highest = extent.high;
        for (const HorizontalLine& line : lines) {
            if (!line.limit || highest > (log ? nearLimitShareOfLog : nearLimitShare) * line.y)
                extent.add(line.y, log);
        }
    }
    return padded(extent, axis, 0.06, 0.08);
}

AxisRange sane(AxisRange range)
{
    constexpr double tiny = 1e-280;
    constexpr double huge = 1e280;
    if (range.high < range.low)
        std::swap(range.low, range.high);
    if (!std::isfinite(range.low))
        range.low = range.log ? tiny : -huge;
    if (!std::isfinite(range.high))
        range.high = huge;
    if (range.log) {
        range.low = std::clamp(range.low, tiny, huge);
        range.high = std::clamp(range.high, tiny, huge);
        if (!(range.high > range.low * (1 + 1e-9)))
            return {range.low / (1 + 1e-6), range.low * (1 + 1e-6), true};
        return range;
    }
    const double size = std::max(std::fabs(range.low), std::fabs(range.high));
    if (!(range.high - range.low > 1e-11 * size))
        range.high = range.low + std::max(1e-11 * size, 1e-280);
    return range;
}

AxisRange zoomed(AxisRange range, double factor, double centre)
{
    const double low = range.fromShare(centre - centre * factor);
    const double high = range.fromShare(centre + (1 - centre) * factor);
    return sane({low, high, range.log});
}

AxisRange panned(AxisRange range, double share)
{
    return sane({range.fromShare(share), range.fromShare(1 + share), range.log});
}

QString noteFor(const std::vector<CleanCurve>& curves)
{
    const auto fewest = [](const CleanCurve& a, const CleanCurve& b) { return a.hidden < b.hidden; };
    const auto most = std::ranges::max_element(curves, fewest);
    if (most == curves.end() || most->hidden == 0)
        return {};
    const auto [hidden, notFinite] = std::pair(most->hidden, most->notFinite);
    QString text = tr("%n point(s) not shown", hidden);
    QStringList reasons;
    if (notFinite > 0)
        reasons << tr("%n without a value", notFinite);
    if (hidden > notFinite)
        reasons << tr("%n zero or negative on a logarithmic axis", hidden - notFinite);
    return text + QStringLiteral(": ") + reasons.join(QStringLiteral(", "));
}

Sample nearestSample(const std::vector<Curve>& curves, const std::vector<CleanCurve>& cleaned, const AxisRange& x,
                     double share)
{
    Sample sample;
    const double target = x.fromShare(share);
    double best = std::numeric_limits<double>::infinity();
    const auto nearest = [&](const CleanCurve& c, double at) {
        const auto upper = std::ranges::lower_bound(c.x, at) - c.x.begin();
        int found = -1;
        double distance = std::numeric_limits<double>::infinity();
        // A gap or two beside the place must not hide the curve.
        const auto size = static_cast<std::ptrdiff_t>(c.x.size());
        for (auto i = std::max<std::ptrdiff_t>(0, upper - 4); i < std::min(size, upper + 4); ++i) {
            const auto at_i = static_cast<std::size_t>(i);
            const double d = std::fabs(x.toShare(c.x[at_i]) - x.toShare(at));
            if (std::isfinite(c.y[at_i]) && d < distance) {
                distance = d;
                found = static_cast<int>(i);
            }
        }
        return std::pair{found, distance};
    };
    for (std::size_t c = 0; c < cleaned.size(); ++c) {
        const auto [index, distance] = nearest(cleaned[c], target);
        if (curves[c].visible && index >= 0 && distance < best) {
            best = distance;
            sample.x = cleaned[c].x[static_cast<std::size_t>(index)];
            sample.found = true;
        }
    }
    for (std::size_t c = 0; c < cleaned.size(); ++c) {
        const auto [index, distance] = nearest(cleaned[c], sample.x);
        const bool here = sample.found && curves[c].visible && distance < 1e-3;
        sample.index.push_back(here ? index : -1);
    }
    return sample;
}

} // namespace memscape

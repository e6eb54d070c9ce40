// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/comparison.h"

#include "core/experiment/by_key.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

double relativeError(double predicted, double measured)
{
    if (predicted == measured)
        return 0;
    return measured != 0 ? (predicted - measured) / measured : nan;
}

FigureComparison compareFigure(const Figure& predicted, const Figure& measured)
{
    FigureComparison result{predicted.key, nan, false};
    if (!predicted.isNumber() || !measured.isNumber()) {
        result.agree = predicted.value == measured.value;
        return result;
    }
    if (predicted.isCounted || measured.isCounted)
        return result; // both come from the same count
    result.error = relativeError(predicted.number(), measured.number());
    const double low = measured.low.value_or(measured.number());
    const double high = measured.high.value_or(measured.number());
    result.agree = predicted.number() >= low && predicted.number() <= high;
    return result;
}

/// Where values stand: of equal ones the first. A curve of a foreign document may have millions of points.
class Places
{
public:
    explicit Places(const std::vector<double>& values)
    {
        for (std::size_t i = 0; i < values.size(); ++i)
            if (!std::isnan(values[i])) // equal to none
                m_sorted.emplace_back(values[i], i);
        std::sort(m_sorted.begin(), m_sorted.end());
    }
    std::optional<std::size_t> of(double x) const
    {
        const auto found = std::lower_bound(m_sorted.begin(), m_sorted.end(), std::pair(x, std::size_t(0)));
        return found != m_sorted.end() && found->first == x ? std::optional(found->second) : std::nullopt;
    }

private:
    std::vector<std::pair<double, std::size_t>> m_sorted;
};

SeriesComparison compareOne(const Series& predicted, const Series& measured)
{
    SeriesComparison result{predicted.key, nan, nan, nan, 0};
    std::vector<double> errors;
    const Places places(predicted.x.values);
    for (std::size_t i = 0; i < measured.x.values.size(); ++i) {
        const auto j = places.of(measured.x.values[i]);
        if (!j)
            continue;
        const double error = std::fabs(relativeError(predicted.y[*j], measured.y[i]));
        if (!std::isfinite(error))
            continue;
        if (errors.empty() || error > result.largestError) {
            result.largestError = error;
            result.worstX = measured.x.values[i];
        }
        errors.push_back(error);
    }
    result.points = errors.size();
    if (!errors.empty()) {
        std::sort(errors.begin(), errors.end());
        const std::size_t middle = errors.size() / 2;
        result.medianError = errors.size() % 2 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
    }
    return result;
}

bool lessIsFaster(Unit unit)
{
    return unit == Unit::Second || unit == Unit::Byte || unit == Unit::One;
}

Verdict verdictOf(double lowA, double highA, double lowB, double highB, bool lessFaster)
{
    if (!std::isfinite(lowA) || !std::isfinite(highA) || !std::isfinite(lowB) || !std::isfinite(highB))
        return Verdict::Unknown;
    if (highB < lowA)
        return lessFaster ? Verdict::Faster : Verdict::Slower;
    if (lowB > highA)
        return lessFaster ? Verdict::Slower : Verdict::Faster;
    return Verdict::Same;
}

} // namespace

Comparison compare(const Outcome& predicted, const Outcome& measured)
{
    Comparison comparison;
    const ByKey figures(measured.figures);
    for (const Figure& figure : predicted.figures) {
        if (const Figure* other = figures.find(figure.key))
            comparison.figures.push_back(compareFigure(figure, *other));
    }
    const ByKey curves(measured.series);
    for (const Series& series : predicted.series) {
        if (const Series* other = curves.find(series.key))
            comparison.series.push_back(compareOne(series, *other));
    }
    return comparison;
}

Json comparisonToJson(const Comparison& comparison)
{
    Json figures = Json::object(), series = Json::object();
    for (const FigureComparison& one : comparison.figures)
        addMember(figures, one.key, {{"error", jsonNumber(one.error)}, {"agree", one.agree}});
    std::set<std::string_view> seen; // an outcome may hold several curves of one key
    for (const SeriesComparison& one : comparison.series) {
        if (seen.insert(one.key).second)
            addMember(series, one.key,
                      {{"median_error", jsonNumber(one.medianError)},
                       {"largest_error", jsonNumber(one.largestError)},
                       {"worst_x", jsonNumber(one.worstX)},
                       {"points", one.points}});
    }
    return {{"figures", std::move(figures)}, {"series", std::move(series)}};
}

std::string_view verdictText(Verdict verdict)
{
    switch (verdict) {
    case Verdict::Faster: return "faster";
    case Verdict::Slower: return "slower";
    case Verdict::Same: return "the same within noise";
    case Verdict::Unknown: break;
    }
    return "not comparable";
}

Verdict compareFigures(const Figure& a, const Figure& b)
{
    if (a.unit != b.unit || !a.isNumber() || !b.isNumber())
        return Verdict::Unknown;
    return verdictOf(a.low.value_or(a.number()), a.high.value_or(a.number()), b.low.value_or(b.number()),
                     b.high.value_or(b.number()), lessIsFaster(a.unit));
}

Verdict compareSeries(const Series& a, const Series& b)
{
    if (a.yUnit != b.yUnit || a.x.unit != b.x.unit)
        return Verdict::Unknown;
    std::size_t faster = 0, slower = 0, common = 0;
    const auto bound = [](const std::vector<double>& band, const std::vector<double>& y, std::size_t i) {
        return i < band.size() && std::isfinite(band[i]) ? band[i] : y[i];
    };
    const Places places(b.x.values);
    for (std::size_t i = 0; i < a.x.values.size(); ++i) {
        const auto j = places.of(a.x.values[i]);
        if (!j)
            continue;
        const Verdict one = verdictOf(bound(a.low, a.y, i), bound(a.high, a.y, i), bound(b.low, b.y, *j),
                                      bound(b.high, b.y, *j), lessIsFaster(a.yUnit));
        if (one == Verdict::Unknown)
            continue;
        ++common;
        faster += one == Verdict::Faster;
        slower += one == Verdict::Slower;
    }
    if (common == 0)
        return Verdict::Unknown;
    if (slower == 0 && 3 * faster >= 2 * common)
        return Verdict::Faster;
    if (faster == 0 && 3 * slower >= 2 * common)
        return Verdict::Slower;
    return Verdict::Same;
}

} // namespace memscape

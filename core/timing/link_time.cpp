// SPDX-License-Identifier: Apache-2.0
#include "core/timing/link_time.h"

#include "core/timing/calibration_fit.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

/// α, seconds per byte near, seconds per byte far.
using LinkTerms = std::array<double, 3>;

/// One probe's equation, divided by its time: terms · x = 1.
LinkTerms relativeTerms(const LinkProbe& probe)
{
    return {1 / probe.seconds, probe.bytes * probe.cached / probe.seconds,
            probe.bytes * (1 - probe.cached) / probe.seconds};
}

/// Least squares over the terms that are `used` (a bit each), the others zero; none where they do not determine it.
std::optional<LinkTerms> leastSquares(const std::vector<LinkTerms>& rows, unsigned used)
{
    // Normal equations in units of each column, which differ by ten orders of magnitude.
    std::vector<std::size_t> columns;
    LinkTerms unit{};
    for (std::size_t k = 0; k < 3; ++k) {
        for (const LinkTerms& row : rows)
            unit[k] += row[k] * row[k];
        unit[k] = std::sqrt(unit[k]);
        if ((used >> k & 1U) != 0) {
            if (!(unit[k] > 0))
                return std::nullopt;
            columns.push_back(k);
        }
    }
    const std::size_t n = columns.size();
    std::array<std::array<double, 4>, 3> a{};
    for (const LinkTerms& row : rows) {
        for (std::size_t i = 0; i < n; ++i) {
            const double scaled = row[columns[i]] / unit[columns[i]];
            for (std::size_t j = 0; j < n; ++j)
                a[i][j] += scaled * row[columns[j]] / unit[columns[j]];
            a[i][3] += scaled;
        }
    }
    for (std::size_t i = 0; i < n; ++i) { // Gauss; the matrix is positive definite or refused
        if (!(a[i][i] > 1e-9))
            return std::nullopt;
        for (std::size_t below = 0; below < n; ++below) {
            if (below == i)
                continue;
            const double factor = a[below][i] / a[i][i];
            for (std::size_t j = 0; j < 4; ++j)
                a[below][j] -= factor * a[i][j];
        }
    }
    LinkTerms found{};
    for (std::size_t i = 0; i < n; ++i)
        found[columns[i]] = a[i][3] / a[i][i] / unit[columns[i]];
    return found;
}

double squaredError(const std::vector<LinkTerms>& rows, const LinkTerms& x)
{
    double error = 0;
    for (const LinkTerms& row : rows)
        error += std::pow(row[0] * x[0] + row[1] * x[1] + row[2] * x[2] - 1, 2);
    return error;
}

/// The best of all fits in which no term is below zero.
std::optional<LinkTerms> fittedTerms(const std::vector<LinkTerms>& rows)
{
    std::optional<LinkTerms> best;
    for (unsigned used = 1; used < 8; ++used) {
        const auto found = leastSquares(rows, used);
        if (!found || std::any_of(found->begin(), found->end(), [](double term) { return term < 0; }))
            continue;
        if (!best || squaredError(rows, *found) < squaredError(rows, *best))
            best = found;
    }
    return best;
}

} // namespace

double cachedShare(const Device& host, double workingSet)
{
    const MemoryLevel* const cache = host.lastCache();
    if (!cache || !cache->capacity.known())
        return 1;
    return hitShare(workingSet, cache->capacity.value, cache->bandwidthKnee ? *cache->bandwidthKnee : cache->knee);
}

double secondsPerByte(const Link& link, double cached)
{
    const double near = 1 / link.bandwidth.value;
    if (!link.farBandwidth || !link.farBandwidth->known())
        return near;
    return cached * near + (1 - cached) / link.farBandwidth->value;
}

Result<FittedLink> fitLink(const LinkProbes& probes)
{
    std::vector<LinkTerms> rows;
    std::vector<LinkProbe> used;
    for (const LinkProbe& probe : probes.points) {
        if (probe.seconds > 0 && std::isfinite(probe.seconds)) {
            rows.push_back(relativeTerms(probe));
            used.push_back(probe);
        }
    }
    const auto terms = rows.size() < 2 ? std::nullopt : fittedTerms(rows);
    if (!terms || !((*terms)[1] > 0 || (*terms)[2] > 0))
        return fail("calibration.probes", "the sizes do not determine the bandwidth of " + probes.label,
                    "calibrate again when the machine is quieter");
    std::vector<double> off;
    for (const LinkTerms& row : rows)
        off.push_back(std::fabs(row[0] * (*terms)[0] + row[1] * (*terms)[1] + row[2] * (*terms)[2] - 1));
    std::sort(off.begin(), off.end());
    FittedLink fitted;
    fitted.residual = median(off);
    const auto [least, most] = std::minmax_element(
        used.begin(), used.end(), [](const LinkProbe& a, const LinkProbe& b) { return a.bytes < b.bytes; });
    const std::string method =
        fmt::format("α + n/β by least squares of the relative error over {} sizes from {} to {}; typical residual {}",
                    rows.size(), bytesText(least->bytes), bytesText(most->bytes), percentText(fitted.residual));
    const auto rate = [&](double term, double other) { return measuredHere(1 / (term > 0 ? term : other), method); };
    fitted.link.id = probes.id;
    fitted.link.label = probes.label;
    fitted.link.latency = measuredHere((*terms)[0], method);
    fitted.link.bandwidth = rate((*terms)[1], (*terms)[2]);
    fitted.link.farBandwidth = rate((*terms)[2], (*terms)[1]);
    return fitted;
}

} // namespace memscape

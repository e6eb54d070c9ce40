// SPDX-License-Identifier: Apache-2.0
#include "core/timing/link_time.h"

#include "core/timing/calibration_fit.h"
#include "core/timing/page_cache.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// s: where the sizes show no α, nothing is quicker than that, and a device file holds no 0.
constexpr double leastLatency = 1e-9;
constexpr double pipeBytes = 65536; ///< that Linux lets a pipe hold
constexpr double lineOf = 64;       ///< B

/// α; seconds per byte in the last cache, in no cache, in a core's own; γ.
constexpr std::size_t termCount = 5;
constexpr unsigned byteTerms = 0b01110;
using LinkTerms = std::array<double, termCount>;

/// One probe's equation, divided by its time: terms · x = 1.
LinkTerms relativeTerms(const LinkProbe& probe)
{
    const double last = probe.cached.last, own = probe.cached.own;
    const double rate = probe.bytes / probe.seconds;
    return {1 / probe.seconds, rate * (last - own), rate * (1 - last), rate * own, probe.pieces / probe.seconds};
}

/// Least squares over the terms that are `used` (a bit each), the others zero; none where they do not determine it.
std::optional<LinkTerms> leastSquares(const std::vector<LinkTerms>& rows, unsigned used)
{
    // Normal equations in units of each column, which differ by ten orders of magnitude.
    std::vector<std::size_t> columns;
    LinkTerms unit{};
    for (std::size_t k = 0; k < termCount; ++k) {
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
    std::array<std::array<double, termCount + 1>, termCount> a{};
    for (const LinkTerms& row : rows) {
        for (std::size_t i = 0; i < n; ++i) {
            const double scaled = row[columns[i]] / unit[columns[i]];
            for (std::size_t j = 0; j < n; ++j)
                a[i][j] += scaled * row[columns[j]] / unit[columns[j]];
            a[i][termCount] += scaled;
        }
    }
    for (std::size_t i = 0; i < n; ++i) { // Gauss; the matrix is positive definite or refused
        if (!(a[i][i] > 1e-9))
            return std::nullopt;
        for (std::size_t below = 0; below < n; ++below) {
            if (below == i)
                continue;
            const double factor = a[below][i] / a[i][i];
            for (std::size_t j = 0; j <= termCount; ++j)
                a[below][j] -= factor * a[i][j];
        }
    }
    LinkTerms found{};
    for (std::size_t i = 0; i < n; ++i)
        found[columns[i]] = a[i][termCount] / a[i][i] / unit[columns[i]];
    return found;
}

double modelOf(const LinkTerms& row, const LinkTerms& x)
{
    return std::inner_product(row.begin(), row.end(), x.begin(), 0.0);
}

double squaredError(const std::vector<LinkTerms>& rows, const LinkTerms& x)
{
    double error = 0;
    for (const LinkTerms& row : rows)
        error += std::pow(modelOf(row, x) - 1, 2);
    return error;
}

/// The best of all fits in which no term is below zero.
std::optional<LinkTerms> fittedTerms(const std::vector<LinkTerms>& rows)
{
    std::optional<LinkTerms> best;
    for (unsigned used = 1; used < 1U << termCount; ++used) {
        const auto found = (used & byteTerms) != 0 ? leastSquares(rows, used) : std::nullopt;
        if (!found || std::any_of(found->begin(), found->end(), [](double term) { return term < 0; }))
            continue;
        if (!best || squaredError(rows, *found) < squaredError(rows, *best))
            best = found;
    }
    return best;
}

} // namespace

CachedShares cachedShares(const Device& host, double workingSet)
{
    CachedShares shares;
    const MemoryLevel* const last = host.lastCache();
    if (!last || !last->capacity.known())
        return shares;
    const auto shareOf = [&](const MemoryLevel& cache) {
        return hitShare(workingSet, cache.capacity.value, cache.bandwidthKnee ? *cache.bandwidthKnee : cache.knee);
    };
    shares.last = shareOf(*last);
    if (last == &host.levels.front())
        return shares;
    const MemoryLevel& nearer = *(last - 1);
    if (nearer.kind == LevelKind::Cache && nearer.capacity.known() && nearer.instances > last->instances)
        shares.own = std::min(shares.last, shareOf(nearer));
    const MemoryLevel* const first = host.level("L1");
    if (first && first != &nearer && first->capacity.known())
        shares.first = std::min(shares.own, shareOf(*first));
    return shares;
}

double linkPieces(const std::string& id, double bytes, const CachedShares& cached)
{
    if (id == "pipe")
        return std::max(0.0, bytes / pipeBytes - 1);
    const bool isOfLines = id == "copy" || id == "thread" || id == "shared" || id == "beside";
    return isOfLines ? bytes / lineOf * (cached.own - cached.first) : 0;
}

double pieceSeconds(const Device& device, const std::string& id)
{
    if (!device.calibration || !device.calibration->raw.is_object())
        return 0;
    const auto all = device.calibration->raw.find("piece_seconds");
    if (all == device.calibration->raw.end() || !all->is_object())
        return 0;
    const auto found = all->find(id);
    const double seconds = found != all->end() && found->is_number() ? found->get<double>() : 0;
    return seconds > 0 && seconds <= 1 ? seconds : 0;
}

double secondsPerByte(const Link& link, const CachedShares& cached)
{
    const auto perByte = [&](const std::optional<Sourced>& rate) {
        return 1 / (rate && rate->known() ? rate->value : link.bandwidth.value);
    };
    return cached.own * perByte(link.ownBandwidth) + (cached.last - cached.own) * perByte(link.bandwidth)
        + (1 - cached.last) * perByte(link.farBandwidth);
}

LinkProbe onDevice(const Device& host, const LinkProbes& kind, LinkProbe probe)
{
    if (kind.touched > 0)
        probe.cached = cachedShares(host, kind.touched * probe.bytes);
    probe.pieces += linkPieces(kind.id, probe.bytes, probe.cached);
    if (kind.leastPiece > 0) // another thread made it warm, on any core
        probe.cached.own = probe.cached.first = 0;
    if (const auto pageCache = kind.leastPiece > 0 ? pageCacheOf(host) : std::nullopt)
        probe.pieces += pageCachePieces(*pageCache, probe.bytes, kind.leastPiece);
    if (kind.hasFarPieces)
        probe.pieces *= 1 - probe.cached.last;
    return probe;
}

LinkProbes onDevice(const Device& host, LinkProbes kind)
{
    for (LinkProbe& probe : kind.points)
        probe = onDevice(host, kind, probe);
    return kind;
}

double linkSeconds(const Device& host, const LinkProbes& kind, const LinkProbe& probe)
{
    const Link* const link = host.link(kind.id);
    if (!link)
        return nan;
    const LinkProbe here = onDevice(host, kind, probe);
    return link->latency.value + here.bytes * secondsPerByte(*link, here.cached)
        + here.pieces * pieceSeconds(host, kind.id);
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
    if (!terms || !(std::accumulate(terms->begin() + 1, terms->begin() + 4, 0.0) > 0))
        return fail("calibration.probes", "the sizes do not determine the bandwidth of " + probes.label,
                    "calibrate again when the machine is quieter");
    std::vector<double> off;
    for (const LinkTerms& row : rows)
        off.push_back(std::fabs(modelOf(row, *terms) - 1));
    std::sort(off.begin(), off.end());
    FittedLink fitted;
    fitted.residual = median(off);
    const auto [least, most] = std::minmax_element(
        used.begin(), used.end(), [](const LinkProbe& a, const LinkProbe& b) { return a.bytes < b.bytes; });
    const std::string method =
        fmt::format("α + n/β{} by least squares of the relative error over {} sizes from {} to {}; typical residual {}",
                    (*terms)[4] > 0 ? " + pieces × γ" : "", rows.size(), bytesText(least->bytes),
                    bytesText(most->bytes), percentText(fitted.residual));
    const auto& [latency, near, far, own, piece] = *terms;
    const auto firstOf = [&](double term, double other, double third) {
        return measuredHere(1 / (term > 0 ? term : other > 0 ? other : third), method);
    };
    fitted.piece = piece;
    fitted.link.id = probes.id;
    fitted.link.label = probes.label;
    fitted.link.latency = measuredHere(std::max(latency, leastLatency), method);
    fitted.link.bandwidth = firstOf(near, far, own);
    fitted.link.farBandwidth = firstOf(far, near, own);
    if (own > 0)
        fitted.link.ownBandwidth = measuredHere(1 / own, method);
    return fitted;
}

} // namespace memscape

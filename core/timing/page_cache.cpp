// SPDX-License-Identifier: Apache-2.0
#include "core/timing/page_cache.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr double growth = 4;          ///< of pieces from one window to the next
constexpr double mostPiece = 0x1p21;  ///< B: what one entry of a page table's second level maps
constexpr double mostWindow = 0x1p40; ///< B

bool isPossible(double value, double least, double most)
{
    return std::isfinite(value) && value >= least && value <= most;
}

} // namespace

double pageCachePieces(const PageCache& cache, double bytes, double least)
{
    // A page at a time where no fault maps more than its surroundings.
    const double largest = cache.largest > faultAround ? std::max(least, std::min(cache.largest, cache.window)) : least;
    double pieces = 0, piece = filePage;
    for (; bytes > 0 && piece < largest; piece *= growth) {
        const double read = std::min(bytes, cache.window);
        pieces += std::ceil(read / std::max(piece, least));
        bytes -= read;
    }
    return pieces + std::ceil(std::max(0.0, bytes) / largest);
}

double largestPiece(double window, double bytes, double faults)
{
    double best = faultAround, nearest = std::numeric_limits<double>::infinity();
    for (double largest = faultAround; largest <= mostPiece; largest *= 2) {
        const double off = std::fabs(pageCachePieces({window, largest}, bytes, faultAround) - faults);
        if (off < nearest) {
            nearest = off;
            best = largest;
        }
    }
    return best;
}

std::optional<PageCache> pageCacheOf(const Device& device)
{
    if (!device.calibration || !device.calibration->raw.is_object())
        return std::nullopt;
    const auto found = device.calibration->raw.find("page_cache");
    if (found == device.calibration->raw.end() || !found->is_object())
        return std::nullopt;
    const auto numberOf = [](const Json& object, const char* key) {
        const auto at = object.find(key);
        return at != object.end() && at->is_number() ? at->get<double>() : nan;
    };
    const PageCache cache{numberOf(*found, "window"), numberOf(*found, "largest")};
    if (!isPossible(cache.window, filePage, mostWindow) || !isPossible(cache.largest, filePage, mostPiece))
        return std::nullopt;
    return cache;
}

Json pageCacheToJson(const PageCache& cache)
{
    return {{"window", jsonNumber(cache.window)}, {"largest", jsonNumber(cache.largest)}};
}

} // namespace memscape

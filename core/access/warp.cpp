// SPDX-License-Identifier: Apache-2.0
// See warp.h for the rule. The lists are made from the lanes' byte ranges, sorted and merged once;
// nothing here knows how the addresses came about.
#include "core/access/warp.h"

#include "core/access/granules.h"
#include "core/access/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace memscape {

namespace {

Result<void> validateLanes(std::uint64_t lanes, std::uint64_t width)
{
    if (lanes == 0 || lanes > requestLaneLimit)
        return fail("access.lanes", fmt::format("a request has 1 to {} lanes, not {}", requestLaneLimit, lanes),
                    "a warp has 32");
    if (width == 0 || width > requestWidthLimit)
        return fail("access.element", fmt::format("an element has 1 to {} bytes, not {}", requestWidthLimit, width),
                    "use the size of the type: 1, 2, 4, 8 or 16");
    return {};
}

/// a × b, or access.overflow.
Result<std::uint64_t> product(std::uint64_t a, std::uint64_t b)
{
    if (a != 0 && b > UINT64_MAX / a)
        return fail("access.overflow", fmt::format("{} elements of {} bytes reach beyond a 64-bit address", a, b),
                    "use a smaller stride or element");
    return a * b;
}

Result<std::uint64_t> sum(std::uint64_t a, std::uint64_t b)
{
    if (b > UINT64_MAX - a)
        return fail("access.overflow", fmt::format("{} bytes from address {} reach beyond a 64-bit address", b, a),
                    "use a smaller stride or base");
    return a + b;
}

Result<std::uint64_t> checkedLanes(int lanes, std::uint64_t width)
{
    if (lanes < 0)
        return fail("access.lanes", fmt::format("a request cannot have {} lanes", lanes), "a warp has 32");
    MEMSCAPE_CHECK(validateLanes(std::uint64_t(lanes), width));
    return std::uint64_t(lanes);
}

Result<WarpRequest> pitchedRequest(std::uint64_t base, std::uint64_t pitch, std::uint64_t width, std::uint64_t lanes)
{
    MEMSCAPE_CHECK(validate(StridedWalk{base, pitch, width, lanes}));
    WarpRequest request{{}, width};
    request.addresses.reserve(lanes);
    for (std::uint64_t lane = 0; lane < lanes; ++lane)
        request.addresses.push_back(base + lane * pitch);
    return request;
}

struct Span
{
    std::uint64_t first, last; // bytes, both inclusive: an end of 2^64 would not fit
};

/// The lanes' bytes as ascending, disjoint, non-adjacent spans.
std::vector<Span> mergedSpans(const WarpRequest& request)
{
    std::vector<std::uint64_t> starts = request.addresses;
    std::ranges::sort(starts);
    std::vector<Span> spans;
    for (const std::uint64_t start : starts) {
        const std::uint64_t last = start + (request.width - 1);
        if (!spans.empty() && (start <= spans.back().last || start - spans.back().last == 1))
            spans.back().last = std::max(spans.back().last, last);
        else
            spans.push_back({start, last});
    }
    return spans;
}

std::vector<TouchedGranule> touchedGranules(const std::vector<Span>& spans, std::uint64_t size)
{
    std::vector<TouchedGranule> granules;
    for (const Span& span : spans) {
        const std::uint64_t first = span.first / size;
        const std::uint64_t count = span.last / size - first + 1;
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t address = (first + i) * size;
            if (granules.empty() || granules.back().address != address)
                granules.push_back({address, {}});
            const std::uint64_t begin = std::max(span.first, address) - address;
            const std::uint64_t end = std::min(span.last - address, size - 1) + 1;
            granules.back().used.push_back({begin, end});
        }
    }
    return granules;
}

std::size_t indexOf(const std::vector<TouchedGranule>& granules, std::uint64_t byte, std::uint64_t size)
{
    const std::uint64_t address = byte / size * size;
    const auto found =
        std::lower_bound(granules.begin(), granules.end(), address,
                         [](const TouchedGranule& granule, std::uint64_t wanted) { return granule.address < wanted; });
    return std::size_t(found - granules.begin());
}

std::vector<WarpPass> passesOf(const WarpRequest& request, const GranuleSizes& sizes)
{
    const int perPass = lanesPerPass(request.width, sizes.line);
    const int lanes = int(request.addresses.size());
    std::vector<WarpPass> passes;
    for (int first = 0; first < lanes; first += perPass) {
        const int count = std::min(perPass, lanes - first);
        const auto begin = request.addresses.begin() + first;
        const WarpRequest part{{begin, begin + count}, request.width};
        passes.push_back({first, count, touchedGranules(mergedSpans(part), sizes.sector).size()});
    }
    return passes;
}

Result<void> validateSizes(const GranuleSizes& sizes)
{
    if (sizes.sector == 0 || sizes.line == 0 || sizes.line % sizes.sector != 0)
        return fail("access.granule",
                    fmt::format("a line of {} bytes cannot be made of sectors of {} bytes", sizes.line, sizes.sector),
                    "NVIDIA GPUs have 32-byte sectors in 128-byte lines");
    return {};
}

} // namespace

Result<WarpRequest> stridedRequest(std::uint64_t base, std::uint64_t stride, std::uint64_t elementBytes, int lanes)
{
    MEMSCAPE_TRY(count, checkedLanes(lanes, elementBytes));
    MEMSCAPE_TRY(pitch, product(stride, elementBytes));
    return pitchedRequest(base, pitch, elementBytes, count);
}

Result<WarpRequest> randomRequest(std::uint64_t base, std::uint64_t seed, std::uint64_t elements,
                                  std::uint64_t elementBytes, int lanes)
{
    MEMSCAPE_TRY(count, checkedLanes(lanes, elementBytes));
    if (elements == 0)
        return fail("access.elements", "nothing can be drawn from an array of 0 elements", "use at least one element");
    MEMSCAPE_CHECK(validate(StridedWalk{base, elementBytes, elementBytes, elements}));
    WarpRequest request{{}, elementBytes};
    SplitMix64 random(seed);
    for (std::uint64_t lane = 0; lane < count; ++lane)
        request.addresses.push_back(base + random.below(elements) * elementBytes);
    return request;
}

std::uint64_t TouchedGranule::usedBytes() const
{
    std::uint64_t bytes = 0;
    for (const ByteRange& range : used)
        bytes += range.end - range.begin;
    return bytes;
}

int lanesPerPass(std::uint64_t width, std::uint64_t lineBytes)
{
    const std::uint64_t lanes = width > 0 ? lineBytes / width : lineBytes;
    return int(std::clamp<std::uint64_t>(std::bit_floor(lanes), 1, warpLanes));
}

Result<WarpAccess> resolveRequest(const WarpRequest& request, const GranuleSizes& sizes)
{
    MEMSCAPE_CHECK(validateLanes(request.addresses.size(), request.width));
    MEMSCAPE_CHECK(validateSizes(sizes));
    for (const std::uint64_t address : request.addresses)
        MEMSCAPE_CHECK(sum(address, request.width - 1));

    WarpAccess access{request.width, sizes, {}, {}, {}, {}, 0, 0};
    const std::vector<Span> spans = mergedSpans(request);
    access.sectors = touchedGranules(spans, sizes.sector);
    access.lines = touchedGranules(spans, sizes.line);
    access.passes = passesOf(request, sizes);
    for (const std::uint64_t first : request.addresses) {
        const std::uint64_t last = first + (request.width - 1);
        access.lanes.push_back({first, indexOf(access.sectors, first, sizes.sector),
                                indexOf(access.sectors, last, sizes.sector), indexOf(access.lines, first, sizes.line),
                                indexOf(access.lines, last, sizes.line)});
    }
    for (const TouchedGranule& sector : access.sectors)
        access.usedBytes += sector.usedBytes();
    access.fetchedBytes = access.sectors.size() * sizes.sector;
    return access;
}

Result<WarpCounts> stridedCounts(std::uint64_t base, std::uint64_t stride, std::uint64_t elementBytes, int lanes,
                                 const GranuleSizes& sizes)
{
    MEMSCAPE_TRY(count, checkedLanes(lanes, elementBytes));
    MEMSCAPE_CHECK(validateSizes(sizes));
    MEMSCAPE_TRY(pitch, product(stride, elementBytes));
    const StridedWalk walk{base, pitch, elementBytes, count};
    MEMSCAPE_TRY(sectors, granulesTouched(walk, sizes.sector));
    MEMSCAPE_TRY(lines, granulesTouched(walk, sizes.line));
    MEMSCAPE_TRY(used, bytesTouched(walk));
    return WarpCounts{double(sectors), double(lines), double(used), double(sectors) * double(sizes.sector)};
}

Result<WarpCounts> expectedRandomCounts(std::uint64_t base, std::uint64_t elements, std::uint64_t elementBytes,
                                        int lanes, const GranuleSizes& sizes)
{
    MEMSCAPE_TRY(count, checkedLanes(lanes, elementBytes));
    MEMSCAPE_CHECK(validateSizes(sizes));
    const ElementArray array{base, elementBytes, elements};
    MEMSCAPE_TRY(sectors, expectedGranules(array, count, sizes.sector));
    MEMSCAPE_TRY(lines, expectedGranules(array, count, sizes.line));
    return WarpCounts{sectors, lines, expectedDistinct(elements, count) * double(elementBytes),
                      sectors * double(sizes.sector)};
}

} // namespace memscape

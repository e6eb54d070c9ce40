// SPDX-License-Identifier: Apache-2.0
// See host_lines.h. The array begins at address 0, a border of every line and page.
#include "core/access/host_lines.h"

#include "core/access/granules.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Result<void> validateElement(std::uint64_t bytes, std::uint64_t elementBytes, std::uint64_t offset)
{
    if (elementBytes == 0)
        return fail("access.element", "an element cannot be 0 bytes", "use the size of the type: 1, 2, 4, 8 or 16");
    if (offset > bytes || bytes - offset < elementBytes)
        return fail(
            "access.bytes",
            fmt::format("an array of {} bytes holds no element of {} bytes at offset {}", bytes, elementBytes, offset),
            "use a larger array, or a smaller element or offset");
    return {};
}

} // namespace

Result<HostFootprint> stridedFootprint(const HostWalk& walk, const HostSizes& sizes)
{
    MEMSCAPE_CHECK(validateElement(walk.bytes, walk.elementBytes, walk.offsetBytes));
    const std::uint64_t room = walk.bytes - walk.offsetBytes - walk.elementBytes;
    const std::uint64_t step = walk.strideBytes > 0 ? walk.strideBytes : walk.elementBytes;
    if (room / step == UINT64_MAX)
        return fail("access.overflow", "the walk has more than 2^64 - 1 elements",
                    "use a smaller array or a larger stride");
    const StridedWalk elements{walk.offsetBytes, walk.strideBytes, walk.elementBytes, room / step + 1};
    MEMSCAPE_TRY(lines, granulesTouched(elements, sizes.line));
    MEMSCAPE_TRY(pages, granulesTouched(elements, sizes.page));
    MEMSCAPE_TRY(visits, granuleVisits(elements, sizes.line));
    MEMSCAPE_TRY(used, bytesTouched(elements));
    return HostFootprint{double(elements.count), double(lines), double(pages),
                         double(visits),         double(used),  double(lines) * double(sizes.line)};
}

Result<HostFootprint> randomFootprint(std::uint64_t bytes, std::uint64_t elementBytes, std::uint64_t accesses,
                                      const HostSizes& sizes)
{
    MEMSCAPE_CHECK(validateElement(bytes, elementBytes, 0));
    if (accesses == 0)
        return fail("access.count", "a walk of 0 accesses touches nothing", "use at least one access");
    const ElementArray array{0, elementBytes, bytes / elementBytes};
    MEMSCAPE_TRY(lines, expectedGranules(array, accesses, sizes.line));
    MEMSCAPE_TRY(pages, expectedGranules(array, accesses, sizes.page));
    const StridedWalk all{0, elementBytes, elementBytes, array.elements};
    MEMSCAPE_TRY(visits, granuleVisits(all, sizes.line));
    const double linesPerElement = double(visits) / double(array.elements);
    return HostFootprint{double(accesses),
                         lines,
                         pages,
                         double(accesses) * linesPerElement,
                         expectedDistinct(array.elements, accesses) * double(elementBytes),
                         lines * double(sizes.line)};
}

} // namespace memscape

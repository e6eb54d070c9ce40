// SPDX-License-Identifier: Apache-2.0
// See granules.h for the model. Products that can pass 64 bits are taken in 128.
#include "core/access/granules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace memscape {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t widestElement = 1u << 20; // bounds the loop of expectedGranules()

/// Σ_{i=0}^{n-1} ⌊(a·i + b)/m⌋ by Euclid's algorithm (Graham, Knuth, Patashnik, Concrete
/// Mathematics, 3.5): whole multiples of m leave the sum, then rows and columns change places.
Wide floorSum(Wide n, Wide m, Wide a, Wide b)
{
    Wide sum = 0;
    while (true) {
        sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
        a %= m;
        b %= m;
        const Wide top = a * n + b;
        if (top < m)
            return sum;
        n = top / m;
        b = top % m;
        std::swap(m, a);
    }
}

Result<void> validateGranule(std::uint64_t granule)
{
    if (granule == 0)
        return fail("access.granule", "a sector, line or page cannot be 0 bytes",
                    "use 32 or 128 for a GPU, 64 or 4096 for a host");
    return {};
}

/// How many elements of the array touch the granule [begin, begin + granule).
std::uint64_t elementsTouching(const ElementArray& array, std::uint64_t begin, std::uint64_t granule)
{
    const std::uint64_t last = array.elements - 1;
    const std::uint64_t first = begin <= array.base ? 0 : (begin - array.base) / array.width;
    const Wide final = (Wide(begin) + (granule - 1) - array.base) / array.width;
    return std::uint64_t(std::min<Wide>(final, last)) - first + 1;
}

} // namespace

Result<void> validate(const StridedWalk& walk)
{
    if (walk.width == 0)
        return fail("access.element", "an element cannot be 0 bytes", "use the size of the type: 1, 2, 4, 8 or 16");
    if (walk.count == 0)
        return fail("access.count", "a walk over 0 elements touches nothing", "use at least one element");
    const Wide end = Wide(walk.base) + Wide(walk.count - 1) * walk.pitch + walk.width;
    if (end > Wide(1) << 64)
        return fail("access.overflow",
                    fmt::format("{} elements {} bytes apart reach beyond a 64-bit address", walk.count, walk.pitch),
                    "use a smaller stride, element or count");
    return {};
}

Result<std::uint64_t> granulesTouched(const StridedWalk& walk, std::uint64_t granule)
{
    MEMSCAPE_CHECK(validate(walk));
    MEMSCAPE_CHECK(validateGranule(granule));
    const bool dense = walk.pitch < Wide(granule) + walk.width;
    if (!dense)
        return granuleVisits(walk, granule);
    const std::uint64_t lastByte = walk.base + (walk.count - 1) * walk.pitch + (walk.width - 1);
    return lastByte / granule - walk.base / granule + 1;
}

Result<std::uint64_t> granuleVisits(const StridedWalk& walk, std::uint64_t granule)
{
    MEMSCAPE_CHECK(validate(walk));
    MEMSCAPE_CHECK(validateGranule(granule));
    // Whole granules in base and pitch add the same to both sums: only remainders matter.
    const Wide start = walk.base % granule;
    const Wide step = walk.pitch % granule;
    const Wide crossings =
        floorSum(walk.count, granule, step, start + walk.width - 1) - floorSum(walk.count, granule, step, start);
    const Wide visits = crossings + walk.count;
    if (visits >> 64)
        return fail("access.overflow", "the walk visits more than 2^64 granules",
                    "use a larger granule, or fewer or smaller elements");
    return std::uint64_t(visits);
}

Result<std::uint64_t> bytesTouched(const StridedWalk& walk)
{
    MEMSCAPE_CHECK(validate(walk));
    // validate() bounds (n-1)·p + e by 2^64, and the minimum keeps n·e below it.
    return (walk.count - 1) * std::min(walk.pitch, walk.width) + walk.width;
}

double expectedDistinct(std::uint64_t elements, std::uint64_t draws)
{
    if (elements <= 1)
        return draws > 0 ? double(elements) : 0.0;
    const double n = double(elements);
    return n * -std::expm1(double(draws) * std::log1p(-1.0 / n));
}

Result<double> expectedGranules(const ElementArray& array, std::uint64_t draws, std::uint64_t granule)
{
    if (array.elements == 0)
        return fail("access.elements", "nothing can be drawn from an array of 0 elements", "use at least one element");
    if (array.width > widestElement)
        return fail("access.element", "an element can be at most 1 MiB", "use a smaller element");
    MEMSCAPE_CHECK(validate(StridedWalk{array.base, array.width, array.width, array.elements}));
    MEMSCAPE_CHECK(validateGranule(granule));

    const std::uint64_t lastByte = array.base + (array.elements - 1) * array.width + array.width - 1;
    const std::uint64_t first = array.base / granule;
    const std::uint64_t granules = lastByte / granule - first + 1;
    const auto hit = [&](std::uint64_t index) {
        const std::uint64_t touching = elementsTouching(array, (first + index) * granule, granule);
        if (touching >= array.elements)
            return draws > 0 ? 1.0 : 0.0;
        return -std::expm1(double(draws) * std::log1p(-double(touching) / double(array.elements)));
    };
    double sum = hit(0) + (granules > 1 ? hit(granules - 1) : 0.0);
    if (granules <= 2)
        return sum;
    // Between the ends the number of elements per granule repeats every width / gcd granules.
    const std::uint64_t inner = granules - 2;
    const std::uint64_t period = array.width / std::gcd(array.width, granule);
    for (std::uint64_t index = 0; index < std::min(period, inner); ++index)
        sum += hit(1 + index) * double((inner - index - 1) / period + 1);
    return sum;
}

} // namespace memscape

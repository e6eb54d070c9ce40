// SPDX-License-Identifier: Apache-2.0
#include "core/access/banks.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

namespace memscape {

namespace {

bool isPowerOfTwo(std::uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

Result<void> checkWidth(std::uint32_t width)
{
    if (!isPowerOfTwo(width) || width > 16)
        return fail("banks.width", fmt::format("no lane accesses {} bytes at once", width), "choose 1, 2, 4, 8 or 16");
    return {};
}

/// Pieces of `granule` bytes are exchanged within 128 bytes, or within the row where it is shorter.
Result<void> addSwizzle(SharedTile& tile, std::uint32_t granule)
{
    if (!isPowerOfTwo(granule) || granule < std::max(tile.width, bankBytes) || granule > bankRowBytes)
        return fail("banks.granule", fmt::format("a swizzle cannot exchange pieces of {} bytes", granule),
                    fmt::format("choose a power of two from {} to {}", std::max(tile.width, bankBytes), bankRowBytes));
    const std::uint32_t rowBytes = tile.columns * tile.width;
    const bool isShort = rowBytes < bankRowBytes;
    if (isShort ? !isPowerOfTwo(rowBytes) || rowBytes < granule : rowBytes % bankRowBytes != 0)
        return fail(
            "banks.columns",
            fmt::format("a swizzle cannot exchange pieces of {} bytes within rows of {} bytes", granule, rowBytes),
            fmt::format("choose a row length that is a multiple of {} elements, or a power of two "
                        "below that",
                        bankRowBytes / tile.width),
            "columns");
    tile.granule = granule;
    tile.mask = std::min(rowBytes, bankRowBytes) / granule - 1;
    for (std::uint32_t rows = isShort ? bankRowBytes / rowBytes : 1; rows > 1; rows /= 2)
        ++tile.shift;
    return {};
}

/// Lanes n and n ^ distance at the same address, for all n.
bool pairsAreEqual(const std::vector<std::uint32_t>& addresses, std::size_t distance)
{
    for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
        const std::size_t other = lane ^ distance;
        if (other < addresses.size() && addresses[lane] != addresses[other])
            return false;
    }
    return true;
}

/// Gives every lane of a phase its wavefront: a bank's first word in the first, its second in the
/// second. Aligned elements of several words lie in banks that no other element shares in part, so the first
/// word decides for all.
int servePhase(std::vector<BankLane>& lanes, const BankPhase& phase)
{
    std::array<std::vector<std::uint32_t>, sharedBanks> asked; // different words, in the order of lanes
    int degree = 0;
    for (int i = phase.firstLane; i < phase.firstLane + phase.lanes; ++i) {
        BankLane& lane = lanes[std::size_t(i)];
        auto& words = asked[std::size_t(lane.bank)];
        const auto found = std::ranges::find(words, lane.word);
        lane.wavefront = phase.firstWavefront + int(found - words.begin());
        if (found == words.end())
            words.push_back(lane.word);
        degree = std::max(degree, int(words.size()));
    }
    return degree;
}

} // namespace

Result<SharedTile> sharedTile(std::uint32_t width, std::uint32_t columns, std::uint32_t padding, std::uint32_t granule)
{
    MEMSCAPE_CHECK(checkWidth(width));
    constexpr std::uint32_t most = 65'536; // sums and products of these stay within 32 bits
    if (columns == 0 || columns > most)
        return fail("banks.columns", fmt::format("a row of {} elements", columns), fmt::format("choose 1 to {}", most),
                    "columns");
    if (padding > most)
        return fail("banks.padding", fmt::format("{} elements behind each row", padding),
                    fmt::format("choose at most {}", most), "padding");
    SharedTile tile;
    tile.width = width;
    tile.columns = columns;
    tile.padding = padding;
    if (granule != 0)
        MEMSCAPE_CHECK(addSwizzle(tile, granule));
    return tile;
}

int lanesPerPhase(std::uint32_t width)
{
    return int(bankRowBytes / std::max(width, bankBytes));
}

Result<BankAccess> resolveBanks(const std::vector<std::uint32_t>& addresses, std::uint32_t width, PhaseMerging merging)
{
    MEMSCAPE_CHECK(checkWidth(width));
    const int lanes = int(addresses.size());
    if (lanes < 1 || lanes > bankLaneLimit)
        return fail("banks.lanes", fmt::format("{} lanes in a request", lanes), fmt::format("1 to {}", bankLaneLimit));
    BankAccess access;
    access.width = width;
    for (int i = 0; i < lanes; ++i) {
        const std::uint32_t address = addresses[std::size_t(i)];
        if (address % width != 0)
            return fail("banks.alignment", fmt::format("lane {} accesses {} bytes at address {}", i, width, address),
                        "the address must be a multiple of the width");
        const std::uint32_t word = address / bankBytes;
        access.lanes.push_back(
            {address, word, int(word % sharedBanks), int(std::max(width, bankBytes) / bankBytes), 0, 0});
    }
    int together = lanesPerPhase(width);
    access.isMerged = merging == PhaseMerging::EqualPairs && width > bankBytes && lanes > together
        && (pairsAreEqual(addresses, 1) || pairsAreEqual(addresses, 2));
    together *= access.isMerged ? 2 : 1;
    for (int first = 0; first < lanes; first += together) {
        BankPhase phase{first, std::min(together, lanes - first), 0, access.wavefronts};
        for (int i = first; i < first + phase.lanes; ++i)
            access.lanes[std::size_t(i)].phase = int(access.phases.size());
        phase.degree = servePhase(access.lanes, phase);
        access.wavefronts += phase.degree;
        access.degree = std::max(access.degree, phase.degree);
        access.phases.push_back(phase);
    }
    return access;
}

int gcdDegree(std::uint32_t stride, std::uint32_t width)
{
    if (width >= bankBytes)
        return int(std::gcd(stride, bankRowBytes / width));
    const std::uint32_t bytes = stride * width;
    return bytes % bankBytes != 0 ? 0 : int(std::gcd(bytes / bankBytes, sharedBanks));
}

} // namespace memscape

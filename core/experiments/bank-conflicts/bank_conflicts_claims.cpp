// SPDX-License-Identifier: Apache-2.0
// What the course notes, NVIDIA's guides and every tutorial say about bank conflicts, with this request's
// numbers beside it.
#include "core/claims/claim_quotes.h"
#include "core/experiments/bank-conflicts/bank_conflicts.h"
#include "core/experiments/common/judged_number.h"
#include "core/experiments/common/sources.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Wavefronts of `lanes` 4-byte elements `stride` apart in a tile 32 wide; what every published example is
/// made of.
int plainWavefronts(std::uint32_t stride, std::uint32_t padding, std::uint32_t lanes = 32)
{
    std::vector<std::uint32_t> addresses;
    const auto tile = sharedTile(4, 32, padding, 0);
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        addresses.push_back(addressIn(*tile, lane * stride));
    const auto access = resolveBanks(addresses, 4);
    return access ? access->wavefronts : 0;
}

/// Wavefronts of this request's lanes in another tile; 0 where there is none.
int wavefrontsIn(const Device& device, BankCase request, std::uint32_t padding, std::uint32_t granule)
{
    const auto tile = sharedTile(request.tile.width, request.tile.columns, padding, granule);
    if (!tile)
        return 0;
    request.tile = *tile;
    const auto access = bankAccess(device, request);
    return access ? access->wavefronts : 0;
}

/// Measured where a lone request was, else predicted; not a number where neither is.
JudgedNumber loneCycles(const std::optional<BankTime>& time, const Measurement& measured)
{
    return judgedNumber(measured, "latency_cycles", time ? time->latencyCycles : std::nan(""));
}

Claim accessTime(const Device& device, const BankAccess& access, const std::optional<BankTime>& time,
                 const Measurement& measured)
{
    const JudgedNumber lone = loneCycles(time, measured);
    Claim claim = quotedClaim("shared-cycles",
                              lone.value > 32 ? "holds for the banks; a lone access waits longer"
                                  : std::isfinite(lone.value)
                                  ? "holds"
                                  : "holds for the banks; the time of a lone access is not known here",
                              fmt::format("this request: {} wavefronts", access.wavefronts));
    if (std::isfinite(lone.value))
        claim.ours += fmt::format(", {:.0f} cycles alone ({})", lone.value, lone.side());
    if (time && time->latency.known()) {
        const double first = time->latency.value * time->clock.value;
        claim.ours +=
            fmt::format("; one warp alone waits {:.0f} cycles without a conflict and at least {:.0f} with 32 on {}",
                        first, first + 31 * time->cyclesPerWavefront, device.name);
    }
    return claim;
}

Claim timesSlower(const BankAccess& access, const std::optional<BankTime>& time, const Measurement& measured)
{
    const int fewest = int(access.phases.size());
    const double factor = double(access.wavefronts) / fewest;
    Claim claim{
        "An n-way bank conflict makes the access n times slower",
        sharedMemoryGuide,
        {},
        fmt::format("{} wavefronts against {}: {:.3g} times the banks' time", access.wavefronts, fewest, factor)};
    const JudgedNumber lone = loneCycles(time, measured);
    double alone = std::nan("");
    if (time && std::isfinite(lone.value)) {
        const double least = lone.value - access.conflicts() * time->cyclesPerWavefront;
        alone = lone.value / least;
        claim.ours += fmt::format("; alone at least {:.3g} times ({:.0f} against {:.0f} cycles, {})", alone, lone.value,
                                  least, lone.side());
    }
    claim.verdict = access.conflicts() == 0 ? "does not apply here: this request has no conflict"
        : alone < 0.9 * factor
        ? "holds while many warps keep the banks busy; a lone request mostly waits for its latency"
        : std::isfinite(alone) ? "holds"
                               : "holds for the banks' time; that of a lone request is not known here";
    return claim;
}

Claim gcdRule(const BankCase& request, const BankAccess& access)
{
    const int rule = gcdWavefronts(request);
    const bool agrees = rule == access.wavefronts;
    const bool isZero = request.pattern == BankPattern::Strided && request.stride == 0;
    return {"The degree of conflict of a stride s is gcd(s, 32)",
            "taught with every stride; CUDA Programming Guide for s = 1, 2, 3",
            agrees          ? "holds here"
                : isZero    ? "does not hold for stride 0: all lanes access one word, which is broadcast"
                : rule == 0 ? "does not apply here: neighbours share words"
                            : "does not hold with padding or a swizzle, which avoid conflicts",
            fmt::format("the rule {}, counted {} wavefronts",
                        rule == 0 ? "gives no number" : fmt::format("gives {}", rule), access.wavefronts)};
}

Claim paddingCures(const Device& device, const BankCase& request)
{
    BankCase column = request;
    for (std::size_t lane = 0; lane < column.elements.size(); ++lane)
        column.elements[lane] = static_cast<std::uint32_t>(lane) * column.tile.columns;
    const int phases =
        (int(column.elements.size()) + lanesPerPhase(column.tile.width) - 1) / lanesPerPhase(column.tile.width);
    const int without = wavefrontsIn(device, column, 0, 0), with = wavefrontsIn(device, column, 1, 0);
    const std::uint32_t width = column.tile.width;
    return {"A column of a tile is free of conflicts once its rows are padded by one element",
            "CUDA C++ Best Practices Guide, Shared Memory in Matrix Multiplication (C = AAᵀ); "
                + std::string(sharedMemoryGuide),
            with <= phases       ? "holds here"
                : without < with ? "does not hold: here the padding makes the conflict"
                                 : "does not hold for these elements: pad by whole words (4 bytes)",
            fmt::format("rows of {} × {} B: a column takes {} wavefronts, padded {}, of at least {}",
                        column.tile.columns, width, without, with, phases)};
}

/// C = AAᵀ of the guide: per warp and tile one store of a row, one of a column, then 32 times a broadcast
/// and a row read.
Claim wholeKernel()
{
    const double loop = 32 * (plainWavefronts(0, 0) + plainWavefronts(1, 0));
    const double before = plainWavefronts(1, 0) + plainWavefronts(32, 0) + loop;
    const double after = plainWavefronts(1, 1) + plainWavefronts(32, 1) + loop;
    return {"Bank conflicts can slow a kernel down 32 times", "tutorials on shared memory",
            before / after > 16 ? "holds" : "does not hold for a kernel that does anything else",
            fmt::format(
                "the guide's C = AAᵀ stores one column in 66 requests: {:.0f} wavefronts, {:.0f} padded, {:.2f} times; "
                "NVIDIA measured 199.4 / 140.2 GB/s = {:.2f} on a V100",
                before, after, before / after, 199.4 / 140.2)};
}

Claim swizzleIsFree(const Device& device, const BankCase& request)
{
    const std::uint32_t granule = std::max(request.tile.width, bankBytes);
    const int swizzled = wavefrontsIn(device, request, 0, granule), padded = wavefrontsIn(device, request, 1, 0);
    const std::uint32_t plain = request.rows * request.tile.columns * request.tile.width;
    const std::uint32_t more = request.rows * request.tile.width;
    return {"A swizzle removes the conflicts that padding removes, without its memory",
            "CUTLASS, the layouts of its shared memory; tutorials on ldmatrix",
            swizzled == 0            ? "not for this row length: pieces can be exchanged within 128 bytes only"
                : swizzled <= padded ? "holds here"
                                     : "does not hold here",
            swizzled == 0
                ? fmt::format("rows of {} B", request.tile.columns * request.tile.width)
                : fmt::format("XOR: {} wavefronts in {}; padded by one: {} in {}", swizzled,
                              quantityText(plain, Unit::Byte), padded, quantityText(plain + more, Unit::Byte))};
}

} // namespace

std::vector<Claim> bankClaims(const Device& device, const BankCase& request, const BankAccess& access,
                              const Measurement& measured)
{
    const auto time = bankTime(device, request, access);
    std::vector<Claim> claims{accessTime(device, access, time, measured), timesSlower(access, time, measured)};
    if (request.pattern != BankPattern::Random)
        claims.push_back(gcdRule(request, access));
    claims.push_back(paddingCures(device, request));
    claims.push_back(swizzleIsFree(device, request));
    claims.push_back(wholeKernel());
    return claims;
}

} // namespace memscape

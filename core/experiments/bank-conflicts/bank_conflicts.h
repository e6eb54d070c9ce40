// SPDX-License-Identifier: Apache-2.0
// `bank-conflicts` as its callers see it: the parameters as a request of one warp, its wavefronts, the
// time that they take on a device, and the figures that a prediction and a measurement share.
#pragma once

#include "core/access/banks.h"
#include "core/experiment/experiment.h"

#include <optional>
#include <vector>

namespace memscape {

/// Which elements of the tile the lanes ask for; of `stride` apart where it is strided.
enum class BankPattern { Strided, Row, Column, Random };
const std::string& patternKey(BankPattern pattern); ///< "strided", "row", "column", "random"

/// One request of one warp over a tile in shared memory.
struct BankCase
{
    BankPattern pattern = BankPattern::Strided;
    SharedTile tile;
    std::uint32_t stride = 0; ///< elements between neighbouring lanes; 0 for random
    bool isWrite = false;
    std::vector<std::uint32_t> elements; ///< by lane, counted row by row
    std::uint32_t rows = 0;              ///< of the tile, as many as the lanes reach

    std::uint32_t tileBytes() const { return bytesOf(tile, rows); }
    double usefulBytes() const { return double(elements.size()) * tile.width; }
    std::vector<std::uint32_t> addresses() const;
};

/// Errors: banks.* for a width, row or swizzle that cannot be; banks.capacity when the tile is larger than
/// what one multiprocessor of this GPU holds.
Result<BankCase> bankCase(const Device& device, const Parameters& parameters);

/// The request, served by this device's rules.
Result<BankAccess> bankAccess(const Device& device, const BankCase& request);

/// What a request costs on this GPU.
struct BankTime
{
    double cyclesPerWavefront = 1; ///< each bank moves 32 bits a cycle, whatever the clock
    double cycles = 0;             ///< per request, many warps asking
    double bandwidth = 0;          ///< B/s that the lanes of one multiprocessor get
    double latencyCycles = 0;      ///< of a lone request; NaN where it is not defined or not known
    Sourced clock, latency;        ///< its basis
};
/// Nothing on a device without shared memory in banks.
std::optional<BankTime> bankTime(const Device& device, const BankCase& request, const BankAccess& access);

/// Whether a lone request's latency is defined: the answer of a read holds the next address, which takes
/// four bytes.
bool hasLatency(const BankCase& request);

/// degree, wavefronts, then `times`, then conflicts, gcd_wavefronts (where there is such a rule) and
/// tile_bytes.
Figures bankFigures(const BankCase& request, const BankAccess& access, Figures times);

/// Wavefronts by the rule of thumb, phases × gcd; 0 where there is none: random elements, or below 4 bytes.
int gcdWavefronts(const BankCase& request);

// bank_conflicts_detail.cpp, bank_conflicts_claims.cpp
Json bankDetail(const Device& device, const BankCase& request, const BankAccess& access);
std::vector<Claim> bankClaims(const Device& device, const BankCase& request, const BankAccess& access,
                              const Measurement& measured);

} // namespace memscape

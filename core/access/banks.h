// SPDX-License-Identifier: Apache-2.0
// Bank conflicts: in how many wavefronts the 32 banks of shared memory serve one request of a warp.
//
// Successive 4-byte words lie in successive banks, bank = ⌊address / 4⌋ mod 32, and a bank gives one
// word per wavefront. Lanes that access the same word are served together (broadcast); lanes that access different
// words of one bank wait for each other:
//     degree     = the most different words accessed in one bank, of one phase
//     wavefronts = Σ degree over the phases
// A phase is as many lanes as 128 bytes serve: all 32 of 1, 2 or 4 bytes, 16 of 8, 8 of 16. For
// neighbours s words apart the degree is gcd(s, 32), or 1 when s is 0. Writes follow the same rule:
// of several lanes that write one word, one wins.
//
// Sources: CUDA Programming Guide, "Shared Memory Access Patterns" (32 banks of 4 bytes, broadcast,
// 32-way conflicts of a column of a 32 × 32 tile, padding); the phases of 8- and 16-byte accesses as
// NVIDIA's engineers describe them (developer forums; CUTLASS issue 328).
//
// Left out: what NVIDIA does not document beyond that, in particular the order of the wavefronts (ours
// is that of the lanes), the exact conditions under which phases of equal addresses merge on GPUs
// after compute capability 7.5, and accesses by matrix (ldmatrix is four phases of eight 16-byte rows,
// which is a request of width 16).
#pragma once

#include "core/access/shared_tile.h"
#include "core/base/result.h"

#include <vector>

namespace memscape {

inline constexpr int bankLaneLimit = 64; ///< a wave of an AMD GPU

/// A tile whose sizes were checked. `granule` 0 is no swizzle; else the swizzle exchanges pieces of so
/// many bytes. Errors: banks.width (not 1, 2, 4, 8, 16), banks.columns (0 or over 65536, or a row that the
/// swizzle cannot exchange pieces of), banks.padding (over 65536), banks.granule (no power of two from
/// max(width, 4) to 128).
Result<SharedTile> sharedTile(std::uint32_t width, std::uint32_t columns, std::uint32_t padding, std::uint32_t granule);

/// One lane of a request, resolved.
struct BankLane
{
    std::uint32_t address = 0; ///< B
    std::uint32_t word = 0;    ///< the first it touches, address / 4
    int bank = 0;              ///< of that word; wider elements take the following ones too
    int words = 1;             ///< that it touches
    int phase = 0;             ///< index into BankAccess::phases
    int wavefront = 0;         ///< of the whole request, from 0, in which it is served
};

/// Lanes that the hardware takes together.
struct BankPhase
{
    int firstLane = 0, lanes = 0;
    int degree = 0;         ///< wavefronts that it takes
    int firstWavefront = 0; ///< of the whole request
};

struct BankAccess
{
    std::uint32_t width = 0;
    std::vector<BankLane> lanes;
    std::vector<BankPhase> phases;
    int degree = 0; ///< the largest of a phase
    int wavefronts = 0;
    bool isMerged = false; ///< two phases at a time, because of equal addresses

    /// What profilers count as conflicts: wavefronts beyond one per phase.
    int conflicts() const { return wavefronts - int(phases.size()); }
};

/// When phases of equal addresses are served two at a time: reads of 8 and 16 bytes in which lanes n and
/// n ^ 1, or n and n ^ 2, access the same address, for all n. NVIDIA states it for compute capability 7.0
/// to 7.5 (developer forum, "Unexpected shared memory bank conflict").
enum class PhaseMerging { Never, EqualPairs };

/// `addresses` in bytes, by lane. Errors: banks.lanes (none or over 64), banks.width, banks.alignment (an
/// address that is no multiple of the width: a fault on a GPU).
Result<BankAccess> resolveBanks(const std::vector<std::uint32_t>& addresses, std::uint32_t width,
                                PhaseMerging merging = PhaseMerging::Never);

/// Lanes of one phase: 128 / width, at most 32.
int lanesPerPhase(std::uint32_t width);

/// Degree of lanes `stride` elements of `width` bytes apart by the rule of thumb: gcd(stride, 128 / width),
/// for elements below 4 bytes gcd(stride · width / 4, 32). 0 when that stride is no whole number of words
/// and there is no rule. It is wrong for stride 0, where all lanes read one word: gcd(0, 32) is 32, the
/// degree 1.
int gcdDegree(std::uint32_t stride, std::uint32_t width);

} // namespace memscape

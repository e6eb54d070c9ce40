// SPDX-License-Identifier: Apache-2.0
// How many granules (sectors, cache lines, pages: aligned blocks of g bytes) an access pattern
// touches, in closed form. The warp model and the host model both use this file.
//
// Strided walk: element i covers the bytes [b + i·p, b + i·p + e), i = 0 … n-1. Two cases are exact
// and together cover every pitch p:
//   p < g + e       the gap between neighbours is too short to skip a granule, so all granules from
//                   the first byte to the last are touched:
//                   ⌊(b + (n-1)p + e - 1)/g⌋ - ⌊b/g⌋ + 1
//   p >= g + e - 1  neighbours never share a granule, so the elements add up:
//                   Σ_i (⌊(b + i·p + e - 1)/g⌋ - ⌊(b + i·p)/g⌋ + 1)
//                   = n + the times an element crosses a granule's border; the two sums are floor
//                   sums, evaluated by Euclid's algorithm in O(log g).
// For b = 0 and sizes that are powers of two this is the textbook's min(n, max(1, n·s·e / g)).
//
// Random: n independent uniform draws of one of N elements. A granule that k of the N elements
// touch is hit with probability 1 - (1 - k/N)^n (occupancy problem; Feller, An Introduction to
// Probability Theory, vol. 1, II.5); expectation is linear, so the sum over granules is exact.
//
// Left out: time, reuse and eviction (see cache_simulator.h), negative strides (mirror them).
#pragma once

#include "core/base/result.h"

#include <cstdint>

namespace memscape {

/// Elements of `width` bytes whose first bytes are `base`, `base + pitch`, …; all in bytes.
struct StridedWalk
{
    std::uint64_t base = 0;
    std::uint64_t pitch = 0; ///< distance between first bytes: stride × element; 0 is a broadcast
    std::uint64_t width = 4; ///< bytes of one element, all of which are touched
    std::uint64_t count = 1; ///< elements
};

/// Nothing of the walk lies beyond 2^64 - 1. Errors: access.element (width 0), access.count
/// (count 0), access.overflow.
Result<void> validate(const StridedWalk& walk);

/// Distinct granules of `granule` bytes that the walk touches; exact, O(log granule).
/// Errors: those of validate(), access.granule (0).
Result<std::uint64_t> granulesTouched(const StridedWalk& walk, std::uint64_t granule);

/// Granules summed over elements: what a walk would fetch if nothing stayed between two elements.
/// Errors: those of granulesTouched().
Result<std::uint64_t> granuleVisits(const StridedWalk& walk, std::uint64_t granule);

/// Distinct bytes the walk touches: n·e when elements are apart, less when they overlap.
Result<std::uint64_t> bytesTouched(const StridedWalk& walk);

/// An array of `elements` × `width` bytes that begins at `base`.
struct ElementArray
{
    std::uint64_t base = 0;
    std::uint64_t width = 4;
    std::uint64_t elements = 1;
};

/// Expected distinct granules touched by `draws` independent uniform draws of an element; exact up
/// to rounding, O(width). Errors: access.element (0 or over 1 MiB), access.elements (0),
/// access.granule, access.overflow.
Result<double> expectedGranules(const ElementArray& array, std::uint64_t draws, std::uint64_t granule);

/// Expected distinct elements: N (1 - (1 - 1/N)^n).
double expectedDistinct(std::uint64_t elements, std::uint64_t draws);

} // namespace memscape

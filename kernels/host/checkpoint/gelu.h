// SPDX-License-Identifier: Apache-2.0
// What the MLP chain does to single elements: gelu, its slope, the loss, sums over columns, seeded
// numbers. A row at a time, in vectors. See gelu.cpp.
#pragma once

#include "kernels/measure/check.h"

#include <cstddef>
#include <cstdint>

namespace memscape::host {

/// x ← gelu(z), tanh form; x may be z.
void geluRow(const float* z, float* x, std::size_t count);
/// y ← y ∘ gelu'(z), and sums ← sums + y.
void geluSlopeRow(const float* z, float* y, float* sums, std::size_t count);
/// gradient ← 2 (x − target) / total, where target[i] is element first + i of its seed; Σ (x −
/// target)².
double lossRow(const float* x, float* gradient, std::uint64_t first, std::size_t count, double total);
/// values[i] ← scale × element first + i of the seed.
void uniformRow(float* values, std::uint64_t seed, std::uint64_t first, std::size_t count, float scale);
/// Σ mlpDigestOf(first + i, values[i]) modulo 2^64.
std::uint64_t digestRow(const float* values, std::uint64_t first, std::size_t count);

/// gelu and its slope over all sizes of numbers against the reference in double; in place and out
/// of place, alone and in a row: the same bits.
Check checkGelu();

} // namespace memscape::host

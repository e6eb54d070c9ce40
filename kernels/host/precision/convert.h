// SPDX-License-Identifier: Apache-2.0
// Rows of floats to FP16 and BF16 and back, in vectors: to nearest, ties to even, subnormal numbers
// kept, not-a-numbers quiet. One number at a time that is kernels/programs/common/half.h, and what it should
// be says core/precision. (AVX512-BF16's own conversion takes subnormal floats for zero; so it is not
// used.)
#pragma once

#include "core/network/dtype.h"
#include "core/precision/number_format.h"
#include "kernels/measure/check.h"

#include <cstddef>
#include <cstdint>

namespace memscape::host {

/// `format` is Fp16 or Bf16; the rows must not overlap.
void narrowRow(Format format, const float* from, std::uint16_t* to, std::size_t count);
void widenRow(Format format, const std::uint16_t* from, float* to, std::size_t count);

/// The same for what a kernel that computes in float loads and stores: `count` elements of `dtype`,
/// Float16, BFloat16 or Float32 (which is copied).
void narrowRow(const float* from, DType dtype, void* to, std::size_t count);
void widenRow(const void* from, DType dtype, float* to, std::size_t count);

/// All 65,536 numbers up and down, and a million floats down, against core/precision; odd lengths.
Check checkConversions(Format format);

} // namespace memscape::host

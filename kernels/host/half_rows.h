// SPDX-License-Identifier: Apache-2.0
// Rows of float16 and bfloat16 to floats and back, rounded to nearest, ties to even: what a kernel
// that computes in float does when it loads and stores halves. See half_rows.cpp.
#pragma once

#include "core/network/dtype.h"
#include "kernels/measure/check.h"

#include <cstddef>

namespace memscape::host {

/// `from`: count elements of dtype (Float32 is copied).
void widenRow(const void* from, DType dtype, float* to, std::size_t count);
void narrowRow(const float* from, DType dtype, void* to, std::size_t count);

/// All 65,536 numbers of a format, and floats of all sizes with the ties between halves, against
/// kernels/measure/half.h, bit for bit; in rows of odd length.
Check checkHalfRows(DType dtype);

} // namespace memscape::host

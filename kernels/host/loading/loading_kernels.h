// SPDX-License-Identifier: Apache-2.0
// What a loader makes of stored numbers: rows of FP32, BF16 and FP16 into each other, 8-bit and 4-bit integers times
// the scale of their group of 128. 4-bit numbers lie two in a byte, the lower half first, less 8.
//
// Left out: zero points, formats of other blocks (K-quants, NF4); scales lie in a small table instead of in the file.
#pragma once

#include "core/experiments/loading/loading.h"
#include "kernels/measure/check.h"

#include <cstddef>

namespace memscape::host {

/// Whether there is a kernel of that.
bool hasLoadingConversion(LoadingForm form, LoadingTarget target);
/// `elements` numbers from a row that is stored so to one of the target. AsStored is a copy of so many bytes.
void convertLoaded(LoadingForm form, LoadingTarget target, const std::byte* from, std::byte* to, std::size_t elements);
/// One number as it should be, in float.
float loadedNumber(LoadingForm form, const std::byte* from, std::size_t index);

/// Every conversion against one number at a time, odd lengths included.
Check checkLoadingConversions();

} // namespace memscape::host

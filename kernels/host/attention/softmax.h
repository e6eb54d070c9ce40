// SPDX-License-Identifier: Apache-2.0
// Softmax and its derivative over one row of floats, in the widest vectors of this processor.
#pragma once

#include <cstddef>

namespace memscape::host {

/// s ← e^(scale s) / Σ e^(scale s), with the row's maximum taken off first. count > 0.
void softmaxRow(float* s, std::size_t count, float scale);
/// dp ← p ∘ (dp − Σ p dp) · scale.
void softmaxSlopeRow(const float* p, float* dp, std::size_t count, float scale);

} // namespace memscape::host

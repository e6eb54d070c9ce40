// SPDX-License-Identifier: Apache-2.0
// Adam on the host in one pass: weight, both moments and the gradient of an element are read once, weight and moments
// written once, 28 bytes in all (Kingma and Ba 2015, as torch.optim.Adam writes it):
//     m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²
//     p ← p − lr / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
// What an optimizer of several passes moves several times is moved once, so memory is the limit, not arithmetic.
//
// Left out: weight decay, AMSGrad, half-precision copies.
#pragma once

#include "kernels/measure/check.h"

#include <cstddef>

namespace memscape::host {

struct AdamStep
{
    float rate = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;
    int step = 1; ///< t, from 1
};

struct AdamArrays
{
    float *p = nullptr, *m = nullptr, *v = nullptr;
    const float* g = nullptr;
};

/// `count` elements of arrays that do not overlap, on this thread, with the widest vectors of this processor.
void adamUpdate(const AdamArrays& arrays, std::size_t count, const AdamStep& step);

/// Every width against the formula in double, odd sizes, three steps; nothing is written behind the end.
Check checkAdam();

} // namespace memscape::host

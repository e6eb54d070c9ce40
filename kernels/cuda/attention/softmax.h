// SPDX-License-Identifier: Apache-2.0
// Softmax in pieces (kernels/programs/attention/attention_numbers.h) in a GPU's terms. The running maximum is
// that of the scores before they are scaled, and the scale goes into the exponent: with a = scale, a
// weight is e^(a x − a m), one multiply-add and one exponential. The GPU computes powers of two, so
// with a = scale × log₂ e it is 2^(a x − a m) and costs a multiplication less.
//
// A row that has not seen anything keeps the lowest float as its maximum, never −∞: a masked score,
// −∞, then has the weight 0 whatever comes first.
#pragma once

#include "kernels/cuda/attention/shape.h"

namespace memscape::cuda {

constexpr float logTwoOfE = 1.4426950408889634F, logOfTwo = 0.6931471805599453F;
/// The maximum of nothing.
constexpr float nothingSeen = RunningSoftmax{}.maximum;

/// What is subtracted from the scaled scores. Of a row that sees nothing, 0.
MEMSCAPE_BOTH float scaledMaximum(const RunningSoftmax& row, float scale)
{
    return row.maximum == nothingSeen ? 0.0F : row.maximum * scale;
}

} // namespace memscape::cuda

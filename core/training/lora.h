// SPDX-License-Identifier: Apache-2.0
// Bytes of parameters beside adapters. LoRA (Hu et al. 2021): y = W x + (alpha / r) B A x with A r × in and B out × r,
// r (in + out) trained elements for a matrix of in × out; everything else is frozen (core/network/adapters.cpp).
//
// Each parameter has a precision of its own there: the base in 4 or 8 bits or in half, adapters in fp32 or in the
// base's type. What is trained in another type than that of the recipe has gradients and moments in it, and no master
// copy.
#pragma once

#include "core/network/quantized.h"
#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

namespace memscape {

/// What a plan keeps for each element of a trained parameter.
PrecisionRule precisionRule(const ParameterTensor& parameter, const Plan& plan);
/// B of one element of its gradient between micro-batches.
std::int64_t gradientBytes(const ParameterTensor& parameter, const Plan& plan);

} // namespace memscape

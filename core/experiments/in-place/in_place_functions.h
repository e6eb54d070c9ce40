// SPDX-License-Identifier: Apache-2.0
// The operations of `in-place` as numbers: what the kernels of every machine compute, and the reference that they are
// compared with. C++17, no library of ours: nvcc reads this file too.
//
// An operation that overwrites its input meets its own result at the next repetition. So that it never grows beyond
// all bounds, and never shrinks to numbers that are not normal, which some processors take slowly, a timed repetition
// is
//     y = f(scale · x) + shift        (of a multiplication: y = x · scale)
// with numbers that keep x near where it began: a sum adds 1 and takes it away again in turn, a product doubles and
// halves, the slope of leaky ReLU is 2 and ½, factors are ±1; e^(−x) tends to 0.567, silu + ⅛ to 0.29, gelu + ⅛ to
// 0.33; sigmoid tends to 0.659, ReLU changes nothing any more, and tanh falls as √(3 / 2k) after k repetitions.
#pragma once

#include <cmath>

namespace memscape {

enum class InPlaceOperation {
    AddScalar,
    MulScalar,
    MulMask, ///< by a tensor that requires no gradient
    MulGate, ///< by one that does
    Relu,
    LeakyRelu,
    Sigmoid,
    Tanh,
    Exp,
    Silu,
    Gelu ///< in its tanh form
};

struct InPlaceStep
{
    float scale = 1, shift = 0;
};

/// Of repetition `turn`.
inline InPlaceStep inPlaceStep(InPlaceOperation operation, unsigned turn)
{
    const bool isBack = turn % 2 != 0;
    switch (operation) {
    case InPlaceOperation::AddScalar: return {1, isBack ? -1.0F : 1.0F};
    case InPlaceOperation::MulScalar:
    case InPlaceOperation::LeakyRelu: return {isBack ? 0.5F : 2.0F, 0};
    case InPlaceOperation::Exp: return {-1, 0};
    case InPlaceOperation::Silu:
    case InPlaceOperation::Gelu: return {1, 0.125F};
    default: return {1, 0};
    }
}

/// What element x becomes, `other` the element of the factor.
inline double inPlaceReference(InPlaceOperation operation, InPlaceStep step, double x, double other)
{
    const double scale = double(step.scale), shift = double(step.shift);
    switch (operation) {
    case InPlaceOperation::AddScalar: return x + shift;
    case InPlaceOperation::MulScalar: return x * scale;
    case InPlaceOperation::MulMask:
    case InPlaceOperation::MulGate: return x * other;
    case InPlaceOperation::Relu: return x > 0 ? x : 0;
    case InPlaceOperation::LeakyRelu: return x > 0 ? x : x * scale;
    case InPlaceOperation::Sigmoid: return 1 / (1 + std::exp(-x));
    case InPlaceOperation::Tanh: return std::tanh(x);
    case InPlaceOperation::Exp: return std::exp(scale * x);
    case InPlaceOperation::Silu: return x / (1 + std::exp(-x)) + shift;
    case InPlaceOperation::Gelu:
        return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) + shift;
    }
    return 0;
}

inline bool hasOtherFactor(InPlaceOperation operation)
{
    return operation == InPlaceOperation::MulMask || operation == InPlaceOperation::MulGate;
}

} // namespace memscape

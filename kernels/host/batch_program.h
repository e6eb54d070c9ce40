// SPDX-License-Identifier: Apache-2.0
// One training step of a chain of linear layers as a list of operations on placed arrays, run by all threads
// of the team together: each takes its part of every operation, and they wait for each other in between. A step
// is one dispatch, so that small steps are not all waking up.
//
//   linear      y (B × out) = x Wᵀ + b            W is out × in, as in PyTorch
//   loss        mean over B × out of (y − t)²
//   backward    δ = 2 (y − t) / (B out);  δ_below = δ W;  dW = δᵀ x, db = Σ rows of δ
//   update      W ← W − ε dW
//
// The squared norm of one example's gradient needs no gradient of its own: it is B² Σ over layers of
// (|x_i|² + 1) |δ_i|² (Goodfellow 2015, arXiv:1510.01799).
#pragma once

#include "kernels/host/product.h"
#include "kernels/host/session.h"

#include <cstdint>
#include <vector>

namespace memscape::host {

struct BatchOperation
{
    enum class Kind { Load, Linear, Relu, Loss, LossGradient, InputGradient, ReluGradient, WeightGradient, Add, Update };
    Kind kind = Kind::Linear;
    std::int64_t rows = 0, inputs = 0, outputs = 0; ///< elements: rows × outputs where there is no product
    const float *a = nullptr, *b = nullptr, *c = nullptr; ///< operands, see run()
    float *result = nullptr, *second = nullptr;
};

/// What a run adds up.
struct BatchSums
{
    double loss = 0;          ///< Σ of squares over the elements of all micro-batches
    double squaredNorms = 0;  ///< Σ over examples and layers of (|x_i|² + 1) |δ_i|²
};

class BatchProgram
{
public:
    std::vector<BatchOperation> operations;

    /// Seconds inside the threads. `rate` is that of Update; `countsNorms` costs a pass over x and δ.
    double run(HostSession& session, const ProductKernel& product, float rate, bool countsNorms, BatchSums& sums) const;
    /// The same on the calling thread, not timed: where waking the others takes longer than the step.
    void runAlone(const ProductKernel& product, float rate, bool countsNorms, BatchSums& sums) const;
};

} // namespace memscape::host

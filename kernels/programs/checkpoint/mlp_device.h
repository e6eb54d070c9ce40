// SPDX-License-Identifier: Apache-2.0
// What a live run of the MLP chain asks of a machine: the operations of core/checkpoint/mlp_chain.h
// on arrays of batch × width floats. The host computes when it is called; a GPU queues. Weights,
// biases, their gradients and the arena belong to the device; which part of the arena is which
// array is the caller's business, and so is what is kept.
//
// Every operation gives the same bits whenever its inputs have the same bits: one order of
// summation, decided by the sizes alone. That is what makes "the same gradients" a comparison and
// not a tolerance.
#pragma once

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/checkpoint/mlp_chain.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace memscape {

class MlpDevice
{
public:
    virtual ~MlpDevice() = default;

    /// The arena: arenaBytes as asked for when the device was made, aligned to poolGranularity.
    virtual float* arena() = 0;

    /// x_0, from its seed.
    virtual Result<void> input(float* x) = 0;
    /// x_{i+1} = gelu(x_i W_i + b_i) into `result`; z into `z`, or through `result` when `z` is
    /// null.
    virtual Result<void> forward(int stage, const float* x, float* z, float* result) = 0;
    /// z = x_i W_i + b_i alone: what a backward does first when z was not saved.
    virtual Result<void> preactivation(int stage, const float* x, float* z) = 0;
    /// y_L into `gradient`; the loss itself is kept for loss().
    virtual Result<void> loss(const float* x, float* gradient) = 0;
    /// `gradient` is y_{i+1} and becomes dz; dW_i and db_i are written, and y_i into `result`.
    virtual Result<void> backward(int stage, const float* x, const float* z, float* gradient, float* result) = 0;

    /// Not-a-numbers all over one array, so that reading it afterwards shows.
    virtual Result<void> poison(float* array) = 0;
    /// A moment between operations. takeMarks() waits for all of them and gives seconds since the
    /// first.
    virtual Result<void> mark() = 0;
    virtual Result<std::vector<double>> takeMarks() = 0;
    /// run.cancelled when the person wants to stop. Never far from what the device really does.
    virtual Result<void> checkStopped() = 0;

    // Slow; for checks.
    /// 64 bits that distinguish arrays: the sum over all elements of a mix of position and bits.
    virtual Result<std::uint64_t> digest(const float* array) = 0;
    virtual Result<std::uint64_t> gradientDigest(int stage) = 0; ///< of dW_i and db_i
    virtual Result<double> loss() = 0;                           ///< mean of squares at the last loss()
    /// Copies to the host: an array, W_i (width × width, then b_i), or their gradients in the same
    /// order.
    virtual Result<std::vector<float>> read(const float* array) = 0;
    virtual Result<std::vector<float>> readParameters(int stage) = 0;
    virtual Result<std::vector<float>> readGradients(int stage) = 0;

    /// Library or kernel of the products, threads: Provenance::method.
    virtual Json method() const = 0;
};

/// A device of this shape with an arena of so many bytes. Errors: run.memory, before anything is
/// taken.
using MlpDeviceFactory = std::function<Result<std::unique_ptr<MlpDevice>>(const MlpShape&, std::int64_t arenaBytes)>;

/// Weights lie in ± this: gelu halves the second moment of a standard normal (to 0.425), so a
/// variance of 2.35 / width keeps activations and gradients of deep chains away from zero and
/// infinity.
float mlpWeightScale(const MlpShape& shape);

} // namespace memscape

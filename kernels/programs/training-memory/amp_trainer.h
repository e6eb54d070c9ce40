// SPDX-License-Identifier: Apache-2.0
// Training steps of a small classifier in FP32, or as PyTorch's automatic mixed precision runs them:
//
//   forward    h = x Wᵀ + b, a = max(h, 0), twice; logits; cross entropy in FP32
//   autocast   weights, biases and the batch are cast to the short format; products take it, sum in
//              FP32 and round their results to it; the casts of weights live until forward ends
//   backward   from the loss times the scale, in the short format; gradients of weights are cast back
//   scaler     gradients times 1/scale; infinite or not a number: the step is skipped
//              (core/precision/loss_scaler.h)
//   AdamW      in FP32, in one pass: PyTorch's standard rates and decay
//
// One programme for every machine: what it does is decided here, how by an AmpDevice. Every array is in one counting
// pool and is taken and given back where eager PyTorch would allocate and free it, so that the pool's high water is
// what the step simulator predicts. The task is learnable: inputs are random, and the class is the one of 16 fixed
// random directions that the input points along most. Left out: dropout, a learning-rate schedule.
#pragma once

#include "core/experiments/precision/precision.h"
#include "kernels/measure/check.h"
#include "kernels/programs/training-memory/amp_device.h"
#include "kernels/programs/training-memory/gradient_counter.h"

#include <memory>
#include <optional>
#include <vector>

namespace memscape {

struct TrainerOptions
{
    TrainedNetwork network;
    Format format = Format::Fp32;
    std::optional<LossScalerOptions> scaler = {}; ///< none: the loss as it is
    bool isChecked = false;                       ///< arrays begin as not-a-numbers, and gradients are kept
};

struct TrainedStep
{
    double loss = 0;
    double seconds = 0; ///< without making the batch and counting gradients
    float scale = 1;    ///< that the loss was multiplied by
    bool isSkipped = false;
    bool isCounted = false; ///< its gradients were
};

class AmpTrainer
{
public:
    virtual ~AmpTrainer() = default;
    /// On batch `batch` of the task. `counter`, when given, counts every gradient of the step that the
    /// format holds.
    virtual Result<TrainedStep> step(std::uint64_t batch, GradientCounter* counter) = 0;
    virtual std::int64_t highWater() const = 0; ///< B of the pool, over all steps
    /// Weights and then biases of layers 0 to 2; of a trainer that is checked also their unscaled
    /// gradients at the last step (before AdamW changed the weights).
    virtual Result<std::vector<float>> parameters() = 0;
    virtual const std::vector<float>& lastGradients() const = 0;
};

/// `machine`: the device that the memory is predicted for. Errors: run.memory, those of the device.
Result<std::unique_ptr<AmpTrainer>> makeTrainer(const Device& machine, const AmpDeviceFactory& devices,
                                                const TrainerOptions& options);

/// Gradients of a tiny network against differences of the loss in double; the short formats within
/// their rounding of it. Errors: those of makeTrainer() and of the step.
Result<Check> checkTrainer(const Device& machine, const AmpDeviceFactory& devices, Format format);

} // namespace memscape

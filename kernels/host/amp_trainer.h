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
// Every array lives in one counting pool and is taken and given back where eager PyTorch would
// allocate and free it, so that the pool's high water is what the step simulator predicts.
// The task is learnable: inputs are random, and the class is the one of 16 fixed random directions
// that the input points along most. Left out: dropout, a learning-rate schedule.
#pragma once

#include "core/experiments/precision.h"
#include "kernels/host/gemm.h"
#include "kernels/host/gradient_counter.h"
#include "kernels/measure/counting_pool.h"

#include <array>
#include <optional>

namespace memscape::host {

/// A batch of the task, made once for all trainers that compare on it.
struct TrainingBatch
{
    std::vector<float> inputs;        ///< batch × inputs
    std::vector<std::int64_t> labels; ///< batch
};
/// Batch `index`: the same numbers every time.
void fillBatch(HostSession& session, const TrainedNetwork& network, std::uint64_t index,
               TrainingBatch& batch);

struct TrainerOptions
{
    TrainedNetwork network;
    Format format = Format::Fp32;
    GemmKernel kernel; ///< for `format`
    std::optional<LossScalerOptions> scaler; ///< none: the loss as it is
};

struct TrainedStep
{
    double loss = 0;
    double seconds = 0;
    float scale = 1;       ///< that the loss was multiplied by
    bool isSkipped = false;
};

class AmpTrainer
{
public:
    virtual ~AmpTrainer() = default;
    /// `counter`, when given, counts every gradient of the step that the format holds.
    virtual Result<TrainedStep> step(const TrainingBatch& batch, GradientCounter* counter) = 0;
    virtual std::int64_t highWater() const = 0; ///< B of the pool, over all steps
    /// For checks: weights and then biases of layers 0 to 2, and their unscaled gradients at the last
    /// step (before AdamW changed the weights).
    virtual std::vector<float> parameters() const = 0;
    virtual const std::vector<float>& lastGradients() const = 0;
};

/// Errors: run.memory, those of the kernel's plans.
Result<std::unique_ptr<AmpTrainer>> makeTrainer(HostSession& session, const TrainerOptions& options);

/// Gradients of a tiny network against differences of the loss in double; the short formats within
/// their rounding of it.
Result<Check> checkTrainer(HostSession& session, Format format, const GemmKernel& kernel);

} // namespace memscape::host

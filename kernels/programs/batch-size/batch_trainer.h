// SPDX-License-Identifier: Apache-2.0
// A chain of linear layers that is trained for real on seeded data, by SGD, with every array placed where eager
// PyTorch would allocate and free it: its allocations are a trace, which the caching allocator replays as it
// replays the prediction's. Whatever machine runs it (batch_device.h), the trace is the same.
//
// Weights start at zero for one layer, else as torch.nn.Linear's do.
#pragma once

#include "core/trace/trace.h"
#include "core/training/noise_scale.h"
#include "kernels/measure/check.h"
#include "kernels/measure/counting_pool.h"
#include "kernels/programs/batch-size/batch_device.h"

#include <memory>

namespace memscape {

struct BatchStep
{
    double loss = 0;     ///< mean over micro-batches, before the update
    GradientNoise noise; ///< of the gradients of all examples, when they were counted
};

/// The examples of one micro-batch.
struct BatchExamples
{
    std::vector<float> inputs, targets; ///< batch × inputs, batch × outputs
};

class BatchTrainer
{
public:
    /// Errors: run.memory before anything is taken.
    static Result<std::unique_ptr<BatchTrainer>> make(const BatchDeviceFactory& makeDevice, const BatchShape& shape);

    std::int64_t update() const { return m_shape.update(); } ///< examples
    /// Takes examples [first, first + update()). Not part of a step's time.
    Result<void> load(std::uint64_t first);
    /// Forward and backward of all micro-batches, gradients averaged over the update's examples; no update.
    Result<BatchStep> gradients(bool countsNorms);
    /// The same and W ← W − rate × gradient, with the accumulation's mean.
    Result<BatchStep> step(double rate);
    /// A step that is not timed.
    Result<void> learn(double rate);
    /// Seconds of a step that leaves the weights, see BatchDevice::sample().
    Result<double> sample(int repeats) { return m_device->sample(m_step, repeats); }
    int repeatsFor(double seconds) const { return m_device->repeatsFor(seconds); }

    Result<std::vector<float>> parameters() const; ///< W and b of each layer in turn
    Result<void> setParameters(const std::vector<float>& parameters);
    Result<std::vector<float>> lastGradients() const; ///< in the same order
    Result<BatchExamples> examples() const; ///< of the last micro-batch that was run, or loaded when it is the only one
    Result<double> risk() const { return m_device->risk(m_layers[0].weight, m_layers[0].bias); } ///< of one layer
    Result<void> checkStopped() { return m_device->checkStopped(); }

    const Trace& trace() const { return m_trace; }                ///< one step, from what exists before it
    std::int64_t highWater() const { return m_pool.highWater(); } ///< B of the arena that it ran in

private:
    struct Layer
    {
        std::int64_t inputs = 0, outputs = 0;
        float *weight = nullptr, *bias = nullptr, *weightGradient = nullptr, *biasGradient = nullptr;
    };
    struct Taken
    {
        float* data = nullptr;
        std::int64_t offset = -1;
        BlockId block = noBlock;
    };
    explicit BatchTrainer(const BatchShape& shape);
    Result<void> place();
    Result<std::vector<float>> placeLayers();
    Result<Taken> take(std::int64_t elements, Category category);
    void give(Taken& taken);
    /// The workspace of a pass, taken by its first product.
    Result<float*> workspace(Taken& ofPass);
    Result<void> placeMicroBatch(std::int64_t micro);
    Result<void> placeBackward(const std::vector<Taken>& activations, const Taken& output, std::int64_t micro);
    void addUpdate();
    Result<BatchStep> finished(const BatchSums& sums, bool countsNorms) const;
    Result<std::vector<float>> readAll(bool gradients) const;

    BatchShape m_shape;
    std::unique_ptr<BatchDevice> m_device;
    CountingPool m_pool;
    Trace m_trace;
    BatchOperations m_passes, m_step; ///< without and with the update
    std::vector<Layer> m_layers;
    std::vector<Taken> m_gradients; ///< of the step, W and b in turn
    Taken m_input, m_target, m_output, m_loss, m_forwardWorkspace, m_backwardWorkspace;
};

/// A tiny chain: examples against their formulas, gradients against differences of a loss in double, per-example
/// norms against gradients of single examples, accumulation against the whole batch; and the risk of one layer.
Result<Check> checkBatchTrainer(const BatchDeviceFactory& makeDevice);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// A chain of linear layers that is trained for real on seeded data, by SGD, with every array placed where eager
// PyTorch would allocate and free it: its allocations are a trace, which the caching allocator replays as it
// replays the prediction's.
//
// The data set has no end and no file: example i is made from its number. Inputs are uniform with variance
// 1/(j + 1); one layer learns t = W*x + n, a deeper chain t = √2 max(W*x, 0) + n; W* has entries ±1/√Σλ, n is
// uniform with variance 0.1 (core/training/noisy_regression.h). Weights start at zero for one layer, else as
// torch.nn.Linear's do.
#pragma once

#include "core/trace/trace.h"
#include "core/training/noise_scale.h"
#include "kernels/host/batch_program.h"
#include "kernels/measure/check.h"
#include "kernels/measure/counting_pool.h"

#include <memory>

namespace memscape::host {

/// Examples and targets, made from their numbers.
class BatchData
{
public:
    BatchData(std::vector<std::int64_t> sizes, const ProductKernel& product);
    std::int64_t inputs() const { return m_sizes.front(); }
    std::int64_t outputs() const { return m_sizes.back(); }
    /// Examples [first, first + count): x is count × inputs, t count × outputs.
    void fill(HostSession& session, std::uint64_t first, std::int64_t count, float* x, float* t) const;
    /// The expected loss of one layer with these weights (out × in) and biases, exactly.
    double risk(const float* weights, const float* bias) const;

private:
    std::vector<std::int64_t> m_sizes;
    ProductKernel m_product;
    std::vector<float> m_truth, m_scales; ///< W*, √λ_j
};

struct BatchTrainerOptions
{
    std::vector<std::int64_t> sizes; ///< at least two
    std::int64_t batch = 1;          ///< examples at once
    std::int64_t accumulation = 1;
    ProductKernel product;
};

struct BatchStep
{
    double seconds = 0;
    double loss = 0; ///< mean over micro-batches, before the update
    GradientNoise noise; ///< of the gradients of all examples, when they were counted
};

class BatchTrainer
{
public:
    /// Errors: run.memory before anything is taken.
    static Result<std::unique_ptr<BatchTrainer>> make(HostSession& session, const BatchTrainerOptions& options);

    std::int64_t update() const { return m_options.batch * m_options.accumulation; } ///< examples
    /// Takes examples [first, first + update()). Not part of a step's time.
    void load(std::uint64_t first);
    /// Forward and backward of all micro-batches, gradients averaged over the update's examples; no update.
    BatchStep gradients(bool countsNorms);
    /// The same and W ← W − rate × gradient, with the accumulation's mean.
    BatchStep step(double rate);
    /// A step that nobody times, on as many threads as it is worth.
    void learn(double rate);

    std::vector<float> parameters() const; ///< W and b of each layer in turn
    void setParameters(const std::vector<float>& parameters);
    std::vector<float> lastGradients() const; ///< in the same order
    double risk() const { return m_data.risk(m_layers[0].weight, m_layers[0].bias); } ///< of one layer

    const Trace& trace() const { return m_trace; } ///< one step, from what exists before it
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
    BatchTrainer(HostSession& session, const BatchTrainerOptions& options);
    Result<void> place();
    Result<Taken> take(std::int64_t elements, Category category);
    void give(Taken& taken);
    Result<void> placeMicroBatch(bool isFirst);
    Result<void> placeBackward(const std::vector<Taken>& activations, const Taken& output, bool isFirst,
                               std::vector<Taken>& kept);
    BatchStep finished(double seconds, const BatchSums& sums, bool countsNorms) const;

    HostSession& m_session;
    BatchTrainerOptions m_options;
    BatchData m_data;
    CountingPool m_pool;
    Buffer m_arena;
    Trace m_trace;
    BatchProgram m_passes, m_step; ///< without and with the update
    std::vector<Layer> m_layers;
    std::vector<Taken> m_gradients; ///< of the step, W and b in turn
    Taken m_input, m_target, m_output, m_loss;
    std::vector<float> m_store; ///< the update's examples, when it is more than one micro-batch
    std::int64_t m_micro = 0;
};

/// A tiny chain: gradients against differences of a loss in double, per-example norms against gradients of single
/// examples, accumulation against the whole batch.
Result<Check> checkBatchTrainer(HostSession& session, const ProductKernel& product);

} // namespace memscape::host

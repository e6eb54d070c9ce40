// SPDX-License-Identifier: Apache-2.0
// What training a chain of linear layers asks of a machine: one step is a list of operations on arrays that the
// trainer (batch_trainer.h) has placed in the device's arena, so that its allocations are the same everywhere. The
// device makes the examples (batch_numbers.h), runs the list, and times it.
//
//   linear      y (B × out) = x Wᵀ + b            W is out × in, as in PyTorch
//   loss        mean over B × out of (y − t)²
//   backward    δ = 2 (y − t) / (B out);  δ_below = δ W;  dW = δᵀ x, db = Σ rows of δ
//   update      W ← W − ε dW
//
// The squared norm of one example's gradient needs no gradient of its own: it is B² Σ over layers of
// (|x_i|² + 1) |δ_i|² (Goodfellow 2015, arXiv:1510.01799).
#pragma once

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/training/noisy_regression.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace memscape {

struct BatchOperation
{
    enum class Kind {
        Load,
        Linear,
        Relu,
        Loss,
        LossGradient,
        InputGradient,
        ReluGradient,
        WeightGradient,
        Add,
        Update
    };
    Kind kind = Kind::Linear;
    std::int64_t rows = 0, inputs = 0, outputs = 0; ///< elements: rows × outputs where there is no product
    /// Load, Relu, Add, Update: a. Linear: x, W, b. Loss, LossGradient: y, t. InputGradient: δ, W.
    /// ReluGradient: δ, x. WeightGradient: δ, x.
    const float *a = nullptr, *b = nullptr, *c = nullptr;
    float *result = nullptr, *second = nullptr; ///< second: the gradient of the bias
    float* workspace = nullptr;                 ///< of a product, BatchShape::workspace bytes, if there is one
};
using BatchOperations = std::vector<BatchOperation>;

/// What a run adds up.
struct BatchSums
{
    double loss = 0;         ///< Σ of squares over the elements of all micro-batches
    double squaredNorms = 0; ///< Σ over examples and layers of (|x_i|² + 1) |δ_i|²
};

/// What is trained.
struct BatchShape
{
    std::vector<std::int64_t> sizes; ///< at least two
    std::int64_t batch = 1;          ///< examples at once
    std::int64_t accumulation = 1;
    /// B of the workspace that PyTorch gives the library of products, once for forward and once for backward
    /// (core/training/blas_workspace.h); 0: none.
    std::int64_t workspace = 0;

    std::int64_t inputs() const { return sizes.front(); }
    std::int64_t outputs() const { return sizes.back(); }
    std::int64_t update() const { return batch * accumulation; } ///< examples
    bool isLinear() const { return sizes.size() == 2; }
    /// Of the store: elements before the targets, a whole number of 512 B so that products find them aligned.
    std::int64_t storedInputs() const { return (update() * inputs() + 127) / 128 * 128; }
    std::int64_t storeBytes() const { return accumulation > 1 ? 4 * (storedInputs() + update() * outputs()) : 0; }
};

/// √λ_j of every input, and |W*|.
std::vector<float> batchScales(std::int64_t inputs);
float batchTruthMagnitude(std::int64_t inputs);
float batchNoise(); ///< for batchTarget()

class BatchDevice
{
public:
    virtual ~BatchDevice() = default;

    /// arenaBytes as asked for when the device was made, aligned to poolGranularity.
    virtual float* arena() = 0;
    /// Examples of an update: inputs, and targets from storedInputs() on; null when an update is one micro-batch.
    virtual float* store() = 0;

    /// Examples [first, first + count): x is count × inputs, t count × outputs.
    virtual Result<void> fill(std::uint64_t first, std::int64_t count, float* x, float* t) = 0;
    /// `rate` is that of Update; `countsNorms` costs a pass over x and δ.
    virtual Result<BatchSums> run(const BatchOperations& step, float rate, bool countsNorms) = 0;
    /// The same without sums, which are not waited for or timed.
    virtual Result<void> learn(const BatchOperations& step, float rate) = 0;
    /// Seconds of one run at a rate of 0, the mean of `repeats`, as the machine's protocol times them.
    virtual Result<double> sample(const BatchOperations& step, int repeats) = 0;
    /// Runs in one sample of a step that takes so many seconds.
    virtual int repeatsFor(double seconds) const = 0;
    /// The expected loss of one layer with these weights (out × in) and biases, exactly:
    /// Σ_k (Σ_j λ_j (w_kj − w*_kj)² + b_k²) / K + σ².
    virtual Result<double> risk(const float* weights, const float* bias) = 0;

    virtual Result<void> read(const float* from, std::span<float> values) = 0;
    virtual Result<void> write(float* to, std::span<const float> values) = 0;
    /// run.cancelled when the person wants to stop.
    virtual Result<void> checkStopped() = 0;
};

/// A device of this shape with an arena of so many bytes. Errors: run.memory, before anything is taken.
using BatchDeviceFactory =
    std::function<Result<std::unique_ptr<BatchDevice>>(const BatchShape&, std::int64_t arenaBytes)>;

} // namespace memscape

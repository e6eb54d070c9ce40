// SPDX-License-Identifier: Apache-2.0
// What a training step in FP32 or mixed precision asks of a machine: passes over arrays, products,
// and a look at the gradients. The host computes when it is called; a GPU queues. Arrays lie in the
// device's arena; which part of it is which array, when it is taken and given back, and the order of
// the operations are the trainer's business (amp_trainer.h), one and the same for every machine.
//
// Arrays of 16-bit formats are widened, computed in FP32 and rounded once. The same inputs and sizes
// give the same bits.
#pragma once

#include "core/experiments/precision/precision.h"
#include "kernels/programs/training-memory/amp_numbers.h"
#include "kernels/programs/training-memory/gradient_counter.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace memscape {

/// Elements of FP32, FP16 or BF16 somewhere in the arena. Labels are 64-bit integers in two of FP32.
struct AmpArray
{
    void* data = nullptr;
    std::int64_t elements = 0;
    Format format = Format::Fp32;

    std::int64_t bytes() const { return elements * numberFormat(format).bytes; }
    template <typename T> T* as() const { return static_cast<T*>(data); }
    float* floats() const { return as<float>(); }
    std::int64_t* labels() const { return as<std::int64_t>(); }
};

/// C (m × n) ← A · B of packed row-major matrices, all in one format, sums in FP32; A lies k × m when
/// it is transposed, B n × k.
struct AmpProduct
{
    GemmShape shape;
    Format format = Format::Fp32;
    bool aTransposed = false, bTransposed = false;
};

/// What AdamW changes together, FP32.
struct AmpParameter
{
    AmpArray weights, gradients, moments, squares;
};

class AmpDevice
{
public:
    virtual ~AmpDevice() = default;

    /// Of the bytes asked for when the device was made, aligned to poolGranularity.
    virtual std::byte* arena() = 0;

    /// Not-a-numbers all over, so that what is used before it is written shows.
    virtual Result<void> poison(const AmpArray& array) = 0;
    virtual Result<void> clear(const AmpArray& array) = 0;
    /// scale × the numbers of a seed (mlp_numbers.h).
    virtual Result<void> uniform(const AmpArray& array, std::uint64_t seed, float scale) = 0;
    /// Batch `index` of the task: inputs (batch × inputs) and labels.
    virtual Result<void> batch(const TrainedNetwork& network, std::uint64_t index, const AmpArray& inputs,
                               const AmpArray& labels) = 0;

    /// What multiply() calls the product by. Errors: those of the machine's library.
    virtual Result<int> prepare(const AmpProduct& product) = 0;
    virtual Result<void> multiply(int product, const AmpArray& a, const AmpArray& b, const AmpArray& c) = 0;

    virtual Result<void> convert(const AmpArray& from, const AmpArray& to) = 0;
    /// sums (rows × bias) += bias of each column.
    virtual Result<void> addBias(const AmpArray& bias, const AmpArray& sums) = 0;
    /// to ← max(sums + bias, 0).
    virtual Result<void> biasRelu(const AmpArray& bias, const AmpArray& sums, const AmpArray& to) = 0;
    /// to ← gradient where the activation is above 0, else 0.
    virtual Result<void> reluBackward(const AmpArray& activation, const AmpArray& gradient, const AmpArray& to) = 0;
    /// bias[column] ← Σ over rows, in FP32 and rounded once.
    virtual Result<void> sumRows(const AmpArray& gradient, const AmpArray& bias) = 0;

    // Rows of ampClasses.
    virtual Result<void> logSoftmax(const AmpArray& logits, const AmpArray& logProbabilities) = 0;
    /// loss[0] ← the mean of −log probability at the labels, of FP32 log probabilities.
    virtual Result<void> meanLoss(const AmpArray& logProbabilities, const AmpArray& labels, const AmpArray& loss) = 0;
    /// gradient of the logits: factor × (probability − 1 at the label).
    virtual Result<void> lossBackward(const AmpArray& logProbabilities, const AmpArray& labels,
                                      const AmpArray& gradient, double factor) = 0;

    /// FP32 × factor; foundInfinite() then returns whether any became infinite or not a number.
    virtual Result<void> unscale(std::span<const AmpArray> gradients, float factor) = 0;
    virtual Result<bool> foundInfinite() = 0; ///< waits
    virtual Result<void> adam(const AmpAdamStep& step, std::span<const AmpParameter> parameters) = 0;

    /// A step's time runs between these; end() waits, and leaves out what count() took.
    virtual Result<void> begin() = 0;
    virtual Result<double> end() = 0; ///< s
    /// Every number of the array, which was multiplied by `scale`. Slow.
    virtual Result<void> count(const AmpArray& gradients, double scale, GradientCounter& counter) = 0;
    /// The mean of the last meanLoss(), before it was rounded. Waits.
    virtual Result<double> loss() = 0;
    /// FP32 numbers, for checks. Waits.
    virtual Result<std::vector<float>> read(const AmpArray& array) = 0;

    /// run.cancelled when the person wants to stop.
    virtual Result<void> checkStopped() = 0;
};

/// A device with an arena of so many bytes, multiplying in the format that the factory was made for.
/// Errors: run.memory, before anything is taken.
using AmpDeviceFactory = std::function<Result<std::unique_ptr<AmpDevice>>(std::int64_t arenaBytes)>;

} // namespace memscape

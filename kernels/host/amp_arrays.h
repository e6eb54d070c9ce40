// SPDX-License-Identifier: Apache-2.0
// Arrays of a training step, in FP32 or a 16-bit format, in a counting pool; and what a step does to
// their elements. Elements of short arrays are widened in chunks, computed in FP32 and rounded once,
// as kernels of a GPU do. Work is shared out among the threads of the team.
#pragma once

#include "core/precision/number_format.h"
#include "kernels/host/threads.h"
#include "kernels/measure/counting_pool.h"

#include <cstddef>
#include <functional>
#include <span>

namespace memscape::host {

struct ArrayPool
{
    CountingPool pool;
    std::byte* base = nullptr;
};

/// A piece of the pool; given back when it goes. Move only.
class PooledArray
{
public:
    PooledArray() = default;
    ~PooledArray() { give(); }
    PooledArray(PooledArray&& other) noexcept { *this = std::move(other); }
    PooledArray& operator=(PooledArray&& other) noexcept;

    /// Filled with not-a-numbers, so that what is used before it is written shows. `pool` must
    /// outlive the array. Errors: run.memory.
    static Result<PooledArray> take(ArrayPool& pool, std::int64_t elements, Format format);
    void give();

    std::int64_t elements() const { return m_elements; }
    Format format() const { return m_format; }
    const void* data() const { return m_data; }
    void* data() { return m_data; }
    template <typename T> T* as() { return reinterpret_cast<T*>(m_data); }
    template <typename T> const T* as() const { return reinterpret_cast<const T*>(m_data); }
    float* floats() { return as<float>(); }
    const float* floats() const { return as<float>(); }

    /// Elements [first, first + values.size()), widened.
    void read(std::size_t first, std::span<float> values) const;
    void write(std::size_t first, std::span<const float> values);

private:
    ArrayPool* m_pool = nullptr;
    std::int64_t m_offset = 0, m_elements = 0;
    Format m_format = Format::Fp32;
    std::byte* m_data = nullptr;
};

/// Every element once, in chunks, widened.
void eachChunk(const PooledArray& array, const std::function<void(std::span<const float>)>& body);

void convertArray(ThreadTeam& team, const PooledArray& from, PooledArray& to);
/// sums (rows × bias) += bias of each column.
void addBias(ThreadTeam& team, const PooledArray& bias, PooledArray& sums);
void reluArray(ThreadTeam& team, const PooledArray& from, PooledArray& to);
/// to ← gradient where the activation is above 0, else 0.
void reluBackward(ThreadTeam& team, const PooledArray& activation, const PooledArray& gradient,
                  PooledArray& to);
/// bias[column] ← Σ over rows, in FP32 and rounded once.
void sumRows(const PooledArray& gradient, PooledArray& bias);

/// Log probabilities of rows of logits, in FP32 and rounded once.
void logSoftmax(const PooledArray& logits, PooledArray& logProbabilities, std::int64_t classes);
/// The mean of −log probability at the labels, of FP32 log probabilities.
double meanLoss(const PooledArray& logProbabilities, const PooledArray& labels,
                std::int64_t classes);
/// gradient of the logits: factor × (probability − 1 at the label).
void lossBackward(const PooledArray& logProbabilities, const PooledArray& labels,
                  PooledArray& gradient, std::int64_t classes, double factor);

/// FP32 × factor; whether all are finite.
bool scaleArray(ThreadTeam& team, PooledArray& array, float factor);

struct AdamStep
{
    float rate, beta1, beta2, epsilon, decay;
    float correction1, correctionRoot2; ///< 1 − β1^t, √(1 − β2^t)
};
void adamArray(ThreadTeam& team, const AdamStep& step, PooledArray& weights,
               const PooledArray& gradients, float* moments, float* squares);

} // namespace memscape::host

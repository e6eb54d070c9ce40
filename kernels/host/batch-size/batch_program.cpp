// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/batch-size/batch_program.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace memscape::host {

namespace {

constexpr std::size_t lineGrain = 16; // floats of a cache line

/// Threads that are running wait here for each other; short, so they spin before they yield.
class SpinBarrier
{
public:
    explicit SpinBarrier(int threads)
        : m_threads(threads)
    { }
    void wait()
    {
        const int round = m_round.load(std::memory_order_relaxed);
        if (m_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_threads) {
            m_arrived.store(0, std::memory_order_relaxed);
            m_round.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; m_round.load(std::memory_order_acquire) == round; ++spins) {
            if (spins > 4096)
                std::this_thread::yield();
        }
    }

private:
    int m_threads;
    alignas(64) std::atomic<int> m_arrived{0};
    alignas(64) std::atomic<int> m_round{0};
};

struct alignas(64) Worker
{
    BatchSums sums;
    ProductScratch* scratch = nullptr;
    int thread = 0, threads = 1;

    Part part(std::int64_t count) const { return partOf(std::size_t(count), thread, threads, lineGrain); }
    Part rowsOf(std::int64_t count) const { return partOf(std::size_t(count), thread, threads, 1); }
};

/// C (rows × columns) = A · B by slabs of rows or columns, whichever there are more of.
struct Slabs
{
    Part rows, columns;
};
Slabs slabsOf(const Worker& worker, std::int64_t rows, std::int64_t columns)
{
    if (columns >= rows)
        return {{0, std::size_t(rows)}, worker.part(columns)};
    return {worker.rowsOf(rows), {0, std::size_t(columns)}};
}

MEMSCAPE_INLINE void linear(Worker& worker, const BatchOperation& op, const ProductKernel& product)
{
    const auto in = std::size_t(op.inputs), out = std::size_t(op.outputs);
    const Slabs slabs = slabsOf(worker, op.rows, op.outputs);
    if (slabs.rows.size() == 0 || slabs.columns.size() == 0)
        return;
    float* const y = op.result + slabs.rows.begin * out + slabs.columns.begin;
    product.run({slabs.rows.size(), slabs.columns.size(), in, op.a + slabs.rows.begin * in, in, false,
                 op.b + slabs.columns.begin * in, in, true, y, out, false},
                *worker.scratch);
    const float* const bias = op.c + slabs.columns.begin;
    for (std::size_t row = 0; row < slabs.rows.size(); ++row) {
        for (std::size_t k = 0; k < slabs.columns.size(); ++k)
            y[row * out + k] += bias[k];
    }
}

MEMSCAPE_INLINE void inputGradient(Worker& worker, const BatchOperation& op, const ProductKernel& product)
{
    const auto in = std::size_t(op.inputs), out = std::size_t(op.outputs);
    const Slabs slabs = slabsOf(worker, op.rows, op.inputs);
    if (slabs.rows.size() == 0 || slabs.columns.size() == 0)
        return;
    product.run({slabs.rows.size(), slabs.columns.size(), out, op.a + slabs.rows.begin * out, out, false,
                 op.b + slabs.columns.begin, in, false, op.result + slabs.rows.begin * in + slabs.columns.begin, in,
                 false},
                *worker.scratch);
}

/// Sums of a few columns, in registers.
MEMSCAPE_INLINE void sumRows(const float* from, std::size_t stride, std::size_t rows, std::size_t columns, float* to)
{
    float sums[lineGrain] = {};
    if (columns == lineGrain) {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t k = 0; k < lineGrain; ++k)
                sums[k] += from[row * stride + k];
        }
    } else {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t k = 0; k < columns; ++k)
                sums[k] += from[row * stride + k];
        }
    }
    std::copy_n(sums, columns, to);
}

/// dW in slabs like the others; db by its entries.
MEMSCAPE_INLINE void weightGradient(Worker& worker, const BatchOperation& op, const ProductKernel& product)
{
    const auto in = std::size_t(op.inputs), out = std::size_t(op.outputs), rows = std::size_t(op.rows);
    const Slabs slabs = slabsOf(worker, op.outputs, op.inputs);
    if (slabs.rows.size() > 0 && slabs.columns.size() > 0)
        product.run({slabs.rows.size(), slabs.columns.size(), rows, op.a + slabs.rows.begin, out, true,
                     op.b + slabs.columns.begin, in, false, op.result + slabs.rows.begin * in + slabs.columns.begin, in,
                     false},
                    *worker.scratch);
    const Part part = worker.part(op.outputs);
    for (std::size_t k = part.begin; k < part.end; k += lineGrain)
        sumRows(op.a + k, out, rows, std::min(lineGrain, part.end - k), op.second + k);
}

MEMSCAPE_INLINE float squares(const float* values, std::size_t count)
{
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += values[i] * values[i];
    return sum;
}

MEMSCAPE_INLINE void countNorms(Worker& worker, const BatchOperation& op)
{
    const auto in = std::size_t(op.inputs), out = std::size_t(op.outputs);
    const Part rows = worker.rowsOf(op.rows);
    for (std::size_t row = rows.begin; row < rows.end; ++row)
        worker.sums.squaredNorms += (double(squares(op.b + row * in, in)) + 1) * double(squares(op.a + row * out, out));
}

/// Σ (a − b)²: floats within a block, in as many sums as hide that one addition waits for the other; doubles over
/// the blocks.
MEMSCAPE_INLINE double squaredDifference(const float* a, const float* b, std::size_t count)
{
    constexpr std::size_t lanes = 32, block = 64 * lanes;
    double sum = 0;
    for (std::size_t begin = 0; begin < count; begin += block) {
        const std::size_t end = std::min(count, begin + block);
        float sums[lanes] = {};
        std::size_t i = begin;
        for (; i + lanes <= end; i += lanes) {
            for (std::size_t lane = 0; lane < lanes; ++lane)
                sums[lane] += (a[i + lane] - b[i + lane]) * (a[i + lane] - b[i + lane]);
        }
        for (; i < end; ++i)
            sums[i % lanes] += (a[i] - b[i]) * (a[i] - b[i]);
        for (const float one : sums)
            sum += double(one);
    }
    return sum;
}

MEMSCAPE_INLINE void elementwise(Worker& worker, const BatchOperation& op, float rate)
{
    const std::int64_t count = op.rows * op.outputs;
    const Part part = worker.part(count);
    const float *a = op.a, *b = op.b;
    float* const result = op.result;
    switch (op.kind) {
    case BatchOperation::Kind::Relu:
        for (std::size_t i = part.begin; i < part.end; ++i)
            result[i] = std::max(a[i], 0.0F);
        break;
    case BatchOperation::Kind::ReluGradient:
        for (std::size_t i = part.begin; i < part.end; ++i)
            result[i] = b[i] > 0 ? a[i] : 0.0F;
        break;
    case BatchOperation::Kind::Loss: {
        worker.sums.loss += squaredDifference(a + part.begin, b + part.begin, part.size());
        break;
    }
    case BatchOperation::Kind::LossGradient: {
        const float factor = 2 / float(count);
        for (std::size_t i = part.begin; i < part.end; ++i)
            result[i] = factor * (a[i] - b[i]);
        break;
    }
    case BatchOperation::Kind::Add:
        for (std::size_t i = part.begin; i < part.end; ++i)
            result[i] += a[i];
        break;
    case BatchOperation::Kind::Update:
        for (std::size_t i = part.begin; i < part.end; ++i)
            result[i] -= rate * a[i];
        break;
    case BatchOperation::Kind::Load:
        std::memcpy(result + part.begin, a + part.begin, part.size() * sizeof(float));
        break;
    default: break;
    }
}

MEMSCAPE_INLINE void runWith(Worker& worker, const BatchOperation& op, const ProductKernel& product, float rate,
                             bool countsNorms)
{
    switch (op.kind) {
    case BatchOperation::Kind::Linear: return linear(worker, op, product);
    case BatchOperation::Kind::InputGradient: return inputGradient(worker, op, product);
    case BatchOperation::Kind::WeightGradient:
        if (countsNorms)
            countNorms(worker, op);
        return weightGradient(worker, op, product);
    default: return elementwise(worker, op, rate);
    }
}

using RunOne = void (*)(Worker&, const BatchOperation&, const ProductKernel&, float, bool);
void runOne16(Worker& worker, const BatchOperation& op, const ProductKernel& product, float rate, bool countsNorms)
{
    runWith(worker, op, product, rate, countsNorms);
}
#if MEMSCAPE_X86
MEMSCAPE_AVX2 void runOne32(Worker& worker, const BatchOperation& op, const ProductKernel& product, float rate,
                            bool countsNorms)
{
    runWith(worker, op, product, rate, countsNorms);
}
#endif

/// The loops as wide as this processor runs them.
RunOne widestRun()
{
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes32))
        return runOne32;
#endif
    return runOne16;
}

} // namespace

BatchTeam::BatchTeam(HostSession& session, ProductKernel product)
    : m_session(session)
    , m_product(std::move(product))
    , m_scratch(std::size_t(session.team().size()))
{ }

double BatchTeam::run(const BatchOperations& step, float rate, bool countsNorms, BatchSums& sums)
{
    ThreadTeam& team = m_session.team();
    std::vector<Worker> workers(m_scratch.size());
    SpinBarrier barrier(team.size());
    const RunOne runOne = widestRun();
    const double seconds = team.run([&](int thread) {
        Worker& worker = workers[std::size_t(thread)];
        worker.scratch = &m_scratch[std::size_t(thread)];
        worker.thread = thread;
        worker.threads = team.size();
        for (const BatchOperation& op : step) {
            runOne(worker, op, m_product, rate, countsNorms);
            barrier.wait();
        }
    });
    for (const Worker& worker : workers) {
        sums.loss += worker.sums.loss;
        sums.squaredNorms += worker.sums.squaredNorms;
    }
    return seconds;
}

void BatchTeam::runAlone(const BatchOperations& step, float rate)
{
    Worker worker;
    worker.scratch = &m_scratch.front();
    const RunOne runOne = widestRun();
    for (const BatchOperation& op : step)
        runOne(worker, op, m_product, rate, false);
}

} // namespace memscape::host

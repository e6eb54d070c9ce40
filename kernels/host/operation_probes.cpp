// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/operation_probes.h"

#include "kernels/host/batch_program.h"
#include "kernels/measure/statistics.h"
#include "kernels/measure/sweep.h"

#include <algorithm>
#include <array>

namespace memscape::host {

namespace {

constexpr double sampleSeconds = 3e-4;
constexpr int mostRepeats = 2000, passes = 3, samplesPerPass = 4;

struct Layer
{
    std::int64_t inputs, outputs;
};
// No powers of two, but for columns that fill whole tiles.
constexpr Layer layers[] = {{96, 96}, {384, 96}, {96, 384}, {768, 384}};
constexpr std::int64_t batches[] = {1, 3, 6, 12, 24, 48, 96, 192, 384};
constexpr std::int64_t passElements[] = {3000, 6000, 12000, 24000};
constexpr std::int64_t nothing = 16; ///< elements of a call that does next to nothing

/// Arrays of one layer at one batch, and every operation on them.
class Arrays
{
public:
    static Result<Arrays> make(HostSession& session, std::int64_t elements)
    {
        Arrays arrays;
        MEMSCAPE_TRY(buffer, allocate(std::size_t(5 * elements * 4), Pages::Huge, session.memory()));
        arrays.m_buffer = std::move(buffer);
        arrays.m_elements = elements;
        std::fill_n(arrays.at(0), 5 * elements, 0.5F);
        return arrays;
    }
    float* at(int index) const { return m_buffer.as<float>() + index * m_elements; }

private:
    Buffer m_buffer;
    std::int64_t m_elements = 0;
};

BatchOperation operationOf(HostOperation kind, std::int64_t batch, const Layer& layer, const Arrays& arrays)
{
    using Kind = BatchOperation::Kind;
    const auto [in, out] = layer;
    float *const first = arrays.at(0), *const second = arrays.at(1), *const result = arrays.at(2);
    switch (kind) {
    case HostOperation::Forward:
        return {Kind::Linear, batch, in, out, first, second, arrays.at(3), result};
    case HostOperation::InputGradient:
        return {Kind::InputGradient, batch, in, out, first, second, nullptr, result};
    case HostOperation::WeightGradient:
        return {Kind::WeightGradient, batch, in, out, first, second, nullptr, result, arrays.at(3)};
    default:
        return {Kind::Relu, batch, 0, out, first, nullptr, nullptr, result};
    }
}

ProductShape shapeOf(HostOperation kind, std::int64_t batch, const Layer& layer)
{
    const double m = double(batch), in = double(layer.inputs), out = double(layer.outputs);
    switch (kind) {
    case HostOperation::Forward:
        return {m, out, in};
    case HostOperation::InputGradient:
        return {m, in, out};
    case HostOperation::WeightGradient:
        return {out, in, m};
    default:
        return {m * out, 1, 1};
    }
}

struct Task
{
    HostOperation kind;
    std::int64_t batch;
    Layer layer;
};

std::vector<Task> tasks()
{
    std::vector<Task> all{{HostOperation::Start, 1, {1, nothing}}, {HostOperation::Call, 1, {1, nothing}}};
    for (const std::int64_t elements : passElements)
        all.push_back({HostOperation::Elementwise, 1, {1, elements}});
    for (const Layer& layer : layers) {
        for (const std::int64_t batch : batches) {
            for (const auto kind : {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient})
                all.push_back({kind, batch, layer});
        }
    }
    return all;
}

class Prober
{
public:
    Prober(HostSession& session, const ProductKernel& product)
        : m_session(session)
        , m_product(product)
    {
    }

    /// Samples of one task, s per operation.
    Result<std::vector<double>> sample(const Task& task)
    {
        const auto largest = std::max({task.batch * task.layer.inputs, task.batch * task.layer.outputs,
                                       task.layer.inputs * task.layer.outputs});
        MEMSCAPE_TRY(arrays, Arrays::make(m_session, (largest + 63) / 64 * 64));
        BatchProgram program;
        program.operations = {operationOf(task.kind, task.batch, task.layer, arrays)};
        static_cast<void>(run(program)); // meets new pages
        const double once = run(program);
        if (task.kind != HostOperation::Start) {
            const int repeats = std::clamp(int(sampleSeconds / possibleSeconds(once, 0)), 1, mostRepeats);
            program.operations.assign(std::size_t(repeats), program.operations.front());
        }
        const double operations = double(program.operations.size());
        std::vector<double> seconds;
        for (int i = 0; i < samplesPerPass; ++i)
            seconds.push_back(run(program) / operations);
        MEMSCAPE_CHECK(m_session.checkStopped());
        return seconds;
    }

private:
    double run(const BatchProgram& program)
    {
        BatchSums sums;
        return program.run(m_session, m_product, 0, false, sums);
    }

    HostSession& m_session;
    ProductKernel m_product;
};

} // namespace

Result<std::vector<OperationProbe>> probeOperations(HostSession& session, const ProductKernel& product)
{
    const std::vector<Task> all = tasks();
    std::vector<std::vector<double>> samples(all.size());
    Prober prober(session, product);
    for (const Visit& visit : interleaved(all.size(), passes, 23)) {
        MEMSCAPE_TRY(seconds, prober.sample(all[visit.point]));
        auto& kept = samples[visit.point];
        kept.insert(kept.end(), seconds.begin(), seconds.end());
    }
    std::vector<OperationProbe> probes;
    for (std::size_t i = 0; i < all.size(); ++i)
        probes.push_back({all[i].kind, shapeOf(all[i].kind, all[i].batch, all[i].layer), summarize(samples[i]).median});
    return probes;
}

} // namespace memscape::host

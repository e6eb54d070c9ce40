// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/operation_probes.h"

#include "kernels/measure/statistics.h"

#include <algorithm>
#include <array>

namespace memscape::host {

namespace {

constexpr double sampleSeconds = 1e-3; // of a pass
constexpr int fewestRuns = 3, mostRuns = 12;
constexpr int copies = 4; ///< operations of a step that is timed: few, as in a real one

struct Layer
{
    std::int64_t inputs, outputs;
};
constexpr Layer layers[] = {{96, 96}, {320, 96}, {96, 320}, {160, 160}, {640, 320}};
constexpr std::int64_t batches[] = {1, 3, 6, 12, 24, 48, 96, 192, 384, 768};
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

/// `copies` operations after each other; for calls one of each kind of pass, which do next to nothing.
BatchOperations callsOf(const Arrays& arrays)
{
    using Kind = BatchOperation::Kind;
    return {{Kind::Relu, 1, 0, nothing, arrays.at(0), nullptr, nullptr, arrays.at(2)},
            {Kind::Loss, 1, 0, nothing, arrays.at(2), arrays.at(1)},
            {Kind::LossGradient, 1, 0, nothing, arrays.at(2), arrays.at(1), nullptr, arrays.at(3)},
            {Kind::Update, 1, 0, nothing, arrays.at(3), nullptr, nullptr, arrays.at(0)}};
}

BatchOperations stepOf(HostOperation kind, std::int64_t batch, const Layer& layer, const Arrays& arrays)
{
    if (kind == HostOperation::Start)
        return {};
    if (kind == HostOperation::Call)
        return callsOf(arrays);
    return BatchOperations(std::size_t(copies), operationOf(kind, batch, layer, arrays));
}

} // namespace

struct OperationProber::Task
{
    HostOperation kind;
    std::int64_t batch;
    Layer layer;
    std::vector<double> samples = {}; ///< s of a step
};

OperationProber::OperationProber(HostSession& session, const ProductKernel& product)
    : m_session(session)
    , m_team(session, product)
    , m_tasks{{HostOperation::Start, 1, {1, nothing}}, {HostOperation::Call, 1, {1, nothing}}}
{
    for (const std::int64_t elements : passElements)
        m_tasks.push_back({HostOperation::Elementwise, 1, {1, elements}});
    for (const Layer& layer : layers) {
        for (const std::int64_t batch : batches) {
            for (const auto kind : {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient})
                m_tasks.push_back({kind, batch, layer});
        }
    }
}

OperationProber::~OperationProber() = default;

Result<void> OperationProber::pass()
{
    for (Task& task : m_tasks) {
        const auto [in, out] = task.layer;
        const std::int64_t largest = std::max({task.batch * in, task.batch * out, in * out, nothing});
        MEMSCAPE_TRY(arrays, Arrays::make(m_session, (largest + 63) / 64 * 64));
        const BatchOperations step = stepOf(task.kind, task.batch, task.layer, arrays);
        static_cast<void>(secondsOf(step)); // meets new pages
        const double once = possibleSeconds(secondsOf(step), 0);
        const int runs = std::clamp(int(sampleSeconds / once), fewestRuns, mostRuns);
        for (int i = 0; i < runs; ++i)
            task.samples.push_back(secondsOf(step));
        MEMSCAPE_CHECK(m_session.checkStopped());
    }
    return {};
}

double OperationProber::secondsOf(const BatchOperations& step)
{
    BatchSums unwanted;
    return m_team.run(step, 0, false, unwanted);
}

std::vector<OperationProbe> OperationProber::probes() const
{
    std::vector<OperationProbe> probes;
    const double start = summarize(m_tasks.front().samples).median; // of a step without operations
    for (const Task& task : m_tasks) {
        const double seconds = summarize(task.samples).median;
        probes.push_back({task.kind, shapeOf(task.kind, task.batch, task.layer),
                          task.kind == HostOperation::Start ? seconds : std::max(0.0, seconds - start) / copies});
    }
    return probes;
}

} // namespace memscape::host

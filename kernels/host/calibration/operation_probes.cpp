// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/calibration/operation_probes.h"

#include "kernels/measure/statistics.h"

#include <algorithm>

namespace memscape::host {

struct ProbedLayer
{
    std::int64_t inputs, outputs;
};

namespace {

constexpr double sampleSeconds = 1e-3; // of a pass
constexpr int fewestRuns = 2, mostRuns = 12;
constexpr int copies = 4;    ///< operations of a step that is timed: few, as in a real one
constexpr int arraySets = 2; ///< of arrays that they take in turn

constexpr ProbedLayer layers[] = {{96, 96}, {320, 96}, {96, 320}, {160, 160}, {640, 320}};
constexpr std::int64_t batches[] = {1, 3, 6, 12, 24, 48, 96, 192, 384, 768};
constexpr std::int64_t passElements[] = {3000, 6000, 12000, 24000};
constexpr std::int64_t nothing = 16; ///< elements of a call that does next to nothing

/// Arrays of one layer at one batch, and every operation on them.
class Arrays
{
public:
    static Result<Arrays> make(HostSession& session, std::int64_t most)
    {
        Arrays arrays;
        MEMSCAPE_SET(arrays.m_buffer, allocate(std::size_t(count * most * 4), Pages::Huge, session.memory()));
        arrays.m_elements = most;
        std::fill_n(arrays.at(0), count * most, 0.5F);
        return arrays;
    }
    /// Of so many elements each, close together as in a pool.
    void shrink(std::int64_t elements) { m_elements = (elements + 127) / 128 * 128; }
    float* at(int index) const { return m_buffer.as<float>() + index * m_elements; }
    /// What was just written, what lies there since the last step, what is written now.
    float* fresh() const { return at(1); }
    float* kept(int set) const { return at(3 + 2 * (set % arraySets)); }
    float* result(int set) const { return at(4 + 2 * (set % arraySets)); }
    float* bias() const { return at(2); }

private:
    static constexpr int count = 3 + 2 * arraySets;
    Buffer m_buffer;
    std::int64_t m_elements = 0;
};

BatchOperation productOf(HostOperation kind, std::int64_t batch, const ProbedLayer& layer, const Arrays& arrays,
                         int set)
{
    using Kind = BatchOperation::Kind;
    const auto [in, out] = layer;
    float *const fresh = arrays.fresh(), *const kept = arrays.kept(set), *const result = arrays.result(set);
    if (kind == HostOperation::Forward)
        return {Kind::Linear, batch, in, out, fresh, kept, arrays.bias(), result};
    if (kind == HostOperation::InputGradient)
        return {Kind::InputGradient, batch, in, out, fresh, kept, nullptr, result};
    return {Kind::WeightGradient, batch, in, out, fresh, kept, nullptr, result, arrays.bias()};
}

BatchOperation passOf(std::int64_t elements, const float* from, float* to)
{
    return {BatchOperation::Kind::Relu, 1, 0, elements, from, nullptr, nullptr, to};
}

ProductShape shapeOf(HostOperation kind, std::int64_t batch, const ProbedLayer& layer)
{
    const double m = double(batch), in = double(layer.inputs), out = double(layer.outputs);
    switch (kind) {
    case HostOperation::Forward: return {m, out, in};
    case HostOperation::InputGradient: return {m, in, out};
    case HostOperation::WeightGradient: return {out, in, m};
    default: return {m * out, 1, 1};
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

/// A product reads what all threads have just written, their parts lying in each other's caches: each follows a pass
/// that writes its operand. `alone` is the step without the products, whose time is taken off.
BatchOperations stepOf(HostOperation kind, std::int64_t batch, const ProbedLayer& layer, const Arrays& arrays,
                       bool alone)
{
    if (kind == HostOperation::Start)
        return {};
    if (kind == HostOperation::Call)
        return alone ? BatchOperations() : callsOf(arrays);
    BatchOperations step;
    for (int i = 0; i < copies; ++i) {
        if (kind == HostOperation::Elementwise) {
            if (!alone)
                step.push_back(passOf(layer.outputs, arrays.kept(i), arrays.result(i)));
            continue;
        }
        const std::int64_t operand = batch * (kind == HostOperation::Forward ? layer.inputs : layer.outputs);
        step.push_back(passOf(operand, arrays.at(0), arrays.fresh()));
        if (!alone)
            step.push_back(productOf(kind, batch, layer, arrays, i));
    }
    return step;
}

} // namespace

struct OperationProber::Task
{
    HostOperation kind;
    std::int64_t batch;
    ProbedLayer layer;
    std::vector<double> samples = {}; ///< s of a step, less what it takes without its operations
};

OperationProber::OperationProber(HostSession& session, const ProductKernel& product)
    : m_session(session)
    , m_team(session, product)
    , m_tasks{{HostOperation::Start, 1, {1, nothing}}, {HostOperation::Call, 1, {1, nothing}}}
{
    for (const std::int64_t elements : passElements)
        m_tasks.push_back({HostOperation::Elementwise, 1, {1, elements}});
    for (const ProbedLayer& layer : layers) {
        for (const std::int64_t batch : batches) {
            for (const auto kind :
                 {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient})
                m_tasks.push_back({kind, batch, layer});
        }
    }
}

OperationProber::~OperationProber() = default;

Result<void> OperationProber::pass()
{
    const auto largestOf = [](const Task& task) {
        const auto [in, out] = task.layer;
        return std::max({task.batch * in, task.batch * out, in * out, nothing});
    };
    std::int64_t most = 0;
    for (const Task& task : m_tasks)
        most = std::max(most, largestOf(task));
    MEMSCAPE_TRY(arrays, Arrays::make(m_session, most + 128));
    for (Task& task : m_tasks) {
        arrays.shrink(largestOf(task));
        const BatchOperations step = stepOf(task.kind, task.batch, task.layer, arrays, false);
        const BatchOperations alone = stepOf(task.kind, task.batch, task.layer, arrays, true);
        static_cast<void>(secondsOf(step)); // meets new pages
        const double once = possibleSeconds(secondsOf(step), 0);
        const int runs = std::clamp(int(sampleSeconds / once), fewestRuns, mostRuns);
        for (int i = 0; i < runs; ++i) {
            const double seconds = secondsOf(step);
            task.samples.push_back(task.kind == HostOperation::Start ? seconds : (seconds - secondsOf(alone)) / copies);
        }
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
    for (const Task& task : m_tasks)
        probes.push_back(
            {task.kind, shapeOf(task.kind, task.batch, task.layer), std::max(0.0, summarize(task.samples).median)});
    return probes;
}

} // namespace memscape::host

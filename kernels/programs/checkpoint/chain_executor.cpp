// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/checkpoint/chain_executor.h"

#include "kernels/measure/counting_pool.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

/// x̄: z is null when it was not saved.
struct Saved
{
    float* z = nullptr;
    float* x = nullptr;
    bool isThere() const { return x != nullptr; }
};

class Execute
{
public:
    Execute(MlpDevice& device, const MlpShape& shape, std::int64_t arenaBytes, const ExecutionOptions& options)
        : m_device(device)
        , m_options(options)
        , m_arrayBytes(mlpArrayBytes(shape))
        , m_length(int(shape.length))
        , m_pool(arenaBytes)
        , m_values(std::size_t(m_length) + 1)
        , m_saved(std::size_t(m_length) + 1)
        , m_ran(std::size_t(m_length))
    { }

    Result<Execution> run(const Schedule& schedule);

private:
    Result<void> step(const ChainOperation& operation);
    Result<void> forward(const ChainOperation& operation);
    Result<void> forwardSave(int stage, MlpSave way, const float* x);
    Result<void> loss();
    Result<void> backward(int stage);
    Result<void> discard(const ChainOperation& operation);
    Result<void> digest(const ChainOperation& operation);
    Result<Execution> finished(const Schedule& schedule);

    Result<float*> take();
    Result<void> give(float*& array);
    Result<void> giveSaved(int i);
    const float* input(int i) const { return m_values[i] ? m_values[i] : m_saved[i].x; }
    tl::unexpected<Error> invalid(std::string message) const
    {
        return fail("schedule.invalid", std::move(message), "this schedule can't be run as it is written",
                    fmt::format("operation {}", m_result.replay.steps.size()));
    }

    MlpDevice& m_device;
    const ExecutionOptions& m_options;
    std::int64_t m_arrayBytes;
    int m_length;
    CountingPool m_pool;
    std::vector<float*> m_values; ///< x_i alone
    std::vector<Saved> m_saved;   ///< x̄_i
    std::vector<bool> m_ran;
    float* m_gradient = nullptr; ///< y_{m_next}
    int m_next = 0;              ///< the next backward is of stage m_next - 1
    Execution m_result;
};

Result<float*> Execute::take()
{
    MEMSCAPE_TRY(offset, m_pool.take(m_arrayBytes));
    float* array = m_device.arena() + offset / std::int64_t(sizeof(float));
    if (m_options.isPoisoned)
        MEMSCAPE_CHECK(m_device.poison(array));
    return array;
}

Result<void> Execute::give(float*& array)
{
    if (array == nullptr)
        return {};
    if (m_options.isPoisoned)
        MEMSCAPE_CHECK(m_device.poison(array));
    m_pool.give((array - m_device.arena()) * std::int64_t(sizeof(float)));
    array = nullptr;
    return {};
}

Result<void> Execute::giveSaved(int i)
{
    MEMSCAPE_CHECK(give(m_saved[i].z));
    return give(m_saved[i].x);
}

Result<void> Execute::forward(const ChainOperation& operation)
{
    const int i = operation.stage;
    if (i < 0 || i >= m_length)
        return invalid(fmt::format("there is no stage {}", i));
    const float* x = input(i);
    if (x == nullptr)
        return invalid(fmt::format("the forward of stage {} needs x_{}, which is not kept", i, i));
    m_result.replay.forwards += 1;
    m_result.replay.recomputed += m_ran[i];
    m_result.replay.steps.back().isRecomputation = m_ran[i];
    m_ran[i] = true;
    if (operation.kind == OperationKind::ForwardSave) {
        if (operation.option < 0 || operation.option > int(MlpSave::Result))
            return invalid(fmt::format("stage {} has no way {} to be saved", i, operation.option));
        return forwardSave(i, MlpSave(operation.option), x);
    }
    if (m_values[i + 1] != nullptr)
        return invalid(fmt::format("x_{} is kept already", i + 1));
    if (operation.kind == OperationKind::ForwardDrop && m_values[i] == nullptr)
        return invalid(fmt::format("x_{} is part of what was saved and can't be dropped alone", i));
    MEMSCAPE_TRY(result, take());
    MEMSCAPE_CHECK(m_device.forward(i, x, nullptr, result));
    m_values[i + 1] = result;
    return operation.kind == OperationKind::ForwardDrop ? give(m_values[i]) : Result<void>();
}

Result<void> Execute::forwardSave(int stage, MlpSave way, const float* x)
{
    Saved& saved = m_saved[stage + 1];
    if (saved.isThere())
        return invalid(fmt::format("what stage {} saves is kept already", stage));
    if (way == MlpSave::All)
        MEMSCAPE_SET(saved.z, take());
    MEMSCAPE_SET(saved.x, take());
    return m_device.forward(stage, x, saved.z, saved.x);
}

Result<void> Execute::loss()
{
    if (m_next != m_length || m_gradient != nullptr)
        return invalid("the loss runs twice");
    const float* x = input(m_length);
    if (x == nullptr)
        return invalid(fmt::format("the loss needs x_{}, which is not kept", m_length));
    MEMSCAPE_TRY(gradient, take());
    m_gradient = gradient;
    MEMSCAPE_CHECK(m_device.loss(x, gradient));
    return give(m_values[m_length]);
}

Result<void> Execute::backward(int stage)
{
    if (m_gradient == nullptr)
        return invalid("a backward before the loss");
    if (stage != m_next - 1)
        return invalid(fmt::format("the backward of stage {} where that of stage {} is due", stage, m_next - 1));
    if (!m_saved[stage + 1].isThere())
        return invalid(fmt::format("the backward of stage {} needs what its forward saves", stage));
    const float* x = input(stage);
    if (x == nullptr)
        return invalid(fmt::format("the backward of stage {} needs x_{}, which is not kept", stage, stage));
    MEMSCAPE_TRY(result, take());
    float* z = m_saved[stage + 1].z;
    float* again = nullptr; // z, when it was not saved
    if (z == nullptr) {
        MEMSCAPE_TRY(made, take());
        again = z = made;
        MEMSCAPE_CHECK(m_device.preactivation(stage, x, z));
    }
    MEMSCAPE_CHECK(m_device.backward(stage, x, z, m_gradient, result));
    MEMSCAPE_CHECK(give(again));
    MEMSCAPE_CHECK(give(m_gradient));
    MEMSCAPE_CHECK(giveSaved(stage + 1));
    MEMSCAPE_CHECK(give(m_values[stage]));
    m_gradient = result;
    m_next = stage;
    return {};
}

Result<void> Execute::discard(const ChainOperation& operation)
{
    const int i = operation.stage;
    const bool isValue = operation.kind == OperationKind::DiscardValue;
    if (i < 0 || i > m_length || !(isValue ? m_values[i] != nullptr : m_saved[i].isThere()))
        return invalid(fmt::format("there is no {}_{} to discard", isValue ? "x" : "x̄", i));
    return isValue ? give(m_values[i]) : giveSaved(i);
}

Result<void> Execute::step(const ChainOperation& operation)
{
    m_pool.resetHighWater();
    switch (operation.kind) {
    case OperationKind::ForwardKeep:
    case OperationKind::ForwardDrop:
    case OperationKind::ForwardSave: return forward(operation);
    case OperationKind::Loss: return loss();
    case OperationKind::Backward: return backward(operation.stage);
    case OperationKind::DiscardValue:
    case OperationKind::DiscardSaved: break;
    }
    return discard(operation);
}

Result<void> Execute::digest(const ChainOperation& operation)
{
    if (operation.kind == OperationKind::Loss)
        MEMSCAPE_SET(m_result.loss, m_device.loss());
    if (operation.kind == OperationKind::Backward)
        MEMSCAPE_SET(m_result.digests[std::size_t(operation.stage)], m_device.gradientDigest(operation.stage));
    return {};
}

Result<Execution> Execute::finished(const Schedule& schedule)
{
    if (m_gradient == nullptr || m_next != 0)
        return invalid(m_gradient == nullptr
                           ? std::string("the schedule ends before the loss")
                           : fmt::format("the schedule ends before the backward of stage {}", m_next - 1));
    MEMSCAPE_TRY(marks, m_device.takeMarks());
    Replay& replay = m_result.replay;
    for (std::size_t k = 0; k < schedule.size() && k + 1 < marks.size(); ++k) {
        replay.steps[k].begin = marks[k];
        replay.steps[k].end = marks[k + 1];
    }
    replay.makespan = marks.empty() ? 0 : marks.back();
    if (m_options.isDigested)
        MEMSCAPE_SET(m_result.digests.back(), m_device.digest(m_gradient));
    return std::move(m_result);
}

Result<Execution> Execute::run(const Schedule& schedule)
{
    m_next = m_length;
    m_result.digests.resize(m_options.isDigested ? std::size_t(m_length) + 1 : 0);
    m_result.replay.steps.reserve(schedule.size());
    MEMSCAPE_CHECK(m_device.takeMarks()); // of a run that ended early
    MEMSCAPE_TRY(x, take());
    m_values[0] = x;
    MEMSCAPE_CHECK(m_device.input(x));
    m_result.replay.peak = m_pool.used();
    MEMSCAPE_CHECK(m_device.mark());
    for (const ChainOperation& operation : schedule) {
        MEMSCAPE_CHECK(m_device.checkStopped());
        m_result.replay.steps.emplace_back();
        if (auto done = step(operation); !done) {
            m_result.replay.steps.pop_back(); // it did not happen: errors name it by its number
            return done.error().code == "schedule.invalid" ? invalid(std::move(done).error().message)
                                                           : Result<Execution>(fail(std::move(done).error()));
        }
        ReplayStep& counted = m_result.replay.steps.back();
        counted.during = m_pool.highWater();
        counted.after = m_pool.used();
        m_result.replay.peak = std::max(m_result.replay.peak, counted.during);
        MEMSCAPE_CHECK(m_device.mark());
        if (m_options.isDigested)
            MEMSCAPE_CHECK(digest(operation));
        if (m_options.progress)
            m_options.progress(m_result.replay.steps.size());
    }
    MEMSCAPE_CHECK(m_device.checkStopped());
    return finished(schedule);
}

} // namespace

Result<Execution> execute(MlpDevice& device, const MlpShape& shape, std::int64_t arenaBytes, const Schedule& schedule,
                          const ExecutionOptions& options)
{
    return Execute(device, shape, arenaBytes, options).run(schedule);
}

Schedule saveEverything(int length, MlpSave way)
{
    Schedule schedule;
    for (int i = 0; i < length; ++i)
        schedule.push_back({OperationKind::ForwardSave, i, int(way)});
    schedule.push_back({OperationKind::Loss, length, 0});
    for (int i = length - 1; i >= 0; --i)
        schedule.push_back({OperationKind::Backward, i, 0});
    return schedule;
}

Schedule keepInputs(int length)
{
    Schedule schedule;
    for (int i = 0; i < length; ++i)
        schedule.push_back({OperationKind::ForwardKeep, i, 0});
    schedule.push_back({OperationKind::Loss, length, 0});
    for (int i = length - 1; i >= 0; --i) {
        schedule.push_back({OperationKind::ForwardSave, i, 0});
        schedule.push_back({OperationKind::Backward, i, 0});
    }
    return schedule;
}

} // namespace memscape

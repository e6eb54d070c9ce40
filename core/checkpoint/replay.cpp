// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/replay.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// What is resident, and the operations on it. `m_saved[i]` is the way x̄_i was made, -1 when it is not there.
class Machine
{
public:
    explicit Machine(const Chain& chain)
        : m_chain(chain)
        , m_value(chain.values.size())
        , m_saved(chain.values.size(), -1)
        , m_ran(chain.stages.size())
        , m_next(chain.length())
        , m_resident(chain.values[0])
    {
        m_value[0] = true;
    }

    Result<void> run(const ChainOperation& operation);
    Result<void> finished() const;
    Replay take() { return std::move(m_replay); }

private:
    int length() const { return m_chain.length(); }
    std::int64_t savedBytes(int i) const { return m_chain.stages[i - 1].options[m_saved[i]].saved; }
    tl::unexpected<Error> invalid(std::string message) const
    {
        return fail("schedule.invalid", std::move(message), "this schedule can't be run as it is written",
                    fmt::format("operation {}", m_replay.steps.size()));
    }
    /// Bytes `made` appear beside `overhead` that lasts as long as the operation.
    void step(double time, std::int64_t made, std::int64_t overhead, bool isRecomputation = false);
    void freeValue(int i);
    void freeSaved(int i);
    Result<void> forward(const ChainOperation& operation);
    Result<void> loss();
    Result<void> backward(int stage);
    Result<void> discard(const ChainOperation& operation);

    const Chain& m_chain;
    std::vector<bool> m_value;  ///< x_i alone, not inside x̄_i
    std::vector<int> m_saved;   ///< x̄_i
    std::vector<bool> m_ran;    ///< stage i has run forward
    int m_next;                 ///< the next backward is of stage m_next - 1
    bool m_hasGradient = false; ///< the loss has run: y_{m_next} is there
    std::int64_t m_resident;
    Replay m_replay;
};

void Machine::step(double time, std::int64_t made, std::int64_t overhead, bool isRecomputation)
{
    ReplayStep step;
    step.begin = m_replay.makespan;
    step.end = m_replay.makespan += time;
    step.during = m_resident + made + overhead;
    step.isRecomputation = isRecomputation;
    m_resident += made;
    m_replay.peak = std::max(m_replay.peak, step.during);
    m_replay.steps.push_back(step);
}

void Machine::freeValue(int i)
{
    if (m_value[i])
        m_resident -= m_chain.values[i];
    m_value[i] = false;
}

void Machine::freeSaved(int i)
{
    m_resident -= savedBytes(i);
    m_saved[i] = -1;
}

Result<void> Machine::forward(const ChainOperation& operation)
{
    const int i = operation.stage;
    if (i < 0 || i >= length())
        return invalid(fmt::format("there is no stage {}", i));
    if (!m_value[i] && m_saved[i] < 0)
        return invalid(fmt::format("the forward of stage {} needs x_{}, which is not kept", i, i));
    const Stage& stage = m_chain.stages[i];
    const bool again = m_ran[i];
    m_ran[i] = true;
    m_replay.forwards += 1;
    m_replay.recomputed += again;
    if (operation.kind == OperationKind::ForwardSave) {
        if (operation.option < 0 || std::size_t(operation.option) >= stage.options.size())
            return invalid(fmt::format("stage {} has no way {} to be saved", i, operation.option));
        if (m_saved[i + 1] >= 0)
            return invalid(fmt::format("what stage {} saves is kept already", i));
        const SaveOption& option = stage.options[operation.option];
        step(option.forward, option.saved, option.forwardOverhead, again);
        m_saved[i + 1] = operation.option;
        return {};
    }
    if (m_value[i + 1])
        return invalid(fmt::format("x_{} is kept already", i + 1));
    if (operation.kind == OperationKind::ForwardDrop && !m_value[i])
        return invalid(fmt::format("x_{} is part of what was saved and can't be dropped alone", i));
    step(stage.forward, m_chain.values[i + 1], stage.forwardOverhead, again);
    m_value[i + 1] = true;
    if (operation.kind == OperationKind::ForwardDrop)
        freeValue(i);
    return {};
}

Result<void> Machine::loss()
{
    const int end = length();
    if (m_hasGradient || m_next != end)
        return invalid("the loss runs twice");
    if (!m_value[end] && m_saved[end] < 0)
        return invalid(fmt::format("the loss needs x_{}, which is not kept", end));
    step(m_chain.lossTime, m_chain.values[end], m_chain.lossOverhead);
    freeValue(end);
    m_hasGradient = true;
    return {};
}

Result<void> Machine::backward(int stage)
{
    if (!m_hasGradient)
        return invalid("a backward before the loss");
    if (stage != m_next - 1)
        return invalid(fmt::format("the backward of stage {} where that of stage {} is due", stage, m_next - 1));
    if (m_saved[stage + 1] < 0)
        return invalid(fmt::format("the backward of stage {} needs what its forward saves", stage));
    if (!m_value[stage] && m_saved[stage] < 0)
        return invalid(fmt::format("the backward of stage {} needs x_{}, which is not kept", stage, stage));
    const SaveOption& option = m_chain.stages[stage].options[m_saved[stage + 1]];
    step(option.backward, m_chain.values[stage], option.backwardOverhead);
    m_resident -= m_chain.values[stage + 1]; // y_{i+1}
    freeSaved(stage + 1);
    freeValue(stage);
    m_next = stage;
    return {};
}

Result<void> Machine::discard(const ChainOperation& operation)
{
    const int i = operation.stage;
    const bool isValue = operation.kind == OperationKind::DiscardValue;
    if (i < 0 || i > length() || !(isValue ? bool(m_value[i]) : m_saved[i] >= 0))
        return invalid(fmt::format("there is no {}_{} to discard", isValue ? "x" : "x̄", i));
    step(0, 0, 0);
    isValue ? freeValue(i) : freeSaved(i);
    return {};
}

Result<void> Machine::run(const ChainOperation& operation)
{
    switch (operation.kind) {
    case OperationKind::ForwardKeep:
    case OperationKind::ForwardDrop:
    case OperationKind::ForwardSave: MEMSCAPE_CHECK(forward(operation)); break;
    case OperationKind::Loss: MEMSCAPE_CHECK(loss()); break;
    case OperationKind::Backward: MEMSCAPE_CHECK(backward(operation.stage)); break;
    case OperationKind::DiscardValue:
    case OperationKind::DiscardSaved: MEMSCAPE_CHECK(discard(operation)); break;
    }
    m_replay.steps.back().after = m_resident;
    return {};
}

Result<void> Machine::finished() const
{
    if (m_next == 0)
        return {};
    return invalid(fmt::format("the schedule ends before the backward of stage {}", m_next - 1));
}

} // namespace

Result<Replay> replay(const Chain& chain, const Schedule& schedule)
{
    MEMSCAPE_CHECK(checkChain(chain));
    Machine machine(chain);
    for (const ChainOperation& operation : schedule)
        MEMSCAPE_CHECK(machine.run(operation));
    MEMSCAPE_CHECK(machine.finished());
    return machine.take();
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/training/step.h"

#include "core/trace/allocator_replay.h"
#include "core/trace/peak.h"
#include "core/training/optimizer_step.h"
#include "core/training/pipeline_schedule.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <unordered_set>

namespace memscape {

namespace {

/// Where a micro-batch begins.
struct Mark
{
    std::size_t event = 0;
    BlockId block = noBlock; ///< the newest before it
};

/// Whether the events behind `second` are those between `first` and it once more, and leave as many bytes as they find.
bool isRepetition(const Trace& trace, const Mark& first, const Mark& second)
{
    const auto& events = trace.events();
    const std::size_t length = second.event - first.event;
    const BlockId blocks = second.block - first.block;
    if (events.size() - second.event != length || trace.blockCount() - second.block != blocks)
        return false;
    CategoryBytes change{};
    for (std::size_t i = 0; i < length; ++i) {
        const Event &a = events[first.event + i], &b = events[second.event + i];
        const bool isCarried = !b.isAllocation() && b.block <= second.block; // from the one before: its loss
        const bool isSameBlock = isCarried
            ? a.block <= first.block && b.block > first.block && trace.isLive(b.block + blocks)
            : a.block + blocks == b.block;
        if (a.kind != b.kind || a.bytes != b.bytes || a.category != b.category || a.name != b.name
            || a.module != b.module || a.phase != b.phase || !isSameBlock)
            return false;
        change[std::size_t(b.category)] += b.change();
    }
    return std::all_of(change.begin(), change.end(), [](std::int64_t bytes) { return bytes == 0; });
}

void runPipeline(Trace& trace, Autograd& autograd, const StepSettings& settings)
{
    const Plan& plan = settings.plan;
    for (const PipelineAction& action : pipelineActions(plan, settings.pipelineRank, differentMicroBatches(plan))) {
        trace.enter(action.isForward ? Phase::Forward : Phase::Backward, std::uint16_t(action.microBatch));
        if (action.isForward)
            autograd.forward(action.chunk, action.microBatch);
        else
            autograd.backward(action.chunk, action.microBatch);
        if (trace.isRefused())
            return;
    }
}

/// zero_grad().
void dropGradients(Trace& trace, Autograd& autograd, const Plan& plan)
{
    std::vector<BlockId> gradients = autograd.gradients();
    zeroGradients(trace, plan, gradients);
    if (plan.freesGradients())
        autograd.forgetGradients();
}

/// Forward and backward of every micro-batch.
void runPasses(Trace& trace, Autograd& autograd, const StepSettings& settings)
{
    if (settings.plan.pipelineParallel > 1)
        return runPipeline(trace, autograd, settings);
    constexpr std::size_t simulated = 3;
    const bool isTraining = settings.plan.phase == StepPhase::Training;
    const auto count = std::size_t(isTraining ? settings.plan.accumulation : 1);
    const auto whole = std::size_t(settings.plan.wholeMicroBatches());
    const std::size_t alike = whole > 0 ? whole : count;
    std::array<Mark, simulated> marks;
    for (std::size_t i = 0; i < count; ++i) {
        if (i < simulated)
            marks[i] = {trace.events().size(), BlockId(trace.blockCount())};
        trace.enter(Phase::Forward, std::uint16_t(i));
        autograd.forward();
        if (!isTraining)
            continue;
        if (settings.plan.zeroesLate)
            dropGradients(trace, autograd, settings.plan);
        trace.enter(Phase::Backward, std::uint16_t(i));
        autograd.setReduces(i >= whole);
        autograd.backward();
        if (settings.repeatsMicroBatches && i + 1 == simulated && i + 1 < alike
            && isRepetition(trace, marks[1], marks[2])) {
            trace.repeat(marks[2].event, alike - 2, marks[2].block - marks[1].block);
            i = alike - 1;
        }
    }
}

/// Forward and backward of one micro-batch, in a trace that only counts.
void runPass(Trace& trace, Autograd& autograd, const Plan& plan, bool reduces)
{
    trace.enter(Phase::Forward);
    autograd.forward();
    if (plan.phase != StepPhase::Training)
        return;
    if (plan.zeroesLate)
        dropGradients(trace, autograd, plan);
    trace.enter(Phase::Backward);
    autograd.setReduces(reduces);
    autograd.backward();
}

/// Those of every micro-batch into an allocator; `repeats`: times behind which it is where it was are counted, not run.
void runPassesInto(CachingAllocator& allocator, bool repeats, Trace& trace, Autograd& autograd,
                   const StepSettings& settings)
{
    if (settings.plan.pipelineParallel > 1)
        return runPipeline(trace, autograd, settings);
    const bool isTraining = settings.plan.phase == StepPhase::Training;
    const auto pass = [&](bool reduces) { runPass(trace, autograd, settings.plan, reduces); };
    const auto whole = std::size_t(isTraining ? settings.plan.wholeMicroBatches() : 0);
    const std::size_t alike = whole > 0 ? whole : std::size_t(isTraining ? settings.plan.accumulation : 1);
    AllocatorCycle cycle;
    for (std::size_t left = alike, done = 0; left > 0 && !trace.isRefused(); ++done) {
        pass(whole == 0);
        --left;
        if (repeats && done > 0 && left > 0 && !trace.isRefused()) // the first makes the gradients that the others find
            left = cycle.timesLeft(allocator, autograd.results(), left);
    }
    if (whole > 0 && !trace.isRefused())
        pass(true);
}

/// Those that live through the step; the buckets of DeepSpeed's stages 1 and 2 come with backward.
void allocateReduceBuffers(Trace& trace, const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    if (!plan.isByDeepSpeed() || plan.zeroStage == 3)
        trace.allocate(reduceBufferBytes(parameters, plan), Category::Communication, trace.name("reduce bucket"));
    trace.allocate(offloadBufferBytes(parameters, plan), Category::Communication,
                   trace.name("gradient on its way to the host"));
}

/// Which micro-batches of a step a trace has.
struct StepPart
{
    bool isFirst = true; ///< else it finds the gradients of those before it
    bool isLast = true;  ///< else there is no update, and the gradients are there for the next part
};

/// The whole step, or a part of it; `passes` runs forward and backward of its micro-batches.
template <typename Passes>
void runStep(Trace& trace, const Graph& graph, const PreparedNetwork& network, const StepSettings& settings,
             Passes passes, StepPart part = {})
{
    const Plan& plan = settings.plan;
    const std::vector<ParameterTensor>& parameters = network.parameters;
    Autograd autograd(graph, settings.checkpointing, settings.rules, trace, network.moduleIds,
                      placementOf(parameters, plan));
    autograd.setBlasWorkspace(settings.blasWorkspace);
    OptimizerBlocks optimizer = allocateOptimizer(trace, parameters, plan);
    if (plan.updatesEarly())
        autograd.setUpdate([&](std::size_t index) { updateParameter(trace, plan, optimizer, index); });
    allocateReduceBuffers(trace, parameters, plan);
    const std::size_t beforeGradients = trace.setupCount();
    if (plan.phase == StepPhase::Training && (!part.isFirst || plan.findsGradients()))
        autograd.findGradients();
    if (plan.phase == StepPhase::Training && plan.accumulation == 1) // else a micro-batch of this step leaves them
        autograd.findAttributes();
    passes(autograd);
    if (!part.isLast)
        return trace.handOn(beforeGradients, autograd.gradientsToFind());
    if (plan.phase == StepPhase::Training) {
        trace.enter(Phase::Optimizer);
        clipGradients(trace, parameters, plan);
        updateParameters(trace, plan, optimizer);
        if (!plan.zeroesLate)
            dropGradients(trace, autograd, plan);
    }
}

} // namespace

std::int64_t firstStepPeak(const Trace& trace)
{
    std::int64_t live = 0, found = 0, peak = 0; // found: what the step before has left
    std::unordered_set<BlockId> attributes;
    bool isUpdated = false;
    for (const Event& event : trace.events()) {
        isUpdated |= event.phase >= Phase::Optimizer;
        live += event.change();
        if (!isUpdated && event.category == Category::OptimizerState)
            found += event.change();
        const bool isLeft = event.category == Category::Activations
            && (event.isAllocation() ? event.phase == Phase::Setup && attributes.insert(event.block).second
                                     : attributes.erase(event.block) > 0);
        if (isLeft)
            found += event.change();
        peak = std::max(peak, isUpdated ? live : live - found);
    }
    return peak;
}

Result<Trace> countPasses(const Graph& graph, const PreparedNetwork& network, StepSettings settings)
{
    MEMSCAPE_CHECK(checkPlan(settings.plan));
    settings.repeatsMicroBatches = false;
    Trace trace(network.modules, TraceKeeps::Counts);
    Autograd autograd(graph, settings.checkpointing, settings.rules, trace, network.moduleIds,
                      placementOf(network.parameters, settings.plan));
    autograd.setBlasWorkspace(settings.blasWorkspace);
    allocateReduceBuffers(trace, network.parameters, settings.plan);
    runPasses(trace, autograd, settings);
    MEMSCAPE_CHECK(trace.check());
    return trace;
}

Result<Trace> simulateStep(const Graph& graph, const StepSettings& settings)
{
    return simulateStep(graph, *preparedNetwork(graph), settings);
}

Result<Trace> simulateStep(const Graph& graph, const PreparedNetwork& network, const StepSettings& settings)
{
    const Plan& plan = settings.plan;
    MEMSCAPE_CHECK(checkPlan(plan));
    Trace trace(network.modules);
    const std::int64_t stored = plan.pipelineParallel > 1 ? differentMicroBatches(plan)
        : settings.repeatsMicroBatches                    ? std::min(plan.accumulation, 3)
                                                          : plan.accumulation;
    trace.reserve(graph.operators.size() * 6 * std::size_t(std::max<std::int64_t>(stored, 1)));
    runStep(trace, graph, network, settings, [&](Autograd& autograd) { runPasses(trace, autograd, settings); });
    MEMSCAPE_CHECK(trace.check());
    return trace;
}

Result<StepTotals> stepTotals(const Graph& graph, const PreparedNetwork& network, const StepSettings& settings,
                              const AllocatorOptions& options)
{
    MEMSCAPE_CHECK(checkPlan(settings.plan));
    CachingAllocator allocator(options);
    allocator.reserve(graph.operators.size() + 4 * graph.parameters.size());
    Trace trace(network.modules, allocator);
    runStep(trace, graph, network, settings,
            [&](Autograd& autograd) { runPassesInto(allocator, !options.fractionLimit, trace, autograd, settings); });
    MEMSCAPE_CHECK(trace.check());
    return StepTotals{trace.peakBytes(), allocator.statistics(), trace.isRefused(), trace.eventCount()};
}

Result<StepTotals> nextStepTotals(const Graph& graph, const PreparedNetwork& network, const StepSettings& settings,
                                  CachingAllocator& allocator, StepMemory& memory)
{
    MEMSCAPE_CHECK(checkPlan(settings.plan));
    Trace trace(network.modules, allocator, &memory);
    runStep(trace, graph, network, settings,
            [&](Autograd& autograd) { runPassesInto(allocator, false, trace, autograd, settings); });
    MEMSCAPE_CHECK(trace.check());
    trace.endStep();
    return StepTotals{trace.peakBytes(), allocator.statistics(), trace.isRefused(), trace.eventCount()};
}

Result<StepTotals> nextMicroBatchTotals(const Graph& graph, const PreparedNetwork& network,
                                        const StepSettings& settings, CachingAllocator& allocator, StepMemory& memory)
{
    const Plan& plan = settings.plan;
    MEMSCAPE_CHECK(checkPlan(plan));
    assert(plan.phase == StepPhase::Training && plan.pipelineParallel == 1 && plan.wholeMicroBatches() == 0);
    const StepPart part{memory.microBatches == 0, memory.microBatches + 1 == plan.accumulation};
    Trace trace(network.modules, allocator, &memory);
    runStep(
        trace, graph, network, settings, [&](Autograd& autograd) { runPass(trace, autograd, plan, true); }, part);
    MEMSCAPE_CHECK(trace.check());
    trace.endStep();
    memory.microBatches = part.isLast ? 0 : memory.microBatches + 1;
    return StepTotals{trace.peakBytes(), allocator.statistics(), trace.isRefused(), trace.eventCount()};
}

} // namespace memscape

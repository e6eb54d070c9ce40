// SPDX-License-Identifier: Apache-2.0
// One simulated step and what a device makes of it: whether it fits, how long it takes.
#include "core/experiments/training-memory/training_memory.h"

#include "core/base/cancellation.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/training-memory/fresh_pages.h"
#include "core/experiments/training-memory/pipeline_ranks.h"
#include "core/timing/activation_copies.h"
#include "core/timing/reached_step.h"
#include "core/training/communication.h"
#include "core/training/host_activations.h"

#include <algorithm>
#include <limits>

namespace memscape {

namespace {

constexpr int mostPlayedMicroBatches = 16;

AllocatorOptions limited(const AllocatorOptions& allocator, std::int64_t capacity, std::int64_t context)
{
    AllocatorOptions options = allocator;
    options.deviceLimit = std::max<std::int64_t>(0, capacity - context);
    return options;
}

/// Whether the step fits. What it takes without a limit may be more than there is and still fit: the
/// allocator gives cached segments back before it gives up. It never fits below the `held` bytes that the program
/// holds at once. `within` tries a limit: the allocator's statistics, or nothing when it refuses.
template <typename Within>
Result<void> fitInto(TrainingAnswer& answer, const Device& device, std::int64_t held, Within within)
{
    if (!device.isGpu()) // PyTorch's allocator for processors keeps nothing back
        answer.simulation.allocator.peak.reserved = answer.simulation.allocator.peak.allocated;
    if (!answer.capacity || answer.deviceBytes() <= *answer.capacity)
        return {};
    answer.fits = false;
    const AllocatorOptions options = limited(answer.setup.allocator, *answer.capacity, answer.setup.context);
    if (!device.isGpu() || held > *options.deviceLimit)
        return {};
    MEMSCAPE_TRY(statistics, within(options));
    answer.fits = statistics.has_value();
    if (answer.fits)
        answer.simulation.allocator = *statistics;
    return {};
}

/// B of activations that a step copies to the host, and as many back.
double sentToHost(const Graph& graph, const TrainingSetup& setup)
{
    const Plan& plan = setup.step.plan;
    const double passes = plan.phase == StepPhase::Training ? plan.accumulation : 1;
    return passes * double(hostActivationBytes(graph, setup.step.checkpointing));
}

/// What the pages of a step take that PyTorch's malloc gets anew.
Result<void> addFirstTouches(StepTime& time, const Simulation& simulation, const Device& device)
{
    if (!isPytorchOnHost(device) || simulation.trace.events().empty())
        return {};
    MEMSCAPE_TRY(pages, freshPagesOfStep(simulation.trace));
    time.pageFaults = pages.value_or(0) * pytorchOperations(device).firstTouch;
    time.total += time.pageFaults;
    return {};
}

std::vector<std::optional<NcclChoice>> choicesOf(const std::vector<Collective>& collectives, const Device& device,
                                                 const Plan& plan)
{
    std::vector<std::optional<NcclChoice>> choices;
    const auto rates = deviceRates(device);
    if (!device.isGpu() || !rates || rates->peer <= 0)
        return choices;
    for (const Collective& one : collectives)
        choices.push_back(
            ncclChoiceOf(one, rates->between(one.degree), {plan.machineRanks, plan.network}, ncclLink(device)));
    return choices;
}

Result<void> timeIt(TrainingAnswer& answer, const Device& device)
{
    const Plan& plan = answer.setup.step.plan;
    const auto& tensors = answer.simulation.parameters();
    const Graph& graph = *answer.simulation.graph;
    answer.collectives = stepCollectives(graph, tensors, plan, recomputedRanges(graph, answer.setup.step));
    if (const double bytes = sentToHost(*answer.simulation.graph, answer.setup); bytes > 0)
        for (const char* const what : {"activations to the host", "activations from the host"})
            answer.collectives.push_back({what, CollectiveKind::HostCopy, bytes, 1, 1});
    answer.choices = choicesOf(answer.collectives, withLink(device, answer.setup.linkBandwidth), plan);
    auto time = answer.ranks.empty()
        ? setupTime(device, answer.setup, *answer.simulation.graph, tensors, double(answer.simulation.allocatedBytes()))
        : pipelineStepTime(device, answer.setup, *answer.networks, answer.ranks);
    answer.host = hostShare(tensors, answer.setup);
    if (time) {
        answer.time = *time;
        MEMSCAPE_CHECK(addFirstTouches(answer.time, answer.simulation, device));
        answer.timeBand = stepBand(answer.time, device, plan);
        const double waited = std::max(0.0, answer.host.swapping - answer.time.optimizer);
        for (double* const seconds :
             {&answer.time.exposed, &answer.time.total, &answer.timeBand.low, &answer.timeBand.high})
            *seconds += waited;
    } else {
        answer.time.total = std::numeric_limits<double>::quiet_NaN();
        answer.timeMissing = time.error();
    }
    return {};
}

} // namespace

Result<StepTime> setupTime(const Device& device, const TrainingSetup& setup, const Graph& graph,
                           const std::vector<ParameterTensor>& parameters, double held)
{
    const std::vector<RecomputedRange> recomputed = recomputedRanges(graph, setup.step);
    const Plan& plan = setup.step.plan;
    const auto timeOn = [&](const Device& linked) {
        return reachedStepTime(graph, parameters, plan, linked, held, recomputed);
    };
    MEMSCAPE_TRY(time, setup.linkBandwidth > 0 ? timeOn(withLink(device, setup.linkBandwidth)) : timeOn(device));
    MEMSCAPE_CHECK(addActivationCopies(time, device, sentToHost(graph, setup)));
    return time;
}

namespace {

using Within = Result<std::optional<AllocatorStatistics>>;

/// All of an answer but its simulation.
TrainingAnswer begun(const Device& device, const std::shared_ptr<RecordedNetworks>& networks, TrainingSetup setup)
{
    TrainingAnswer answer;
    answer.model = networks->model();
    answer.networks = networks;
    answer.setup = std::move(setup);
    answer.capacity = capacityOf(device);
    return answer;
}

/// As many bytes below the allocator's peak as the first step's peak lies below a later one's.
Result<std::int64_t> firstPeakOf(const TrainingAnswer& answer, RecordedNetworks& networks)
{
    const auto firstOf = [](const Simulation& later) {
        return later.allocatedBytes() - (later.trace.peakBytes() - firstStepPeak(later.trace));
    };
    TrainingSetup setup = answer.setup;
    Plan& plan = setup.step.plan;
    if ((plan.setsGradientsToNone && !plan.zeroesLate) || plan.phase != StepPhase::Training)
        return firstOf(answer.simulation);
    plan.setsGradientsToNone = true; // the first step finds no gradients
    plan.zeroesLate = false;
    MEMSCAPE_TRY(freed, simulate(networks, setup));
    return firstOf(freed);
}

Result<TrainingAnswer> answered(const Device& device, const Parameters& parameters,
                                const std::shared_ptr<RecordedNetworks>& networks, bool repeatsMicroBatches)
{
    MEMSCAPE_CHECK(checkWanted()); // advice asks for many of them
    MEMSCAPE_TRY(setup, trainingSetup(device, parameters));
    // A heap is played request by request.
    setup.step.repeatsMicroBatches =
        repeatsMicroBatches && !(isPytorchOnHost(device) && setup.step.plan.accumulation <= mostPlayedMicroBatches);
    MEMSCAPE_TRY(ranks, pipelineRanks(*networks, setup, RanksAsked::All));
    if (!ranks.empty())
        setup = setupOfRank(std::move(setup), fullestRank(ranks));
    MEMSCAPE_TRY(simulation, simulate(*networks, setup));
    TrainingAnswer answer = begun(device, networks, std::move(setup));
    answer.ranks = std::move(ranks);
    answer.implied = libraryNote(parameters);
    answer.simulation = std::move(simulation);
    const Trace& trace = answer.simulation.trace;
    MEMSCAPE_TRY(first, firstPeakOf(answer, *networks));
    answer.firstPeak = first;
    MEMSCAPE_TRY(lengths, drawsOfLengths(*networks, answer.setup));
    answer.lengths = std::move(lengths);
    MEMSCAPE_CHECK(fitInto(answer, device, trace.peakBytes(), [&](const AllocatorOptions& options) -> Within {
        const AllocatorReplay replay = replayTrace(trace, options);
        return replay.outOfMemory ? std::nullopt : std::optional(replay.statistics);
    }));
    MEMSCAPE_CHECK(timeIt(answer, device));
    return answer;
}

} // namespace

Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters,
                                      const std::shared_ptr<RecordedNetworks>& networks)
{
    return answered(device, parameters, networks, true);
}

Result<TrainingAnswer> totalsOfTraining(const Device& device, const Parameters& parameters,
                                        const std::shared_ptr<RecordedNetworks>& networks)
{
    if (isPytorchOnHost(device)) // whose time depends on the trace
        return answered(device, parameters, networks, true);
    MEMSCAPE_CHECK(checkWanted());
    MEMSCAPE_TRY(setup, trainingSetup(device, parameters));
    MEMSCAPE_TRY(ranks, pipelineRanks(*networks, setup, RanksAsked::Fullest));
    if (!ranks.empty())
        setup = setupOfRank(std::move(setup), fullestRank(ranks));
    MEMSCAPE_TRY(graph, networks->network(setup.build));
    const auto network = preparedNetwork(*networks, *graph);
    const StepSettings step = setup.step;
    MEMSCAPE_TRY(totals, stepTotals(*graph, *network, step, setup.allocator));
    networks->countEvents(totals.events);
    if (totals.isRefused) // a tensor beyond any device
        return answered(device, parameters, networks, true);
    TrainingAnswer answer = begun(device, networks, std::move(setup));
    answer.ranks = std::move(ranks);
    answer.simulation.graph = graph;
    answer.simulation.network = network;
    answer.simulation.allocator = totals.allocator;
    answer.simulation.kept = keptBytes(network->parameters, step.plan);
    MEMSCAPE_CHECK(fitInto(answer, device, totals.peak, [&](const AllocatorOptions& options) -> Within {
        MEMSCAPE_TRY(within, stepTotals(*graph, *network, step, options));
        networks->countEvents(within.events);
        return within.isRefused ? std::nullopt : std::optional(within.allocator);
    }));
    MEMSCAPE_CHECK(timeIt(answer, device));
    return answer;
}

std::optional<OutOfMemory> outOfMemoryOf(const TrainingAnswer& answer)
{
    if (!answer.capacity || answer.fits)
        return std::nullopt;
    return replayTrace(answer.simulation.trace, limited(answer.setup.allocator, *answer.capacity, answer.setup.context))
        .outOfMemory;
}

bool trainingFits(const Device& device, const Parameters& parameters, RecordedNetworks& networks)
{
    auto setup = trainingSetup(device, parameters);
    if (setup && setup->step.plan.pipelineParallel > 1) {
        const auto ranks = pipelineRanks(networks, *setup, RanksAsked::Fullest);
        if (!ranks)
            return false;
        setup = setupOfRank(std::move(*setup), fullestRank(*ranks));
    }
    const auto graph = setup ? networks.network(setup->build) : fail(setup.error());
    if (!graph)
        return false;
    const auto capacity = capacityOf(device);
    const AllocatorOptions options =
        capacity && device.isGpu() ? limited(setup->allocator, *capacity, setup->context) : setup->allocator;
    const auto totals = stepTotals(**graph, *preparedNetwork(networks, **graph), setup->step, options);
    networks.countEvents(totals ? totals->events : 0);
    if (!totals || !capacity)
        return totals.has_value();
    return device.isGpu() ? !totals->isRefused : totals->allocator.peak.allocated <= *capacity;
}

Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, askedModel(parameters));
    return answered(device, parameters, std::make_shared<RecordedNetworks>(std::move(model)), false);
}

} // namespace memscape

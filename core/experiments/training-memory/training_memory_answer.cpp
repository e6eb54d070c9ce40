// SPDX-License-Identifier: Apache-2.0
// One simulated step and what a device makes of it: whether it fits, how long it takes.
#include "core/experiments/training-memory/training_memory.h"

#include "core/base/cancellation.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/training/communication.h"

#include <algorithm>
#include <limits>

namespace memscape {

namespace {

AllocatorOptions limited(const AllocatorOptions& allocator, std::int64_t capacity, std::int64_t context)
{
    AllocatorOptions options = allocator;
    options.deviceLimit = std::max<std::int64_t>(0, capacity - context);
    return options;
}

/// Whether the step fits. What it takes without a limit may be more than there is and still fit: the
/// allocator gives cached segments back before it gives up. It never fits below what the program holds.
void fitInto(TrainingAnswer& answer, const Device& device)
{
    if (!device.isGpu()) // PyTorch's allocator for processors keeps nothing back
        answer.simulation.allocator.peak.reserved = answer.simulation.allocator.peak.allocated;
    if (!answer.capacity || answer.deviceBytes() <= *answer.capacity)
        return;
    answer.fits = false;
    const AllocatorOptions options = limited(answer.setup.allocator, *answer.capacity, answer.setup.context);
    if (!device.isGpu() || answer.simulation.trace.peakBytes() > *options.deviceLimit)
        return;
    const AllocatorReplay replay = replayTrace(answer.simulation.trace, options);
    answer.fits = !replay.outOfMemory;
    if (answer.fits)
        answer.simulation.allocator = replay.statistics;
}

void timeIt(TrainingAnswer& answer, const Device& device)
{
    const Plan& plan = answer.setup.step.plan;
    const auto& tensors = answer.simulation.parameters();
    answer.collectives = stepCollectives(*answer.simulation.graph, tensors, plan);
    auto time = setupTime(device, answer.setup, *answer.simulation.graph, tensors);
    if (time) {
        answer.time = *time;
    } else {
        answer.time.total = std::numeric_limits<double>::quiet_NaN();
        answer.timeMissing = time.error();
    }
}

} // namespace

Result<StepTime> setupTime(const Device& device, const TrainingSetup& setup, const Graph& graph,
                           const std::vector<ParameterTensor>& parameters)
{
    std::vector<RecomputedRange> recomputed;
    for (const Segment& segment : segments(graph, setup.step.checkpointing))
        recomputed.push_back({segment.first, segment.last});
    return stepTime(graph, parameters, setup.step.plan, device, {1, recomputed});
}

namespace {

Result<TrainingAnswer> answered(const Device& device, const Parameters& parameters,
                                const std::shared_ptr<RecordedNetworks>& networks, bool repeatsMicroBatches)
{
    MEMSCAPE_CHECK(checkWanted()); // advice asks for many of them
    MEMSCAPE_TRY(setup, trainingSetup(device, parameters));
    setup.step.repeatsMicroBatches = repeatsMicroBatches;
    MEMSCAPE_TRY(simulation, simulate(*networks, setup));
    TrainingAnswer answer;
    answer.model = networks->model();
    answer.networks = networks;
    answer.setup = std::move(setup);
    answer.simulation = std::move(simulation);
    answer.capacity = capacityOf(device);
    fitInto(answer, device);
    timeIt(answer, device);
    return answer;
}

} // namespace

Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters,
                                      const std::shared_ptr<RecordedNetworks>& networks)
{
    return answered(device, parameters, networks, true);
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
    if (setup)
        setup->step.repeatsMicroBatches = true;
    const auto graph = setup ? networks.network(setup->build) : fail(setup.error());
    const auto trace =
        graph ? simulateStep(**graph, *preparedNetwork(networks, **graph), setup->step) : fail(graph.error());
    const auto capacity = capacityOf(device);
    if (!trace || !capacity)
        return trace.has_value();
    const AllocatorOptions options = limited(setup->allocator, *capacity, setup->context);
    if (!device.isGpu())
        return replayTrace(*trace, setup->allocator).statistics.peak.allocated <= *capacity;
    return trace->peakBytes() <= *options.deviceLimit && !replayTrace(*trace, options).outOfMemory;
}

Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, readModel(parameters.text("model")));
    return answered(device, parameters, std::make_shared<RecordedNetworks>(std::move(model)), false);
}

} // namespace memscape

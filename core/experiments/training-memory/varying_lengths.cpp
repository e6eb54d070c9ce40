// SPDX-License-Identifier: Apache-2.0
// Batches that are padded to their longest text: micro-batches of different lengths, one after the other in the same
// caching allocator. A block that was made for one length serves another only where it fits, so what is reserved grows
// with the history, beyond what the longest batch alone would take, and which lengths come when decides how far.
//
// Each of a batch's texts has between `shortestSequence` and `sequence` tokens, each number as likely as another. Such
// a history is drawn several times, each with its own seed, always the same.
// Left out: the lengths of a data set, which are not even; the first step's missing optimizer state; what an allocator
// gives back when the device is full; lengths within a step of a pipeline, or of FSDP without reductions between
// micro-batches (no_sync): there a step has one.
#include "core/access/random.h"
#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "core/experiments/training-memory/training_memory.h"
#include "core/network/network_file.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr int batchesRun = 32;         ///< of a draw, at least: its last step has an update
constexpr std::size_t drawsRun = 9;    ///< odd, so that one of them is the median
constexpr std::uint64_t firstSeed = 1; ///< seed, of the first draw

bool hasLengths(const ModelDescription& model)
{
    switch (model.family) {
    case Family::Decoder:
    case Family::EncoderDecoder:
    case Family::StateSpace:
    case Family::Encoder: return true;
    case Family::Traced: return model.program->sequence > 0 && model.program->scalesSequence;
    default: return false; // rows and pictures
    }
}

std::int64_t longestText(SplitMix64& random, const TrainingSetup& setup)
{
    const std::int64_t choices = setup.build.sequence - setup.shortestSequence + 1;
    std::int64_t longest = 0;
    for (std::int64_t text = 0; text < setup.build.batch; ++text) {
        longest = std::max(longest, setup.shortestSequence + std::int64_t(random.below(std::uint64_t(choices))));
        if (longest == setup.build.sequence)
            break;
    }
    return longest;
}

Result<LengthsDraw> drawOf(std::uint64_t seed, RecordedNetworks& networks, const TrainingSetup& setup)
{
    StepSettings settings = setup.step;
    Plan& plan = settings.plan;
    const bool isOneByOne = plan.pipelineParallel == 1 && plan.wholeMicroBatches() == 0;
    if (isOneByOne)
        plan.accumulation = std::min(plan.accumulation, batchesRun);
    const int inStep = isOneByOne ? plan.accumulation : 1;
    AllocatorOptions unlimited = setup.allocator;
    unlimited.deviceLimit.reset();
    CachingAllocator allocator(unlimited);
    StepMemory memory;
    SplitMix64 random(seed);
    LengthsDraw draw;
    while (int(draw.size()) < batchesRun || int(draw.size()) % inStep > 0) {
        MEMSCAPE_CHECK(checkWanted());
        BuildOptions build = setup.build;
        build.sequence = longestText(random, setup);
        MEMSCAPE_TRY(graph, networks.network(build));
        const auto network = preparedNetwork(networks, *graph);
        MEMSCAPE_TRY(totals,
                     isOneByOne ? nextMicroBatchTotals(*graph, *network, settings, allocator, memory)
                                : nextStepTotals(*graph, *network, settings, allocator, memory));
        networks.countEvents(totals.events);
        draw.push_back({build.sequence, totals.peak, totals.allocator.peak.reserved});
    }
    return draw;
}

} // namespace

Result<std::vector<LengthsDraw>> drawsOfLengths(RecordedNetworks& networks, const TrainingSetup& setup)
{
    if (setup.shortestSequence == 0 || setup.step.plan.phase != StepPhase::Training || !setup.allocator.caches
        || !hasLengths(networks.model()))
        return std::vector<LengthsDraw>();
    const std::size_t count = setup.shortestSequence == setup.build.sequence ? 1 : drawsRun; // else all would be alike
    std::vector<Result<LengthsDraw>> results(count, LengthsDraw());
    inParallel(count, coreCount(), [&](std::size_t i) {
        RecordedNetworks own(networks.model()); // few lengths are those of another draw, and none waits for another
        results[i] = drawOf(firstSeed + i, own, setup);
        networks.countEvents(own.effort().events);
    });
    std::vector<LengthsDraw> draws;
    for (Result<LengthsDraw>& result : results) {
        MEMSCAPE_TRY(draw, std::move(result));
        draws.push_back(std::move(draw));
    }
    return draws;
}

} // namespace memscape

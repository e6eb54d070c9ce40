// SPDX-License-Identifier: Apache-2.0
// Batches that are padded to their longest text: steps of different lengths, one after the other in the same caching
// allocator. A block that was made for one length serves another only where it fits, so what is reserved grows with the
// history, beyond what the longest batch alone would take.
//
// Each of the batch's texts has between `shortestSequence` and `sequence` tokens, each number as likely as another,
// drawn with a seed that is always the same. Left out: the lengths of a data set, which are not even; the first step's
// missing optimizer state; what an allocator gives back when the device is full.
#include "core/access/random.h"
#include "core/base/cancellation.h"
#include "core/experiments/training-memory/training_memory.h"
#include "core/network/network_file.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr int stepsRun = 32;
constexpr std::uint64_t seed = 1;

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

} // namespace

Result<std::vector<StepOfLength>> stepsOfLengths(RecordedNetworks& networks, const TrainingSetup& setup)
{
    std::vector<StepOfLength> steps;
    if (setup.shortestSequence == 0 || setup.step.plan.phase != StepPhase::Training || !setup.allocator.caches
        || !hasLengths(networks.model()))
        return steps;
    AllocatorOptions unlimited = setup.allocator;
    unlimited.deviceLimit.reset();
    CachingAllocator allocator(unlimited);
    StepMemory memory;
    SplitMix64 random(seed);
    for (int i = 0; i < stepsRun; ++i) {
        MEMSCAPE_CHECK(checkWanted());
        BuildOptions build = setup.build;
        build.sequence = longestText(random, setup);
        MEMSCAPE_TRY(graph, networks.network(build));
        const auto network = preparedNetwork(networks, *graph);
        MEMSCAPE_TRY(totals, nextStepTotals(*graph, *network, setup.step, allocator, memory));
        networks.countEvents(totals.events);
        steps.push_back({build.sequence, totals.peak, totals.allocator.peak.reserved});
    }
    return steps;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/training/simulation.h"

#include <algorithm>

namespace memscape {

Result<Simulation> simulate(const ModelDescription& model, const TrainingSetup& setup)
{
    RecordedNetworks networks(model);
    return simulate(networks, setup);
}

Result<Simulation> simulate(RecordedNetworks& networks, const TrainingSetup& setup)
{
    MEMSCAPE_CHECK(checkPlan(setup.step.plan));
    MEMSCAPE_TRY(graph, networks.network(setup.build));
    auto network = preparedNetwork(networks, *graph);
    MEMSCAPE_TRY(trace, simulateStep(*graph, *network, setup.step));
    networks.countEvents(trace.events().size());
    Simulation made{std::move(graph), std::move(network), std::move(trace), {}, {}, {}};
    made.peak = peakOf(made.trace).value_or(Moment{});
    AllocatorOptions unlimited = setup.allocator;
    unlimited.deviceLimit.reset();
    made.allocator = replayTrace(made.trace, unlimited).statistics;
    made.kept = keptBytes(made.parameters(), setup.step.plan);
    return made;
}

std::int64_t highestBytes(const Trace& trace, Category category)
{
    std::int64_t held = 0, highest = 0;
    for (const Event& event : trace.events()) {
        if (event.category != category)
            continue;
        held += event.change();
        highest = std::max(highest, held);
    }
    return highest;
}

} // namespace memscape

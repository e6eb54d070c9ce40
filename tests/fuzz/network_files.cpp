// SPDX-License-Identifier: Apache-2.0
// Network files of memscape_probe.export: read, run and stepped.
#include "core/network/network_program.h"
#include "core/training/step.h"
#include "tests/fuzz/target.h"

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto json = parseJson(fuzz::text(data, size));
    if (!json)
        return 0;
    const auto file = networkFileFromJson(JsonReader(*json));
    fuzz::errorIsClear(file);
    if (!file)
        return 0;
    for (const bool isTraining : {true, false}) {
        BuildOptions options;
        options.batch = file->scalesBatch ? 3 : file->batch;
        options.sequence = file->scalesSequence ? 5 : std::max<std::int64_t>(file->sequence, 1);
        options.loss = options.gradient = isTraining;
        if (isTraining)
            options.autocast = DType::BFloat16;
        const auto graph = runNetworkFile(*file, options);
        fuzz::errorIsClear(graph);
        if (!graph)
            continue;
        StepSettings settings;
        settings.plan.phase = isTraining ? StepPhase::Training : StepPhase::Inference;
        const auto trace = simulateStep(*graph, settings);
        fuzz::errorIsClear(trace);
    }
    return 0;
}

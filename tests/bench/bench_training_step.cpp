// SPDX-License-Identifier: Apache-2.0
// A whole training step of a large model on one core, by parts: recording the network, running the step,
// finding its peak, replaying the allocator. The goal is 5 ms for GPT-3 175B from the description to the
// peak (batch 1, sequence 2048, no checkpointing).
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/trace/allocator_replay.h"
#include "core/trace/peak.h"
#include "core/training/step.h"

#include <benchmark/benchmark.h>

using namespace memscape;

namespace {

constexpr const char* models[] = {"gpt3-175b", "llama-3-8b", "deepseek-v3"};

BuildOptions options()
{
    BuildOptions made;
    made.sequence = 2048;
    return made;
}

void record(benchmark::State& state)
{
    const auto model = readModel(models[state.range(0)]);
    for (auto _ : state)
        benchmark::DoNotOptimize(buildNetwork(*model, options()));
    state.SetLabel(models[state.range(0)]);
}

void step(benchmark::State& state)
{
    const auto graph = buildNetwork(*readModel(models[state.range(0)]), options());
    std::size_t events = 0;
    for (auto _ : state) {
        const auto trace = simulateStep(*graph, {});
        events = trace->events().size();
    }
    state.SetItemsProcessed(std::int64_t(state.iterations() * events));
    state.counters["operators"] = double(graph->operators.size());
    state.counters["events"] = double(events);
}

void peak(benchmark::State& state)
{
    const auto graph = buildNetwork(*readModel(models[state.range(0)]), options());
    const auto trace = simulateStep(*graph, {});
    for (auto _ : state)
        benchmark::DoNotOptimize(peakOf(*trace));
}

void allocator(benchmark::State& state)
{
    const auto graph = buildNetwork(*readModel(models[state.range(0)]), options());
    const auto trace = simulateStep(*graph, {});
    for (auto _ : state)
        benchmark::DoNotOptimize(replayTrace(*trace, {}));
}

void wholeStepWithItsPeak(benchmark::State& state)
{
    const auto model = readModel(models[state.range(0)]);
    for (auto _ : state) {
        const auto graph = buildNetwork(*model, options());
        const auto trace = simulateStep(*graph, {});
        benchmark::DoNotOptimize(peakOf(*trace));
    }
}

/// The window's request while a slider moves (advice none), when it rests (levers), and behind Make it
/// fit (fit): the whole answer, as a record holds it.
void answer(benchmark::State& state, const char* model, const char* device, const char* advice)
{
    const Experiment& asked = **findExperiment("training-memory");
    const Device on = *findDevice(device);
    const auto parameters = *resolve(
        asked.schema(), {std::string("model=") + model, "batch=8", "sequence=1024", std::string("advice=") + advice});
    for (auto _ : state) {
        if (!asked.predict(on, parameters))
            state.SkipWithError("refused");
    }
}

#define ANSWERS(name, model, device)                                                                                   \
    BENCHMARK_CAPTURE(answer, name##_none, model, device, "none")->Unit(benchmark::kMillisecond);                      \
    BENCHMARK_CAPTURE(answer, name##_levers, model, device, "levers")->Unit(benchmark::kMillisecond);                  \
    BENCHMARK_CAPTURE(answer, name##_fit, model, device, "fit")->Unit(benchmark::kMillisecond)
ANSWERS(gpt2_xl_on_l4, "gpt2-xl", "nvidia-l4");
ANSWERS(gpt2_xl_on_h200, "gpt2-xl", "nvidia-h200");
ANSWERS(llama_2_7b_on_a100, "llama-2-7b", "nvidia-a100-80gb");
ANSWERS(llama_2_7b_on_h200, "llama-2-7b", "nvidia-h200");
ANSWERS(llama_3_8b_on_l4, "llama-3-8b", "nvidia-l4");
ANSWERS(llama_3_8b_on_a100, "llama-3-8b", "nvidia-a100-80gb");
ANSWERS(mixtral_on_h200, "mixtral-8x7b", "nvidia-h200");
ANSWERS(mixtral_on_a100, "mixtral-8x7b", "nvidia-a100-80gb");
BENCHMARK_CAPTURE(answer, deepseek_v3_none, "deepseek-v3", "nvidia-h200", "none")->Unit(benchmark::kMillisecond);

BENCHMARK(record)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(step)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(peak)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(allocator)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(wholeStepWithItsPeak)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();

// SPDX-License-Identifier: Apache-2.0
// Events per second of the caching allocator's replay, of a peak, and of a timeline, on one core;
// the goal is five million. A transformer's step (large blocks, a stack of layers, nearly all of it
// reused) and random sizes and lifetimes with thousands of free pieces.
#include "core/access/random.h"
#include "core/trace/allocator_replay.h"
#include "core/trace/timeline.h"

#include <benchmark/benchmark.h>

using namespace memscape;

namespace {

/// Layers of twenty activations, freed in reverse with as many temporaries between; several
/// micro-batches.
Trace layeredStep(int layers, int microBatches)
{
    Trace trace;
    for (int layer = 0; layer < layers; ++layer)
        trace.allocate(24 << 20, Category::Weights);
    for (int batch = 0; batch < microBatches; ++batch) {
        trace.enter(Phase::Forward, std::uint16_t(batch));
        std::vector<BlockId> saved;
        for (int i = 0; i < layers * 20; ++i) {
            trace.free(trace.allocate((1 + i % 7) << 18, Category::Temporary));
            saved.push_back(trace.allocate((1 + i % 20) << 19, Category::Activations));
        }
        trace.enter(Phase::Backward, std::uint16_t(batch));
        for (auto block = saved.rbegin(); block != saved.rend(); ++block) {
            const BlockId gradient = trace.allocate(trace.allocation(*block).bytes, Category::Temporary);
            trace.free(*block);
            trace.free(gradient);
        }
    }
    return trace;
}

Trace randomTrace(std::size_t live)
{
    SplitMix64 random(3);
    Trace trace;
    trace.enter(Phase::Forward);
    std::vector<BlockId> blocks;
    while (trace.events().size() < 1 << 20) {
        if (blocks.size() < live || random.below(2) == 0) {
            blocks.push_back(
                trace.allocate(std::int64_t(1 + random.below(1ull << (9 + random.below(16)))), Category::Activations));
        } else {
            std::swap(blocks[random.below(blocks.size())], blocks.back());
            trace.free(blocks.back());
            blocks.pop_back();
        }
    }
    return trace;
}

void replay(benchmark::State& state, const Trace& trace, const char* options)
{
    const AllocatorOptions parsed = parseAllocatorOptions(options).value();
    for (auto _ : state)
        benchmark::DoNotOptimize(replayTrace(trace, parsed).statistics);
    state.SetItemsProcessed(std::int64_t(state.iterations() * trace.events().size()));
}

void replayStep(benchmark::State& state, const char* options)
{
    replay(state, layeredStep(96, 8), options);
}
void replayRandom(benchmark::State& state, const char* options)
{
    replay(state, randomTrace(10'000), options);
}

void peak(benchmark::State& state)
{
    const Trace trace = layeredStep(96, 8);
    for (auto _ : state)
        benchmark::DoNotOptimize(peakOf(trace));
    state.SetItemsProcessed(std::int64_t(state.iterations() * trace.events().size()));
}

void timeline(benchmark::State& state)
{
    const Trace trace = layeredStep(96, 8);
    for (auto _ : state)
        benchmark::DoNotOptimize(timelineOf(trace, 2000));
    state.SetItemsProcessed(std::int64_t(state.iterations() * trace.events().size()));
}

void writeTrace(benchmark::State& state)
{
    std::size_t events = 0;
    for (auto _ : state)
        events += layeredStep(96, 8).events().size();
    state.SetItemsProcessed(std::int64_t(events));
}

} // namespace

BENCHMARK_CAPTURE(replayStep, plain, "");
BENCHMARK_CAPTURE(replayStep, expandable, "expandable_segments:True");
BENCHMARK_CAPTURE(replayRandom, plain, "");
BENCHMARK_CAPTURE(replayRandom, expandable, "expandable_segments:True");
BENCHMARK(peak);
BENCHMARK(timeline);
BENCHMARK(writeTrace);
BENCHMARK_MAIN();

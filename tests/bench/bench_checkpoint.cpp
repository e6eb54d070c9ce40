// SPDX-License-Identifier: Apache-2.0
// The optimal persistent schedule of long chains, the whole front: the reference's timing instances
// (whose notes have what other solvers took), their growth with stages and slots, the widths of
// vectors, times that are not whole numbers, and the recursion as it is read for comparison. Goals
// on one thread: 100 stages × 500 slots in 10 ms, 339 × 500 in 0.3 s and 150 MB, 339 × 2000 in 3 s,
// a schedule of a solved front in 1 ms. On a machine with other work take the CPU time, and the
// least of several repetitions.
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/checkpoint/persistent.h"
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "tests/support/plain_recursion.h"

#include <benchmark/benchmark.h>

#include <fmt/format.h>

using namespace memscape;

namespace {

/// The reference's instance of this length, its 500 slots made `finer` each. Empty when there is
/// none.
Chain timingChain(int length, int finer = 1)
{
    static const Json document = parseJson(readFile(TEST_DATA "/checkpoint_refs.json").value()).value();
    Chain chain;
    chain.units = {false, false};
    for (const Json& entry : document["C_timing_instances"]) {
        if (entry["L"] != length)
            continue;
        const auto size = [&](const char* array, int i) { return entry[array][i].get<std::int64_t>() * finer; };
        for (int i = 0; i <= length; ++i)
            chain.values.push_back(size("cw", i));
        for (int i = 0; i < length; ++i) {
            const SaveOption all{"all",           entry["fw"][i], entry["bw"][i], size("cbw", i + 1) + i % finer,
                                 size("ftmp", i), size("btmp", i)};
            chain.stages.push_back({{}, all.forward, all.forwardOverhead, {all}});
        }
    }
    return chain;
}

void report(benchmark::State& state, const PersistentSolution& solution)
{
    state.counters["solver_MB"] = double(solution.solverBytes()) / 1e6;
    state.counters["table_MB"] = double(solution.tableBytes()) / 1e6;
    state.counters["points"] = double(solution.front().size());
}

/// Arguments: stages, slots.
void front(benchmark::State& state)
{
    const int slotCount = int(state.range(1));
    const Chain chain = timingChain(int(state.range(0)), slotCount / 500);
    for (auto _ : state)
        benchmark::DoNotOptimize(solvePersistent(chain, {.memoryLimit = slotCount}));
    report(state, *solvePersistent(chain, {.memoryLimit = slotCount}));
}

/// Arguments: stages, bytes of a vector.
void frontInVectors(benchmark::State& state)
{
    const Chain chain = timingChain(int(state.range(0)));
    for (auto _ : state)
        benchmark::DoNotOptimize(solvePersistent(chain, {.memoryLimit = 500, .vectorBytes = int(state.range(1))}));
}

/// Times in seconds, as profiles have them: doubles instead of whole numbers.
void frontInSeconds(benchmark::State& state)
{
    Chain chain = timingChain(int(state.range(0)));
    for (Stage& stage : chain.stages) {
        stage.forward *= 1e-6;
        stage.options.front().forward *= 1e-6;
        stage.options.front().backward *= 1e-6;
    }
    for (auto _ : state)
        benchmark::DoNotOptimize(solvePersistent(chain, {.memoryLimit = 500}));
    report(state, *solvePersistent(chain, {.memoryLimit = 500}));
}

/// The recursion as it is read.
void plainFront(benchmark::State& state)
{
    const Chain chain = timingChain(int(state.range(0)));
    for (auto _ : state)
        benchmark::DoNotOptimize(test::PlainRecursion(chain, 500).makespan(500));
}

/// A budget is dragged: schedules from a solved front.
void scheduleOfBudget(benchmark::State& state)
{
    const PersistentSolution solution = solvePersistent(timingChain(int(state.range(0))), {.memoryLimit = 500}).value();
    const std::int64_t least = solution.minimumBudget();
    std::int64_t budget = least;
    for (auto _ : state) {
        benchmark::DoNotOptimize(solution.schedule(budget));
        budget = budget == 500 ? least : budget + 1;
    }
}

/// The same as the page asks it: every strategy, the figures and the document of an answer.
void draggedBudget(benchmark::State& state)
{
    const Experiment& asked = **findExperiment("checkpoint");
    const Device device = *findDevice("nvidia-h200");
    const std::string chain = fmt::format("chain=mlp:{}x1024", state.range(0));
    PredictionContext context;
    std::int64_t step = 0;
    for (auto _ : state) {
        const std::string budget = fmt::format("budget={}", (60 + step++ % 30) << 20);
        const auto parameters = resolve(asked.schema(), std::vector<std::string>{chain, budget});
        benchmark::DoNotOptimize(asked.predict(device, *parameters, context));
    }
}

} // namespace

BENCHMARK(front)
    ->Unit(benchmark::kMillisecond)
    ->ArgNames({"stages", "slots"})
    ->Args({50, 500})
    ->Args({100, 500})
    ->Args({200, 500})
    ->Args({339, 500})
    ->Args({100, 1000})
    ->Args({100, 2000})
    ->Args({100, 4000})
    ->Args({339, 1000})
    ->Args({339, 2000});
BENCHMARK(frontInVectors)
    ->Unit(benchmark::kMillisecond)
    ->ArgNames({"stages", "bytes"})
    ->Args({100, 16})
    ->Args({100, 32})
    ->Args({100, 64})
    ->Args({339, 16})
    ->Args({339, 32})
    ->Args({339, 64});
BENCHMARK(frontInSeconds)->Unit(benchmark::kMillisecond)->ArgName("stages")->Arg(50)->Arg(100)->Arg(200)->Arg(339);
BENCHMARK(plainFront)->Unit(benchmark::kMillisecond)->ArgName("stages")->Arg(50)->Arg(100);
BENCHMARK(scheduleOfBudget)->Unit(benchmark::kMicrosecond)->ArgName("stages")->Arg(100)->Arg(339);
BENCHMARK(draggedBudget)->Unit(benchmark::kMillisecond)->ArgName("stages")->Arg(48)->Arg(200);
BENCHMARK_MAIN();

// SPDX-License-Identifier: Apache-2.0
// Attention on this machine, standard against flash, forward and backward, in FLOP/s by the papers'
// count; and how long the page waits for its prediction (it has 16 ms).
#include "core/device/catalogue.h"
#include "core/experiments/attention/attention.h"
#include "kernels/host/attention/attention_device.h"
#include "kernels/host/checkpoint/checkpoint.h"
#include "tests/support/listener.h"

#include <benchmark/benchmark.h>

using namespace memscape;
using namespace memscape::host;

namespace {

void runAttention(benchmark::State& state)
{
    const auto kind = AttentionKind(state.range(0));
    const auto pass = AttentionPass(state.range(1));
    const AttentionShape shape{1, 4, 4, state.range(2), state.range(2), state.range(3), false};
    const AttentionProblem problem{shape, DType::Float32, kind, AttentionPass::Both};
    const Device device;
    test::Listener listener;
    HostSession session(device, listener);
    const auto attention =
        makeAttentionDevice(session, {problem, *attentionVersion(0, problem, false)}, fastestProduct(session).kernel);
    if (!attention || !(*attention)->fill(AttentionInputs::Normal) || !(*attention)->forward()
        || !(*attention)->backward()) {
        state.SkipWithError("it does not run here");
        return;
    }
    for (auto _ : state) // NOLINT: the library's loop
        state.SetIterationTime((*attention)->sample(pass).value_or(0));
    state.counters["FLOP/s"] =
        benchmark::Counter(attentionFlops(shape, pass) * double(state.iterations()), benchmark::Counter::kIsRate);
    state.SetLabel(std::string(attentionKindText(kind)) + " " + std::string(attentionPassText(pass)));
}
BENCHMARK(runAttention)
    ->ArgNames({"kind", "pass", "sequence", "d"})
    ->ArgsProduct({{0, 1}, {0, 1}, {256, 1024, 2048}, {64, 128}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void predictAttention(benchmark::State& state)
{
    const Experiment& experiment = **findExperiment("attention");
    const Device device = *findDevice("nvidia-h200");
    const auto parameters = resolve(experiment.schema(), std::vector<std::string>{"sequence=16384"});
    for (auto _ : state) // NOLINT: the library's loop
        benchmark::DoNotOptimize(experiment.predict(device, *parameters));
}
BENCHMARK(predictAttention)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();

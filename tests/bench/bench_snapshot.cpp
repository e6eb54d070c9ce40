// SPDX-License-Identifier: Apache-2.0
// Snapshots: reading, rebuilding, and one picture of 2,000 columns. MEMSCAPE_SNAPSHOT names the file, made by
// tests/data/pytorch/large_snapshot.py (a gigabyte with --bytes 1e9); without it a family of tests/data/snapshots.
#include "core/snapshot/snapshot_device.h"
#include "core/snapshot/snapshot_reader.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

using namespace memscape;

namespace {

std::string file()
{
    const char* named = std::getenv("MEMSCAPE_SNAPSHOT");
    return named ? named : TEST_DATA "/snapshots/gpt2_tiny_end.p4.pickle";
}

const SnapshotDevice& device()
{
    static const auto made = [] {
        auto snapshot = std::make_shared<const Snapshot>(readSnapshot(file()).value());
        return SnapshotDevice::analyse(snapshot, snapshot->devices().front()).value();
    }();
    return *made;
}

void readFile(benchmark::State& state)
{
    std::uint64_t bytes = 0;
    for (auto _ : state) {
        const auto snapshot = readSnapshot(file());
        bytes += snapshot->fileBytes;
        benchmark::DoNotOptimize(snapshot->events.size());
    }
    state.SetBytesProcessed(std::int64_t(bytes));
}

void rebuild(benchmark::State& state)
{
    for (auto _ : state)
        benchmark::DoNotOptimize(Lifetimes::rebuild(device().snapshot(), device().device())->all().size());
    state.counters["events"] = double(device().lifetimes().events());
}

/// One frame of a zoom: `range(0)` is the share of the trace that is seen, in thousandths.
void picture(benchmark::State& state)
{
    const SnapshotTimeline& timeline = device().timeline();
    const std::size_t events = device().lifetimes().events();
    const std::size_t seen = std::max<std::size_t>(1, events * std::size_t(state.range(0)) / 1000);
    const std::size_t first = (events - seen) / 2;
    for (auto _ : state) {
        const auto columns = timeline.columns(timeline.byEvents(first, first + seen, 2000));
        benchmark::DoNotOptimize(timeline.bands(columns, 100));
        benchmark::DoNotOptimize(timeline.categories(columns));
    }
}

void layout(benchmark::State& state)
{
    const std::size_t events = device().lifetimes().events();
    std::size_t moment = 0;
    for (auto _ : state) {
        moment = (moment + 7919 * 131) % (events + 1);
        benchmark::DoNotOptimize(device().lifetimes().layoutAt(moment).blocks.size());
    }
}

} // namespace

BENCHMARK(readFile)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(rebuild)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(picture)->Unit(benchmark::kMillisecond)->Arg(1000)->Arg(100)->Arg(10)->Arg(1);
BENCHMARK(layout)->Unit(benchmark::kMicrosecond);

BENCHMARK_MAIN();

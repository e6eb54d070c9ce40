// SPDX-License-Identifier: Apache-2.0
// How many accesses per second the cache simulator replays on one core; the goal is 50 million. The
// traces run from the kind (all hits) to the worst: every access misses all three levels, so three
// sets are searched and three lines replaced. On a 2-core Zen 4 virtual machine that others were
// using, the least CPU time of several runs: traces that stay in L2 at 77 million and more, strides that
// always miss at 53 to 73 million, random reads that miss everything at 52 to 56 million.
#include "core/access/cache_simulator.h"
#include "core/access/random.h"
#include "core/access/warp.h"

#include <benchmark/benchmark.h>

using namespace memscape;

namespace {

CacheSimulator threeLevels()
{
    return CacheSimulator::create({{"L1", 32 << 10, 8, 64}, {"L2", 1 << 20, 8, 64}, {"L3", 32 << 20, 16, 64}}).value();
}

/// A trace of 2^20 accesses, made before the clock starts.
template <typename AddressOf> void replay(benchmark::State& state, AddressOf addressOf, bool isWrite = false)
{
    std::vector<MemoryAccess> trace;
    for (std::uint64_t i = 0; i < 1 << 20; ++i)
        trace.push_back({addressOf(i), 4, isWrite});
    CacheSimulator simulator = threeLevels();
    for (auto _ : state) {
        if (!simulator.run(trace))
            state.SkipWithError("the trace was refused");
        benchmark::DoNotOptimize(simulator.counters().data());
    }
    state.SetItemsProcessed(std::int64_t(state.iterations() * trace.size()));
    state.counters["L1 miss ratio"] =
        double(simulator.counters()[0].misses()) / double(simulator.counters()[0].references());
}

void contiguous(benchmark::State& state)
{
    replay(state, [](std::uint64_t i) { return i * 4; });
}

void contiguousWrites(benchmark::State& state)
{
    replay(
        state, [](std::uint64_t i) { return i * 4; }, true);
}

/// Bytes between accesses as argument; 64 and more miss L1 every time.
void strided(benchmark::State& state)
{
    const std::uint64_t stride = std::uint64_t(state.range(0));
    replay(state, [=](std::uint64_t i) { return i * stride; });
}

/// Bytes of the working set as argument.
void randomIn(benchmark::State& state)
{
    const std::uint64_t elements = std::uint64_t(state.range(0)) / 4;
    SplitMix64 random(1);
    replay(state, [&](std::uint64_t) { return random.below(elements) * 4; });
}

/// The loop of a matrix product's innermost loop: two reads in rows and columns of 256 × 256
/// floats.
void matrixProduct(benchmark::State& state)
{
    replay(state, [](std::uint64_t i) {
        const std::uint64_t k = i / 2 % 256, j = i / 512 % 256, row = i / 131072;
        return i % 2 ? (1 << 20) + (k * 256 + j) * 4 : (row * 256 + k) * 4;
    });
}

/// Addresses made as they are needed.
void generated(benchmark::State& state)
{
    CacheSimulator simulator = threeLevels();
    std::uint64_t address = 0;
    for (auto _ : state) {
        const auto done = simulator.run(1 << 20, [&] {
            address = (address + 4) & ((1 << 26) - 1);
            return MemoryAccess{address, 4, false};
        });
        if (!done)
            state.SkipWithError("the trace was refused");
    }
    state.SetItemsProcessed(std::int64_t(state.iterations() << 20));
}

void resolveOneRequest(benchmark::State& state)
{
    for (auto _ : state)
        benchmark::DoNotOptimize(resolveRequest(stridedRequest(0, 3, 4).value()));
    state.SetItemsProcessed(std::int64_t(state.iterations()));
}

} // namespace

BENCHMARK(contiguous);
BENCHMARK(contiguousWrites);
BENCHMARK(strided)->Arg(16)->Arg(64)->Arg(4096);
BENCHMARK(randomIn)->Arg(16 << 10)->Arg(256 << 10)->Arg(8 << 20)->Arg(256 << 20);
BENCHMARK(matrixProduct);
BENCHMARK(generated);
BENCHMARK(resolveOneRequest);
BENCHMARK_MAIN();

// SPDX-License-Identifier: Apache-2.0
// Our slabs on pinned threads against the library called directly: one product of oneDNN's with its
// own threads. The counter "of_library" is our rate over its rate, sample by sample in turn.
#include "core/device/catalogue.h"
#include "kernels/host/precision/gemm.h"
#include "kernels/host/precision/onednn.h"
#include "kernels/measure/statistics.h"
#include "tests/support/listener.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>
#include <vector>

using namespace memscape;
using namespace memscape::host;

namespace {

void productAgainstTheLibrary(benchmark::State& state, Format format)
{
    const std::int64_t size = state.range(0);
    const Device device = findDevice("cpu").value();
    test::Listener listener;
    HostSession session(device, listener);
    const GemmTask task = GemmTask::dense({size, size, size}, format);
    const GemmKernel kernel = gemmKernels(format).front();
    auto ours = TeamGemm::make(session, kernel, task);
    auto its = oneDnnPlan(task, session.team().size());
    if (!ours || !its)
        return state.SkipWithError("no oneDNN");
    const auto bytes = std::size_t(size * size * 4);
    std::vector<std::byte> a(bytes, std::byte(0)), b(bytes, std::byte(0)), c(bytes);
    std::vector<double> ratios, rates;
    (*its)->run(a.data(), b.data(), c.data()); // its threads start
    for (auto _ : state) {
        // OpenMP's threads spin for some milliseconds after their product, on our cores.
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        const double mine = ours->run(a.data(), b.data(), c.data());
        const double begin = session.clock().now();
        (*its)->run(a.data(), b.data(), c.data());
        const double theirs = session.clock().now() - begin;
        ratios.push_back(theirs / mine);
        rates.push_back(task.shape.flops() / mine);
    }
    state.counters["of_library"] = summarize(ratios).median;
    state.counters["GFLOP/s"] = summarize(rates).median / 1e9;
}

} // namespace

BENCHMARK_CAPTURE(productAgainstTheLibrary, fp32, Format::Fp32)->Arg(512)->Arg(1024)->Arg(2048);
BENCHMARK_CAPTURE(productAgainstTheLibrary, bf16, Format::Bf16)->Arg(512)->Arg(1024)->Arg(2048);
BENCHMARK_CAPTURE(productAgainstTheLibrary, int8, Format::Int8)->Arg(512)->Arg(1024)->Arg(2048);
BENCHMARK_MAIN();

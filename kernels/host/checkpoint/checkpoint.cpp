// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/checkpoint/checkpoint.h"

#include "kernels/host/checkpoint/mlp_device.h"
#include "kernels/host/common/blas.h"
#include "kernels/host/measurement.h"
#include "kernels/programs/checkpoint/checkpoint_measurement.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::size_t triedSide = 512;
constexpr int triedTimes = 3;

/// Seconds of the best of a few products of two matrices that fit the caches.
double secondsOf(HostSession& session, const ProductKernel& kernel)
{
    std::vector<float> a(triedSide * triedSide, 0.5F), b(a), c(a);
    ProductScratch scratch;
    // The first loads code and pages, in every thread: a library takes its buffers before the arrays
    // of the measurement leave it no room.
    session.team().run([&](int) {
        std::vector<float> own(c);
        ProductScratch ownScratch;
        kernel.run({triedSide, triedSide, triedSide, a.data(), triedSide, false, b.data(), triedSide, false, own.data(),
                    triedSide, false},
                   ownScratch);
    });
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < triedTimes; ++i) {
        const double seconds = session.team().run(
            [&](int) {
                kernel.run({triedSide, triedSide, triedSide, a.data(), triedSide, false, b.data(), triedSide, false,
                            c.data(), triedSide, false},
                           scratch);
            },
            1);
        best = std::min(best, seconds);
    }
    return best;
}

} // namespace

ProductChoice fastestProduct(HostSession& session)
{
    std::vector<ProductKernel> kernels = productKernels();
    // The last of ours is the widest.
    kernels.erase(kernels.begin(), kernels.end() - (openBlas() ? 2 : 1));
    ProductChoice choice;
    double best = std::numeric_limits<double>::infinity();
    for (ProductKernel& kernel : kernels) {
        const double seconds = secondsOf(session, kernel);
        choice.tried[kernel.name] = jsonNumber(2.0 * triedSide * triedSide * triedSide / possibleSeconds(seconds, 0));
        if (seconds < best || !choice.kernel.run) {
            best = seconds;
            choice.kernel = std::move(kernel);
        }
    }
    return choice;
}

Result<ChainRun> runChainOnHost(HostSession& session, const ChainTask& task)
{
    const ProductChoice product = fastestProduct(session);
    if (!openBlas())
        session.noteOnce("info", "blas.missing",
                         "no OpenBLAS with threads on this machine (Debian: libopenblas0-pthread), or "
                         "too little address space for its buffers: products by our own kernel");
    ContentionWatch watch(session.watch().fastestClock());
    watch.start(session.readTicks());
    const ChainRunner runner{[&](const MlpShape& shape, std::int64_t arenaBytes) {
                                 return makeMlpDevice(session, shape, arenaBytes, product.kernel);
                             },
                             session.clock(), session.sink(), [&] { watch.add(session.readCanary()); },
                             [&](std::size_t samples) { return watch.conditions(session.readTicks(), samples); }};
    MEMSCAPE_TRY(run, runChain(task, runner));
    run.method["products_tried"] = product.tried;
    return run;
}

Result<MeasuredRun> measureCheckpoint(HostSession& session, const Experiment& experiment, const Parameters& parameters)
{
    ChainMeasurer measurer(session.device(), [&](const ChainTask& task) { return runChainOnHost(session, task); });
    return runSweep(experiment, parameters, measurer, session);
}

} // namespace memscape::host

// SPDX-License-Identifier: Apache-2.0
// Probes that the experiments and the calibration share: pointer chases over fresh chains, the search
// for the launch that streams fastest on this GPU, and laps over a working set.
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/hierarchy/chain.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/sampler.h"

#include <algorithm>

namespace memscape::cuda {

namespace {

constexpr std::uint64_t chaseLimit = 1ULL << 27; ///< nodes: a table of half a gigabyte on the host

constexpr std::uint64_t mostWarmLoads = 1ULL << 18; ///< of one launch: no display is held for long

/// The buffers of a chase and the state of its chain.
struct Chase
{
    ChaseKind kind;
    std::uint64_t nodes;
    Buffer data;  ///< the nodes: counted
    Buffer table; ///< their successors
    Buffer result;
    std::uint64_t start = 0;
};

Result<Chase> allocateChase(GpuSession& session, ChaseKind kind, std::uint64_t workingSet)
{
    const std::uint64_t spacing = kind == ChaseKind::Shared ? sizeof(std::uint32_t) : nodeBytes;
    Chase chase{kind, std::max<std::uint64_t>(1, workingSet / spacing), {}, {}, {}, 0};
    if (chase.nodes > chaseLimit)
        return fail("run.skipped", "a chain over more than 16 GiB takes too long to build",
                    "choose a smaller working set");
    if (kind != ChaseKind::Shared)
        MEMSCAPE_SET(chase.data, session.allocate(chase.nodes * nodeBytes));
    MEMSCAPE_SET(chase.table, session.allocateExtra(chase.nodes * sizeof(std::uint32_t)));
    MEMSCAPE_SET(chase.result, session.allocateExtra(sizeof(ChaseResult)));
    return chase;
}

/// A new random chain, laid out on the device.
Result<void> layChain(GpuSession& session, Chase& chase, std::uint64_t seed)
{
    const auto next = sattoloCycle(static_cast<std::uint32_t>(chase.nodes), seed);
    MEMSCAPE_CHECK(
        session.upload(chase.table.get(), next.data(), next.size() * sizeof(std::uint32_t), "copying a chain"));
    if (chase.kind == ChaseKind::Shared)
        return {};
    chase.start = chase.kind == ChaseKind::Index
        ? 0
        : static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(chase.data.get()));
    return cudaResult(launchChain(chase.data.get(), reinterpret_cast<const std::uint32_t*>(chase.table.get()),
                                  chase.nodes, nodeBytes, chase.kind, session.stream()),
                      "building a chain");
}

/// Follows the chain from where it stands.
Result<Latency> follow(GpuSession& session, Chase& chase, std::uint64_t loads)
{
    auto* deviceResult = reinterpret_cast<ChaseResult*>(chase.result.get());
    const cudaError_t error = chase.kind == ChaseKind::Shared
        ? launchSharedChase(reinterpret_cast<const std::uint32_t*>(chase.table.get()),
                            static_cast<std::uint32_t>(chase.nodes), loads, deviceResult, session.stream())
        : launchChase(chase.kind, chase.data.get(), chase.start, nodeBytes, loads, deviceResult, session.stream());
    MEMSCAPE_CHECK(cudaResult(error, "starting the pointer chase"));
    ChaseResult result;
    MEMSCAPE_CHECK(session.download(&result, deviceResult, sizeof result, "running the pointer chase"));
    chase.start = result.end;
    return Latency{double(result.nanoseconds) * 1e-9 / double(loads), double(result.cycles) / double(loads)};
}

/// Until the caches hold what they can.
Result<void> warmChase(GpuSession& session, Chase& chase)
{
    std::uint64_t rest = warmLoads(chase.nodes, nodeBytes, session.l2Bytes());
    while (rest > 0) {
        const std::uint64_t loads = std::min(rest, mostWarmLoads);
        MEMSCAPE_CHECK(follow(session, chase, loads));
        rest -= loads;
    }
    return {};
}

} // namespace

Result<std::vector<Latency>> chaseSamples(GpuSession& session, ChaseKind kind, std::uint64_t workingSet, int chains,
                                          int perChain, std::uint64_t seed, RunSink& sink)
{
    session.resetPeak(); // before the chain is allocated: it is all that a chase takes
    MEMSCAPE_TRY(chase, allocateChase(session, kind, workingSet));
    const std::uint64_t loads = chaseLoads(workingSet, session.l2Bytes());
    std::vector<Latency> samples;
    for (int chain = 0; chain < chains && !sink.cancelled(); ++chain) {
        MEMSCAPE_CHECK(layChain(session, chase, seed + static_cast<std::uint64_t>(chain)));
        MEMSCAPE_CHECK(warmChase(session, chase));
        for (int i = 0; i < perChain; ++i) {
            MEMSCAPE_TRY(latency, follow(session, chase, loads));
            samples.push_back(latency);
        }
    }
    return samples;
}

Result<StreamChoice> bestStream(GpuSession& session, Operation operation, std::uint64_t arrayBytes)
{
    Buffer source, second, target;
    for (Buffer* from : {&source, &second}) {
        if (operation == Operation::Write || (from == &second && operation != Operation::Triad))
            continue;
        MEMSCAPE_TRY(buffer, session.allocateExtra(arrayBytes));
        MEMSCAPE_CHECK(session.fill(buffer.get(), arrayBytes));
        *from = std::move(buffer);
    }
    if (operation != Operation::Read)
        MEMSCAPE_SET(target, session.allocateExtra(arrayBytes));
    StreamChoice best;
    for (const StreamChoice& candidate : {StreamChoice{3, 1024}, StreamChoice{3, 512}, StreamChoice{3, 256},
                                          StreamChoice{2, 1024}, StreamChoice{1, 256}, StreamChoice{1, 1024}}) {
        StreamLaunch launch;
        launch.version = candidate.version;
        launch.threads = candidate.threads;
        launch.operation = operation;
        launch.first = source.get();
        launch.second = second.get();
        launch.target = target.get();
        launch.bytes = arrayBytes;
        const Work work{
            [&session, launch](int) { return launchStream(launch, session.multiprocessors(), session.stream()); },
            "a stream"};
        MEMSCAPE_CHECK(warmUp(session, work));
        PointSamples samples;
        MEMSCAPE_CHECK(samplePass(session, work, false, 0, StoppingOptions().perPass(sweepPasses), samples));
        const int arrays = arraysOf(operation);
        const double rate = double(arrayBytes) * arrays / samples.summary().median;
        if (rate > best.bytesPerSecond)
            best = {candidate.version, candidate.threads, rate, samples.seconds.merged()};
    }
    return best;
}

Result<Laps> prepareLaps(GpuSession& session, Operation operation, std::uint64_t workingSet, std::uint64_t l1Bytes,
                         double launchBytes)
{
    Laps laps;
    const LapsShape shape = lapsShape(workingSet, l1Bytes, session.multiprocessors());
    LapsLaunch& launch = laps.launch;
    launch.operation = operation;
    launch.isPrivate = shape.isPrivate;
    launch.chunkBytes = shape.chunkBytes;
    launch.chunks = shape.chunks;
    launch.blocks = session.multiprocessors();
    if (!shape.isPrivate)
        MEMSCAPE_CHECK(
            cudaResult(lapsResidentBlocks(operation, launch.threads, session.multiprocessors(), &launch.blocks),
                       "querying the occupancy"));
    MEMSCAPE_TRY(data, session.allocate(shape.memoryBytes()));
    MEMSCAPE_CHECK(session.fill(data.get(), shape.memoryBytes()));
    launch.data = data.get();
    launch.laps = lapsFor(shape, launch.blocks, launchBytes);
    laps.shape = shape;
    laps.data = std::move(data);
    return laps;
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// `stride` on a GPU: the best version of the stride kernel over the pattern of core/access, cold or
// warm. Time is measured; bytes that move are counted over the addresses (there are no hardware
// counters here), so moved bandwidth = counted bytes / measured time.
//
// Left out: the index that every random access reads too (4 bytes, in order) is not counted as
// moved.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/cuda/common/pacing.h"

#include "core/experiments/stride/stride.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

/// Arrays of one visit. Copies beyond the first belong to the harness: a cold batch walks them in
/// turn.
struct Arrays
{
    Buffer source, target, indices;
    Buffer moreSources, moreTargets;
    std::uint64_t pitch = 0; ///< bytes between copies
    int copies = 1;

    static char* copyOf(const Buffer& first, const Buffer& more, std::uint64_t pitch, int which)
    {
        if (!first || which == 0)
            return first.get();
        return more.get() + static_cast<std::uint64_t>(which - 1) * pitch;
    }
    char* sourceAt(int which) const { return copyOf(source, moreSources, pitch, which); }
    char* targetAt(int which) const { return copyOf(target, moreTargets, pitch, which); }
};

/// An element that does not lie on a multiple of its size is an address fault on a GPU, not a slow
/// load.
Result<void> runnable(const StrideCase& walk)
{
    if (walk.offsetBytes % walk.elementBytes != 0)
        return fail("run.skipped",
                    fmt::format("a GPU cannot access a {}-byte element at an offset of {} bytes", walk.elementBytes,
                                walk.offsetBytes),
                    "choose an offset that is a multiple of the element size");
    if (walk.pattern == Pattern::Random && walk.arrayBytes / walk.elementBytes > 0x1'0000'0000ULL)
        return fail("run.skipped", "the table of random indices holds at most 2^32 elements",
                    "choose fewer bytes or a larger element");
    return {};
}

Result<Arrays> allocateArrays(GpuSession& session, const StrideCase& walk)
{
    Arrays arrays;
    arrays.pitch = (walk.arrayBytes + 511) / 512 * 512;
    if (walk.operation != Operation::Write) {
        MEMSCAPE_TRY(source, session.allocate(walk.arrayBytes));
        MEMSCAPE_CHECK(session.fill(source.get(), walk.arrayBytes));
        arrays.source = std::move(source);
    }
    if (walk.operation != Operation::Read) {
        MEMSCAPE_TRY(target, session.allocate(walk.arrayBytes));
        MEMSCAPE_CHECK(session.fill(target.get(), walk.arrayBytes, 77));
        arrays.target = std::move(target);
    }
    if (walk.pattern == Pattern::Random) {
        MEMSCAPE_TRY(indices, session.allocateExtra(walk.accesses * sizeof(std::uint32_t)));
        const std::uint64_t range = (walk.arrayBytes - walk.offsetBytes) / walk.elementBytes;
        MEMSCAPE_CHECK(cudaResult(
            launchIndices(reinterpret_cast<std::uint32_t*>(indices.get()), walk.accesses, range, 1, session.stream()),
            "filling the table of indices"));
        arrays.indices = std::move(indices);
    }
    return arrays;
}

/// As many further copies as a cold batch needs and a quarter of the free memory holds.
Result<void> allocateCopies(GpuSession& session, const StrideCase& walk, int batch, Arrays& arrays)
{
    const std::uint64_t spare = session.freeBytes() / 4 / static_cast<std::uint64_t>(walk.arrays());
    arrays.copies = copiesFor(batch, arrays.pitch, spare);
    const std::uint64_t more = static_cast<std::uint64_t>(arrays.copies - 1) * arrays.pitch;
    if (more == 0)
        return {};
    if (arrays.source) {
        MEMSCAPE_TRY(sources, session.allocateExtra(more));
        MEMSCAPE_CHECK(session.fill(sources.get(), more, 1));
        arrays.moreSources = std::move(sources);
    }
    if (arrays.target) {
        MEMSCAPE_TRY(targets, session.allocateExtra(more));
        MEMSCAPE_CHECK(session.fill(targets.get(), more, 78));
        arrays.moreTargets = std::move(targets);
    }
    return {};
}

struct StridePoint
{
    StrideCase walk;
    PointSamples samples;
    int copies = 1;

    std::vector<SampledThing> sampled() const { return {{"time", samples}}; }
};

class StrideMeasurer final : public GpuMeasurer<StridePoint>
{
public:
    using GpuMeasurer::GpuMeasurer;

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        MEMSCAPE_TRY(walk, strideCase(at));
        MEMSCAPE_CHECK(runnable(walk));
        StridePoint& point = m_points[index];
        point.walk = walk;
        const std::uint64_t freeBefore = m_session.freeBytes();
        MEMSCAPE_TRY(arrays, allocateArrays(m_session, walk));
        const Work work = workOf(walk, arrays);
        MEMSCAPE_TRY(once, warmUp(m_session, work));
        point.samples.batch = std::max(point.samples.batch, batchFor(once));
        m_session.resetPeak();
        if (walk.cold)
            MEMSCAPE_CHECK(allocateCopies(m_session, walk, point.samples.batch, arrays));
        MEMSCAPE_CHECK(
            samplePass(m_session, work, walk.cold, pass, StoppingOptions().perPass(sweepPasses), point.samples));
        point.samples.peak = std::max(point.samples.peak, m_session.peakBytes());
        const double delta = double(freeBefore) - double(m_session.freeBytes());
        point.samples.deviceDelta = std::max(point.samples.deviceDelta, delta);
        point.copies = arrays.copies;
        return m_session.synchronize("freeing the arrays");
    }

    Point point(std::size_t index) const override
    {
        Point point;
        const StridePoint& measured = m_points[index];
        point.detail = measured.samples.detail();
        point.detail["copies"] = measured.copies;
        if (!measured.samples.summary().empty())
            point.figures = figuresOf(measured);
        return point;
    }

    Json method() const override
    {
        return {{"kernel", fmt::format("stride v{}", strideVersions)}, {"block", StrideLaunch{}.threads}};
    }

private:
    Work workOf(const StrideCase& walk, const Arrays& arrays)
    {
        StrideLaunch launch;
        launch.elementBytes = static_cast<int>(walk.elementBytes);
        launch.operation = walk.operation;
        launch.walk = Walk{0, walk.pitchBytes / walk.elementBytes, walk.accesses};
        launch.indices = reinterpret_cast<const std::uint32_t*>(arrays.indices.get());
        const auto offset = walk.offsetBytes;
        return {[this, launch, &arrays, offset](int turn) mutable {
                    const int which = turn % arrays.copies;
                    if (char* source = arrays.sourceAt(which))
                        launch.source = source + offset;
                    if (char* target = arrays.targetAt(which))
                        launch.target = target + offset;
                    return launchStride(launch, m_session.multiprocessors(), m_session.stream());
                },
                "the " + std::string(operationText(walk.operation)) + " of the pattern"};
    }

    Figures figuresOf(const StridePoint& point) const
    {
        const Device& device = m_plan.device.device;
        Figures figures;
        double moved = 0;
        if (auto counted = stridedCountFigures(device, point.walk)) {
            for (Figure& figure : *counted) {
                figure.why.reset(); // the reasons are the prediction's
                figures.push_back(std::move(figure));
            }
        }
        const GranuleSizes granules{static_cast<std::uint64_t>(device.sectorBytes),
                                    static_cast<std::uint64_t>(device.lineBytes)};
        if (const auto counts = requestCounts(point.walk, granules)) {
            const bool broadcast = point.walk.pitchBytes == 0 && point.walk.pattern != Pattern::Random;
            const double requests = broadcast ? 1 : std::ceil(double(point.walk.accesses) / device.warp);
            moved = requests * counts->fetchedBytes * point.walk.arrays();
        }
        const Summary time = point.samples.summary();
        const auto rate = [&](const char* key, const char* label, double bytes) {
            figures.push_back(
                {key, label, Unit::BytePerSecond, bytes / time.median, bytes / time.q3, bytes / time.minimum, {}});
        };
        rate("useful_bandwidth", "useful bandwidth", point.walk.usefulBytes());
        rate("moved_bandwidth", "moved bandwidth", moved);
        figures.push_back({"time", "time", Unit::Second, time.median, time.minimum, time.q3, {}});
        figures.push_back({"peak_memory", "peak memory", Unit::Byte, point.samples.peak});
        return figures;
    }
};

} // namespace

Result<MeasuredRun> measureStride(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    // Checked before it is timed, with the operation that is asked for.
    MEMSCAPE_TRY(walk, strideCase(plan.parameters));
    for (bool gather : {false, true})
        MEMSCAPE_CHECK(passedCheck(checkStride(strideVersions, static_cast<int>(walk.elementBytes), walk.operation, 3,
                                               gather, session.multiprocessors())));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    StrideMeasurer measurer(session, plan, runStart);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda

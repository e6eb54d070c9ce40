// SPDX-License-Identifier: Apache-2.0
// `hierarchy` on a GPU. Latency: a pointer chase by one lane over the working set, new random
// chains in every pass. Bandwidth: up to 1.25 × L1 every SM goes over a slice of that size of its
// own; beyond, all SMs share the working set in chunks that are dealt anew in every round; from 4 ×
// L2 on it is a stream over the whole of it, by the launch that is fastest on this GPU. A chosen
// occupancy or width, and triad, are a stream at any size.
//
// A GPU has no page sizes to choose from, so the page variants stay empty. Left out: latency seen
// from one chosen SM (near and far halves of L2), latency under load.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/cuda/common/pacing.h"

#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double lapsSeconds = 1e-3;             ///< of one launch
constexpr double firstLapsBytes = 256e6;         ///< of the launch that measures the time of a lap
constexpr std::uint64_t largeSet = 128ULL << 20; ///< chains beyond this take long to build

Operation askedOperation(const Parameters& parameters)
{
    return operationOf(parameters.choice("operation"));
}

/// Whether the launch is the user's choice and not the fastest: a stream over all of the working set
/// at any size.
bool isChosen(const Parameters& parameters)
{
    return parameters.integer("occupancy") > 0 || parameters.integer("width") != 16;
}

/// Those of the kernels that will run at any point of the sweep.
std::vector<KernelCheck> checksOf(const SweepPlan& plan, int multiprocessors)
{
    std::set<std::pair<Operation, int>> streams;
    for (const ParameterValue& value : plan.sweep.values) {
        const Parameters at = plan.parameters.at(plan.sweep.key, value);
        streams.emplace(askedOperation(at), static_cast<int>(at.integer("width")));
    }
    std::vector<KernelCheck> checks{checkChase(ChaseKind::CacheAll)};
    for (const auto& [operation, width] : streams) {
        checks.push_back(checkStream(streamVersions, width, operation, multiprocessors));
        if (operation != Operation::Triad && width == 16) {
            checks.push_back(checkLaps(operation, true, multiprocessors));
            checks.push_back(checkLaps(operation, false, multiprocessors));
        }
    }
    return checks;
}

std::uint64_t l1Of(const Device& device)
{
    const MemoryLevel* level = device.level("L1");
    return static_cast<std::uint64_t>(level != nullptr ? level->capacity.valueOr(128e3) : 128e3);
}

/// The level whose known latency is nearest to the measured one, in ratio; the one that holds the size when no latency
/// is known.
std::string levelOf(const Device& device, double latency, double workingSet)
{
    std::string nearest;
    double smallest = std::numeric_limits<double>::infinity();
    for (const MemoryLevel& level : device.levels) {
        if (level.kind != LevelKind::Cache && level.kind != LevelKind::Dram)
            continue;
        const double distance = std::fabs(std::log(latency / level.latency.value));
        if (level.latency.known() && distance < smallest) {
            smallest = distance;
            nearest = level.id;
        }
    }
    if (!nearest.empty())
        return nearest;
    const MemoryLevel* home = homeLevel(device, workingSet);
    return home != nullptr ? home->id : "unknown";
}

struct HierarchyPoint
{
    double workingSet = 0;
    PointSamples latency;
    std::vector<double> cycles;
    PointSamples bandwidth;
    double bytesPerLaunch = 0;
    double bandwidthMemory = 0;
    std::string layout;

    std::vector<SampledThing> sampled() const { return {{"latency", latency}, {"bandwidth", bandwidth}}; }
};

class HierarchyMeasurer final : public GpuMeasurer<HierarchyPoint>
{
public:
    HierarchyMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, RunSink& sink)
        : GpuMeasurer(session, plan, runStart)
        , m_sink(sink)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        HierarchyPoint& point = m_points[index];
        point.workingSet = at.number("working_set");
        const auto bytes = static_cast<std::uint64_t>(point.workingSet);
        MEMSCAPE_CHECK(visitLatency(point, bytes, pass));
        if (m_sink.cancelled())
            return {};
        const Operation operation = askedOperation(at);
        const bool isLarge = bytes > 4 * m_session.l2Bytes();
        if (isChosen(at) || (operation == Operation::Triad && !isLarge)) // there are no laps of three arrays
            return visitChosen(point, bytes, at, pass);
        return isLarge ? visitStream(point, bytes, operation, pass) : visitLaps(point, bytes, operation, pass);
    }

    Point point(std::size_t index) const override
    {
        const HierarchyPoint& measured = m_points[index];
        Point point;
        point.detail = measured.latency.detail();
        point.detail["bandwidth"] = measured.bandwidth.detail();
        point.detail["bandwidth"]["layout"] = measured.layout;
        point.detail["bandwidth"]["memory"] = measured.bandwidthMemory;
        if (!measured.latency.summary().empty())
            point.figures = figuresOf(measured);
        return point;
    }

    Json method() const override
    {
        return {{"latency", "one thread follows a chain of addresses"},
                {"bandwidth", "laps over what the caches hold, a stream over what they do not"}};
    }

private:
    Result<void> visitLatency(HierarchyPoint& point, std::uint64_t bytes, int pass)
    {
        const bool large = bytes > largeSet;
        MEMSCAPE_TRY(samples,
                     chaseSamples(m_session, ChaseKind::CacheAll, bytes, large ? 1 : 3, large ? 3 : 2,
                                  1000 * static_cast<std::uint64_t>(pass) + 1, m_sink));
        std::vector<double> seconds;
        for (const Latency& sample : samples) {
            seconds.push_back(sample.seconds);
            point.cycles.push_back(sample.cycles);
            point.latency.clocks.push_back(sample.cycles / sample.seconds);
        }
        point.latency.seconds.add(pass, seconds);
        point.latency.stop = StopReason::Precise;
        point.latency.peak = std::max(point.latency.peak, m_session.peakBytes());
        return m_session.synchronize("freeing the chain");
    }

    Result<void> visitLaps(HierarchyPoint& point, std::uint64_t bytes, Operation operation, int pass)
    {
        MEMSCAPE_TRY(laps, prepareLaps(m_session, operation, bytes, l1Of(m_plan.device.device), firstLapsBytes));
        const LapsShape& shape = laps.shape;
        LapsLaunch& launch = laps.launch;
        const auto run = [this, &launch](int) { return launchLaps(launch, m_session.stream()); };
        const Work work{run, "the laps over the working set"};
        MEMSCAPE_TRY(once, warmUp(m_session, work));
        const double longer = once > 0 ? std::clamp(lapsSeconds / once, 1.0, 1000.0) : 1;
        launch.laps = static_cast<std::uint64_t>(std::ceil(double(launch.laps) * longer));
        point.layout = shape.isPrivate ? "a slice of this size for every multiprocessor"
                                       : "shared by all multiprocessors in chunks dealt anew";
        const double perLaunch = double(launch.laps) * launch.blocks * double(launch.chunkBytes);
        return samples(point, work, perLaunch, double(shape.memoryBytes()), pass);
    }

    Result<void> visitStream(HierarchyPoint& point, std::uint64_t bytes, Operation operation, int pass)
    {
        const std::uint64_t array = bytes / arraysOf(operation) / 16 * 16;
        if (!m_choices.contains(operation))
            MEMSCAPE_SET(m_choices[operation], bestStream(m_session, operation, array));
        StreamLaunch launch;
        launch.version = m_choices[operation].version;
        launch.threads = m_choices[operation].threads;
        launch.operation = operation;
        launch.bytes = array;
        return timeStream(point, launch, pass);
    }

    /// The stream with the occupancy and the width that were asked for: the scan of Little's law.
    Result<void> visitChosen(HierarchyPoint& point, std::uint64_t bytes, const Parameters& at, int pass)
    {
        StreamLaunch launch;
        launch.operation = askedOperation(at);
        launch.wordBytes = static_cast<int>(at.integer("width"));
        launch.bytes = bytes / arraysOf(launch.operation) / 16 * 16;
        if (const int warps = static_cast<int>(at.integer("occupancy")); warps > 0) {
            const Occupancy occupancy = occupancyOf(warps);
            launch.threads = occupancy.threads;
            launch.blocksPerSm = occupancy.blocksPerSm;
        }
        return timeStream(point, launch, pass);
    }

    /// `launch` without its arrays.
    Result<void> timeStream(HierarchyPoint& point, StreamLaunch launch, int pass)
    {
        if (launch.bytes == 0)
            return fail("run.skipped", "the working set is too small for its arrays", "choose a larger working set");
        Buffer source, second, target;
        if (launch.operation != Operation::Write) {
            MEMSCAPE_TRY(buffer, m_session.allocate(launch.bytes));
            MEMSCAPE_CHECK(m_session.fill(buffer.get(), launch.bytes));
            source = std::move(buffer);
        }
        if (launch.operation == Operation::Triad) {
            MEMSCAPE_TRY(buffer, m_session.allocate(launch.bytes));
            MEMSCAPE_CHECK(m_session.fill(buffer.get(), launch.bytes));
            second = std::move(buffer);
        }
        if (launch.operation != Operation::Read)
            MEMSCAPE_SET(target, m_session.allocate(launch.bytes));
        launch.first = source.get();
        launch.second = second.get();
        launch.target = target.get();
        const auto run = [this, launch](int) {
            return launchStream(launch, m_session.multiprocessors(), m_session.stream());
        };
        const Work work{run, "the stream"};
        MEMSCAPE_CHECK(warmUp(m_session, work));
        point.layout =
            fmt::format("one stream over all of it, version {} with {} of {}, {} B a load", launch.version,
                        launch.blocksPerSm > 0 ? fmt::format("{} blocks a multiprocessor", launch.blocksPerSm)
                                               : std::string("blocks"),
                        launch.threads, launch.wordBytes);
        const double moved = double(launch.bytes) * double(arraysOf(launch.operation));
        return samples(point, work, moved, moved, pass);
    }

    Result<void> samples(HierarchyPoint& point, const Work& work, double bytesPerLaunch, double memory, int pass)
    {
        // Laps are chosen anew in each pass; samples are kept as seconds per the first pass's
        // bytes.
        point.bytesPerLaunch = point.bytesPerLaunch > 0 ? point.bytesPerLaunch : bytesPerLaunch;
        PointSamples fresh;
        MEMSCAPE_CHECK(samplePass(m_session, work, false, pass, StoppingOptions().perPass(sweepPasses), fresh));
        std::vector<double> scaled = fresh.seconds.merged();
        for (double& seconds : scaled)
            seconds *= point.bytesPerLaunch / bytesPerLaunch;
        point.bandwidth.seconds.add(pass, scaled);
        point.bandwidth.clocks.insert(point.bandwidth.clocks.end(), fresh.clocks.begin(), fresh.clocks.end());
        point.bandwidth.stop = fresh.stop;
        point.bandwidthMemory = memory;
        return m_session.synchronize("freeing the working set");
    }

    Figures figuresOf(const HierarchyPoint& point) const
    {
        const Summary latency = point.latency.summary();
        const Summary cycles = summarize(point.cycles);
        const Summary time = point.bandwidth.summary();
        const auto number = [](const char* key, const char* label, Unit unit, double value, double low, double high) {
            Figure figure{key, label, unit, value};
            if (std::isfinite(value)) {
                figure.low = low;
                figure.high = high;
            }
            return figure;
        };
        const double bandwidth = time.empty() ? nan : point.bytesPerLaunch / time.median;
        Figures figures;
        figures.push_back(
            {"level", "level", Unit::One, levelOf(m_plan.device.device, latency.median, point.workingSet)});
        figures.push_back(number("latency", "latency", Unit::Second, latency.median, latency.minimum, latency.q3));
        figures.push_back(number("cycles", "cycles", Unit::One, cycles.median, cycles.minimum, cycles.q3));
        figures.push_back(number("bandwidth", "bandwidth", Unit::BytePerSecond, bandwidth,
                                 point.bytesPerLaunch / time.q3, point.bytesPerLaunch / time.minimum));
        figures.push_back(number("latency_huge", "latency, huge pages", Unit::Second, nan, 0, 0));
        figures.push_back(number("latency_4k", "latency, 4 KiB pages", Unit::Second, nan, 0, 0));
        figures.push_back(number("latency_window", "latency, few pages at a time", Unit::Second, nan, 0, 0));
        figures.push_back({"peak_memory", "peak memory", Unit::Byte, point.latency.peak});
        return figures;
    }

    RunSink& m_sink;
    std::map<Operation, StreamChoice> m_choices;
};

} // namespace

Result<MeasuredRun> measureHierarchy(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    for (const KernelCheck& check : checksOf(plan, session.multiprocessors()))
        MEMSCAPE_CHECK(passedCheck(check));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    HierarchyMeasurer measurer(session, plan, runStart, sink);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda

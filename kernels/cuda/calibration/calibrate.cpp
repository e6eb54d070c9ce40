// SPDX-License-Identifier: Apache-2.0
// A calibrated GPU: latency and bandwidth of each level, sectors per second against the distance
// between them, the launch period and the SM clock, measured here and put into the description.
// Every value says which probe it comes from; what is not probed (registers, tensor rates, the
// far half of L2, knees) keeps the described value.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/pacing.h"
#include "kernels/cuda/common/sampler.h"
#include "kernels/cuda/precision/format_product.h"

#include "core/experiment/record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr std::array operations{Operation::Read, Operation::Write, Operation::Copy};
constexpr const char* sectorSweep = "stride=8,16,32,64,128,256"; ///< of float32: 32 B to 1 KiB

Sourced measured(double value, std::string method)
{
    return Sourced{value, Evidence::Measured, "calibrated on this machine", std::move(method)};
}

MemoryLevel* levelOf(Device& device, std::string_view id)
{
    for (MemoryLevel& level : device.levels) {
        if (level.id == id)
            return &level;
    }
    return nullptr;
}

MemoryLevel* dramOf(Device& device)
{
    for (MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Dram)
            return &level;
    }
    return nullptr;
}

/// The calibration while it is made.
class Calibrator
{
public:
    Calibrator(GpuSession& session, const BackendDevice& described, RunSink& sink)
        : m_session(session)
        , m_described(described)
        , m_sink(sink)
        , m_device(described.device)
    { }

    Result<Device> run()
    {
        MEMSCAPE_TRY(runStart, beginRun(m_session, m_sink));
        if (std::isfinite(runStart.referenceClock))
            m_device.clock = measured(runStart.referenceClock, "SM clock against the global timer");
        m_device.launch = measured(runStart.launchPeriod, "back-to-back empty kernels");
        MEMSCAPE_CHECK(latencies());
        for (Operation operation : operations)
            MEMSCAPE_CHECK(bandwidths(operation));
        m_calibration.lineRates.clear();
        for (Operation operation : operations)
            MEMSCAPE_CHECK(sectorRates(operation));
        MEMSCAPE_CHECK(step("products in every format"));
        MEMSCAPE_SET(m_calibration.raw["product_rates"], gpuProductRates(m_session, m_sink));
        MEMSCAPE_CHECK(step("links"));
        MEMSCAPE_SET(m_calibration.raw["links"], calibrateLinks(m_session, m_device, m_sink));
        finish(runStart);
        return m_device;
    }

private:
    Result<void> step(const std::string& label)
    {
        if (m_sink.cancelled())
            return fail("run.cancelled", "the calibration was stopped; nothing was changed");
        m_sink.progress(m_done++, 15, label);
        return {};
    }

    Result<void> latency(MemoryLevel* level, ChaseKind kind, std::uint64_t bytes, const char* method)
    {
        if (level == nullptr || bytes == 0)
            return {};
        MEMSCAPE_CHECK(step("latency of " + level->label));
        MEMSCAPE_TRY(samples, chaseSamples(m_session, kind, bytes, 7, 1, 11, m_sink));
        std::vector<double> seconds;
        for (const Latency& sample : samples)
            seconds.push_back(sample.seconds);
        keep("latency " + level->id, seconds, double(bytes));
        if (const Summary summary = summarize(seconds); !summary.empty())
            level->latency = measured(summary.median, method);
        return {};
    }

    Result<void> latencies()
    {
        const std::uint64_t l2 = m_session.l2Bytes();
        const std::uint64_t far = std::min(std::max(8 * l2, 512 * mega), m_session.freeBytes() / 4);
        MEMSCAPE_CHECK(latency(levelOf(m_device, "shared"), ChaseKind::Shared, 16 << 10,
                               "pointer chase in shared memory, chain total"));
        MEMSCAPE_CHECK(latency(levelOf(m_device, "L1"), ChaseKind::CacheAll, 16 << 10,
                               "pointer chase .ca over 16 KiB, chain total"));
        MEMSCAPE_CHECK(latency(levelOf(m_device, "L2"), ChaseKind::CacheGlobal, l2 / 8,
                               "pointer chase .cg over an eighth of L2, chain total"));
        return latency(dramOf(m_device), ChaseKind::CacheGlobal, far, "pointer chase .cg over 8 × L2, chain total");
    }

    Result<void> bandwidths(Operation operation)
    {
        MEMSCAPE_CHECK(step(fmt::format("bandwidth, {}", operationText(operation))));
        MemoryLevel* l1 = levelOf(m_device, "L1");
        if (l1 != nullptr) {
            const auto half = static_cast<std::uint64_t>(l1->capacity.valueOr(64e3) / 2);
            MEMSCAPE_CHECK(laps(operation, l1, half, half * 2, "laps over half of L1, a slice per SM"));
        }
        MEMSCAPE_CHECK(laps(operation, levelOf(m_device, "L2"), m_session.l2Bytes() / 4, 0,
                            "laps over a quarter of L2 in chunks dealt anew"));
        MemoryLevel* dram = dramOf(m_device);
        if (dram == nullptr)
            return {};
        const std::uint64_t array =
            std::min(std::max(8 * m_session.l2Bytes(), 1024 * mega), m_session.freeBytes() / 8) / 16 * 16;
        MEMSCAPE_TRY(best, bestStream(m_session, operation, array));
        const double specified = m_described.device.dram()->bandwidth.value;
        put(*dram, operation, best.bytesPerSecond,
            fmt::format("stream v{}, blocks of {}, the best of six launches", best.version, best.threads));
        keep(fmt::format("bandwidth {} {}", dram->id, operationText(operation)), best.seconds,
             double(array) * (arraysOf(operation)));
        putDerating(operation, best.bytesPerSecond / specified);
        return {};
    }

    Result<void> laps(Operation operation, MemoryLevel* level, std::uint64_t bytes, std::uint64_t l1Bytes,
                      const char* method)
    {
        if (level == nullptr)
            return {};
        MEMSCAPE_TRY(prepared, prepareLaps(m_session, operation, bytes, l1Bytes, 8e9));
        const LapsLaunch& launch = prepared.launch;
        const auto run = [this, launch](int) { return launchLaps(launch, m_session.stream()); };
        const Work work{run, "the laps over a level"};
        MEMSCAPE_CHECK(warmUp(m_session, work));
        PointSamples samples;
        MEMSCAPE_CHECK(samplePass(m_session, work, false, 0, StoppingOptions(), samples));
        const double bytesPerLaunch = double(launch.laps) * launch.blocks * double(launch.chunkBytes);
        keep(fmt::format("bandwidth {} {}", level->id, operationText(operation)), samples.seconds.merged(),
             bytesPerLaunch);
        put(*level, operation, bytesPerLaunch / samples.summary().median, method);
        return m_session.synchronize("freeing the laps");
    }

    /// The experiment stride itself, over the distances. The array is as large as fits well, or the
    /// few sectors of a large distance would take less time than a launch.
    Result<void> sectorRates(Operation operation)
    {
        MEMSCAPE_CHECK(step(fmt::format("sectors per second, {}", operationText(operation))));
        const std::uint64_t bytes =
            std::bit_floor(std::clamp<std::uint64_t>(m_session.freeBytes() / 8, 1 << 20, 2ULL << 30));
        MEMSCAPE_TRY(experiment, findExperiment("stride"));
        MEMSCAPE_TRY(parameters,
                     resolve(experiment->schema(),
                             std::vector<std::string>{sectorSweep, "element=float32", "pattern=strided",
                                                      fmt::format("bytes={}", bytes), "cache=cold",
                                                      fmt::format("operation={}", operationText(operation))}));
        const SweepPlan plan{*experiment, m_described, parameters, *parameters.sweep()};
        MEMSCAPE_TRY(run, measureStride(m_session, plan, m_sink));
        addRates(operation, run.measurement);
        m_grade = std::max(m_grade, std::string(1, run.provenance.quality.value_or(Quality{}).grade));
        m_calibration.raw[fmt::format("sectors {}", operationText(operation))] = run.measurement.detail["points"];
        return {};
    }

    /// Sectors of one array per second, without the launch that the model of the time adds again.
    void addRates(Operation operation, const Measurement& measurement)
    {
        const Series* moved = measurement.findSeries("moved_bandwidth");
        const Series* time = measurement.findSeries("time");
        const double arrays = arraysOf(operation);
        for (std::size_t i = 0; moved != nullptr && time != nullptr && i < moved->y.size(); ++i) {
            const double kernel = time->y[i] - m_device.launch.value;
            if (!(kernel > m_device.launch.value)) // mostly launch (or not measured): not used
                continue;
            const double sectors = moved->y[i] * time->y[i] / arrays / m_device.sectorBytes;
            m_calibration.lineRates.push_back({operation, moved->x.values[i] * 4, sectors / kernel});
        }
    }

    void put(MemoryLevel& level, Operation operation, double value, std::string method)
    {
        const Sourced sourced = measured(value, std::move(method));
        switch (operation) {
        case Operation::Read: level.bandwidth = sourced; break;
        case Operation::Write: level.writeBandwidth = sourced; break;
        case Operation::Copy: level.copyBandwidth = sourced; break;
        case Operation::Triad: break;
        }
    }

    void putDerating(Operation operation, double share)
    {
        const Sourced sourced = measured(share, "best stream / specified bandwidth");
        switch (operation) {
        case Operation::Read: m_device.derating.read = sourced; break;
        case Operation::Write: m_device.derating.write = sourced; break;
        case Operation::Copy: m_device.derating.copy = sourced; break;
        case Operation::Triad: break;
        }
    }

    /// Raw samples, and the grade they earn.
    void keep(const std::string& name, const std::vector<double>& seconds, double bytes)
    {
        m_calibration.raw[name] = {{"bytes", bytes}, {"seconds", seconds}};
        m_grade = std::max(m_grade, std::string(1, gradeOf(summarize(seconds)).grade));
    }

    void finish(const RunStart& runStart)
    {
        const Json program = programProvenance();
        m_calibration.time = program.value("time", std::string());
        m_calibration.program = "memscape " + programVersion();
        m_calibration.machine = m_described.name;
        m_calibration.grade = m_grade;
        m_calibration.raw["provenance"] = machineFacts(m_session, runStart, m_described);
        m_device.basis = "calibrated";
        m_device.calibration = m_calibration;
    }

    GpuSession& m_session;
    const BackendDevice& m_described;
    RunSink& m_sink;
    Device m_device;
    Calibration m_calibration;
    std::string m_grade = "A";
    int m_done = 0;
};

} // namespace

Result<Device> calibrateGpu(GpuSession& session, const BackendDevice& device, RunSink& sink)
{
    return Calibrator(session, device, sink).run();
}

} // namespace memscape::cuda

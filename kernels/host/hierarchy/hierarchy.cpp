// SPDX-License-Identifier: Apache-2.0
// hierarchy, measured on the host: how long one dependent load takes in a working set, laid out in three
// ways, and how many bytes a second streams move through it.
//
// Latency is the fastest sample (noise only ever adds), bandwidth the median. Cycles are at the clock
// that the canary measures with a chain of multiplications, not at a datasheet's. The level is the one
// whose described latency is nearest to the measured one, as a ratio.
#include "kernels/host/hierarchy/bandwidth.h"
#include "kernels/host/hierarchy/latency.h"
#include "kernels/host/measurement.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

std::string nearestLevel(const Device& device, double seconds)
{
    std::string id;
    double best = std::numeric_limits<double>::infinity();
    for (const MemoryLevel& level : device.levels) {
        const bool onPath = level.kind == LevelKind::Cache || level.kind == LevelKind::Dram;
        if (!onPath || !level.latency.known() || !(level.latency.value > 0))
            continue;
        const double distance = std::abs(std::log(level.latency.value / seconds));
        if (distance < best) {
            best = distance;
            id = level.id;
        }
    }
    return id;
}

struct Variant
{
    const char* key;
    const char* label;
    LatencyVariant variant;
};
constexpr Variant variants[] = {{"latency_huge", "latency, huge pages", LatencyVariant::Huge},
                                {"latency_4k", "latency, 4 KiB pages", LatencyVariant::Small},
                                {"latency_window", "latency, few pages at a time", LatencyVariant::Window}};

class HierarchyMeasurement final : public HostMeasurement
{
public:
    explicit HierarchyMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override
    {
        // The chains are checked as they are built (latency.cpp).
        for (const Operation operation : {Operation::Read, Operation::Write, Operation::Copy, Operation::Triad}) {
            const StreamKernel kernel = bestStream(operation);
            MEMSCAPE_CHECK(checkStream(kernel).result(kernel.name()));
        }
        return {};
    }

    Result<SampleSets> visit(const Parameters& point, int pass) override
    {
        const auto bytes = static_cast<std::size_t>(point.integer("working_set"));
        MEMSCAPE_CHECK(m_session.checkFits(static_cast<double>(bytes)));
        m_session.memory().resetHighWater();
        const StoppingOptions options = m_session.passOptions(int(std::size(variants)) + 1);
        SampleSets sets;
        for (const Variant& one : variants) {
            MEMSCAPE_TRY(latency,
                         measureLatency(m_session, bytes, one.variant, 1 + static_cast<std::uint64_t>(pass), options));
            if (one.variant == LatencyVariant::Huge)
                noteSmallPages(latency.hugeShare);
            sets[one.key] = std::move(latency.seconds);
        }
        BandwidthPoint stream;
        stream.bytes = bytes;
        stream.operation = operationOf(point.choice("operation"));
        stream.threads = m_session.threadsFor(point.integer("threads"));
        stream.pages = point.choice("pages") == "huge" ? Pages::Huge : Pages::Small;
        MEMSCAPE_TRY(bandwidth, measureBandwidth(m_session, stream, options));
        m_namedBytes[keyOf(point)] = bandwidth.namedBytes;
        m_peak[keyOf(point)] = static_cast<double>(m_session.memory().highWater());
        m_threads = stream.threads;
        m_kernel = bestStream(stream.operation).name();
        sets["bandwidth"] = std::move(bandwidth.seconds);
        return sets;
    }

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        const auto summary = [&](const std::string& key) { return summarize(samples.at(key).merged()); };
        const std::string chosen = "latency_" + point.choice("pages");
        const Figure latency = timeFigure("latency", "latency", summary(chosen), true);
        const double clock = m_session.watch().clock();

        Figure level{"level", "level", Unit::One};
        level.value = nearestLevel(m_session.device(), latency.number());
        level.why = Why{"the level whose described latency is nearest to the measured one, as a ratio",
                        {},
                        {},
                        m_session.device().basis,
                        {"two levels of equal latency cannot be distinguished"}};
        Figure cycles{"cycles", "cycles", Unit::One};
        cycles.value = latency.number() * clock;
        if (latency.low)
            cycles.low = *latency.low * clock;
        if (latency.high)
            cycles.high = *latency.high * clock;
        Figure peak{"peak_memory", "peak memory", Unit::Byte};
        peak.value = m_peak[keyOf(point)];

        Figures figures{level, latency, cycles,
                        rateFigure("bandwidth", "bandwidth", m_namedBytes[keyOf(point)], summary("bandwidth"))};
        for (const Variant& one : variants)
            figures.push_back(timeFigure(one.key, one.label, summary(one.key), true));
        figures.push_back(peak);
        return figures;
    }

    Json method() const override
    {
        return {{"threads", m_threads},
                {"stream_kernel", m_kernel},
                {"simd", isaText(widestIsa())},
                {"chase", "64 B nodes, one random cycle a pass, unrolled 32 times, fastest sample"},
                {"pages", {{"latency_huge_share", jsonNumber(m_hugeShare)}}}};
    }

private:
    /// What differs between the points of any sweep.
    static std::string keyOf(const Parameters& point)
    {
        return fmt::format("{} {} {}", point.integer("working_set"), point.choice("operation"),
                           point.integer("threads"));
    }

    void noteSmallPages(double hugeShare)
    {
        m_hugeShare = hugeShare;
        if (hugeShare < 0.9)
            m_session.noteOnce("warning", "pages.small",
                               "huge pages were requested and not granted, so latency_huge is of 4 KiB "
                               "pages (/sys/kernel/mm/transparent_hugepage/enabled)");
    }

    HostSession& m_session;
    std::map<std::string, double> m_namedBytes, m_peak; ///< by keyOf()
    std::string m_kernel;
    int m_threads = 0;
    double m_hugeShare = 0;
};

} // namespace

std::unique_ptr<HostMeasurement> makeHierarchyMeasurement(HostSession& session)
{
    return std::make_unique<HierarchyMeasurement>(session);
}

} // namespace memscape::host

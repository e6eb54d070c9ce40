// SPDX-License-Identifier: Apache-2.0
// stride, measured on the host: one pass of the pattern, timed, for every point of the sweep.
//
// Time is measured. Useful bandwidth is the bytes that the program accesses over that time. Moved bandwidth multiplies
// lines by their size (read once, written twice because an ordinary store fetches its line first). The lines of a read
// are those that the processor's own counter saw in one more pass, where it has one (line_counter.h); else, and for
// writes and copies, those that the pattern touches, counted by the access model.
#include "core/experiments/stride/stride.h"

#include "kernels/host/measurement.h"
#include "kernels/host/stride/stride_walk.h"

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

/// Lines that cross the memory bus for one line of the walked array.
double crossings(Operation operation)
{
    switch (operation) {
    case Operation::Read: return 1;
    case Operation::Write: return 2; // fetched, then written back
    case Operation::Copy: return 3;  // read, and fetched and written back
    case Operation::Triad: break;    // no stride of three arrays
    }
    return 4;
}

class StrideMeasurement final : public HostMeasurement
{
public:
    explicit StrideMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override { return {}; } // in visit(): the kernel depends on the point

    Result<SampleSets> visit(const Parameters& point, int) override
    {
        MEMSCAPE_TRY(walk, strideCase(point));
        MEMSCAPE_CHECK(checkOnce(kernelFor(walk)));
        MEMSCAPE_TRY(seconds, measureStride(m_session, m_arrays, walk, m_session.passOptions()));
        m_peak[walk.arrayBytes * static_cast<std::uint64_t>(walk.arrays())] =
            static_cast<double>(m_session.memory().highWater());
        m_threads = m_session.threadsFor(walk.threadsOn(m_session.device()));
        MEMSCAPE_TRY(lines, countStrideLines(m_session, m_arrays, walk));
        if (lines)
            m_lines[walk] = *lines;
        m_hugeShare = m_arrays.hugeShare();
        if (m_hugeShare < 0.9)
            m_session.noteOnce("info", "pages.small",
                               "the arrays lie on 4 KiB pages: the system granted no huge pages "
                               "(/sys/kernel/mm/transparent_hugepage/enabled)");
        return SampleSets{{"time", std::move(seconds)}};
    }

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        MEMSCAPE_TRY(walk, strideCase(point));
        MEMSCAPE_TRY(figures, stridedCountFigures(m_session.device(), walk));
        const double line = m_session.device().lineBytes;
        MEMSCAPE_TRY(footprint, hostFootprint(walk, {static_cast<std::uint64_t>(line), 4096}));
        const Summary seconds = summarize(samples.at("time").merged());
        const auto counted = m_lines.find(walk);
        // Of a warm walk the counter says what L1 missed, which is not what the caches deliver.
        const bool isCounted = counted != m_lines.end() && walk.cold;
        const double lines = isCounted ? counted->second : footprint.lines;

        Figure moved =
            rateFigure("moved_bandwidth", "moved bandwidth", lines * line * crossings(walk.operation), seconds);
        Why why{"moved bandwidth = lines × line size × crossings / measured time", {}, {}, {}, {}};
        if (isCounted) {
            why.source = "lines counted by the processor (L1-dcache-load-misses); the time is measured";
        } else {
            why.source = "lines counted by the access model; the time is measured";
            why.omits = {notCounted(walk), "lines that prefetchers brought in vain"};
        }
        if (counted != m_lines.end())
            figures.push_back(figureOf(
                "lines_read", "lines read into L1", Unit::One, counted->second,
                Why{"L1-dcache-load-misses of one pass, in user mode", {}, {}, "counted by the processor", {}}));
        moved.why = std::move(why);
        figures.push_back(rateFigure("useful_bandwidth", "useful bandwidth", walk.usefulBytes(), seconds));
        figures.push_back(std::move(moved));
        figures.push_back(timeFigure("time", "time", seconds, false));
        Figure peak{"peak_memory", "peak memory", Unit::Byte};
        peak.value = m_peak[walk.arrayBytes * static_cast<std::uint64_t>(walk.arrays())];
        figures.push_back(std::move(peak));
        return figures;
    }

    Json method() const override
    {
        Json kernels = Json::array();
        for (const auto& [name, text] : m_checked)
            kernels.push_back({{"kernel", name}, {"check", text}});
        return {{"threads", m_threads},
                {"pages", m_hugeShare > 0.9 ? "huge (2 MiB)" : "small (4 KiB)"},
                {"huge_share", jsonNumber(m_hugeShare)},
                {"simd", isaText(widestIsa())},
                {"kernels", std::move(kernels)},
                {"moved_bytes",
                 m_lines.empty() ? "from the lines that the pattern touches" : "from lines that the processor counted"},
                {"line_counter", m_session.lineCounter().missing()}};
    }

private:
    /// Why the lines are those of the model.
    std::string notCounted(const StrideCase& walk)
    {
        const std::string& missing = m_session.lineCounter().missing();
        if (!missing.empty())
            return missing;
        if (walk.operation != Operation::Read)
            return "lines that stores fetch have no counter here";
        return walk.cold ? "the counter was given to another program" : "the counter sees what L1 missed alone";
    }
    Result<void> checkOnce(const StrideKernel& kernel)
    {
        if (m_checked.contains(kernel.name()))
            return {};
        const Check check = checkStride(kernel);
        m_checked[kernel.name()] = check.text();
        return check.result(kernel.name());
    }

    HostSession& m_session;
    StrideArrays m_arrays;
    std::map<std::string, std::string> m_checked;
    std::map<StrideCase, double> m_lines;   ///< of one pass
    std::map<std::uint64_t, double> m_peak; ///< by the bytes of all arrays
    int m_threads = 0;
    double m_hugeShare = 0;
};

} // namespace

std::unique_ptr<HostMeasurement> makeStrideMeasurement(HostSession& session)
{
    return std::make_unique<StrideMeasurement>(session);
}

} // namespace memscape::host

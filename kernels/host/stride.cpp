// SPDX-License-Identifier: Apache-2.0
// stride, measured on the host: one pass of the pattern, timed, for every point of the sweep.
//
// Time is measured. Useful bandwidth is the bytes that the program asks for over that time. Moved
// bandwidth multiplies the lines that the pattern touches by 64 bytes (read once, written twice because
// an ordinary store fetches its line first), counted by the access model: this program reads no
// hardware counters and does not claim to.
#include "core/experiments/stride/stride.h"

#include "kernels/host/measurement.h"
#include "kernels/host/stride_walk.h"

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
    }
    return 1;
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

        Figure moved = rateFigure("moved_bandwidth", "moved bandwidth",
                                  footprint.lines * line * crossings(walk.operation), seconds);
        moved.why = Why{"moved bandwidth = lines × line size × crossings / measured time",
                        {},
                        {},
                        "lines counted by the access model; the time is measured",
                        {"hardware counters are not read", "lines that prefetchers brought in vain"}};
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
                {"moved_bytes", "estimated from the lines that the pattern touches"}};
    }

private:
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

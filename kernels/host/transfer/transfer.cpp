// SPDX-License-Identifier: Apache-2.0
// transfer, measured on the host: real bytes through real ways (transfer_route.cpp), and a real kernel on each chunk
// once it is there (transfer_kernels.cpp).
//
//     time         all lanes together: a thread for each, chunk i waiting for the buffer of chunk i − d; in turn on one
//                  thread where the cores are too few (the prediction says so, too)
//     copy_time    the copies alone, on one thread
//     kernel_time  the kernel alone, over buffers that are there
//     latency      four bytes in one piece
// The link is probed again in turn with the points (link_prober.h).
// Before the first sample everything is moved once and every byte compared; a wrong one fails the run.
//
// Left out: buffers that another thread has just written, when the kernel is timed alone.
#include "kernels/host/transfer/transfer.h"

#include "kernels/host/common/simd.h"
#include "kernels/host/measurement.h"
#include "kernels/host/transfer/transfer_kernels.h"
#include "kernels/host/transfer/transfer_route.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::size_t mostLanes = 3;

/// One case that is ready to run: routes open, buffers touched.
class TransferRun
{
public:
    TransferRun(HostSession& session, TransferCase asked)
        : m_session(session)
        , m_asked(std::move(asked))
    {
        if (m_session.team().size() < transferLanes(m_asked.direction, m_asked.hasKernel()))
            m_asked.depth = 1;
    }

    Result<void> open()
    {
        const std::size_t stride = bufferStride(m_asked);
        const auto depth = std::size_t(m_asked.depth);
        MEMSCAPE_CHECK(
            m_session.checkFits(double(m_asked.bytes) * (1 + m_asked.goesOut()) + 2 * double(stride * depth)));
        const Pages pages = m_asked.kind == TransferKind::Fresh ? Pages::Small : Pages::Huge;
        MEMSCAPE_SET(m_buffers, allocate(stride * depth, pages, m_session.memory()));
        for (std::size_t i = 0; i < depth; ++i)
            fillSource(m_buffers.data() + i * stride, 0, std::size_t(m_asked.chunk));
        if (m_asked.goesIn())
            MEMSCAPE_SET(m_in, openTransferRoute(m_session, oneWay(TransferDirection::To)));
        if (m_asked.goesOut())
            MEMSCAPE_SET(m_out, openTransferRoute(m_session, oneWay(TransferDirection::From)));
        return {};
    }

    /// Moves everything once and compares every byte.
    Result<void> check()
    {
        Check check;
        const double seconds = withPartners(1, [&](int) {
            for (std::uint64_t i = 0; i < m_asked.chunks() && !stopping(); ++i) {
                const std::size_t offset = std::size_t(i * m_asked.chunk), bytes = bytesOf(i);
                if (m_in && !m_in->bring(buffer(i), offset, bytes))
                    m_lost = true;
                else if (m_in)
                    check.require(i, holdsSource(buffer(i), offset, bytes), "a byte that arrived is wrong");
                if (m_out) {
                    fillSource(buffer(i), offset, bytes);
                    const bool was = m_out->send(buffer(i), std::size_t(i), bytes);
                    m_lost = m_lost || !was;
                    check.require(i, was && m_out->hasArrived(buffer(i), std::size_t(i), bytes),
                                  "a byte that left is wrong");
                }
            }
        });
        static_cast<void>(seconds);
        MEMSCAPE_CHECK(whole());
        m_checked = check.text();
        return check.result("transfer " + transferKindKey(m_asked.kind));
    }

    /// Seconds of `repeats` times all chunks through all lanes.
    double allLanes(std::size_t repeats)
    {
        const std::vector<Lane> lanes = lanesOf(true, true);
        return m_asked.depth > 1 && lanes.size() > 1 ? sideBySide(lanes, repeats) : inTurn(lanes, repeats);
    }
    double copies(std::size_t repeats) { return inTurn(lanesOf(true, false), repeats); }
    double kernels(std::size_t repeats) { return inTurn(lanesOf(false, true), repeats); }

    /// run.cancelled, or run.failed when the other end is lost.
    Result<void> whole()
    {
        MEMSCAPE_CHECK(m_session.checkStopped());
        if (m_lost)
            return fail("run.failed", "the process at the other end was lost", "measure again");
        return {};
    }
    const TransferCase& asked() const { return m_asked; }
    const std::string& checked() const { return m_checked; }

private:
    /// A chunk through one lane; false ends the run.
    using Lane = std::function<bool(std::uint64_t chunk)>;

    TransferCase oneWay(TransferDirection direction) const
    {
        TransferCase way = m_asked;
        way.direction = direction;
        return way;
    }
    bool stopping() const { return m_lost || m_session.team().stopping(); }
    std::size_t bytesOf(std::uint64_t chunk) const
    {
        return std::size_t(chunk + 1 == m_asked.chunks() ? m_asked.lastChunk() : m_asked.chunk);
    }
    std::byte* buffer(std::uint64_t chunk) const
    {
        return m_buffers.data() + std::size_t(chunk % std::uint64_t(m_asked.depth)) * bufferStride(m_asked);
    }

    std::vector<Lane> lanesOf(bool withCopies, bool withKernel)
    {
        std::vector<Lane> lanes;
        if (withCopies && m_in)
            lanes.emplace_back(
                [this](std::uint64_t i) { return m_in->bring(buffer(i), std::size_t(i * m_asked.chunk), bytesOf(i)); });
        if (withKernel && m_asked.hasKernel())
            lanes.emplace_back([this, work = workKernel(), rounds = roundsOfWork(m_asked.work)](std::uint64_t i) {
                // In blocks, so that a run stops soon however much work there is.
                constexpr std::size_t block = std::size_t(1) << 20;
                float sum = 0;
                for (std::size_t at = 0; at < bytesOf(i) && !stopping(); at += block)
                    sum += work(buffer(i) + at, std::min(block, bytesOf(i) - at), rounds);
                m_sum.store(sum, std::memory_order_relaxed);
                return true;
            });
        if (withCopies && m_out)
            lanes.emplace_back([this](std::uint64_t i) { return m_out->send(buffer(i), std::size_t(i), bytesOf(i)); });
        return lanes;
    }

    /// `body` on so many threads, and behind them one for each route that another core has to serve.
    double withPartners(int threads, const std::function<void(int)>& body)
    {
        std::vector<TransferRoute*> served;
        for (const auto* route : {&m_in, &m_out}) {
            if (*route && m_asked.kind == TransferKind::Thread)
                served.push_back(route->get());
        }
        std::atomic<int> running{threads};
        std::atomic<bool> done{false};
        return m_session.team().run(
            [&](int thread) {
                if (thread < threads) {
                    body(thread);
                    done = running.fetch_sub(1) == 1;
                } else if (thread + 1 == threads + int(served.size()) || served.size() == 1) {
                    served.back()->serve(done);
                } else {
                    served.front()->serve(done);
                }
            },
            threads + int(served.size()));
    }

    double inTurn(const std::vector<Lane>& lanes, std::size_t repeats)
    {
        return withPartners(1, [&](int) {
            for (std::size_t k = 0; k < repeats && !stopping(); ++k) {
                for (std::uint64_t i = 0; i < m_asked.chunks() && !stopping(); ++i) {
                    for (const Lane& lane : lanes)
                        m_lost = !lane(i) || m_lost;
                }
            }
        });
    }

    double sideBySide(const std::vector<Lane>& lanes, std::size_t repeats)
    {
        struct alignas(cacheLine) Progress
        {
            std::atomic<std::uint64_t> chunks{0}; ///< that have left the lane, of all repetitions
        };
        std::array<Progress, mostLanes> progress;
        const std::uint64_t chunks = m_asked.chunks(), depth = std::uint64_t(m_asked.depth);
        const std::size_t last = lanes.size() - 1;
        const auto waitFor = [&](std::size_t lane, std::uint64_t count) {
            for (unsigned turns = 0; progress[lane].chunks.load(std::memory_order_acquire) < count && !stopping();)
                waitTurn(turns);
        };
        return withPartners(int(lanes.size()), [&](int thread) {
            const auto lane = std::size_t(thread);
            for (std::uint64_t k = 0; k < repeats; ++k) {
                for (std::uint64_t i = 0; i < chunks && !stopping(); ++i) {
                    const std::uint64_t all = k * chunks + i;
                    if (lane > 0)
                        waitFor(lane - 1, all + 1);
                    else // its buffer is free, and the repetition before has ended
                        waitFor(last, i < depth ? k * chunks : all - depth + 1);
                    m_lost = !lanes[lane](i) || m_lost;
                    progress[lane].chunks.store(all + 1, std::memory_order_release);
                }
            }
        });
    }

    HostSession& m_session;
    TransferCase m_asked;
    Buffer m_buffers;
    std::unique_ptr<TransferRoute> m_in, m_out;
    std::atomic<bool> m_lost{false};
    std::atomic<float> m_sum{0}; ///< of the kernel, so that it is computed
    std::string m_checked;
};

using Sampled = double (TransferRun::*)(std::size_t repeats);

Result<std::vector<double>> samplesOf(HostSession& session, TransferRun& run, Sampled sampled,
                                      const StoppingOptions& options)
{
    static_cast<void>((run.*sampled)(1));
    const double once = possibleSeconds((run.*sampled)(1), double(run.asked().bytes));
    MEMSCAPE_CHECK(run.whole());
    std::size_t repeats = 1;
    if (once < shortestSample) { // the first of a few may have waited for its threads
        const double ten = possibleSeconds((run.*sampled)(10) / 10, double(run.asked().bytes));
        repeats = std::clamp<std::size_t>(std::size_t(shortestSample / ten), 1, 100000);
    }
    MEMSCAPE_CHECK(run.whole());
    StoppingRule rule(options, session.clock());
    while (!rule.finished()) {
        const double sample = (run.*sampled)(repeats);
        MEMSCAPE_CHECK(run.whole()); // a stopped sample is not whole
        rule.add(sample);
    }
    return session.samplesOf(rule, double(repeats));
}

/// Seconds of a chunk that is copied while another core reads the one before.
Result<std::vector<double>> measureBeside(HostSession& session, std::size_t chunk, const StoppingOptions& options)
{
    TransferCase asked;
    asked.bytes = std::uint64_t(besideArray);
    asked.chunk = chunk;
    asked.depth = 2;
    asked.work = 1;
    TransferRun run(session, asked);
    MEMSCAPE_CHECK(run.open());
    MEMSCAPE_CHECK(run.check());
    MEMSCAPE_TRY(kernels, samplesOf(session, run, &TransferRun::kernels, options));
    MEMSCAPE_TRY(seconds, samplesOf(session, run, &TransferRun::allLanes, options));
    // The kernel of the last chunk runs alone.
    const double chunks = double(asked.chunks()), last = summarize(kernels).median / chunks;
    for (double& one : seconds)
        one = std::max(0.0, one - last) / chunks;
    return seconds;
}

class TransferMeasurement final : public HostMeasurement
{
public:
    explicit TransferMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override { return checkTransferKernels().result("transfer"); }

    Result<SampleSets> visit(const Parameters& point, int) override
    {
        MEMSCAPE_TRY(asked, transferCase(m_session.device(), point));
        MEMSCAPE_TRY(sets, sampled(asked));
        MEMSCAPE_CHECK(probe(transferPlan(m_session, asked.kind)));
        if (asked.depth > 1 && asked.hasKernel() && asked.goesIn())
            MEMSCAPE_CHECK(probe(besidePlan(m_session)));
        return sets;
    }

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        MEMSCAPE_TRY(asked, transferCase(m_session.device(), point));
        const auto timeOf = [&](const char* key) {
            const auto found = samples.find(key);
            if (found == samples.end())
                return TransferTime{};
            const Summary time = summarize(found->second.merged());
            return time.empty() ? TransferTime{} : TransferTime{time.median, time.minimum, time.q3};
        };
        TransferNumbers numbers{timeOf("time"), timeOf("copy_time"), timeOf("kernel_time"), timeOf("latency")};
        numbers.halfSize = measuredHalfSize(asked, numbers);
        return transferFigures(asked, numbers);
    }

    RunProbes probes() const override { return {m_prober.samples(), {}}; }

    Json method() const override
    {
        Json kernels = Json::array();
        for (const auto& [kind, check] : m_checked)
            kernels.push_back({{"kernel", "transfer " + kind}, {"check", check}});
        return {{"threads", m_session.team().size()},
                {"simd", isaText(widestIsa())},
                {"caches", "steady state: transfers follow each other"},
                {"kernels", std::move(kernels)}};
    }

private:
    /// All times of one visit. Its far end has ended when the link is probed: one that waits for requests would take
    /// turns with the probe's.
    Result<SampleSets> sampled(const TransferCase& asked)
    {
        SampleSets sets;
        MEMSCAPE_CHECK(sampleLatency(asked, sets));
        TransferRun run(m_session, asked);
        MEMSCAPE_CHECK(run.open());
        MEMSCAPE_CHECK(run.check());
        m_checked[transferKindKey(asked.kind)] = run.checked();
        const StoppingOptions options = m_session.passOptions(5);
        const auto sample = [&](const char* key, Sampled sampled) -> Result<void> {
            MEMSCAPE_SET(sets[key], samplesOf(m_session, run, sampled, options));
            return {};
        };
        MEMSCAPE_CHECK(sample("copy_time", &TransferRun::copies));
        if (asked.hasKernel())
            MEMSCAPE_CHECK(sample("kernel_time", &TransferRun::kernels));
        if (asked.hasKernel() || transferLanes(asked.direction, false) > 1)
            MEMSCAPE_CHECK(sample("time", &TransferRun::allLanes));
        else // the copies are all that there is
            sets["time"] = sets["copy_time"];
        return sets;
    }

    /// What the model says of a link is asked of it in turn with the points.
    Result<void> probe(std::optional<LinkPlan> plan)
    {
        if (plan)
            m_prober.add(std::move(*plan));
        return m_prober.take();
    }

    /// Four bytes in one piece, in the direction that was asked for.
    Result<void> sampleLatency(const TransferCase& asked, SampleSets& sets)
    {
        TransferCase least = asked;
        least.bytes = least.chunk = 4;
        least.depth = 1;
        least.work = 0;
        if (asked.goesIn() && asked.goesOut())
            least.direction = TransferDirection::To;
        TransferRun run(m_session, least);
        MEMSCAPE_CHECK(run.open());
        MEMSCAPE_CHECK(run.check());
        MEMSCAPE_SET(sets["latency"], samplesOf(m_session, run, &TransferRun::copies, m_session.passOptions(5)));
        return {};
    }

    HostSession& m_session;
    LinkProber m_prober{[this] { return m_session.readTicks(); }};
    std::map<std::string, std::string> m_checked;
};

} // namespace

std::vector<TransferKind> calibratedTransfers()
{
    return {TransferKind::Copy, TransferKind::Stream, TransferKind::Fresh, TransferKind::Huge,
            TransferKind::Numa, TransferKind::Thread, TransferKind::Pipe,  TransferKind::Shared};
}

Result<std::vector<double>> measureTransfer(HostSession& session, TransferKind kind, std::size_t bytes,
                                            const StoppingOptions& options)
{
    TransferCase asked;
    asked.kind = kind;
    asked.bytes = asked.chunk = bytes;
    TransferRun run(session, asked);
    MEMSCAPE_CHECK(run.open());
    MEMSCAPE_CHECK(run.check());
    return samplesOf(session, run, &TransferRun::copies, options);
}

std::optional<LinkPlan> transferPlan(HostSession& session, TransferKind kind)
{
    const std::string& id = transferKindKey(kind);
    if (kind == TransferKind::Numa && !session.device().link(id))
        return std::nullopt; // one node of memory
    return LinkPlan{{id, transferKindLabel(kind), {}},
                    {4, 0x1p10, 0x1p12, 0x1p15, 0x1p18, 0x1p20, 3 * 0x1p20, 0x1p24, 0x1p26},
                    [&session, kind](double bytes, const StoppingOptions& options) {
                        return measureTransfer(session, kind, std::size_t(bytes), options);
                    }};
}

std::optional<LinkPlan> besidePlan(HostSession& session)
{
    if (session.team().size() < transferLanes(TransferDirection::To, true))
        return std::nullopt;
    return LinkPlan{{besideLink, "copies beside a kernel", {}},
                    {0x1p14, 0x1p16, 0x1p18, 0x1p20, 0x1p22, 0x1p23},
                    [&session](double bytes, const StoppingOptions& options) {
                        return measureBeside(session, std::size_t(bytes), options);
                    }};
}

std::unique_ptr<HostMeasurement> makeTransferMeasurement(HostSession& session)
{
    return std::make_unique<TransferMeasurement>(session);
}

} // namespace memscape::host

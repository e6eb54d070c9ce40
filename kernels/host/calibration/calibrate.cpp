// SPDX-License-Identifier: Apache-2.0
// About a minute of probes from which the model of this machine is fitted (core/timing/calibration.h):
//   - the pointer chase over three working sets per doubling, in its three layouts;
//   - streams over two per doubling, on one core and on all of them, read, write and copy;
//   - walks over an array of eight times the last cache (twice one of hundreds of MiB) with 64 B to 16 KiB between
//     elements: how many lines a second arrive when the prefetchers can help, and when they cannot;
//   - random elements of arrays of growing size;
//   - walks within L1: how many elements a second a core starts;
//   - runs, columns and transpositions as `layout` makes them (calibrate_walks.cpp);
//   - transfers of each kind, 4 B to 64 MiB (transfer.cpp);
//   - steps of rings between threads and between processes, one on each core and two on each (sharding.cpp);
//   - a file, read cold and from the page cache by each method, and what is made of its numbers (file_prober.cpp);
//   - a matrix product of 1536³ in each format: what all cores reach.
// The order is random and the cached sizes come twice, so that intermittent load of others becomes spread, not shape.
// Values are of this program's own kernels, which is what predictions are compared with; no point that a prediction is
// compared on is copied into the model.
//
// Left out: levels of memory beyond the first node but its link, pages of 1 GiB, frequencies that depend on how many
// cores work.
#include "kernels/host/calibration/calibrate_walks.h"
#include "kernels/host/calibration/file_prober.h"
#include "kernels/host/calibration/operation_probes.h"
#include "kernels/host/checkpoint/checkpoint.h"
#include "kernels/host/hierarchy/bandwidth.h"
#include "kernels/host/hierarchy/latency.h"
#include "kernels/host/host_backend.h"
#include "kernels/host/link_prober.h"
#include "kernels/host/precision/precision.h"
#include "kernels/host/sharding/sharding.h"
#include "kernels/host/stride/stride_walk.h"
#include "kernels/host/transfer/transfer.h"
#include "kernels/measure/quality.h"
#include "kernels/measure/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace memscape::host {

namespace {

constexpr Operation operations[] = {Operation::Read, Operation::Write, Operation::Copy};

/// Working sets from `begin` to `end`, `steps` per doubling, whole lines.
std::vector<double> sizesBetween(double begin, double end, int steps)
{
    std::vector<double> sizes;
    for (int i = 0;; ++i) {
        const double size = begin * std::exp2(static_cast<double>(i) / steps);
        if (size > end * 1.001)
            return sizes;
        sizes.push_back(std::round(size / 64) * 64);
    }
}

constexpr int operationPasses = 6; ///< of a training step's operations, between the other probes
constexpr int settlingPasses = 2;  ///< more over the levels, while their fit is of no machine

/// One thing to measure: seconds of something, and where they go.
struct Task
{
    std::string part; ///< "latency", "bandwidth", …
    std::string label;
    int passes = 1;
    std::function<Result<std::vector<double>>(int pass)> measure;
    std::function<void(const Summary&)> store;
    PassSamples samples;
};

class Calibrator
{
public:
    explicit Calibrator(HostSession& session)
        : m_session(session)
        , m_lastCache(session.largestCache())
        , m_operations(session, fastestProduct(session).kernel)
        , m_files(session)
    {
        m_end = std::clamp(8 * m_lastCache, 0x1p26, std::min(0x1p30, std::max(0x1p28, 2 * m_lastCache)));
        m_probes.threads = std::max(1, session.device().threads);
        planLatencies();
        planBandwidths();
        planLineRates();
        planRandomRates();
        planIssueRates();
        planWalks();
        planTransfers();
        planRings();
        planReading();
        planConversions();
    }

    Result<HostProbes> run()
    {
        MEMSCAPE_CHECK(checkFits(3 * m_end));
        for (Task& task : m_tasks)
            m_total += task.passes;
        for (const Visit& visit : interleaved(m_tasks.size(), 2, 17)) {
            if (visit.pass >= m_tasks[visit.point].passes)
                continue;
            if (m_done % std::max(1, m_total / operationPasses) == 0)
                MEMSCAPE_CHECK(m_operations.pass());
            MEMSCAPE_CHECK(measure(m_tasks[visit.point], visit.pass));
        }
        storeLevels();
        for (int pass = 2; pass < 2 + settlingPasses && !levelsArePossible(); ++pass)
            MEMSCAPE_CHECK(measureLevelsAgain(pass));
        for (const Task& task : m_tasks) {
            if (!isOfLevels(task))
                task.store(summarize(task.samples.merged()));
        }
        m_session.sink().progress(m_done, m_total, "matrix products");
        MEMSCAPE_SET(m_probes.productRates, productRates(m_session));
        m_probes.operations = m_operations.probes();
        m_probes.tileRows = m_operations.product().tileRows;
        m_probes.tileColumns = m_operations.product().tileColumns;
        finish();
        return std::move(m_probes);
    }

private:
    Result<void> measure(Task& task, int pass)
    {
        m_session.sink().progress(m_done++, m_total, task.label);
        m_session.readCanary();
        MEMSCAPE_TRY(seconds, task.measure(pass));
        task.samples.add(pass, seconds);
        return {};
    }

    static bool isOfLevels(const Task& task) { return task.part == "latency" || task.part == "bandwidth"; }

    void storeLevels()
    {
        m_probes.latency4k.clear(), m_probes.latencyHuge.clear(), m_probes.latencyWindow.clear();
        for (BandwidthProbes& probes : m_probes.bandwidths)
            probes.points.clear();
        for (const Task& task : m_tasks) {
            if (isOfLevels(task))
                task.store(summarize(task.samples.merged()));
        }
    }

    bool levelsArePossible() const
    {
        const auto fitted = fitHostCalibration(m_session.device(), m_probes);
        return fitted || fitted.error().code != "run.impossible";
    }

    /// Something disturbed what contradicts itself: one more pass over all levels, as noise only adds.
    Result<void> measureLevelsAgain(int pass)
    {
        m_total += static_cast<int>(std::ranges::count_if(m_tasks, isOfLevels));
        for (const Visit& visit : interleaved(m_tasks.size(), 1, 17 + static_cast<std::uint64_t>(pass))) {
            if (isOfLevels(m_tasks[visit.point]))
                MEMSCAPE_CHECK(measure(m_tasks[visit.point], pass));
        }
        storeLevels();
        return {};
    }

private:
    void planLatencies()
    {
        struct Layout
        {
            LatencyVariant variant;
            const char* name;
            std::vector<Probe> HostProbes::*curve;
        };
        static constexpr Layout layouts[] = {{LatencyVariant::Small, "4 KiB pages", &HostProbes::latency4k},
                                             {LatencyVariant::Huge, "huge pages", &HostProbes::latencyHuge},
                                             {LatencyVariant::Window, "windows", &HostProbes::latencyWindow}};
        for (const Layout& layout : layouts) {
            for (const double size : sizesBetween(4096, m_end, 3)) {
                Task task;
                task.part = "latency";
                task.label = fmt::format("latency of {}, {}", quantityText(size, Unit::Byte), layout.name);
                task.passes = size <= 2 * m_lastCache ? 2 : 1;
                task.measure = [this, size, layout](int pass) -> Result<std::vector<double>> {
                    MEMSCAPE_TRY(samples,
                                 measureLatency(m_session, static_cast<std::size_t>(size), layout.variant,
                                                5 + static_cast<std::uint64_t>(pass), probeOptions(0.1)));
                    return std::move(samples.seconds);
                };
                // Latency is the fastest sample: noise only adds.
                task.store = [this, size, layout](const Summary& s) {
                    (m_probes.*layout.curve).push_back({size, s.minimum, s.minimum, s.q3});
                };
                m_tasks.push_back(std::move(task));
            }
        }
    }

    void planBandwidths()
    {
        std::vector<int> counts{1};
        if (m_session.team().size() > 1)
            counts.push_back(m_session.team().size());
        for (const int cores : counts) {
            for (const Operation operation : operations) {
                const std::size_t index = m_probes.bandwidths.size();
                // All cores are what "all threads" means, even where a core has two.
                const int threads = cores == m_session.team().size() ? m_probes.threads : cores;
                m_probes.bandwidths.push_back({operation, threads, {}});
                for (const double size : sizesBetween(4096.0 * cores, m_end, 2))
                    planBandwidth(index, operation, cores, size);
            }
        }
    }

    void planBandwidth(std::size_t index, Operation operation, int cores, double size)
    {
        Task task;
        task.part = "bandwidth";
        task.label = fmt::format("{} bandwidth of {}, {} {}", operationText(operation), quantityText(size, Unit::Byte),
                                 cores, cores == 1 ? "core" : "cores");
        task.measure = [this, operation, cores, size](int) -> Result<std::vector<double>> {
            BandwidthPoint point;
            point.bytes = static_cast<std::size_t>(size);
            point.operation = operation;
            point.threads = cores;
            MEMSCAPE_TRY(samples, measureBandwidth(m_session, point, probeOptions(0.1)));
            // Seconds per byte, so that a task has one kind of value.
            for (double& seconds : samples.seconds)
                seconds /= samples.namedBytes;
            return std::move(samples.seconds);
        };
        task.store = [this, index, size](const Summary& s) {
            if (s.minimum > 0)
                m_probes.bandwidths[index].points.push_back({size, 1 / s.median, 1 / s.q3, 1 / s.minimum});
        };
        m_tasks.push_back(std::move(task));
    }

    /// Seconds per access of a walk; `store` gets accesses per second.
    void planWalk(std::string part, std::string label, StrideCase walk, double wallLimit,
                  std::function<void(double)> store)
    {
        const auto complete = completed(walk);
        if (!complete)
            return;
        walk = *complete;
        Task task;
        task.part = std::move(part);
        task.label = std::move(label);
        task.measure = [this, walk, wallLimit](int) -> Result<std::vector<double>> {
            MEMSCAPE_TRY(seconds, measureStride(m_session, m_arrays[walk.arrays() - 1], walk, probeOptions(wallLimit)));
            for (double& one : seconds)
                one /= static_cast<double>(walk.accesses);
            return seconds;
        };
        task.store = [store = std::move(store)](const Summary& s) {
            if (s.median > 0)
                store(1 / s.median);
        };
        m_tasks.push_back(std::move(task));
    }

    void planLineRates()
    {
        for (const Operation operation : operations) {
            for (const std::uint64_t pitch : {64u, 128u, 192u, 256u, 512u, 1024u, 2048u, 4096u, 8192u, 16384u}) {
                StrideCase walk;
                walk.operation = operation;
                walk.stride = pitch / walk.elementBytes;
                walk.arrayBytes = static_cast<std::uint64_t>(m_end);
                planWalk("line rate", fmt::format("{}, a line every {} B", operationText(operation), pitch), walk, 0.4,
                         [this, operation, pitch](double rate) {
                             m_probes.lineRates.push_back({operation, static_cast<double>(pitch), rate});
                         });
            }
        }
    }

    void planRandomRates()
    {
        for (const Operation operation : operations) {
            for (const double bytes : sizesBetween(0x1p16, m_end, 1)) {
                StrideCase walk;
                walk.pattern = Pattern::Random;
                walk.operation = operation;
                walk.arrayBytes = static_cast<std::uint64_t>(bytes);
                planWalk("random rate",
                         fmt::format("random {} of {}", operationText(operation), quantityText(bytes, Unit::Byte)),
                         walk, 0.2, [this, operation, bytes](double rate) {
                             m_probes.randomRates.push_back({operation, bytes, rate});
                         });
            }
        }
    }

    void planIssueRates()
    {
        for (const Operation operation : operations) {
            for (const std::uint64_t element : {1u, 2u, 4u, 8u, 16u}) {
                for (const bool contiguous : {true, false}) {
                    // Half of an L1 of every core, walked by neighbours or by every other element.
                    StrideCase walk;
                    walk.operation = operation;
                    walk.elementBytes = element;
                    walk.stride = contiguous ? 1 : 2;
                    walk.arrayBytes = static_cast<std::uint64_t>(16384 / walk.arrays() * m_session.team().size());
                    walk.cold = false;
                    planWalk(
                        "issue rate", fmt::format("{} {} B from L1", operationText(operation), element), walk, 0.05,
                        [this, operation, element, contiguous](double rate) {
                            m_probes.issueRates.push_back({operation, static_cast<double>(element), contiguous, rate});
                        });
                }
            }
        }
    }

    void planWalks()
    {
        for (WalkProbe& probe : walkProbes(m_session.device(), m_end)) {
            Task task;
            task.part = "walks";
            task.label = probe.label;
            task.passes = probe.storageBytes() + probe.targetBytes() <= m_lastCache ? 2 : 1;
            const std::size_t index = m_probes.walkRates.size();
            m_probes.walkRates.push_back(probe.rate);
            // As of the chase: noise only adds. What stores shares the memory with others and takes what is usual.
            const bool isShared = probe.rate.kind == "copy stream" || probe.rate.kind.starts_with("tiles");
            task.measure = [this, probe = std::move(probe)](int) {
                StoppingOptions options = probeOptions(0.02);
                options.minimumSamples = 3;
                return measureWalk(m_session, m_walkArrays, probe, options);
            };
            task.store = [this, index, isShared](const Summary& s) {
                m_probes.walkRates[index].seconds = std::max(0.0, isShared ? s.median : s.minimum);
            };
            m_tasks.push_back(std::move(task));
        }
    }

    void planTransfers()
    {
        for (const TransferKind kind : calibratedTransfers()) {
            if (auto plan = transferPlan(m_session, kind))
                planLinks(std::move(*plan));
        }
        if (auto plan = besidePlan(m_session))
            planLinks(std::move(*plan));
    }

    /// Steps of rings that have a rank on each core, and of those whose ranks take turns.
    void planRings()
    {
        for (const ShardingWay way : {ShardingWay::Threads, ShardingWay::Processes}) {
            for (const int kind : {0, 1, 2, 3}) {
                if (auto plan = ringLinkPlan(m_session, {way, kind % 2 == 1, kind >= 2}))
                    planLinks(std::move(*plan));
            }
        }
    }

    void planLinks(LinkPlan plan)
    {
        const std::size_t index = m_probes.links.size();
        m_probes.links.push_back(plan.link);
        for (const double bytes : plan.sizes) {
            planLink(index, bytes, "transfers", fmt::format("{} of {}", plan.link.label, bytesText(bytes)),
                     [measure = plan.measure, bytes]() -> Result<std::vector<double>> {
                         auto seconds = measure(bytes, probeOptions(0.05));
                         if (!seconds && seconds.error().code == "run.skipped") // not on this machine
                             return std::vector<double>();
                         return seconds;
                     });
            m_tasks.back().passes = bytes * plan.link.touched <= m_lastCache ? 2 : 1;
        }
    }

    /// Where one probe of a link goes.
    void planLink(std::size_t index, double bytes, std::string part, std::string label,
                  std::function<Result<std::vector<double>>()> measure)
    {
        Task task;
        task.part = std::move(part);
        task.label = std::move(label);
        task.passes = 2;
        task.measure = [measure = std::move(measure)](int) { return measure(); };
        task.store = [this, index, bytes](const Summary& s) {
            if (s.median > 0)
                m_probes.links[index].points.push_back({bytes, s.median});
        };
        m_tasks.push_back(std::move(task));
    }

    void planReading()
    {
        planFileLinks(m_files.readings(), "files", 0.1);
        Task task;
        task.part = "files";
        task.label = "pieces of the page cache";
        task.measure = [this](int) { return m_files.measurePageCache(); };
        task.store = [this](const Summary&) { m_probes.pageCache = m_files.pageCache(); };
        m_tasks.push_back(std::move(task));
    }

    void planConversions() { planFileLinks(m_files.conversions(), "conversions", 0.05); }

    void planFileLinks(const std::vector<LinkPlan>& plans, const std::string& part, double wallLimit)
    {
        for (const LinkPlan& plan : plans) {
            const std::size_t index = m_probes.links.size();
            m_probes.links.push_back(plan.link);
            for (const double bytes : plan.sizes) {
                planLink(
                    index, bytes, part, fmt::format("{} of {}", plan.link.label, bytesText(bytes)),
                    [measure = plan.measure, bytes, wallLimit] { return measure(bytes, probeOptions(wallLimit)); });
            }
        }
    }

    /// Curves in ascending order, the clock, and a grade: the worst part's typical probe.
    void finish()
    {
        m_probes.clockHz = m_session.watch().clock();
        std::map<std::string, std::vector<double>> spreads;
        for (const Task& task : m_tasks)
            spreads[task.part].push_back(summarize(task.samples.merged()).relativeIqr);
        const RunConditions seen = m_session.watch().conditions(m_session.readTicks(), 0);
        const Quality worst = gradeOfParts(spreads, seen.stealShare);
        m_probes.grade = std::string(1, worst.grade);
        m_probes.notes = m_files.notes();
        m_probes.notes.push_back("calibration grade " + m_probes.grade + ": " + worst.reason);
    }

    HostSession& m_session;
    double m_lastCache;
    double m_end = 0; ///< the largest working set
    HostProbes m_probes;
    int m_total = 1; ///< steps; the last one: products
    int m_done = 0;
    OperationProber m_operations;
    std::vector<Task> m_tasks;
    WalkArrays m_walkArrays;
    FileProber m_files;
    std::array<StrideArrays, 2> m_arrays; ///< of walks with one array and with two
};

} // namespace

Result<HostProbes> probeHost(HostSession& session)
{
    return Calibrator(session).run();
}

} // namespace memscape::host

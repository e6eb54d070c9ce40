// SPDX-License-Identifier: Apache-2.0
// loading, measured on the host: a real file, read by the method that was asked for, cold or warm, really converted.
//
//     time          all lanes side by side, a thread each (loading_run.cpp)
//     read_time     reading alone; before each sample the file is made cold, and mincore() has to agree, or warm: our
//                   own is dropped and read once, so that its pieces in the page cache are those of a file that was
//                   read
//     convert_time  converting alone, from buffers that are there
// Beside the times: bytes that devices gave (/proc/self/io), what stays in the page cache (mincore), faults of the
// thread that reads (getrusage), the memory of the loader to the byte. Before the first sample everything is loaded
// once and compared with the file.
//
// The memory that the bytes arrive in is touched before; what its page faults cost is `transfer`'s to say (fresh).
#include "kernels/host/loading/loading.h"

#include "core/timing/page_cache.h"
#include "kernels/host/loading/loading_kernels.h"
#include "kernels/host/measurement.h"
#include "kernels/host/transfer/transfer_kernels.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::uint64_t calibratedChunk = std::uint64_t(16) << 20;

class LoadingMeasurement final : public HostMeasurement
{
public:
    explicit LoadingMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override { return checkLoadingConversions().result("loading"); }

    Result<SampleSets> visit(const Parameters& point, int) override
    {
        MEMSCAPE_TRY(asked, loadingCase(m_session.device(), point));
        MEMSCAPE_CHECK(checkMeasurable(asked));
        if (m_checked.empty() && asked.file.empty())
            m_session.sink().progress(0, 0, fmt::format("writing {}", bytesText(double(asked.bytes))));
        MEMSCAPE_TRY(file, m_files.fileFor(m_session, asked));
        MEMSCAPE_TRY(sets, loaded(point, asked, *file));
        m_prober.add(readingPlan(m_session, asked.method, asked.isWarm,
                                 [this, asked] { return m_files.fileFor(m_session, asked); }));
        MEMSCAPE_CHECK(m_prober.take());
        return sets;
    }

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        MEMSCAPE_TRY(asked, loadingCase(m_session.device(), point));
        std::map<std::string, Summary> summaries;
        for (const auto& [key, passes] : samples)
            summaries[key] = summarize(passes.merged());
        const auto seen = m_seen.find(keyOf(point));
        if (seen == m_seen.end())
            return loadingFigures(asked, measuredLoading(summaries, {}, nan));
        return loadingFigures(asked, measuredLoading(summaries, seen->second.first, seen->second.second));
    }

    RunProbes probes() const override { return {m_prober.samples(), {}}; }

    Json method() const override
    {
        return {{"threads", m_session.team().size()},
                {"caches", "pages dropped with posix_fadvise before each cold sample, counted with mincore"},
                {"kernels", Json::array({{{"kernel", "loading"}, {"check", m_checked}}})}};
    }

private:
    /// Maps the file no longer once it is done: mapped pages cannot leave the page cache before a probe.
    Result<SampleSets> loaded(const Parameters& point, const LoadingCase& asked, const LoadingFile& file)
    {
        m_session.memory().resetHighWater();
        const std::int64_t before = m_session.memory().used();
        LoadingRun run(m_session, file, asked);
        MEMSCAPE_CHECK(run.open());
        const auto memory = double(m_session.memory().highWater() - before);
        MEMSCAPE_CHECK(run.check());
        m_checked = run.checked();
        MEMSCAPE_TRY(sets, sampleLoading(m_session, run, m_session.passOptions(asked.hasConversion() ? 3 : 1)));
        m_seen[keyOf(point)] = {run.seen(), memory};
        if (!asked.isWarm && run.seen().deviceBytes == 0)
            m_session.noteOnce("info", "loading.bytes",
                               "the filesystem reports no bytes read (/proc/self/io); that the file was cold is "
                               "mincore()'s word");
        return sets;
    }

    static std::string keyOf(const Parameters& point) { return jsonLine(parametersToJson(point)); }

    HostSession& m_session;
    LoadingFiles m_files;
    LinkProber m_prober{[this] { return m_session.readTicks(); }};
    std::map<std::string, std::pair<LoadingSeen, double>> m_seen;
    std::string m_checked;
};

Result<std::vector<double>> sampledLanes(HostSession& session, LoadingRun& run, const LanesUsed& used,
                                         const StoppingOptions& options)
{
    MEMSCAPE_TRY(once, run.sample(used)); // wakes the disk, too
    StoppingRule rule(loadingOptions(options, once), session.clock());
    while (!rule.finished()) {
        MEMSCAPE_TRY(seconds, run.sample(used));
        rule.add(seconds);
    }
    return session.samplesOf(rule, 1);
}

} // namespace

Result<void> checkMeasurable(const LoadingCase& asked)
{
    if (asked.medium != LoadingMedium::Host && asked.medium != LoadingMedium::PageCache)
        return fail("run.skipped", "a measurement reads this machine's disk",
                    "choose medium=host or page-cache and no medium_file, or look at the prediction", "medium");
    if (asked.file.ends_with(".json"))
        return fail("run.skipped", "an index names several files, and one is measured at a time",
                    "choose one of the safetensors files beside it", "file");
    return {};
}

StoppingOptions loadingOptions(StoppingOptions options, double once)
{
    options.minimumSamples = std::min<std::size_t>(options.minimumSamples, 5);
    options.minimumTime = 0;
    options.wallLimit = std::min(options.wallLimit, std::max(0.05, 30 * once));
    options.target = options.shortTarget = 0.05;
    return options;
}

Result<const LoadingFile*> LoadingFiles::fileFor(HostSession& session, const LoadingCase& asked)
{
    if (m_file && m_path == asked.file && m_file->bytes() >= asked.bytes)
        return &*m_file;
    m_file.reset();
    MEMSCAPE_SET(m_file,
                 asked.file.empty() ? LoadingFile::write(session, asked.folder, asked.bytes, asked.limit)
                                    : LoadingFile::open(asked.file));
    m_path = asked.file;
    return &*m_file;
}

Result<SampleSets> sampleLoading(HostSession& session, LoadingRun& run, const StoppingOptions& options)
{
    SampleSets sets;
    MEMSCAPE_SET(sets["read_time"], sampledLanes(session, run, {true, false, false}, options));
    if (run.asked().hasConversion())
        MEMSCAPE_SET(sets["convert_time"], sampledLanes(session, run, {false, true, false}, options));
    if (run.asked().goesToGpu)
        MEMSCAPE_SET(sets["copy_time"], sampledLanes(session, run, {false, false, true}, options));
    if (sets.size() == 1) { // reading is all that there is
        sets["time"] = sets["read_time"];
        return sets;
    }
    MEMSCAPE_SET(sets["time"], sampledLanes(session, run, {}, options));
    return sets;
}

LoadingNumbers measuredLoading(const std::map<std::string, Summary>& samples, const LoadingSeen& seen,
                               double hostMemory)
{
    const auto timeOf = [&](const char* key) {
        const auto found = samples.find(key);
        if (found == samples.end() || found->second.empty())
            return LoadingTime{};
        return LoadingTime{found->second.median, found->second.minimum, found->second.q3};
    };
    const auto known = [](double value) { return value < 0 ? nan : value; };
    LoadingNumbers numbers{timeOf("time"), timeOf("read_time"), timeOf("convert_time"), timeOf("copy_time")};
    numbers.hostMemory = hostMemory;
    numbers.pageCache = known(seen.cachedBytes);
    numbers.diskBytes = known(seen.deviceBytes);
    numbers.faults = known(seen.faults);
    return numbers;
}

Result<std::vector<double>> measureReading(HostSession& session, const LoadingFile& file, LoadingMethod method,
                                           bool isWarm, std::uint64_t bytes, const StoppingOptions& options,
                                           LoadingSeen* seen)
{
    LoadingCase asked;
    asked.fileBytes = asked.bytes = asked.elements = bytes;
    // Threads wait for each other at the end of a chunk, which costs α again: the rate is that of one chunk.
    asked.chunk = method == LoadingMethod::Parallel ? bytes : std::min(bytes, calibratedChunk);
    asked.method = method;
    asked.isWarm = isWarm;
    asked.threads = method == LoadingMethod::Parallel ? 4 : 1;
    LoadingRun run(session, file, asked);
    MEMSCAPE_CHECK(run.open());
    if (bytes <= calibratedChunk) // a larger one is made of the same reads
        MEMSCAPE_CHECK(run.check());
    auto seconds = sampledLanes(session, run, {true, false, false}, options);
    if (seen)
        *seen = run.seen();
    return seconds;
}

LinkPlan readingPlan(HostSession& session, LoadingMethod method, bool isWarm,
                     std::function<Result<const LoadingFile*>()> file)
{
    const std::string id = loadingReadLink(method, isWarm);
    LinkPlan plan{
        {id, id, {}, loadingTouched(method, isWarm)}, {0x1p20, 0x1p22, 0x1p24, 40 * 0x1p20, calibratedFile}, {}};
    plan.link.hasFarPieces = isWarm && method != LoadingMethod::Mmap;
    if (method != LoadingMethod::Direct)
        plan.link.leastPiece = isWarm && method == LoadingMethod::Mmap ? faultAround : filePage;
    plan.measure = [&session, method, isWarm, file = std::move(file)](
                       double bytes, const StoppingOptions& options) -> Result<std::vector<double>> {
        MEMSCAPE_TRY(read, file());
        if (bytes > double(read->bytes())) // a smaller file of the user's own
            return fail("run.skipped", "the file is smaller", "choose a larger file", "file");
        return measureReading(session, *read, method, isWarm, std::uint64_t(bytes), options);
    };
    return plan;
}

Result<std::vector<double>> measureConverting(HostSession& session, LoadingForm form, LoadingTarget target,
                                              std::uint64_t bytes, const StoppingOptions& options)
{
    LoadingFile none;
    LoadingCase asked;
    asked.fileBytes = asked.bytes = bytes;
    asked.elements = std::uint64_t(double(bytes) * 8 / loadingFormBits(form));
    asked.form = form;
    asked.target = target;
    asked.copies = target == LoadingTarget::AsStored ? LoadingCopies::Twice : LoadingCopies::Stream;
    asked.chunk = std::min(bytes, calibratedChunk);
    asked.depth = asked.chunks() > 1 ? 2 : 1;
    LoadingRun run(session, none, asked);
    return run.openMemory().and_then([&] { return sampledLanes(session, run, {false, true, false}, options); });
}

std::unique_ptr<HostMeasurement> makeLoadingMeasurement(HostSession& session)
{
    return std::make_unique<LoadingMeasurement>(session);
}

} // namespace memscape::host

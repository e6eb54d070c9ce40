// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/loading/loading_run.h"

#include "core/base/rounding.h"
#include "kernels/host/loading/bus_guard.h"
#include "kernels/host/loading/loading_kernels.h"
#include "kernels/host/transfer/transfer_kernels.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace memscape::host {

namespace {

constexpr std::size_t loadingBlock = 4096; ///< that direct I/O and pages are made of
constexpr int mostReaders = 64;

/// Waits a moment, then sleeps for moments: the processor may be needed by the lane that is waited for.
void waitQuietly(unsigned& turns)
{
    if (++turns < 200)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    else
        std::this_thread::sleep_for(std::chrono::microseconds(5));
}

long threadFaults()
{
    struct rusage usage = {};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt + usage.ru_majflt : 0;
}

/// Chunks that a thread has done, on a line of its own.
struct alignas(cacheLine) LaneProgress
{
    std::atomic<std::uint64_t> chunks{0};
};

} // namespace

LoadingRun::LoadingRun(HostSession& session, const LoadingFile& file, LoadingCase asked, LoadingSink* sink)
    : m_session(session)
    , m_file(file)
    , m_asked(std::move(asked))
    , m_sink(sink)
{ }

LoadingRun::~LoadingRun()
{
    unmapFile();
}

Result<void> LoadingRun::open()
{
    if (m_asked.changesForm() && !hasLoadingConversion(m_asked.form, m_asked.target))
        return fail("run.skipped", "numbers that are stored so are not converted here",
                    "choose dtype=fp32, bf16, fp16, int8 or int4, or convert=none", "convert");
    if (m_file.bytes() < m_asked.bytes)
        return fail("run.failed",
                    fmt::format("the file became shorter: {} of {}", bytesText(double(m_file.bytes())),
                                bytesText(double(m_asked.bytes))),
                    "leave the file as it is while it is measured", m_file.path());
    if (m_asked.method == LoadingMethod::Direct)
        MEMSCAPE_SET(m_direct, m_file.openDirect());
    for (int thread = 1; thread < std::clamp(m_asked.threads, 1, mostReaders); ++thread)
        m_others.push_back(m_file.openAgain());
    return openMemory();
}

int LoadingRun::readDescriptor(int thread) const
{
    if (m_direct.get() >= 0)
        return m_direct.get();
    const int own = thread > 0 && std::size_t(thread) <= m_others.size() ? m_others[std::size_t(thread) - 1].get() : -1;
    return own >= 0 ? own : m_file.descriptor();
}

Result<void> LoadingRun::openMemory()
{
    const bool isStaged = m_sink != nullptr;
    const auto chunks = m_asked.chunks(), depth = std::min<std::uint64_t>(std::uint64_t(m_asked.depth), chunks);
    const bool isWhole = m_asked.readsInPlace() && !m_asked.isMapped();
    const std::uint64_t read = m_asked.readMemory() > 0
        ? (isWhole
               ? roundedUp(m_asked.chunk, loadingBlock) * (chunks - 1) + roundedUp(m_asked.lastChunk(), loadingBlock)
               : roundedUp(m_asked.chunk, loadingBlock) * depth)
        : 0;
    const std::uint64_t converted = m_asked.hasConversion()
        ? (m_asked.convertsInPlace()
               ? convertedStride() * (chunks - 1) + roundedUp(convertedSize(chunks - 1), cacheLine)
               : convertedStride() * depth)
        : 0;
    MEMSCAPE_CHECK(m_session.checkFits(double(read + converted)));
    // What copies come from is the sink's, pinned or not; the rest is ours.
    const auto take = [&](std::uint64_t bytes, bool isSinks, Buffer& buffer, std::byte*& at) -> Result<void> {
        if (bytes == 0)
            return {};
        if (isSinks) {
            MEMSCAPE_SET(at, m_sink->stage(bytes));
        } else {
            MEMSCAPE_SET(buffer, allocate(std::size_t(bytes), Pages::Huge, m_session.memory()));
            at = buffer.data();
        }
        std::memset(at, 0, std::size_t(bytes)); // touched before it is timed
        return {};
    };
    MEMSCAPE_CHECK(take(read, isStaged && !m_asked.hasConversion(), m_readMemory, m_readAt));
    return take(converted, isStaged, m_convertedMemory, m_convertedAt);
}

std::byte* LoadingRun::readBuffer(std::uint64_t chunk) const
{
    const bool isWhole = m_asked.readsInPlace() && !m_asked.isMapped();
    return m_readAt + roundedUp(m_asked.chunk, loadingBlock) * (isWhole ? chunk : chunk % std::uint64_t(m_asked.depth));
}

const std::byte* LoadingRun::readBytes(std::uint64_t chunk) const
{
    return m_asked.isMapped() && !m_asked.copiesMappedPages() ? m_mapping + chunk * m_asked.chunk : readBuffer(chunk);
}

std::uint64_t LoadingRun::convertedStride() const
{
    return roundedUp(std::max<std::uint64_t>(1, convertedSize(0)), cacheLine);
}

std::byte* LoadingRun::convertedBuffer(std::uint64_t chunk) const
{
    return m_convertedAt
        + convertedStride() * (m_asked.convertsInPlace() ? chunk : chunk % std::uint64_t(m_asked.depth));
}

std::size_t LoadingRun::elementsOf(std::uint64_t chunk) const
{
    const auto bytes = double(m_asked.chunkBytes(chunk));
    if (!m_asked.changesForm())
        return std::size_t(bytes);
    const double size = m_asked.target == LoadingTarget::Float32 ? 4 : 2;
    return std::size_t(std::min(std::floor(8 * bytes / loadingFormBits(m_asked.form)),
                                std::floor(m_asked.convertedBytes(bytes) / size)));
}

std::uint64_t LoadingRun::convertedSize(std::uint64_t chunk) const
{
    const std::uint64_t size = !m_asked.changesForm() ? 1 : m_asked.target == LoadingTarget::Float32 ? 4 : 2;
    return m_asked.hasConversion() ? elementsOf(chunk) * size : m_asked.chunkBytes(chunk);
}

void LoadingRun::failWith(Error error)
{
    const std::lock_guard lock(m_mutex);
    if (!m_error)
        m_error = std::move(error);
    m_stop = true;
}

void LoadingRun::readPart(int thread, std::uint64_t chunk)
{
    const std::uint64_t begin = chunk * m_asked.chunk, bytes = m_asked.chunkBytes(chunk);
    const Error shorter{"run.failed", "the file became shorter while it was read", m_file.path(),
                        "leave the file as it is while it is measured"};
    if (m_asked.isMapped()) {
        const std::byte* const from = m_mapping + begin;
        std::byte* const to = m_asked.copiesMappedPages() ? readBuffer(chunk) : nullptr;
        unsigned sum = 0;
        const bool isWhole = survivesShrinking([&] {
            if (to)
                std::memcpy(to, from, std::size_t(bytes));
            else
                for (std::uint64_t at = 0; at < bytes; at += loadingBlock)
                    sum += unsigned(*reinterpret_cast<const volatile std::byte*>(from + at));
        });
        m_touched.fetch_add(sum, std::memory_order_relaxed);
        return isWhole ? void() : failWith(shorter);
    }
    const bool isDirect = m_direct.get() >= 0;
    const int file = readDescriptor(thread);
    const Part part = partOf(std::size_t(bytes), thread, m_asked.threads, loadingBlock);
    std::byte* const to = readBuffer(chunk);
    for (std::size_t at = part.begin; at < part.end;) {
        const std::size_t wanted = part.end - at;
        const ssize_t count =
            ::pread(file, to + at, isDirect ? std::size_t(roundedUp(wanted, loadingBlock)) : wanted, off_t(begin + at));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return failWith(fileError(errno == EINVAL && isDirect ? "run.skipped" : "run.failed",
                                      "the file cannot be read", m_file.path(), errno));
        if (count == 0)
            return failWith(shorter);
        at += std::size_t(count);
    }
}

void LoadingRun::convertChunk(std::uint64_t chunk)
{
    const std::byte* const from = readBytes(chunk);
    std::byte* const to = convertedBuffer(chunk);
    const bool isWhole =
        survivesShrinking([&] { convertLoaded(m_asked.form, m_asked.target, from, to, elementsOf(chunk)); });
    if (!isWhole)
        failWith({"run.failed", "the file became shorter while it was read", m_file.path(),
                  "leave the file as it is while it is measured"});
}

void LoadingRun::copyChunk(std::uint64_t chunk)
{
    const std::byte* const from = m_asked.hasConversion() ? convertedBuffer(chunk) : readBytes(chunk);
    const std::uint64_t offset = m_asked.hasConversion() ? chunk * convertedSize(0) : chunk * m_asked.chunk;
    if (auto copied = m_sink->copy(from, offset, convertedSize(chunk)); !copied)
        failWith(copied.error());
}

void LoadingRun::runLane(const Lane& lane, int thread, std::uint64_t chunk)
{
    switch (lane.step) {
    case LoadingStep::Read: return readPart(thread, chunk);
    case LoadingStep::Convert: return convertChunk(chunk);
    case LoadingStep::Copy: return copyChunk(chunk);
    }
}

double LoadingRun::runLanes(const std::vector<Lane>& lanes)
{
    const std::uint64_t chunks = m_asked.chunks(), depth = std::uint64_t(m_asked.depth);
    std::vector<std::vector<LaneProgress>> progress;
    int count = 0;
    for (const Lane& lane : lanes) {
        progress.emplace_back(std::size_t(lane.threads));
        count += lane.threads;
    }
    const auto waitFor = [&](std::size_t lane, std::uint64_t wanted) {
        for (const LaneProgress& one : progress[lane]) {
            for (unsigned turns = 0; one.chunks.load(std::memory_order_acquire) < wanted && !isStopping();)
                waitQuietly(turns);
        }
    };
    std::atomic<int> ready{0}, running{count};
    std::atomic<bool> isGo{false};
    std::vector<double> begins(std::size_t(count), 0.0), ends(std::size_t(count), 0.0);
    const auto body = [&](std::size_t index, int thread, int place) {
        ++ready;
        for (unsigned turns = 0; !isGo.load(std::memory_order_acquire);)
            waitQuietly(turns);
        const long before = threadFaults();
        begins[std::size_t(place)] = m_session.clock().now();
        for (std::uint64_t i = 0; i < chunks && !isStopping(); ++i) {
            if (index > 0)
                waitFor(index - 1, i + 1);
            else if (i >= depth)
                waitFor(lanes.size() - 1, i - depth + 1);
            if (!isStopping())
                runLane(lanes[index], thread, i);
            progress[index][std::size_t(thread)].chunks.store(i + 1, std::memory_order_release);
        }
        ends[std::size_t(place)] = m_session.clock().now();
        if (lanes[index].step == LoadingStep::Read)
            m_faults += threadFaults() - before;
        --running;
    };
    std::vector<std::jthread> threads;
    threads.reserve(std::size_t(count));
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        for (int thread = 0; thread < lanes[lane].threads; ++thread)
            threads.emplace_back(body, lane, thread, int(threads.size()));
    }
    for (unsigned turns = 0; ready < count;)
        waitQuietly(turns);
    isGo.store(true, std::memory_order_release);
    for (unsigned turns = 0; running > 0;) {
        waitQuietly(turns);
        if (turns % 512 == 0 && m_session.stopped())
            m_stop = true;
    }
    threads.clear(); // joined
    // From the first thread's beginning: how soon a thread is woken is not what loading costs.
    return *std::ranges::max_element(ends) - *std::ranges::min_element(begins);
}

Result<void> LoadingRun::mapFile()
{
    unmapFile();
    void* const mapping = ::mmap(nullptr, std::size_t(m_asked.bytes), PROT_READ, MAP_SHARED, m_file.descriptor(), 0);
    if (mapping == MAP_FAILED)
        return fail(fileError("run.failed", "the file cannot be mapped", m_file.path(), errno));
    m_mapping = static_cast<std::byte*>(mapping);
    return {};
}

void LoadingRun::unmapFile()
{
    if (m_mapping)
        ::munmap(m_mapping, std::size_t(m_asked.bytes));
    m_mapping = nullptr;
}

Result<void> LoadingRun::prepare(const LanesUsed& used)
{
    MEMSCAPE_CHECK(m_session.checkStopped());
    m_error.reset();
    m_stop = false;
    if (used.read) {
        unmapFile(); // its pages could not leave the page cache
        // Pages that were written, or read in another way, lie in other pieces: once they go and come back.
        if (m_asked.isWarm && m_file.isOurs() && !std::exchange(m_isReadBack, true))
            static_cast<void>(m_file.makeCold(m_asked.bytes)); // what stays in memory is warm all the same
        MEMSCAPE_CHECK(m_asked.isWarm ? m_file.makeWarm(m_asked.bytes) : m_file.makeCold(m_asked.bytes));
    }
    if (m_asked.isMapped() && !m_mapping) {
        MEMSCAPE_CHECK(mapFile());
        for (std::uint64_t chunk = 0; !used.read && chunk < m_asked.chunks(); ++chunk)
            readPart(0, chunk); // its pages are there when the conversion is timed alone
    }
    return {};
}

Result<double> LoadingRun::sample(const LanesUsed& used)
{
    MEMSCAPE_CHECK(prepare(used));
    std::vector<Lane> lanes;
    if (used.read)
        lanes.push_back({LoadingStep::Read, std::clamp(m_asked.threads, 1, mostReaders)});
    if (used.convert && m_asked.hasConversion())
        lanes.push_back({LoadingStep::Convert, 1});
    if (used.copy && m_sink)
        lanes.push_back({LoadingStep::Copy, 1});
    const double before = deviceBytesRead();
    m_faults = 0;
    const double seconds = runLanes(lanes);
    if (m_error)
        return fail(*m_error);
    MEMSCAPE_CHECK(m_session.checkStopped());
    if (m_stop)
        return fail("run.cancelled", "the run was stopped");
    if (used.read) {
        const double after = deviceBytesRead();
        m_seen.deviceBytes = before >= 0 && after >= before ? after - before : -1;
        m_seen.cachedBytes = double(m_file.cachedBytes(m_asked.bytes));
        m_seen.faults = m_asked.isMapped() ? double(m_faults.load()) : 0;
    }
    return seconds;
}

} // namespace memscape::host

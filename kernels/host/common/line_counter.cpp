// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/line_counter.h"

#include "kernels/host/common/arena.h"
#include "kernels/host/session.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace memscape::host {

namespace {

constexpr std::size_t knownLines = std::size_t(1) << 17; // 8 MiB: the largest L1 holds a fortieth of them
constexpr double knownTolerance = 0.1;                   // lines of the page tables, and of L1 from before
constexpr double restingShare = 0.02;                    // of the reads of one line that may miss

class PerfEvent final : public EventCounter
{
public:
    explicit PerfEvent(int file)
        : m_file(file)
    { }
    ~PerfEvent() override { close(m_file); }

    void start() override
    {
        ioctl(m_file, PERF_EVENT_IOC_RESET, 0);
        ioctl(m_file, PERF_EVENT_IOC_ENABLE, 0);
    }

    double stop() override
    {
        struct
        {
            std::uint64_t value = 0, enabled = 0, running = 0;
        } reading;
        ioctl(m_file, PERF_EVENT_IOC_DISABLE, 0);
        const bool isRead = read(m_file, &reading, sizeof reading) == sizeof reading;
        // A counter that shared its register with others has counted only a part.
        const bool isWhole = isRead && reading.running > 0 && reading.running == reading.enabled;
        return isWhole ? double(reading.value) : std::numeric_limits<double>::quiet_NaN();
    }

private:
    int m_file;
};

std::string whyNot(int error)
{
    switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP: return "this machine has no hardware counters, like most virtual machines";
    case EACCES:
    case EPERM:
        return "the system does not permit this program to count: sysctl kernel.perf_event_paranoid=2 allows it, a "
               "container needs CAP_PERFMON";
    case ENOSYS: return "this kernel has no perf_event_open";
    default: return fmt::format("the hardware counter cannot be opened: {}", std::strerror(error));
    }
}

/// Reads one byte of every line once, in an order that no prefetcher follows.
std::uint64_t readEveryLine(const std::byte* data)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < knownLines; ++i)
        sum += std::to_integer<std::uint64_t>(data[i * 0x9e3779b1u % knownLines * cacheLine]);
    return sum;
}

std::uint64_t readOneLine(const std::byte* data)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < knownLines; ++i)
        sum += std::to_integer<std::uint64_t>(*static_cast<const volatile std::byte*>(data));
    return sum;
}

} // namespace

Result<std::unique_ptr<EventCounter>> openEvent(std::uint32_t type, std::uint64_t config)
{
    perf_event_attr attributes{};
    attributes.type = type;
    attributes.size = sizeof attributes;
    attributes.config = config;
    attributes.disabled = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (file < 0)
        return fail("counter.missing", whyNot(errno));
    return std::make_unique<PerfEvent>(int(file));
}

Result<std::unique_ptr<EventCounter>> openLineReads()
{
    return openEvent(PERF_TYPE_HW_CACHE,
                     PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8
                         | PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
}

LineCounter::LineCounter(ThreadTeam& team, const OpenCounter& open)
    : m_team(team)
    , m_counters(std::size_t(team.size()))
{
    std::vector<std::string> reasons(m_counters.size());
    m_team.run([&](int thread) {
        auto counter = open();
        if (counter)
            m_counters[std::size_t(thread)] = std::move(*counter);
        else
            reasons[std::size_t(thread)] = counter.error().message;
    });
    for (std::size_t i = 0; i < reasons.size() && m_missing.empty(); ++i)
        m_missing = reasons[i].empty() && !m_counters[i] ? "the measurement was stopped" : reasons[i];
    if (!m_missing.empty())
        return;
    if (const auto known = tryKnownWalk(); !known)
        m_missing = known.error().message;
}

Result<void> LineCounter::tryKnownWalk()
{
    MEMSCAPE_TRY(buffer, allocate(knownLines * cacheLine, Pages::Huge, m_memory));
    std::memset(buffer.data(), 1, buffer.bytes());
    std::uint64_t sum = 0;
    const auto run = [&](std::uint64_t (*walk)(const std::byte*)) {
        return counted([&] { m_team.run([&](int) { sum += walk(buffer.data()); }, 1); })
            .value_or(std::numeric_limits<double>::quiet_NaN());
    };
    const double all = run(readEveryLine), one = run(readOneLine);
    if (sum != 2 * knownLines)
        return fail("run.cancelled", "the measurement was stopped");
    if (!(std::fabs(all / double(knownLines) - 1) <= knownTolerance && one <= restingShare * double(knownLines)))
        return fail("counter.wrong",
                    fmt::format("this processor's counter of L1 misses is not used: it counted {:.0f} where {} lines "
                                "were read, and {:.0f} where one was read again and again",
                                all, knownLines, one));
    return {};
}

std::optional<double> LineCounter::counted(const std::function<void()>& work)
{
    for (const auto& counter : m_counters)
        counter->start();
    work();
    double sum = 0;
    for (const auto& counter : m_counters)
        sum += counter->stop();
    return std::isfinite(sum) ? std::optional(sum) : std::nullopt;
}

std::optional<double> LineCounter::during(const std::function<void()>& work)
{
    if (!m_missing.empty())
        return std::nullopt;
    return counted(work);
}

} // namespace memscape::host

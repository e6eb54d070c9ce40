// SPDX-License-Identifier: Apache-2.0
// allocator, measured on the host: what a request costs, what is really resident, and what first touch costs.
//
// Pages are given when they are written first, so the requests are replayed twice: without writing anything, for the
// cost of the allocator alone, and with a write to each page of each new block, for faults (getrusage) and resident
// bytes (VmHWM). PyTorch's own CPU allocator is measured by its probe, in a process of its own.
#include "kernels/host/allocator/allocator.h"

#include "kernels/host/allocator/real_pool.h"
#include "kernels/host/measurement.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <fstream>

namespace memscape::host {

namespace {

/// One thread's page faults.
std::int64_t faultsNow()
{
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

/// VmRSS of this process, B.
double residentNow()
{
    std::ifstream file("/proc/self/statm");
    std::int64_t all = 0, resident = 0;
    file >> all >> resident;
    return file ? double(resident) * double(hostPage) : nan;
}

/// No huge pages while it lives: a fault is one page, of malloc's memory too.
class SmallPages
{
public:
    SmallPages()
        : m_before(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0))
    {
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
    ~SmallPages() { prctl(PR_SET_THP_DISABLE, m_before > 0 ? 1 : 0, 0, 0, 0); }
    SmallPages(const SmallPages&) = delete;
    SmallPages& operator=(const SmallPages&) = delete;

private:
    int m_before;
};

void writePages(std::byte* at, std::int64_t bytes)
{
    auto* const written = const_cast<volatile std::byte*>(at);
    for (std::int64_t i = 0; i < bytes; i += hostPage)
        written[i] = std::byte{1};
    written[bytes - 1] = std::byte{1};
}

/// One replay in which blocks are written. Errors: run.memory, run.cancelled.
Result<void> touchPages(HostSession& session, const AllocatorCase& asked, AllocatorRun& run)
{
    if (asked.touch == FirstTouch::None)
        return {};
    MEMSCAPE_TRY(pages, pagesOf(*asked.trace, asked.setting, asked.touch));
    if (auto fits = session.checkFits(double(pages.highest * hostPage)); !fits) {
        Error error = fits.error();
        error.hint = fmt::format("choose scale={}, or touch=none", 2 * asked.divisor);
        return fail(std::move(error));
    }
    MEMSCAPE_TRY(allocator, openHostAllocator(asked, false));
    const double before = residentNow();
    const bool isReset = resetProcessHighWater();
    const std::int64_t faults = faultsNow();
    double seconds = 0;
    for (std::size_t i = 0; i < asked.trace->requests.size(); ++i) {
        if (i % 256 == 0)
            MEMSCAPE_CHECK(session.checkStopped());
        const Request& request = asked.trace->requests[i];
        const double begin = session.clock().now();
        if (!allocator->play(request, asked.trace->blocks[request.block]))
            break;
        if (asked.touch == FirstTouch::Eager) {
            seconds += session.clock().now() - begin; // pages came with the segments
            continue;
        }
        if (request.kind != RequestKind::Allocate)
            continue;
        const double made = session.clock().now();
        writePages(allocator->place(request.block), asked.trace->blocks[request.block].bytes);
        seconds += session.clock().now() - made;
    }
    run.numbers.pageFaults = double(faultsNow() - faults);
    run.numbers.firstTouch = seconds;
    if (const auto high = processHighWater(); high && isReset)
        run.numbers.resident = double(*high) - before;
    run.method["touched"] = "one write to each page of each new block, one replay";
    return {};
}

} // namespace

AllocatorMachine allocatorMachine(HostSession& session, ContentionWatch& watch)
{
    return {[](const AllocatorCase& asked, bool checks) -> Result<std::unique_ptr<RealAllocator>> {
                MEMSCAPE_TRY(allocator, openHostAllocator(asked, checks));
                return std::unique_ptr<RealAllocator>(std::move(allocator));
            },
            [&session](const AllocatorCase& asked, AllocatorRun& run) { return touchPages(session, asked, run); },
            [&session, &watch](std::size_t samples) {
                watch.add(session.readCanary());
                return watch.conditions(session.readTicks(), samples);
            },
            [&session] { return session.checkStopped(); },
            session.passOptions(),
            session.clock(),
            session.sink(),
            {{"pages", "small (4 KiB), huge pages forbidden"},
             {"between_requests", "nothing: requests follow each other"},
             {"driver", "mprotect in a reserved range; malloc's own"}}};
}

Result<MeasuredRun> measureAllocator(HostSession& session, const Experiment& experiment, const Parameters& parameters)
{
    const SmallPages small;
    ContentionWatch watch(session.watch().fastestClock());
    watch.start(session.readTicks());
    watch.add(session.readCanary());
    const AllocatorMachine machine = allocatorMachine(session, watch);
    AllocatorMeasurer measurer(session.device(), machine);
    return runSweep(experiment, parameters, measurer, session);
}

} // namespace memscape::host

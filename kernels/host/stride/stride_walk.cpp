// SPDX-License-Identifier: Apache-2.0
// How one pass becomes a sample that a clock can see.
//
// Warm, a short pass is repeated until it takes a millisecond. Cold, it cannot be: the second pass
// would find what the first one fetched. But a walk with a large stride leaves whole lines untouched, so
// it is repeated from other starts within the stride; the starts are spread by the golden ratio, so
// that no repetition profits from lines or pages which a prefetcher brought for its neighbour.
#include "kernels/host/stride/stride_walk.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace memscape::host {

namespace {

constexpr double warmSample = 1e-3;
constexpr std::size_t pageGrain = std::size_t{2} << 20;
/// A cold sample touches at least so many elements, where the stride leaves room for it.
constexpr std::size_t coldAccesses = std::size_t{1} << 16;
/// Threads look whether to stop after so many accesses: at most a few tenths of a second.
constexpr std::size_t elementsOfPart = std::size_t{1} << 20;

std::size_t asSize(std::uint64_t value)
{
    return static_cast<std::size_t>(value);
}

/// Bytes by which repetition `k` of a cold walk starts later.
std::size_t shiftOf(const StrideCase& walk, std::size_t k)
{
    const std::size_t lines = asSize(walk.pitchBytes) / cacheLine;
    if (lines < 2)
        return 0;
    constexpr double golden = 0.6180339887498949;
    const double turn = static_cast<double>(k) * golden;
    const auto at = static_cast<std::size_t>((turn - std::floor(turn)) * static_cast<double>(lines));
    return at * cacheLine;
}

/// How many repetitions make a cold sample.
std::size_t coldRepeats(const StrideCase& walk)
{
    const std::size_t lines = asSize(walk.pitchBytes) / cacheLine;
    if (walk.pattern == Pattern::Random || lines < 2)
        return 1;
    const std::size_t wanted = coldAccesses / std::max<std::size_t>(asSize(walk.accesses), 1);
    return std::clamp<std::size_t>(wanted, 1, lines);
}

struct StrideRunner
{
    HostSession& session;
    const StrideArrays& arrays;
    const StrideCase& walk;
    StrideKernel kernel = kernelFor(walk);
    int threads = session.threadsFor(walk.threadsOn(session.device()));

    /// Seconds of `repeats` passes.
    double passes(std::size_t repeats, bool shifted) const
    {
        return session.team().run([&](int thread) { onThread(thread, repeats, shifted); }, threads);
    }

    void onThread(int thread, std::size_t repeats, bool shifted) const
    {
        const Part part = partOf(asSize(walk.accesses), thread, threads);
        for (std::size_t k = 0; k < repeats; ++k) {
            const std::size_t shift = shifted ? shiftOf(walk, k) : 0;
            for (std::size_t at = part.begin; at < part.end; at += elementsOfPart) {
                if (session.team().stopping())
                    return;
                kernel.run(block(thread, at, std::min(elementsOfPart, part.end - at), shift));
            }
        }
    }

    StrideWork block(int thread, std::size_t first, std::size_t count, std::size_t shift) const
    {
        const std::size_t bytes = asSize(walk.arrayBytes), element = asSize(walk.elementBytes);
        std::size_t start = asSize(walk.offsetBytes);
        StrideWork work;
        work.count = count;
        work.stride = asSize(walk.pitchBytes) / element;
        if (walk.pattern == Pattern::Random) {
            work.elements = (bytes - start) / element;
            work.first = first;
        } else if (walk.pitchBytes == 0) {
            // The same element: each thread has one in a part of its own, or they would fight for a line.
            start += partOf((bytes - start) / element, thread, threads).begin * element;
        } else {
            start += first * asSize(walk.pitchBytes);
            // The last accesses may have no room for the shift.
            const std::size_t last = start + (count - 1) * asSize(walk.pitchBytes) + element;
            start += std::min(shift, bytes - std::min(bytes, last));
        }
        work.source = arrays.source() + start;
        work.target = arrays.target() + start;
        return work;
    }
};

/// Whether what one pass leaves in the caches could serve the next one.
bool needsFlush(const HostSession& session, const StrideCase& walk)
{
    const double touched =
        std::min(static_cast<double>(walk.arrayBytes), static_cast<double>(walk.accesses) * cacheLine);
    return touched * walk.arrays() < 4 * session.largestCache();
}

} // namespace

Result<void> StrideArrays::prepare(HostSession& session, std::size_t bytes, int arrays, int threads)
{
    if (m_bytes == bytes && m_arrays == arrays && m_threads == threads)
        return {};
    m_buffers[0] = {};
    m_buffers[1] = {};
    m_bytes = 0;
    m_arrays = arrays;
    m_threads = threads;
    MEMSCAPE_CHECK(session.checkFits(static_cast<double>(bytes) * arrays));
    for (int i = 0; i < arrays; ++i) {
        MEMSCAPE_SET(m_buffers[i], allocate(bytes, Pages::Huge, session.memory()));
        session.team().run(
            [&](int thread) {
                const Part part = partOf(bytes, thread, threads, pageGrain);
                for (std::size_t at = part.begin; at < part.end && !session.team().stopping(); at += pageGrain)
                    std::memset(m_buffers[i].data() + at, i + 1, std::min(pageGrain, part.end - at));
            },
            threads);
        MEMSCAPE_CHECK(session.checkStopped());
    }
    m_bytes = bytes;
    return {};
}

StrideKernel kernelFor(const StrideCase& walk)
{
    const int element = static_cast<int>(walk.elementBytes);
    if (walk.pattern == Pattern::Random)
        return bestStride(StrideWalk::Random, walk.operation, element);
    const bool neighbours = walk.pitchBytes == walk.elementBytes;
    return bestStride(neighbours ? StrideWalk::Contiguous : StrideWalk::Strided, walk.operation, element);
}

Result<std::vector<double>> measureStride(HostSession& session, StrideArrays& arrays, const StrideCase& walk,
                                          const StoppingOptions& options)
{
    const StrideRunner runner{session, arrays, walk};
    MEMSCAPE_CHECK(arrays.prepare(session, asSize(walk.arrayBytes), walk.arrays(), runner.threads));
    session.memory().resetHighWater();

    const double once = possibleSeconds(runner.passes(1, false), walk.usefulBytes() / runner.threads);
    const std::size_t repeats =
        walk.cold ? coldRepeats(walk) : std::max<std::size_t>(1, static_cast<std::size_t>(warmSample / once));
    const bool flush = walk.cold && needsFlush(session, walk);
    StoppingRule rule(options, session.clock());
    while (!rule.finished()) {
        if (flush)
            MEMSCAPE_CHECK(session.flush());
        MEMSCAPE_CHECK(session.checkStopped());
        const double sample = runner.passes(repeats, walk.cold);
        MEMSCAPE_CHECK(session.checkStopped()); // a stopped sample is not whole
        rule.add(sample);
    }
    return session.samplesOf(rule, static_cast<double>(repeats));
}

Result<std::optional<double>> countStrideLines(HostSession& session, const StrideArrays& arrays, const StrideCase& walk)
{
    LineCounter& counter = session.lineCounter();
    if (walk.operation != Operation::Read || !counter.missing().empty())
        return std::optional<double>();
    if (walk.cold)
        MEMSCAPE_CHECK(session.flush());
    const StrideRunner runner{session, arrays, walk};
    const auto lines = counter.during([&] { runner.passes(1, false); });
    MEMSCAPE_CHECK(session.checkStopped());
    return lines;
}

} // namespace memscape::host

// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/hierarchy/latency.h"

#include "kernels/host/common/permutation.h"
#include "kernels/host/hierarchy/chase.h"

#include <algorithm>
#include <span>
#include <string>

namespace memscape::host {

namespace {

constexpr std::size_t loadsPerSample = std::size_t{1} << 20;
constexpr double latencySample = 0.02;
constexpr std::size_t probeLoads = 16384;
/// Sets below this many bytes are checked to be one whole cycle after building (a few milliseconds).
constexpr std::size_t checkedBytes = std::size_t{1} << 20;

/// Sets up to this many bytes are warmed by a lap of the chase itself.
constexpr std::size_t lapBytes = std::size_t{4} << 20;

/// One load from every line, in a random order that is known beforehand: what a lap of the chase does to the caches
/// (they distinguish streams from reuse), with many loads under way at once.
void touch(std::span<const std::byte> memory)
{
    const std::size_t lines = memory.size() / sizeof(ChaseNode);
    const IndexPermutation order(lines, lines);
    unsigned sum = 0;
    for (std::size_t i = 0; i < lines; ++i)
        sum += static_cast<unsigned>(memory[order(i) * sizeof(ChaseNode)]);
    asm volatile("" : : "r"(sum));
}

struct LatencyRunner
{
    HostSession& session;
    const ChaseNode* node = nullptr;

    /// Brings into the caches what they may hold: a lap where it is short, else touch(). Beyond what
    /// the caches might hold nothing would stay.
    void warm(std::span<const std::byte> memory)
    {
        const double bytes = static_cast<double>(memory.size());
        if (memory.size() <= lapBytes)
            loads(memory.size() / sizeof(ChaseNode));
        else if (bytes <= 2 * session.largestCache())
            session.team().run([&](int) { touch(memory); }, 1);
    }

    /// Seconds of so many loads, continuing where the last ones ended.
    double loads(std::size_t count)
    {
        return session.team().run([&](int) { node = chase(node, count); }, 1);
    }
};

} // namespace

Result<LatencySamples> measureLatency(HostSession& session, std::size_t bytes, LatencyVariant variant,
                                      std::uint64_t seed, const StoppingOptions& options)
{
    bytes = std::max(bytes / sizeof(ChaseNode), std::size_t{2}) * sizeof(ChaseNode);
    // The nodes, and while they are linked four bytes for each.
    MEMSCAPE_CHECK(session.checkFits(static_cast<double>(bytes) * 1.0625));
    const Pages pages = variant == LatencyVariant::Huge ? Pages::Huge : Pages::Small;
    MEMSCAPE_TRY(buffer, allocate(bytes, pages, session.memory()));
    const ChaseOptions layout{variant == LatencyVariant::Window ? chaseWindow : 0, seed};

    LatencyRunner runner{session};
    std::string wrong;
    session.team().run(
        [&](int) {
            runner.node = buildChase(buffer.span(), layout, [&] { return session.team().stopping(); });
            if (runner.node && bytes <= checkedBytes)
                wrong = checkChase(buffer.span(), layout);
        },
        1);
    MEMSCAPE_CHECK(session.checkStopped());
    if (!wrong.empty())
        return fail("check.failed", "the pointer chase is not one cycle: " + wrong);

    runner.warm(buffer.span());
    const double perLoad = std::max(runner.loads(probeLoads) / probeLoads, 1e-11);
    const std::size_t count = std::min(loadsPerSample, static_cast<std::size_t>(latencySample / perLoad) + chaseGroup);
    const std::size_t loads = count / chaseGroup * chaseGroup;

    StoppingRule rule(options, session.clock());
    LatencySamples samples;
    while (!rule.finished()) {
        MEMSCAPE_CHECK(session.checkStopped());
        rule.add(runner.loads(loads));
    }
    samples.seconds = session.samplesOf(rule, static_cast<double>(loads));
    samples.hugeShare = buffer.hugeShare();
    return samples;
}

} // namespace memscape::host

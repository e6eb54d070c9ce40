// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/hierarchy/bandwidth.h"

#include <algorithm>
#include <cstring>

namespace memscape::host {

namespace {

constexpr double bandwidthSample = 1e-3;
/// Two arrays of one thread must not start at the same place of a page, or loads wait for stores that
/// only look as if they went to the same address (4 KiB aliasing). So each is a little shorter than its
/// share and follows the one before, where arrays are large enough for that not to matter.
constexpr std::size_t skew = 9 * cacheLine;
constexpr std::size_t skewedFrom = 16384;
/// Threads look whether to stop after so many bytes.
constexpr std::size_t bytesBetweenStops = std::size_t{64} << 20;

struct StreamLayout
{
    std::size_t slice = 0;  ///< bytes of one array of one thread
    std::size_t stride = 0; ///< share of one array: the slice, and what the skew leaves alone
    int arrays = 1;
    int threads = 1;

    std::size_t total() const { return stride * static_cast<std::size_t>(arrays) * static_cast<std::size_t>(threads); }
};

StreamLayout layoutOf(const BandwidthPoint& point)
{
    StreamLayout layout;
    layout.arrays = arraysOf(point.operation);
    layout.threads = std::max(point.threads, 1);
    const auto parts = static_cast<std::size_t>(layout.arrays * layout.threads);
    layout.stride = std::max(point.bytes / parts / cacheLine, std::size_t{1}) * cacheLine;
    const bool skewed = layout.arrays > 1 && layout.stride >= skewedFrom;
    layout.slice = layout.stride - (skewed ? skew : 0);
    return layout;
}

StreamSlice sliceOf(const Buffer& buffer, const StreamLayout& layout, int thread)
{
    std::byte* const begin = buffer.data() + layout.stride * static_cast<std::size_t>(layout.arrays * thread);
    return {begin, layout.arrays > 1 ? begin + layout.slice : nullptr,
            layout.arrays > 2 ? begin + 2 * layout.slice : nullptr, layout.slice};
}

/// `repeats` passes, in pieces when one pass is long.
void runPasses(const ThreadTeam& team, StreamFunction kernel, const StreamSlice& slice, std::size_t repeats)
{
    if (slice.bytes <= bytesBetweenStops) {
        kernel(slice, repeats);
        return;
    }
    for (; repeats > 0; --repeats) {
        for (std::size_t at = 0; at < slice.bytes && !team.stopping(); at += bytesBetweenStops) {
            StreamSlice piece = slice;
            piece.a += at;
            piece.b = slice.b ? slice.b + at : nullptr;
            piece.c = slice.c ? slice.c + at : nullptr;
            piece.bytes = std::min(bytesBetweenStops, slice.bytes - at);
            kernel(piece, 1);
        }
    }
}

} // namespace

Result<BandwidthSamples> measureBandwidth(HostSession& session, const BandwidthPoint& point,
                                          const StoppingOptions& options)
{
    const StreamLayout layout = layoutOf(point);
    MEMSCAPE_CHECK(session.checkFits(static_cast<double>(layout.total())));
    MEMSCAPE_TRY(buffer, allocate(layout.total(), point.pages, session.memory()));
    const StreamFunction kernel = point.kernel ? point.kernel : bestStream(point.operation).run;
    ThreadTeam& team = session.team();
    const auto pass = [&](std::size_t repeats) {
        return team.run([&](int thread) { runPasses(team, kernel, sliceOf(buffer, layout, thread), repeats); },
                        layout.threads);
    };

    // First touch by the thread that will use it; ones, so that triad meets no denormal numbers.
    team.run(
        [&](int thread) {
            const StreamSlice slice = sliceOf(buffer, layout, thread);
            const std::size_t bytes = layout.stride * static_cast<std::size_t>(layout.arrays);
            for (std::size_t at = 0; at < bytes && !team.stopping(); at += bytesBetweenStops)
                std::memset(slice.a + at, 1, std::min(bytesBetweenStops, bytes - at));
        },
        layout.threads);
    MEMSCAPE_CHECK(session.checkStopped());
    pass(1);
    const double once =
        possibleSeconds(pass(1), static_cast<double>(layout.slice) * static_cast<double>(layout.arrays));
    const auto repeats = std::max<std::size_t>(1, static_cast<std::size_t>(bandwidthSample / once));

    BandwidthSamples samples;
    samples.namedBytes = static_cast<double>(layout.slice) * static_cast<double>(layout.arrays * layout.threads);
    StoppingRule rule(options, session.clock());
    while (!rule.finished()) {
        MEMSCAPE_CHECK(session.checkStopped());
        rule.add(pass(repeats));
    }
    MEMSCAPE_CHECK(session.checkStopped());
    samples.seconds = session.samplesOf(rule, static_cast<double>(repeats));
    samples.hugeShare = buffer.hugeShare();
    return samples;
}

} // namespace memscape::host

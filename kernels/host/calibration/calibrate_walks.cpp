// SPDX-License-Identifier: Apache-2.0
// Probes for `layout`: runs in L1, streams and transpositions over footprints, columns whose lines come from one
// level. Their sizes are 3 · 2^k and odd numbers of lines, which few tensors have, so that the model is asked for
// what it has not seen.
//
// Columns: a walk over R rows and 8 columns reads R lines again and again. Rows whose distance is an odd
// multiple of `stride` lines apart fall into one in `stride` sets, so a cache of S sets and W ways holds
// W · S / stride of them. R is four times what the cache before holds, so that the level in question serves it.
#include "kernels/host/calibration/calibrate_walks.h"

#include "core/timing/layout_time.h"
#include "kernels/host/layout/layout_kernels.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape::host {

namespace {

constexpr std::int64_t walkBetweenStops = std::int64_t(1) << 24; // elements

TensorWalk walkOfLoops(std::vector<WalkLoop> loops, std::uint64_t itemBytes)
{
    TensorWalk walk{std::move(loops), 0, 1, itemBytes};
    for (const WalkLoop& loop : walk.loops)
        walk.elements *= loop.count;
    return walk;
}

class Planner
{
public:
    Planner(const Device& device, double largest)
        : m_caches(simulatedCaches(device))
        , m_largest(largest)
    {
        if (m_caches.empty())
            return;
        for (const std::uint64_t item : {1u, 2u, 4u, 8u, 16u}) {
            planRuns(item);
            planTiles(item);
        }
        planStreams();
        planColumns();
        add("read call", 1, 1, walkOfLoops({}, 4), 0);
        add("copy call", 1, 1, walkOfLoops({{2, 2}, {2, 1}}, 4), copyVersions);
    }

    std::vector<WalkProbe> take() { return std::move(m_probes); }

private:
    void add(std::string kind, double at, double units, TensorWalk walk, int version)
    {
        WalkProbe probe;
        probe.rate = {std::move(kind), double(walk.itemBytes), at, 0};
        probe.label = fmt::format("{}, {} B, {}", probe.rate.kind, walk.itemBytes, at);
        probe.walk = std::move(walk);
        probe.version = version;
        probe.units = units;
        if (probe.storageBytes() <= m_largest && probe.targetBytes() <= m_largest)
            m_probes.push_back(std::move(probe));
    }

    void planRuns(std::uint64_t item)
    {
        const double room = double(m_caches.front().bytes) / 4; // of L1, so that source and target lie in half of it
        for (const std::int64_t run : {2, 3, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 768}) {
            for (const std::int64_t stride : {1, 2}) {
                // Rows do not follow on; they begin at a multiple of 16 B, as rows of tensors mostly do.
                const std::int64_t sixteen = std::max<std::int64_t>(1, 16 / std::int64_t(item));
                const std::int64_t pitch = (run * stride / sixteen + 1) * sixteen;
                const auto rows = std::max<std::int64_t>(2, std::int64_t(room / double(pitch * std::int64_t(item))));
                const TensorWalk walk = walkOfLoops({{run, stride}, {rows, pitch}}, item);
                const std::string which = stride == 1 ? "neighbours" : "apart";
                add("read " + which, double(run), double(rows), walk, 0);
                add("copy " + which, double(run), double(rows), walk, 1);
            }
            planEdge(item, run);
        }
        planEdge(item, 1);
        const auto planes = std::max<std::int64_t>(4, std::int64_t(room / double(36 * item)));
        add("copy plane", 1, double(planes), walkOfLoops({{5, 7}, {6, 1}, {planes, 36}}, item), copyVersions);
    }

    /// Runs along the target of a plane that is not as wide as a tile, or not as high.
    void planEdge(std::uint64_t item, std::int64_t run)
    {
        const bool isThin = run < 8; // no tile is narrower
        const double room = double(m_caches.front().bytes) / 4;
        const std::int64_t side = isThin ? std::int64_t(room / double(run) / double(item)) : 5;
        const auto planes =
            std::max<std::int64_t>(2, isThin ? 2 : std::int64_t(room / double(5 * run * std::int64_t(item))));
        // Inner loop far in the storage, next one its neighbour.
        const std::int64_t pitch = side + 1;
        const TensorWalk walk = walkOfLoops({{run, pitch}, {side, 1}, {planes, run * pitch + 1}}, item);
        add("copy edges", double(run), double(side * planes), walk, copyVersions);
    }

    void planStreams()
    {
        for (double bytes = 12288; bytes <= m_largest; bytes *= bytes < 4e6 ? 4 : std::sqrt(2)) {
            const auto elements = std::int64_t(bytes / 4);
            const TensorWalk whole = walkOfLoops({{elements, 1}}, 4);
            add("read stream", bytes, double(elements), whole, 0);
            const TensorWalk half = walkOfLoops({{elements / 2, 1}}, 4);
            add("copy stream", bytes, double(elements / 2), half, 1);
        }
    }

    /// Squares whose rows are odd numbers of lines, and such whose rows are multiples of 1 KiB.
    void planTiles(std::uint64_t item)
    {
        const auto versions = int(copyKernels(int(item)).size());
        for (int version = item == 4 ? 2 : 3; version <= versions; ++version) {
            const std::string kind = fmt::format("tiles {}", version);
            for (double footprint = 0x1p14; footprint <= m_largest / 2; footprint *= footprint < 4e6 ? 4
                     : footprint < 16e6                                                              ? 2
                                                                                                     : std::sqrt(2))
                planSquare(kind, item, version, std::sqrt(footprint / 2 * double(item)), cacheLine);
            for (double footprint = 0x1p18; footprint <= m_largest / 2; footprint *= footprint < 8e6 ? 2 : std::sqrt(2))
                planCrowded(kind + " crowded", item, version, footprint);
        }
    }

    void planSquare(const std::string& kind, std::uint64_t item, int version, double rowBytes, double multiple)
    {
        const double odd = std::max(1.0, 2 * std::floor(rowBytes / multiple / 2) + 1);
        const auto side = std::int64_t(odd * multiple) / std::int64_t(item);
        const TensorWalk walk = walkOfLoops({{side, side}, {side, 1}}, item);
        const double elements = double(side) * double(side);
        add(kind, 2 * elements * double(item), elements, walk, version);
    }

    /// Rows an odd number of KiB apart in the storage, pages apart in the target (of small ones 1 KiB; of large ones
    /// both pages).
    void planCrowded(const std::string& kind, std::uint64_t item, int version, double footprint)
    {
        const auto bytes = std::int64_t(item);
        const std::int64_t step = (footprint < 0x1p22 ? 1024 : 4096) / bytes;
        const auto rows =
            std::max<std::int64_t>(1, std::int64_t(std::sqrt(footprint / 2 / double(bytes)) / double(step))) * step;
        const std::int64_t unit = footprint < 0x1p24 ? 1024 : 4096;
        const std::int64_t odd =
            std::max<std::int64_t>(0, std::int64_t(footprint / 2 / double(rows) / double(2 * unit))) * 2 + 1;
        const std::int64_t pitch = odd * unit / bytes;
        const TensorWalk walk = walkOfLoops({{rows, pitch}, {pitch, 1}}, item);
        const double elements = double(rows) * double(pitch);
        add(kind, 2 * elements * double(item), elements, walk, version);
    }

    /// Lines that a cache holds of rows whose distance is an odd multiple of `stride` bytes.
    static double heldOf(const CacheGeometry& cache, double stride)
    {
        return std::max(1.0, double(cache.sets()) * cacheLine / stride) * double(cache.ways);
    }

    void planColumns()
    {
        for (const double stride : {64.0, 256.0, 1024.0, 4096.0}) {
            const double pitch = 3 * stride;
            for (std::size_t i = 1; i <= m_caches.size(); ++i) {
                const double before = heldOf(m_caches[i - 1], stride);
                double rows = 4 * before;
                if (i + 1 < m_caches.size())
                    rows = 0.6 * heldOf(m_caches[i], stride); // private: most of it is ours
                else if (i < m_caches.size())
                    rows = std::min(rows, std::sqrt(before * heldOf(m_caches[i], stride)));
                else
                    rows = std::min(stride < 4096 ? rows : before, std::floor(m_largest / pitch));
                planColumn("column " + (i < m_caches.size() ? m_caches[i].name : std::string("DRAM")), stride, rows,
                           pitch, i < m_caches.size() ? 8 : 64);
            }
        }
        // Pages apart: the lines of a column stay in the first cache, one visit in 16 brings one from the level in
        // question.
        for (const double share : {1.0 / 32, 1.0 / 16, 1.0 / 8, 1.0 / 3}) {
            const double rows = std::floor(heldOf(m_caches.front(), cacheLine) * share);
            for (std::size_t i = 2; i <= m_caches.size(); ++i) {
                const double bytes = i < m_caches.size()
                    ? std::sqrt(double(m_caches[i - 1].bytes) * double(m_caches[i].bytes))
                    : m_largest / 2;
                const double pitch = (2 * std::floor(bytes / rows / cacheLine / 2) - 1) * cacheLine;
                planColumn("column far " + (i < m_caches.size() ? m_caches[i].name : std::string("DRAM")), rows, rows,
                           pitch, pitch / 4);
            }
        }
        if (m_caches.size() > 1)
            planColumn("column pages", cacheLine, std::floor(heldOf(m_caches[1], cacheLine) * 0.75), 65 * cacheLine, 8);
    }

    void planColumn(std::string kind, double stride, double rows, double pitch, double columns)
    {
        const TensorWalk walk =
            walkOfLoops({{std::int64_t(rows), std::int64_t(pitch / 4)}, {std::int64_t(columns), 1}}, 4);
        add(std::move(kind), stride, double(walk.elements), walk, 0);
    }

    std::vector<CacheGeometry> m_caches;
    double m_largest;
    std::vector<WalkProbe> m_probes;
};

Result<void> grow(HostSession& session, Buffer& buffer, double bytes)
{
    if (double(buffer.bytes()) >= bytes)
        return {};
    buffer = {};
    MEMSCAPE_SET(buffer, allocate(std::size_t(bytes), Pages::Huge, session.memory()));
    session.team().run([&](int) { std::fill_n(buffer.data(), buffer.bytes(), std::byte{1}); }, 1);
    return {};
}

} // namespace

double WalkProbe::storageBytes() const
{
    double last = 0;
    for (const WalkLoop& loop : walk.loops)
        last += double(loop.count - 1) * double(loop.stride);
    return (last + 1) * double(walk.itemBytes);
}

double WalkProbe::targetBytes() const
{
    return version > 0 ? double(walk.elements) * double(walk.itemBytes) : 0;
}

std::vector<WalkProbe> walkProbes(const Device& device, double largest)
{
    return Planner(device, largest).take();
}

Result<std::vector<double>> measureWalk(HostSession& session, WalkArrays& arrays, const WalkProbe& probe,
                                        const StoppingOptions& options)
{
    MEMSCAPE_CHECK(grow(session, arrays.storage, probe.storageBytes()));
    MEMSCAPE_CHECK(grow(session, arrays.target, probe.targetBytes()));
    const CopyKernel kernel = copyKernel(int(probe.walk.itemBytes), std::max(1, probe.version));
    std::uint64_t sum = 0;
    const auto pass = [&](std::int64_t repeats) {
        return session.team().run(
            [&](int) {
                for (std::int64_t i = 0; i < repeats; ++i) {
                    if (probe.version > 0)
                        kernel.run(probe.walk, arrays.storage.data(), arrays.target.data());
                    else
                        sum += readWalk(probe.walk, arrays.storage.data());
                    memoryBarrier();
                    if (probe.walk.elements > walkBetweenStops && session.team().stopping())
                        return;
                }
            },
            1);
    };
    pass(1);
    const double once = possibleSeconds(pass(1), double(probe.walk.elements) * double(probe.walk.itemBytes));
    const auto repeats = std::max<std::int64_t>(1, std::int64_t(shortestSample / once));
    StoppingRule rule(options, session.clock());
    do { // one at least: a pass may be longer than what there is time for
        rule.add(pass(repeats));
        MEMSCAPE_CHECK(session.checkStopped());
    } while (!rule.finished());
    return session.samplesOf(rule, double(repeats) * probe.units);
}

} // namespace memscape::host

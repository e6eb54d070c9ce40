// SPDX-License-Identifier: Apache-2.0
#include "core/timing/layout_time_host.h"

#include "core/timing/walk_rates.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double lineVisits = 16; // of 4 B: visits of "column far" for each line

WalkLoop innerLoop(const TensorWalk& walk)
{
    return walk.loops.empty() ? WalkLoop{1, 1} : walk.loops.front();
}

/// Seconds for which a visit of a column is held up because its line comes from that level.
double columnStall(const Device& device, const std::string& kind, double stride)
{
    const auto visit = curveSeconds(device, kind, 4, stride);
    const double issue = bulkSeconds(device, "read apart", 4).value_or(0);
    return visit ? std::max(0.0, *visit - issue) : 0;
}

/// A line of that level when rows are pages apart. One that comes once, for 16 columns: by how many rows prefetchers
/// have to follow. One that comes again and again, because its sets are crowded: by how crowded this distance is.
double farStall(const Device& device, const std::string& level, double stride, double rows, bool isOnce)
{
    const double spread = lineVisits * columnStall(device, "column far " + level, rows);
    if (isOnce)
        return spread;
    const double crowded = columnStall(device, "column " + level, prefetchedPage);
    if (!(spread > 0) || !(crowded > 0))
        return std::max(spread, crowded);
    const double share = std::log2(stride / 64) / std::log2(prefetchedPage / 64);
    return spread * std::pow(crowded / spread, share);
}

/// Share of a column's visits whose page translation does not reach, by how far the column goes beyond its reach.
double pageShare(const Device& device, double pages)
{
    double reach = 0;
    for (const TlbLevel& tlb : device.tlbs) {
        if (tlb.pageBytes == prefetchedPage && tlb.id.starts_with("near"))
            reach = tlb.entries.value;
    }
    return reach > 0 ? std::clamp(pages / reach - 1, 0.0, 1.0) : 0;
}

/// `isFirst`: the level behind the first cache, which prefetchers do not matter for.
double stallOf(const Device& device, const std::string& level, const TensorWalk& walk, bool isFirst, bool isOnce)
{
    const auto pitch = double(walk.pitchBytes());
    const double stride = setStride(pitch);
    if (pitch < prefetchedPage || isFirst)
        return columnStall(device, "column " + level, stride);
    return farStall(device, level, stride, double(walk.loops.front().count), isOnce);
}

/// Rows that far apart whose lines a cache holds together.
double heldRows(const CacheGeometry& cache, double pitch)
{
    const auto bytes = std::uint64_t(pitch);
    const double lines = double(std::max<std::uint64_t>(bytes & (~bytes + 1), cache.line)) / double(cache.line);
    return std::max(1.0, double(cache.sets()) / lines) * double(cache.ways);
}

/// Lines of one pass by the level that serves them, nearest first. The simulator is strict where caches are not: the
/// first keeps some of a column that is a little too long for it, and the last, which others use too, keeps as much of
/// one as its knee says.
std::vector<double> columnLines(const Device& device, const TensorWalk& walk, const std::vector<double>& misses)
{
    const std::vector<CacheGeometry> caches = simulatedCaches(device);
    const double rows = double(walk.loops.front().count), pitch = double(walk.pitchBytes());
    std::vector<double> missed = misses;
    if (const double held = heldRows(caches.front(), pitch); rows > held && missed[0] > 0.5 * double(walk.elements))
        missed[0] *= 1 - held / rows;
    std::vector<double> lines;
    for (std::size_t i = 0; i < missed.size(); ++i)
        lines.push_back(std::max(0.0, missed[i] - (i + 1 < missed.size() ? missed[i + 1] : 0)));
    const MemoryLevel* last = device.lastCache();
    if (lines.size() > 1 && last != nullptr) {
        const double held = heldRows(caches.back(), pitch);
        const double kept = hitShare(rows, held, last->knee);
        double& served = lines[lines.size() - 2];
        lines.back() += (1 - kept) * served;
        served *= kept;
    }
    return lines;
}

double tilesSeconds(const Device& device, const TensorWalk& walk, const CopyPlane& plane, int version, double footprint)
{
    const auto item = double(walk.itemBytes);
    const std::string kind = fmt::format("tiles {}", version);
    const double spread = curveSeconds(device, kind, item, footprint).value_or(0);
    const double crowded = curveSeconds(device, kind + " crowded", item, footprint).value_or(spread);
    // A few rows do not crowd a set.
    const double storage = plane.aCount >= 32 ? setStride(double(plane.aFrom) * item) : 0;
    const double target = plane.bCount >= 32 ? setStride(double(plane.bTo) * item) : 0;
    const double share = std::clamp(std::log2(std::max({storage, target, 64.0}) / 256) / 3, 0.0, 1.0);
    return spread > 0 && crowded > 0 ? spread * std::pow(crowded / spread, share) : spread;
}

/// Runs of the plane that no tile covers.
double edgeSeconds(const Device& device, const TensorWalk& walk, const CopyPlane& plane, double wholeA, double wholeB,
                   double planes)
{
    const auto a = double(plane.aCount), b = double(plane.bCount), item = double(walk.itemBytes);
    double seconds = 0;
    if (a > wholeA)
        seconds += planes * wholeB * runSeconds(device, "copy edges", item, a - wholeA).value_or(0);
    if (b > wholeB)
        seconds += planes * (b - wholeB) * runSeconds(device, "copy edges", item, a).value_or(0);
    // Many small planes: what one costs beyond its runs.
    constexpr double probedRun = 5, probedRuns = 6;
    const double plane5 = runSeconds(device, "copy plane", item, 1).value_or(0)
        - probedRuns * runSeconds(device, "copy edges", item, probedRun).value_or(0);
    return seconds + (planes > 1 && seconds > 0 ? planes * std::max(0.0, plane5) : 0);
}

double streamSeconds(const Device& device, const std::string& kind, double footprint, double bytes)
{
    return bytes / 4 * curveSeconds(device, kind, 4, footprint).value_or(0);
}

} // namespace

std::optional<WalkTime> calibratedWalkTime(const Device& device, const TensorWalk& walk, const WalkTime& counted)
{
    const WalkLoop inner = innerLoop(walk);
    const auto item = double(walk.itemBytes), count = double(inner.count), pitch = double(walk.pitchBytes());
    const bool isNeighbours = inner.stride == 1;
    const auto run = runSeconds(device, isNeighbours ? "read neighbours" : "read apart", item, count);
    if (!run)
        return {};
    WalkTime time = counted;
    time.source = "probes of these kernels on this machine";
    time.runs = double(walk.elements) / count;
    time.issue = time.runs * *run + runSeconds(device, "read call", 4, 1).value_or(0);
    const double line = device.lineBytes;
    time.memory = 0;
    double missed = 0;
    for (LevelShare& share : time.served)
        missed += share.bytes;
    const double distinct = distinctGranules(walk, std::uint64_t(line)) * line;
    time.adds = pitch > line;
    if (!time.adds && missed <= 1.5 * distinct) {
        // In its order, each line once: what a stream of that footprint takes.
        const double seconds = missed > 0 ? streamSeconds(device, "read stream", distinct, distinct) : 0;
        for (LevelShare& share : time.served)
            share.seconds = missed > 0 ? seconds * share.bytes / missed : 0;
        time.memory = seconds;
        if (isNeighbours && time.runs > 1) // the ends of rows are not hidden by the stream
            time.issue += std::max(
                0.0, seconds - double(walk.elements) * bulkSeconds(device, "read neighbours", item).value_or(0));
    } else if (time.adds) {
        const std::vector<double> lines = columnLines(device, walk, counted.misses);
        const double walkStall =
            std::max(0.0, columnStall(device, "column pages", 64) - columnStall(device, "column L2", 64));
        for (std::size_t i = 0; i < time.served.size() && i < lines.size(); ++i) {
            LevelShare& share = time.served[i];
            share.bytes = lines[i] * line;
            share.seconds = lines[i]
                * stallOf(device, share.level, walk, i == 0,
                          lines[i] * line <= 1.5 * distinct && 4 * lines[i] <= double(walk.elements));
            if (i + 1 < time.served.size() && pitch >= prefetchedPage)
                share.seconds += lines[i] * pageShare(device, count) * walkStall;
            time.memory += share.seconds;
        }
    } else {
        time.memory = counted.memory;
    }
    time.seconds = time.adds ? time.issue + time.memory : std::max(time.issue, time.memory);
    time.limit = "issue";
    double longest = time.issue;
    for (const LevelShare& share : time.served) {
        if (share.seconds > longest) {
            longest = share.seconds;
            time.limit = share.level;
        }
    }
    return time;
}

std::optional<CopyTime> calibratedCopyTime(const Device& device, const TensorWalk& walk, int version,
                                           const WalkTime& read)
{
    const WalkLoop inner = innerLoop(walk);
    const auto item = double(walk.itemBytes), count = double(inner.count), elements = double(walk.elements);
    if (!runSeconds(device, "copy neighbours", item, count))
        return {};
    const double line = device.lineBytes;
    const double footprint = distinctGranules(walk, std::uint64_t(line)) * line + elements * item;
    CopyTime time;
    time.isCalibrated = true;
    time.call = runSeconds(device, "copy call", 4, 1).value_or(0);
    const double stream = streamSeconds(device, "copy stream", footprint, elements * item);
    const CopyPlane plane = copyPlane(walk);
    if (plane.b == 0 && inner.stride == 1) {
        const double bulk = bulkSeconds(device, "copy neighbours", item).value_or(0);
        const double run = *runSeconds(device, "copy neighbours", item, count);
        time.ends = elements / count * std::max(0.0, run - count * bulk);
        time.issue = elements * bulk;
        time.writes = stream;
        time.seconds = time.call + time.ends + std::max(time.issue, time.writes);
        time.limit = time.ends > std::max(time.issue, stream) ? "ends of rows" : "stream";
        time.formula = "t = ends of rows + max(elements × seconds of one, stream of this footprint)";
        return time;
    }
    if (plane.b == 0 || version == 1) {
        time.issue = elements / count * runSeconds(device, "copy apart", item, count).value_or(0);
        time.reads = read.seconds;
        time.writes = stream / 2;
        time.seconds = time.call + std::max(time.issue, time.reads) + (time.reads > time.issue ? time.writes : 0);
        time.limit = time.issue > time.reads ? "issue" : "reads";
        time.formula = "t = max(runs × seconds of a run, reading through the view + writes)";
        return time;
    }
    const bool isTurned = item == 4 && version >= 3 && plane.bFrom == 1;
    if (item != 4 || !isTurned || (version == 4 && plane.aCount % 16 != 0))
        version = item == 4 && !isTurned ? 2 : item == 4 ? std::min(version, 3) : 3;
    const double square = std::clamp(64 / item, 8.0, 32.0); // of the scalar versions' tiles
    const double aSide = isTurned ? 16 : square, bSide = isTurned ? 8 : square;
    const double wholeA = std::floor(double(plane.aCount) / aSide) * aSide,
                 wholeB = std::floor(double(plane.bCount) / bSide) * bSide;
    const double planes = elements / (double(plane.aCount) * double(plane.bCount));
    time.issue = planes * wholeA * wholeB * tilesSeconds(device, walk, plane, version, footprint);
    time.ends = edgeSeconds(device, walk, plane, wholeA, wholeB, planes);
    time.writes =
        stream * (1 - wholeA * wholeB / double(plane.aCount) / double(plane.bCount)); // tiles' own is in their probes
    time.issue += time.writes;
    time.seconds = time.call + std::max(time.issue + time.ends, stream);
    time.formula =
        "t = max(elements in tiles × seconds of one at this footprint + runs at their edges, stream of this footprint)";
    time.limit = stream > time.issue + time.ends ? "stream" : time.ends > time.issue ? "ends of rows" : "tiles";
    return time;
}

CopyPlane copyPlane(const TensorWalk& walk)
{
    CopyPlane plane;
    if (walk.loops.empty())
        return plane;
    plane.aCount = walk.loops[0].count;
    plane.aFrom = walk.loops[0].stride;
    std::int64_t step = plane.aCount, best = plane.aFrom;
    for (std::size_t i = 1; i < walk.loops.size(); ++i) {
        const WalkLoop& loop = walk.loops[i];
        if (loop.stride > 0 && loop.stride < best) {
            best = loop.stride;
            plane.b = i;
            plane.bCount = loop.count;
            plane.bFrom = loop.stride;
            plane.bTo = step;
        }
        step *= loop.count;
    }
    return plane;
}

} // namespace memscape

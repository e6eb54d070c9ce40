// SPDX-License-Identifier: Apache-2.0
// α and β of a GPU's links, fitted to copies of four bytes to 64 MiB (core/timing/link_time.h): pinned memory gives the
// link to the host, pageable memory the rate that its driver stages at, a neighbour the link to another GPU. What
// cannot be had (no neighbour, no pinned memory) keeps the described value and leaves a note.
//
// Left out: from the GPU, which a copy engine does as fast; both directions at once.
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/transfer/gpu_transfer.h"
#include "kernels/measure/stopping.h"

#include "core/timing/link_time.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr std::uint64_t sizes[] = {4, 1ULL << 12, 1ULL << 16, 1ULL << 20, 1ULL << 24, 1ULL << 26};

/// Median seconds of copies of each size. Errors: those of GpuTransfer, run.cancelled.
Result<LinkProbes> probe(GpuSession& session, TransferKind kind, RunSink& sink)
{
    LinkProbes probes{transferKindKey(kind), transferKindLabel(kind), {}};
    for (const std::uint64_t bytes : sizes) {
        if (sink.cancelled())
            return fail("run.cancelled", "the calibration was stopped; nothing was changed");
        TransferCase asked;
        asked.kind = kind;
        asked.bytes = asked.chunk = bytes;
        GpuTransfer transfer(session, asked);
        MEMSCAPE_CHECK(transfer.open());
        MEMSCAPE_CHECK(transfer.check());
        for (int warm = 0; warm < 2; ++warm)
            MEMSCAPE_CHECK(transfer.sample(true, false));
        const Clock& clock = session.clock();
        StoppingRule rule(StoppingOptions().perPass(sweepPasses), clock);
        while (!rule.finished()) {
            MEMSCAPE_TRY(seconds, transfer.sample(true, false));
            rule.add(seconds);
        }
        probes.points.push_back({double(bytes), summarize(rule.samples()).median, {}});
        MEMSCAPE_CHECK(session.synchronize("freeing the buffers"));
    }
    return probes;
}

Link& linkOf(Device& device, const char* id)
{
    const auto found = std::ranges::find(device.links, id, &Link::id);
    if (found != device.links.end())
        return *found;
    device.links.push_back({id, id == std::string("host") ? "link to the host" : "link to another GPU", {}, {}});
    return device.links.back();
}

void put(Device& device, TransferKind kind, const Link& fitted)
{
    Link& link = linkOf(device, kind == TransferKind::Peer ? "peer" : "host");
    if (kind == TransferKind::Pageable) {
        link.pageable = fitted.bandwidth;
        return;
    }
    link.bandwidth = fitted.bandwidth;
    link.latency = fitted.latency;
}

} // namespace

Result<Json> calibrateLinks(GpuSession& session, Device& device, RunSink& sink)
{
    Json raw = Json::array();
    for (const TransferKind kind : {TransferKind::Pinned, TransferKind::Pageable, TransferKind::Peer}) {
        const auto probes = probe(session, kind, sink);
        if (!probes && (probes.error().code == "run.skipped" || probes.error().code == "run.memory")) {
            device.notes.push_back(
                fmt::format("{} was not calibrated: {}", transferKindLabel(kind), probes.error().message));
            continue;
        }
        if (!probes)
            return tl::unexpected(probes.error());
        for (const LinkProbe& point : probes->points)
            raw.push_back({probes->id, point.bytes, jsonNumber(point.seconds)});
        const auto fitted = fitLink(*probes);
        if (fitted)
            put(device, kind, fitted->link);
        else
            device.notes.push_back(fitted.error().message);
    }
    return raw;
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// PyTorch memory snapshots: pickles that may be anything. What can be read is also rebuilt, drawn, judged and written,
// and what is written reads back with the same events.
#include "core/snapshot/snapshot_export.h"
#include "core/snapshot/snapshot_reader.h"

#include "tests/fuzz/target.h"

using namespace memscape;

namespace {

void ask(const SnapshotDevice& device)
{
    const Lifetimes& lifetimes = device.lifetimes();
    const EventRange all{0, lifetimes.events()};
    fuzz::promise(snapshotFigures(device, all).size() >= 4, "a snapshot has figures");
    for (const SnapshotFinding& finding : findingsOf(device, all.first, all.last))
        fuzz::promise(!finding.evidence.empty() && !finding.remedy.empty(), "a finding has evidence and a remedy");
    const auto columns = device.timeline().columns(device.timeline().byTime(0, lifetimes.events(), 40));
    device.timeline().bands(columns, 10);
    device.timeline().categories(columns);
    for (const std::size_t moment : {std::size_t(0), lifetimes.events() / 2, lifetimes.events()}) {
        const SnapshotLayout layout = lifetimes.layoutAt(moment);
        for (const LaidBlock& block : layout.blocks)
            fuzz::promise(block.size >= 0, "blocks and holes have a size");
        flameTree(device.snapshot(), lifetimes, lifetimes.aliveAt(moment));
    }
}

void readsBack(const SnapshotDevice& device)
{
    const EventRange all{0, device.lifetimes().events()};
    std::string written;
    const auto append = [&](std::string_view piece) {
        written += piece;
        return true;
    };
    fuzz::promise(writeMemoryViz(device, all, append).has_value(), "what was read can be written");
    const auto again = readSnapshotBytes(written, {{}, {}, 1000, 64u << 20});
    fuzz::promise(again.has_value(), again ? "" : ("what is written can be read: " + again.error().text()).c_str());
    std::size_t known = 0;
    for (std::size_t event = 0; event < all.last; ++event)
        known += device.lifetimes().event(event).action != SnapshotAction::Other;
    fuzz::promise(again->events.size() == known, "no event is lost");
    fuzz::promise(writeBlocksCsv(device, all, [](std::string_view) { return true; }).has_value(),
                  "the table is written");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    auto snapshot = readSnapshotBytes(fuzz::text(data, size));
    fuzz::errorIsClear(snapshot);
    if (!snapshot)
        return 0;
    const auto shared = std::make_shared<const Snapshot>(std::move(*snapshot));
    for (const std::uint32_t index : shared->devices()) {
        const auto device = SnapshotDevice::analyse(shared, index);
        fuzz::errorIsClear(device);
        if (!device)
            continue;
        ask(**device);
        readsBack(**device);
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "core/report/snapshot_record.h"

#include "core/snapshot/predicted_snapshot.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t mostRows = 20;        // of a table of groups
constexpr std::size_t pictureColumns = 450; // each gives its boundary and its peak

std::string deviceId(const SnapshotDevice& device)
{
    const auto& run = device.snapshot().run;
    if (run && !run->device.empty() && (run->device.starts_with("cpu") || device.device() == 0))
        return "pytorch:" + run->device;
    return fmt::format("pytorch:cuda:{}", device.device());
}

Device deviceOf(const SnapshotDevice& device)
{
    const auto& run = device.snapshot().run;
    Device made;
    made.id = deviceId(device);
    made.name = fmt::format("PyTorch{} on {}", run && !run->torch.empty() ? " " + run->torch : std::string(),
                            made.id.substr(made.id.find(':') + 1));
    made.kind = device.lifetimes().hasCache() ? DeviceKind::Gpu : DeviceKind::Host;
    made.basis = "described";
    made.levels.resize(1); // every device has one
    made.levels[0].id = "DRAM";
    made.levels[0].label = "memory";
    made.levels[0].kind = LevelKind::Dram;
    made.notes = {"A snapshot does not say what device it was written on."};
    return made;
}

Json groupsJson(std::vector<SnapshotGroup> groups)
{
    Json rows = Json::array();
    for (std::size_t i = 0; i < std::min(groups.size(), mostRows); ++i)
        rows.push_back({{"label", groups[i].label}, {"bytes", groups[i].bytes}, {"blocks", groups[i].blocks}});
    return rows;
}

Json peakJson(const SnapshotDevice& device, const EventRange& range)
{
    const std::size_t moment = device.timeline().peakAllocated(range.first, range.last);
    const auto blocks = device.allocatedAt(moment);
    return {{"event", moment == 0 ? Json() : Json(moment - 1)},
            {"categories", groupsJson(device.groups(blocks, SnapshotGrouping::Category))},
            {"modules", groupsJson(device.groups(blocks, SnapshotGrouping::Module))},
            {"operators", groupsJson(device.groups(blocks, SnapshotGrouping::Operator))},
            {"lines", groupsJson(device.groups(blocks, SnapshotGrouping::Line))}};
}

Json stepsJson(const SnapshotSteps& steps)
{
    return {{"how", steps.how}, {"count", steps.steps.size()}, {"steady", {steps.steady, steps.steadyEnd}}};
}

Json detailOf(const SnapshotDevice& device, const EventRange& range, const std::string& name,
              const std::vector<SnapshotFinding>& found)
{
    const Snapshot& snapshot = device.snapshot();
    Json sources = Json::object();
    for (std::size_t i = 0; i < device.categories().shares().size(); ++i)
        sources[std::string(categorySourceText(CategorySource(i)))] = jsonNumber(device.categories().shares()[i]);
    Json findings = Json::array();
    for (const SnapshotFinding& finding : found)
        findings.push_back(findingToJson(finding));
    std::vector<std::string> notes = snapshot.notes;
    if (snapshot.run)
        notes.insert(notes.end(), snapshot.run->notes.begin(), snapshot.run->notes.end());
    Json detail = {{"file", name},
                   {"device", device.device()},
                   {"events", device.lifetimes().events()},
                   {"range", {range.first, range.last}},
                   {"segments", device.lifetimes().layoutAt(range.last).segments.size()},
                   {"blocks", device.lifetimes().all().size()},
                   {"steps", stepsJson(device.steps())},
                   {"categories_from", std::move(sources)},
                   {"peak", peakJson(device, range)},
                   {"findings", std::move(findings)},
                   {"notes", notes}};
    if (snapshot.run) {
        detail["torch"] = snapshot.run->torch;
        detail["python"] = snapshot.run->python;
    }
    if (!snapshot.settings.is_null())
        detail["allocator_settings"] = snapshot.settings;
    return detail;
}

/// Boundaries of some hundred columns and the peak within each.
std::vector<std::size_t> momentsOf(const SnapshotDevice& device, const EventRange& range)
{
    const auto boundaries = device.timeline().byEvents(
        range.first, range.last, std::clamp<std::size_t>(range.last - range.first, 1, pictureColumns));
    std::vector<std::size_t> moments = boundaries;
    for (const TimelineColumn& column : device.timeline().columns(boundaries))
        moments.push_back(column.peak);
    moments.push_back(device.timeline().peakReserved(range.first, range.last));
    std::ranges::sort(moments);
    moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
    return moments;
}

std::vector<Series> seriesOf(const SnapshotDevice& device, const EventRange& range)
{
    Series allocated, reserved;
    allocated.key = "allocated";
    allocated.label = "allocated";
    reserved.key = "reserved";
    reserved.label = "reserved";
    for (Series* series : {&allocated, &reserved}) {
        series->x = {"event", "events", Unit::One, AxisScale::Linear, {}, {}};
        series->yLabel = "bytes";
        series->yUnit = Unit::Byte;
    }
    for (const std::size_t moment : momentsOf(device, range)) {
        const SnapshotBytes bytes = device.lifetimes().bytesAt(moment);
        allocated.x.values.push_back(double(moment));
        allocated.y.push_back(double(bytes.allocated));
        reserved.x.values.push_back(double(moment));
        reserved.y.push_back(double(bytes.reserved));
    }
    return {allocated, reserved};
}

} // namespace

Record snapshotRecord(const SnapshotDevice& device, const EventRange& range, const std::string& name)
{
    return snapshotRecord(device, range, name, findingsOf(device, range.first, range.last));
}

Record snapshotRecord(const SnapshotDevice& device, const EventRange& range, const std::string& name,
                      const std::vector<SnapshotFinding>& findings)
{
    Record record;
    record.experiment = "snapshot";
    record.name = name;
    record.foreignParameters = Json::object();
    record.device = deviceOf(device);
    Outcome outcome;
    outcome.figures = snapshotFigures(device, range);
    outcome.series = seriesOf(device, range);
    outcome.detail = detailOf(device, range, name, findings);
    (isPredicted(device.snapshot()) ? record.predicted : record.measured) = std::move(outcome);
    record.provenance = programProvenance();
    record.provenance["file"] = name;
    record.provenance["file_bytes"] = device.snapshot().fileBytes;
    return record;
}

const Outcome* snapshotOutcome(const Record& record)
{
    if (record.experiment != "snapshot")
        return nullptr;
    return record.measured ? &*record.measured : record.predicted ? &*record.predicted : nullptr;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_comparison.h"

#include <algorithm>
#include <map>

namespace memscape {

namespace {

std::vector<SnapshotDifference> differences(const std::vector<SnapshotGroup>& a, const std::vector<SnapshotGroup>& b)
{
    std::map<std::string, SnapshotDifference> byLabel;
    for (const SnapshotGroup& group : a) {
        SnapshotDifference& difference = byLabel[group.label];
        difference.bytesA = group.bytes;
        difference.blocksA = group.blocks;
    }
    for (const SnapshotGroup& group : b) {
        SnapshotDifference& difference = byLabel[group.label];
        difference.bytesB = group.bytes;
        difference.blocksB = group.blocks;
    }
    std::vector<SnapshotDifference> found;
    for (auto& [label, difference] : byLabel) {
        difference.label = label;
        found.push_back(std::move(difference));
    }
    std::ranges::stable_sort(found, std::greater(),
                             [](const SnapshotDifference& one) { return std::abs(one.change()); });
    return found;
}

Json differencesToJson(const std::vector<SnapshotDifference>& differences)
{
    Json rows = Json::array();
    for (const SnapshotDifference& one : differences)
        rows.push_back({{"label", one.label},
                        {"a", one.bytesA},
                        {"b", one.bytesB},
                        {"change", one.change()},
                        {"blocks_a", one.blocksA},
                        {"blocks_b", one.blocksB}});
    return rows;
}

} // namespace

SnapshotComparison compareSnapshots(const SnapshotDevice& a, const SnapshotDevice& b)
{
    SnapshotComparison comparison;
    const EventRange rangeA{0, a.lifetimes().events()}, rangeB{0, b.lifetimes().events()};
    comparison.a = snapshotFigures(a, rangeA);
    comparison.b = snapshotFigures(b, rangeB);
    comparison.momentA = a.timeline().peakAllocated(rangeA.first, rangeA.last);
    comparison.momentB = b.timeline().peakAllocated(rangeB.first, rangeB.last);
    const auto blocksA = a.allocatedAt(comparison.momentA), blocksB = b.allocatedAt(comparison.momentB);
    const auto compared = [&](SnapshotGrouping grouping) {
        return differences(a.groups(blocksA, grouping), b.groups(blocksB, grouping));
    };
    comparison.categories = compared(SnapshotGrouping::Category);
    comparison.lines = compared(SnapshotGrouping::Line);
    comparison.stacks = compared(SnapshotGrouping::Stack);
    return comparison;
}

Json snapshotComparisonToJson(const SnapshotComparison& comparison)
{
    Json figures = Json::object();
    for (const Figure& figure : comparison.a) {
        const Figure* other = findFigure(comparison.b, figure.key);
        figures[figure.key] = {{"label", figure.label},
                               {"unit", unitText(figure.unit)},
                               {"a", jsonNumber(figure.number())},
                               {"b", jsonNumber(other->number())},
                               {"change", jsonNumber(other->number() - figure.number())}};
    }
    return {{"figures", std::move(figures)},
            {"moments", {comparison.momentA, comparison.momentB}},
            {"categories", differencesToJson(comparison.categories)},
            {"lines", differencesToJson(comparison.lines)},
            {"stacks", differencesToJson(comparison.stacks)}};
}

} // namespace memscape

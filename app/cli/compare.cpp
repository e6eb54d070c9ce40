// SPDX-License-Identifier: Apache-2.0
// Two snapshots, or two records, or one of each: their figures side by side, and of snapshots who holds the difference.
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/snapshot.h"
#include "core/experiment/document.h"
#include "core/report/snapshot_record.h"
#include "core/report/text_table.h"
#include "core/snapshot/snapshot_comparison.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape::cli {

namespace {

struct Side
{
    std::shared_ptr<const SnapshotDevice> snapshot; ///< null of a record
    Figures figures;
};

Result<Side> sideOf(const std::string& path, const std::string& device)
{
    Side side;
    if (isPickleFile(path)) {
        MEMSCAPE_TRY(snapshot, openSnapshot(path, device));
        side.snapshot = snapshot;
        side.figures = snapshotFigures(*snapshot, {0, snapshot->lifetimes().events()});
        return side;
    }
    MEMSCAPE_TRY(record, readRecord(path));
    if (!record.measured && !record.predicted)
        return fail("report.empty", "this record has neither a prediction nor a measurement", "measure it first", path);
    side.figures = record.measured ? record.measured->figures : record.predicted->figures;
    return side;
}

Json figuresJson(const Figures& a, const Figures& b)
{
    Json figures = Json::object();
    for (const Figure& figure : a) {
        const Figure* other = findFigure(b, figure.key);
        if (!other)
            continue;
        Json row = {{"label", figure.label}, {"unit", unitText(figure.unit)}};
        if (figure.isNumber() && other->isNumber()) {
            row["a"] = jsonNumber(figure.number());
            row["b"] = jsonNumber(other->number());
            row["change"] = jsonNumber(other->number() - figure.number());
        } else {
            row["a"] = figure.text();
            row["b"] = other->text();
        }
        figures[figure.key] = std::move(row);
    }
    return figures;
}

/// "+12 MiB"; a share of a share in points.
std::string changeText(double change, Unit unit)
{
    const std::string size = quantityText(std::abs(change), unit);
    return change == 0 ? "the same" : (change > 0 ? "+" : "−") + size;
}

TextTable figuresTable(const Figures& a, const Figures& b)
{
    TextTable table{{{"figure", false}, {"a", true}, {"b", true}, {"change", true}}, {}};
    for (const Figure& figure : a) {
        const Figure* other = findFigure(b, figure.key);
        if (other)
            table.rows.push_back({figure.label, figure.text(), other->text(),
                                  figure.isNumber() && other->isNumber()
                                      ? changeText(other->number() - figure.number(), figure.unit)
                                      : (figure.text() == other->text() ? "the same" : "differs")});
    }
    return table;
}

std::string differencesText(std::string_view title, const std::vector<SnapshotDifference>& differences)
{
    TextTable table{{{"", false}, {"a", true}, {"b", true}, {"change", true}}, {}};
    for (const SnapshotDifference& one : differences) {
        if (one.change() == 0 || table.rows.size() == 12)
            break;
        table.rows.push_back({one.label, bytesText(double(one.bytesA)), bytesText(double(one.bytesB)),
                              changeText(double(one.change()), Unit::Byte)});
    }
    return table.empty() ? std::string() : fmt::format("\n{}\n{}", title, alignedText(table, 2));
}

} // namespace

int runCompare(const Arguments& arguments)
{
    if (const auto place = writable(arguments.output); !place)
        return refused(place.error());
    const auto a = sideOf(arguments.files[0], arguments.device);
    if (!a)
        return refused(a.error());
    const auto b = sideOf(arguments.files[1], arguments.device);
    if (!b)
        return refused(b.error());
    Json json = {{"a", nameOfFile(arguments.files[0])}, {"b", nameOfFile(arguments.files[1])}};
    std::string text = alignedText(figuresTable(a->figures, b->figures));
    if (a->snapshot && b->snapshot) {
        const SnapshotComparison comparison = compareSnapshots(*a->snapshot, *b->snapshot);
        json.update(snapshotComparisonToJson(comparison));
        text += differencesText("At the peak, by category", comparison.categories);
        text += differencesText("At the peak, by line", comparison.lines);
        text += differencesText("At the peak, by stack", comparison.stacks);
    } else {
        json["figures"] = figuresJson(a->figures, b->figures);
        if (json["figures"].empty())
            return refused(
                {"compare.nothing", "the two have no figure in common", {}, "compare records of one experiment"});
    }
    const bool printsJson = arguments.json || arguments.output == "-";
    if (!printsJson)
        printOut(text);
    return deliver(arguments.output, jsonText(json), printsJson, 0);
}

} // namespace memscape::cli

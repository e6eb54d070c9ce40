// SPDX-License-Identifier: Apache-2.0
#include "core/report/memory_tables.h"

#include "core/base/json_values.h"
#include "core/base/text.h"
#include "core/experiments/memory/memory_difference.h"
#include "core/report/snapshot_record.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t most = 12; // rows of a table that could be long

std::string bytesText(double bytes, ByteStyle style)
{
    return quantityText(bytes, Unit::Byte, style);
}

TextTable partsTable(const Json& detail, ByteStyle style)
{
    TextTable table{{{"part", false}, {"at the peak", true}}, {}};
    for (const Json& part : listOf(detail, "parts"))
        table.rows.push_back({words(part, "label"), bytesText(number(part, "bytes", 0), style)});
    return table;
}

/// Of a pipeline; the fullest rank is marked.
TextTable ranksTable(const Json& detail, ByteStyle style)
{
    TextTable table{{{"rank", false},
                     {"layers", true},
                     {"parameters", true},
                     {"in flight", true},
                     {"peak allocated", true},
                     {"device total", true}},
                    {}};
    const Json& pipeline = member(detail, "pipeline");
    const double fullest = number(pipeline, "rank", -1);
    for (const Json& rank : listOf(pipeline, "ranks")) {
        const std::size_t index = table.rows.size();
        table.rows.push_back({numberText(double(index)) + (double(index) == fullest ? ", needs most" : ""),
                              numberText(number(rank, "layers", 0)),
                              fmt::format("{:.0f}", number(rank, "parameters", 0)),
                              numberText(number(rank, "in_flight", 0)), bytesText(number(rank, "allocated", 0), style),
                              bytesText(number(rank, "device_total", 0), style)});
    }
    return table;
}

/// "−4.5 %"; a dash where it is not known.
std::string shareText(const Json& object, const char* key)
{
    const double share = number(object, key, std::nan(""));
    return std::isfinite(share) ? percentText(share) : "–";
}

TextTable leversTable(const Json& detail, ByteStyle style)
{
    TextTable table{{{"change", false}, {"saves", true}, {"step time", true}, {"fits", false}, {"what it does", false}},
                    {}};
    for (const Json& lever : listOf(detail, "levers")) {
        if (table.rows.size() == most)
            break;
        table.rows.push_back({words(lever, "label"), bytesText(number(lever, "saving", 0), style),
                              shareText(lever, "time_change"), isTrue(lever, "fits") ? "yes" : "no",
                              words(lever, "why")});
    }
    return table;
}

TextTable fitTable(const Json& detail, ByteStyle style)
{
    TextTable table{{{"combination", false}, {"device total", true}, {"step time", true}}, {}};
    if (!detail.is_object() || !detail.contains("make_it_fit"))
        return table;
    for (const char* list : {"combinations", "changing_training"}) {
        for (const Json& one : listOf(detail["make_it_fit"], list)) {
            table.rows.push_back(
                {words(one, "label") + (isTrue(one, "keeps_training") ? "" : " (changes what is trained)"),
                 bytesText(number(one, "device_total", 0), style), secondsText(number(one, "step_time", 0))});
        }
    }
    return table;
}

TextTable liveTable(const Json& detail, ByteStyle style)
{
    TextTable table{{{"alive at the peak", false}, {"module", false}, {"bytes", true}, {"tensors", true}}, {}};
    if (!detail.is_object() || !detail.contains("peak"))
        return table;
    for (const Json& live : listOf(detail["peak"], "live")) {
        if (table.rows.size() == most)
            break;
        table.rows.push_back({words(live, "category") + " " + words(live, "name"), words(live, "module"),
                              bytesText(number(live, "bytes", 0), style), numberText(number(live, "count", 0))});
    }
    return table;
}

/// Of a step that was measured too: each phase's two peaks, and the tensors that make the difference.
TextTable phasesTable(const Record& record, ByteStyle style)
{
    TextTable table{{{"phase", false}, {"predicted", true}, {"measured", true}, {"the difference", false}}, {}};
    if (!record.measured)
        return table;
    for (const PhaseDifference& phase : phaseDifferences(record.predicted->detail, record.measured->detail))
        table.rows.push_back({phase.phase, bytesText(phase.predicted, style), bytesText(phase.measured, style),
                              differenceText(phase, style)});
    return table;
}

TextTable textbookTable(const Json& detail, ByteStyle style)
{
    TextTable table{
        {{"formula", false}, {"says", true}, {"simulated", true}, {"the difference", false}, {"source", false}}, {}};
    for (const Json& line : listOf(detail, "textbook")) {
        table.rows.push_back({words(line, "formula"), bytesText(number(line, "value", 0), style),
                              bytesText(number(line, "ours", 0), style), words(line, "difference"),
                              words(line, "source")});
    }
    return table;
}

/// A list of whole numbers as PyTorch prints it.
std::string sizesOf(const Json& object, const char* key)
{
    std::string text;
    for (const Json& one : listOf(object, key))
        text += (text.empty() ? "" : ", ") + (one.is_number() ? numberText(one.get<double>()) : std::string("?"));
    return "[" + text + "]";
}

/// The operations of `layout`.
TextTable stepsTable(const Json& detail, ByteStyle style)
{
    TextTable table{{{"operation", false}, {"size", false}, {"stride", false}, {"what it is", false}}, {}};
    for (const Json& step : listOf(detail, "steps")) {
        std::string verdict =
            isTrue(step, "copied") ? "copy of " + bytesText(number(step, "copied_bytes", 0), style) : "view";
        if (!isTrue(step, "ok"))
            verdict = "refused: " + words(step, "message");
        else if (isTrue(step, "contiguous"))
            verdict += ", contiguous";
        if (!words(step, "text").empty())
            table.rows.push_back({words(step, "text"), sizesOf(step, "size"), sizesOf(step, "stride"), verdict});
    }
    return table;
}

TextTable copiesTable(const Json& detail)
{
    TextTable table{{{"version of the copy", true}, {"time", true}, {"bandwidth", true}, {"what it does", false}}, {}};
    for (const Json& one : listOf(detail, "versions")) {
        if (!words(one, "lesson").empty())
            table.rows.push_back({numberText(number(one, "version", 0)), secondsText(number(one, "time", 0)),
                                  quantityText(number(one, "bandwidth", 0), Unit::BytePerSecond),
                                  words(one, "lesson")});
    }
    return table;
}

/// Of a snapshot.
TextTable findingsTable(const Json& detail)
{
    TextTable table{{{"finding", false}, {"evidence", false}, {"what to do", false}}, {}};
    for (const Json& finding : listOf(detail, "findings"))
        table.rows.push_back({words(finding, "level") + ": " + words(finding, "title"), words(finding, "evidence"),
                              words(finding, "remedy")});
    return table;
}

TextTable groupsTable(const Json& detail, const char* list, const char* what, ByteStyle style)
{
    TextTable table{{{what, false}, {"bytes", true}, {"blocks", true}}, {}};
    if (!detail.is_object() || !detail.contains("peak"))
        return table;
    for (const Json& group : listOf(detail["peak"], list)) {
        if (table.rows.size() == most)
            break;
        table.rows.push_back({words(group, "label"), bytesText(number(group, "bytes", 0), style),
                              numberText(number(group, "blocks", 0))});
    }
    return table;
}

std::vector<NamedTable> snapshotTables(const Json& detail, ByteStyle style)
{
    std::vector<NamedTable> tables;
    for (NamedTable one : {NamedTable{"Findings", findingsTable(detail)},
                           NamedTable{"At the peak, by category", groupsTable(detail, "categories", "category", style)},
                           NamedTable{"At the peak, by module", groupsTable(detail, "modules", "module", style)},
                           NamedTable{"At the peak, by operator", groupsTable(detail, "operators", "operator", style)},
                           NamedTable{"At the peak, by line", groupsTable(detail, "lines", "line", style)}}) {
        if (!one.table.empty())
            tables.push_back(std::move(one));
    }
    return tables;
}

} // namespace

std::vector<NamedTable> memoryTables(const Record& record, ByteStyle style)
{
    std::vector<NamedTable> tables;
    if (const Outcome* snapshot = snapshotOutcome(record))
        return snapshotTables(snapshot->detail, style);
    if (!record.predicted)
        return tables;
    const Json& detail = record.predicted->detail;
    for (NamedTable one :
         {NamedTable{"What takes the space", partsTable(detail, style)},
          NamedTable{"Ranks of the pipeline", ranksTable(detail, style)},
          NamedTable{"What would help most", leversTable(detail, style)},
          NamedTable{"Make it fit", fitTable(detail, style)}, NamedTable{"Alive at the peak", liveTable(detail, style)},
          NamedTable{"The highest moment of each phase", phasesTable(record, style)},
          NamedTable{"Formulas of textbooks", textbookTable(detail, style)},
          NamedTable{"Step by step", record.experiment == "layout" ? stepsTable(detail, style) : TextTable{}},
          NamedTable{"The copy, predicted", record.experiment == "layout" ? copiesTable(detail) : TextTable{}}}) {
        if (!one.table.empty())
            tables.push_back(std::move(one));
    }
    return tables;
}

namespace {

/// Whether the step fits; empty for experiments that ask something else.
std::string fitSentence(const Record& record, ByteStyle style)
{
    const Json& detail = record.predicted->detail;
    const auto capacity = detail.find("capacity");
    if (capacity == detail.end() || !capacity->is_object() || !detail.contains("parts"))
        return {};
    const double bytes = number(*capacity, "bytes", 0);
    if (!isTrue(detail, "fits")) {
        const auto refused = detail.find("out_of_memory");
        const std::string place = refused != detail.end() ? words(*refused, "summary") : std::string();
        return fmt::format("Does not fit into {} of {}: {} too many{}{}", bytesText(bytes, style),
                           words(*capacity, "label"), bytesText(number(detail, "over", 0), style),
                           place.empty() ? "" : ". Out of memory at ", place);
    }
    const Figure* total = findFigure(record.predicted->figures, "device_total");
    if (!total || !total->isNumber())
        return {};
    const bool isTight = words(detail, "fit") == "tight";
    const char* const sharers = isTrue(*capacity, "shared") ? " for the system and the CPU's programs" : "";
    return fmt::format("{} into {} of {}: {} are left{}{}", isTight ? "Tight: fits" : "Fits", bytesText(bytes, style),
                       words(*capacity, "label"), bytesText(bytes - total->number(), style), sharers,
                       isTight ? ", less than the 3 % by which predictions may be off" : "");
}

} // namespace

std::string missingTime(const Figures& figures)
{
    for (const char* key : {"step_time", "token_time"}) {
        const Figure* const time = findFigure(figures, key);
        if (time && time->why && !std::isfinite(time->number()))
            return "No time: " + time->why->with;
    }
    return {};
}

std::string verdictText(const Record& record, ByteStyle style)
{
    if (!record.predicted || !record.predicted->detail.is_object())
        return {};
    const Json& detail = record.predicted->detail;
    const std::string caution = detail.contains("model") ? words(detail["model"], "caution") : std::string();
    std::vector<std::string> sentences{caution.empty() ? std::string() : "Caution: " + caution,
                                       fitSentence(record, style), missingTime(record.predicted->figures)};
    std::erase(sentences, std::string());
    return join(sentences, ". ");
}

bool isIdleFigure(const Outcome& predicted, const Figure& figure)
{
    if (figure.key == "fullest_rank")
        return !predicted.detail.contains("pipeline");
    return figure.key == "communication" && figure.isNumber() && figure.number() == 0;
}

} // namespace memscape

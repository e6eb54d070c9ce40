// SPDX-License-Identifier: Apache-2.0
#include "core/report/published_report.h"

#include "core/report/text_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

std::string percents(double share)
{
    return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : std::string("–");
}

std::string signedPercents(double share)
{
    return std::isfinite(share) ? fmt::format("{}{:.1f} %", share < 0 ? "−" : "+", 100 * std::abs(share))
                                : std::string("–");
}

std::string nameOf(const PublishedOutcome& outcome)
{
    return fmt::format("{}: {}", outcome.row.table, outcome.row.row);
}

TextTable familyTable(const std::vector<FamilyError>& families)
{
    TextTable table{{{"family"},
                     {"rows", true},
                     {"mean", true},
                     {"median", true},
                     {"signed\nmedian", true},
                     {"in band", true},
                     {"worst", true},
                     {"worst row"}},
                    {}};
    for (const FamilyError& family : families) {
        if (family.rows == 0) // all of them are listed with their reason
            continue;
        table.rows.push_back({family.group, fmt::format("{}", family.rows), percents(family.mean),
                              percents(family.median), signedPercents(family.bias),
                              family.banded > 0 ? percents(double(family.inBand) / double(family.banded)) : "–",
                              family.worst ? signedPercents(family.worst->error()) : "–",
                              family.worst ? nameOf(*family.worst) : ""});
    }
    return table;
}

std::string toolsText(const std::vector<ToolError>& errors, const std::vector<ToolEstimates>& tools)
{
    if (errors.empty())
        return {};
    TextTable table{{{"other tool"},
                     {"family"},
                     {"rows", true},
                     {"mean", true},
                     {"signed\nmedian", true},
                     {"ours on\nthese rows", true}},
                    {}};
    for (const ToolError& one : errors)
        table.rows.push_back({one.tool, one.family, fmt::format("{}", one.theirs.rows), percents(one.theirs.mean),
                              signedPercents(one.theirs.bias), percents(one.ours.mean)});
    std::string out = "\n" + alignedText(table);
    for (const ToolEstimates& tool : tools)
        out += wrappedText(fmt::format("{}: {}", tool.tool, tool.how), 2);
    return out;
}

std::string valueText(const PublishedOutcome& outcome, double value)
{
    const bool isTime = outcome.row.figure.find("time") != std::string::npos;
    const bool isRate = outcome.row.figure.find("second") != std::string::npos;
    return quantityText(value, isTime ? Unit::Second : isRate ? Unit::One : Unit::Byte);
}

std::string everyRowText(const std::vector<PublishedOutcome>& outcomes)
{
    TextTable table{{{"row"}, {"family"}, {"published", true}, {"predicted", true}, {"error", true}}, {}};
    std::vector<const PublishedOutcome*> sorted;
    for (const PublishedOutcome& one : outcomes) {
        if (one.isPredicted())
            sorted.push_back(&one);
    }
    std::ranges::stable_sort(sorted, [](const auto* a, const auto* b) {
        return std::pair(a->group(), -std::abs(a->error())) < std::pair(b->group(), -std::abs(b->error()));
    });
    for (const PublishedOutcome* const one : sorted)
        table.rows.push_back({nameOf(*one), one->group(), valueText(*one, one->row.value),
                              valueText(*one, one->predicted), signedPercents(one->error())});
    return alignedText(table) + "\n";
}

} // namespace

std::string publishedText(const std::vector<PublishedOutcome>& outcomes, const std::vector<ToolEstimates>& tools,
                          bool everyRow)
{
    std::string out = "Predictions against published figures: error = predicted / published − 1\n\n";
    if (everyRow)
        out += everyRowText(outcomes);
    out += alignedText(familyTable(familyErrors(outcomes)));
    out += toolsText(toolErrors(outcomes, tools), tools);
    std::size_t refused = 0;
    std::string reasons;
    for (const PublishedOutcome& one : outcomes) {
        if (one.isPredicted())
            continue;
        ++refused;
        reasons += wrappedText(fmt::format("{} ({}): {}", nameOf(one), one.row.family, one.why), 2);
    }
    if (refused > 0)
        out += fmt::format("\n{} rows cannot be predicted:\n", refused) + reasons;
    return out;
}

std::string publishedDocument(const std::vector<PublishedOutcome>& outcomes, const std::vector<ToolEstimates>& tools)
{
    Json families = Json::array(), others = Json::array(), rows = Json::array();
    for (const ToolError& one : toolErrors(outcomes, tools))
        others.push_back({{"tool", one.tool},
                          {"family", one.family},
                          {"rows", one.theirs.rows},
                          {"mean", jsonNumber(one.theirs.mean)},
                          {"median", jsonNumber(one.theirs.median)},
                          {"bias", jsonNumber(one.theirs.bias)},
                          {"our_mean", jsonNumber(one.ours.mean)}});
    for (const FamilyError& family : familyErrors(outcomes))
        families.push_back({{"family", family.group},
                            {"rows", family.rows},
                            {"refused", family.refused},
                            {"mean", jsonNumber(family.mean)},
                            {"median", jsonNumber(family.median)},
                            {"bias", jsonNumber(family.bias)},
                            {"banded", family.banded},
                            {"in_band", family.inBand},
                            {"worst", family.worst ? nameOf(*family.worst) : ""}});
    for (const PublishedOutcome& one : outcomes)
        rows.push_back({{"table", one.row.table},
                        {"row", one.row.row},
                        {"source", one.row.source},
                        {"family", one.group()},
                        {"device", one.row.device},
                        {"figure", one.row.figure},
                        {"printed", one.row.printed},
                        {"published", one.row.value},
                        {"predicted", jsonNumber(one.predicted)},
                        {"low", jsonNumber(one.low)},
                        {"high", jsonNumber(one.high)},
                        {"error", jsonNumber(one.isPredicted() ? one.error() : nan)},
                        {"cannot", one.why},
                        {"note", one.row.note}});
    return jsonText({{"families", families}, {"tools", others}, {"rows", rows}});
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/published/tool_estimates.h"

#include "core/base/file.h"
#include "core/claims/claim_quotes.h"
#include "core/claims/claim_table.h"

#include <algorithm>

namespace memscape {

namespace {

namespace fs = std::filesystem;

Result<ToolEstimates> readTool(const fs::path& file)
{
    MEMSCAPE_TRY(json, readClaimFile(file, "memscape-tool-estimates"));
    const JsonReader reader(json);
    MEMSCAPE_CHECK(checkKeys(reader, {"format", "version", "tool", "how", "rows"}));
    ToolEstimates tool;
    MEMSCAPE_TRY(name, reader.string("tool"));
    MEMSCAPE_TRY(how, reader.string("how"));
    tool.tool = name;
    tool.how = how;
    MEMSCAPE_TRY(list, reader.at("rows"));
    MEMSCAPE_TRY(items, list.items());
    for (const JsonReader& item : items) {
        MEMSCAPE_CHECK(checkKeys(item, {"table", "row", "figure", "value"}));
        MEMSCAPE_TRY(title, item.string("table"));
        MEMSCAPE_TRY(row, item.string("row"));
        MEMSCAPE_TRY(figure, item.string("figure"));
        MEMSCAPE_TRY(value, item.number("value"));
        tool.rows.push_back({title, row, figure, value});
    }
    return tool;
}

bool isOf(const ToolEstimate& estimate, const PublishedOutcome& outcome)
{
    return outcome.row.table == estimate.table && outcome.row.row == estimate.row
        && outcome.row.figure == estimate.figure;
}

} // namespace

Result<std::vector<ToolEstimates>> readToolEstimates(const fs::path& folder)
{
    std::vector<ToolEstimates> tools;
    for (const fs::path& file : entriesOf(folder, ".json")) {
        MEMSCAPE_TRY(tool, readTool(file));
        tools.push_back(std::move(tool));
    }
    return tools;
}

std::vector<ToolError> toolErrors(const std::vector<PublishedOutcome>& outcomes,
                                  const std::vector<ToolEstimates>& tools)
{
    std::vector<ToolError> all;
    for (const ToolEstimates& tool : tools) {
        for (const std::string& family : publishedFamilies()) {
            std::vector<PublishedOutcome> theirs, ours;
            for (const PublishedOutcome& outcome : outcomes) {
                if (outcome.row.family != family || !outcome.isPredicted())
                    continue;
                const auto found = std::find_if(tool.rows.begin(), tool.rows.end(),
                                                [&](const ToolEstimate& one) { return isOf(one, outcome); });
                if (found == tool.rows.end())
                    continue;
                ours.push_back(outcome);
                ours.back().deviceName.clear(); // one group: a tool's rates are the same guess on every device
                theirs.push_back(ours.back());
                theirs.back().predicted = found->value;
            }
            if (ours.empty())
                continue;
            ToolError one{tool.tool, family, familyErrors(theirs).front(), familyErrors(ours).front()};
            one.theirs.worst = one.ours.worst = nullptr; // of lists that end here
            all.push_back(std::move(one));
        }
    }
    return all;
}

} // namespace memscape

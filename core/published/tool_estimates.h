// SPDX-License-Identifier: Apache-2.0
// What other tools say of the same published rows, as they printed it: one file for each tool in
// resources/published/tools/, written by tests/core/published/other_tools.py with the tool itself or its formula.
//
// Left out: rows that a tool cannot express; most know neither adapters nor activations.
#pragma once

#include "core/published/published_errors.h"

namespace memscape {

struct ToolEstimate
{
    std::string table, row, figure; ///< which published row
    double value = nan;             ///< in the figure's SI unit
};

struct ToolEstimates
{
    std::string tool; ///< name and version
    std::string how;  ///< which of its functions, with what
    std::vector<ToolEstimate> rows;
};

/// All tools of a folder, by file name; none where there is no folder. Errors: file.*, json.*, claims.key.
Result<std::vector<ToolEstimates>> readToolEstimates(const std::filesystem::path& folder = publishedFolder() / "tools");

/// A tool's errors in one family beside our own on the same rows.
struct ToolError
{
    std::string tool, family;
    FamilyError theirs, ours; ///< without their worst rows
};

/// By tool, then in the order of publishedFamilies(); rows that have no prediction here are left out.
std::vector<ToolError> toolErrors(const std::vector<PublishedOutcome>& outcomes,
                                  const std::vector<ToolEstimates>& tools);

} // namespace memscape

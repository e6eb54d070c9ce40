// SPDX-License-Identifier: Apache-2.0
// Predictions beside published figures as documents: the table of errors by family, the rows that cannot be predicted
// with the reason, and JSON with every row.
#pragma once

#include "core/published/tool_estimates.h"

namespace memscape {

/// The table of families and that of other tools; with `everyRow` all rows before them, worst first in each family.
std::string publishedText(const std::vector<PublishedOutcome>& outcomes, const std::vector<ToolEstimates>& tools = {},
                          bool everyRow = false);
/// {"families": […], "tools": […], "rows": […]}; errors are relative, values in SI units.
std::string publishedDocument(const std::vector<PublishedOutcome>& outcomes,
                              const std::vector<ToolEstimates>& tools = {});

} // namespace memscape

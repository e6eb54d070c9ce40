// SPDX-License-Identifier: Apache-2.0
// Predictions beside published figures as documents: the table of errors by family, the rows that cannot be predicted
// with the reason, and JSON with every row.
#pragma once

#include "core/published/published_errors.h"

namespace memscape {

/// The table of families; with `everyRow` all rows before it, worst first in each family.
std::string publishedText(const std::vector<PublishedOutcome>& outcomes, bool everyRow = false);
/// {"families": […], "rows": […]}; errors are relative, values in SI units.
std::string publishedDocument(const std::vector<PublishedOutcome>& outcomes);

} // namespace memscape

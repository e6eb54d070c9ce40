// SPDX-License-Identifier: Apache-2.0
// The `detail` of a prediction as tables: of memory what takes the space, what would help, the tensors alive at the
// peak, textbook formulas; of a layout its operations and the versions of the copy; of a snapshot (its measurement's
// detail) findings and who holds the peak. A record of anything else, and a detail of another shape, gives none.
#pragma once

#include "core/experiment/record.h"
#include "core/report/text_table.h"

#include <string>
#include <vector>

namespace memscape {

struct NamedTable
{
    std::string title;
    TextTable table;
};

/// In reading order, empty ones left out. Cells are plain text (the caller escapes).
std::vector<NamedTable> memoryTables(const Record& record, ByteStyle style = ByteStyle::Binary);

/// "No time: " and what is missing, where the figures have no time of a step or of a token; empty elsewhere.
std::string missingTime(const Figures& figures);

/// "Out of memory: …" or the capacity that is left; empty where the detail does not say.
std::string verdictText(const Record& record, ByteStyle style = ByteStyle::Binary);

/// The figure says nothing of what is predicted here: the fullest of the pipeline's ranks where there is no pipeline,
/// what ranks send where nothing is sent. Tables for people leave it out.
bool isIdleFigure(const Outcome& predicted, const Figure& figure);

} // namespace memscape

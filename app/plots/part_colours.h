// SPDX-License-Identifier: GPL-3.0-or-later
// The colours of what memory is for: weights, gradients, activations… the same in the capacity bar,
// the timeline and the treemap. Okabe and Ito's palette and greys; parts are distinguished by their order and labels
// too, so a grey print is readable. Activations are a darker amber than what is measured, and the measured dots over
// them have a rim.
#pragma once

#include "app/settings/theme.h"
#include "core/trace/trace.h"

#include <string_view>

namespace memscape {

/// Index of a part by its key in documents ("optimizer_state", "reserved_unused"); unknown keys are
/// "unknown".
int partIndex(std::string_view key);
/// The same of a category of a trace.
int partOf(Category category);

/// Of a part's area; indices are those of partIndex().
QColor partColour(const Theme& theme, int index);

/// Black or white, whichever reads better on that colour.
QColor textOn(const QColor& colour);

} // namespace memscape

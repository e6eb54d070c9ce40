// SPDX-License-Identifier: GPL-3.0-or-later
// Two records in one sentence: faster, slower or the same within noise, and by how much.
#pragma once

#include "core/experiment/record.h"

#include <QString>

namespace memscape {

/// The second against the first, on the headline series and on the figures of both: as measured, or as
/// predicted where not both are measured.
QString compareText(const Record& first, const Record& second);

} // namespace memscape

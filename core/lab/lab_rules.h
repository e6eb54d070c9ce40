// SPDX-License-Identifier: Apache-2.0
// What a lab must keep beyond the types of its keys: every name leads somewhere, points add up, what a check needs is
// there, and no check grades an absolute time or rate.
#pragma once

#include "core/lab/lab.h"

namespace memscape {

/// Errors: lab.key (a name twice, or one that leads nowhere), lab.points, lab.absolute, lab.value, expression.*; the
/// place is that in lab.json or "steps/x.md, line 3".
Result<void> checkLabRules(const Lab& lab);

} // namespace memscape

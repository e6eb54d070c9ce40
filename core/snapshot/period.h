// SPDX-License-Identifier: Apache-2.0
// A training loop asks for the same sizes in the same order in every step. The period of that sequence, found from its
// end: the last sizes are looked for earlier in the trace, and each distance at which they are found is tried: how far
// back does the sequence repeat at that distance, with at most 5 % of other sizes? The distance that explains most is
// the period (layers repeat as well, but explain one step only). A step is taken to begin at the lowest moment.
#pragma once

#include "core/snapshot/lifetimes.h"

namespace memscape {

struct Period
{
    std::size_t allocations = 0;     ///< of one period; 0: none was found
    std::vector<SnapshotStep> steps; ///< whole ones only
};

Period findPeriod(const Lifetimes& lifetimes);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// What of steps that run beside each other is not seen in the time of the whole: hidden = Σ steps alone − time.
//
// A measured whole may take longer than its steps one after the other: where nothing overlaps the sum differs by noise,
// and steps that share a core or a memory slow each other down. Nothing is hidden then, so that it is 0 and never less;
// how much longer it took stands in the times themselves.
#pragma once

namespace memscape {

/// For *Why*, of what hiddenSeconds() leaves out.
constexpr const char* hiddenFromZero = "steps that slow each other down: where the whole takes longer than its steps "
                                       "one after the other, nothing is hidden";

/// `alone`: s of all steps, each by itself; `together`: s of the whole. 0 where they differ by rounding alone.
constexpr double hiddenSeconds(double alone, double together)
{
    const double hidden = alone - together;
    return hidden > 1e-9 * alone ? hidden : 0;
}

} // namespace memscape

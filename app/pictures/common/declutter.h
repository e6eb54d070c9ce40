// SPDX-License-Identifier: GPL-3.0-or-later
// Labels along a line that must not touch: each wants to stand at its own place, has a width, and
// moves as little as it can. Least squares under order constraints is isotonic regression of the
// places less the room that those before them take; pool adjacent violators solves it in one sweep
// (Ayer et al. 1955). Labels that want more than there is are squeezed evenly and may then touch:
// fits() says so beforehand.
#pragma once

#include <vector>

namespace memscape {

struct Span
{
    double centre = 0;
    double width = 0;
};

/// Whether spans of these widths, `gap` apart, have room in [left, right].
bool fits(const std::vector<Span>& spans, double gap, double left, double right);

/// Centres for spans given in ascending order of centre: in the same order, at least `gap` apart,
/// inside [left, right].
std::vector<double> spread(const std::vector<Span>& spans, double gap, double left, double right);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// The part of an axis that is in sight, and how the wheel and a drag change it: it never leaves the whole, never gets
// narrower than what it shows, and never goes where nothing is.
#pragma once

#include <algorithm>

namespace memscape {

struct Span
{
    double low = 0, high = 1;

    double width() const { return high - low; }
    bool operator==(const Span&) const = default;
};

/// Nearer (`factor` < 1) or farther about `at`, within `whole`. Zooming in ends at a width of `least`.
inline Span zoomed(const Span& span, const Span& whole, double at, double factor, double least)
{
    const double width =
        std::clamp(span.width() * factor, std::min({least, span.width(), whole.width()}), whole.width());
    const double share = span.width() > 0 ? std::clamp((at - span.low) / span.width(), 0.0, 1.0) : 0.5;
    const double low = std::clamp(at - share * width, whole.low, whole.high - width);
    return {low, low + width};
}

/// By a share of what is in sight, within `whole`.
inline Span panned(const Span& span, const Span& whole, double share)
{
    const double low =
        std::clamp(span.low + share * span.width(), whole.low, std::max(whole.low, whole.high - span.width()));
    return {low, low + span.width()};
}

/// So far down that `top`, the highest thing there is, is in the middle or above it.
inline Span lowered(const Span& span, double top)
{
    const double low = std::min(span.low, std::max(0.0, top - span.width() / 2));
    return {low, low + span.width()};
}

} // namespace memscape

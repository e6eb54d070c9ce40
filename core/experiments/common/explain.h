// SPDX-License-Identifier: Apache-2.0
// Reasons for figures that are made without them, by the function that prediction and measurement share.
#pragma once

#include "core/base/quantity.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace memscape {

/// Nothing happens where there is no figure of that key.
inline void explain(Figures& figures, std::string_view key, Why why)
{
    const auto found = std::ranges::find(figures, key, &Figure::key);
    if (found != figures.end())
        found->why = std::move(why);
}

} // namespace memscape

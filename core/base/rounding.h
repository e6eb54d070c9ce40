// SPDX-License-Identifier: Apache-2.0
// Whole numbers of steps. Values are not negative, steps are positive.
#pragma once

#include <concepts>
#include <type_traits>

namespace memscape {

template <std::integral T> constexpr T quotientUp(T value, std::type_identity_t<T> divisor)
{
    return value / divisor + T(value % divisor != 0);
}

/// The first multiple of `step` that is not below `value`.
template <std::integral T> constexpr T roundedUp(T value, std::type_identity_t<T> step)
{
    return quotientUp(value, step) * step;
}

} // namespace memscape

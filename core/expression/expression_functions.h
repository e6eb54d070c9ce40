// SPDX-License-Identifier: Apache-2.0
// What the operators and functions of expressions compute, and of which dimension it is.
#pragma once

#include "core/base/result.h"
#include "core/expression/expression_value.h"

#include <optional>
#include <string_view>
#include <vector>

namespace memscape {

/// How many values a function takes; nothing where there is no such function. Operators are none.
std::optional<std::size_t> argumentsOfFunction(std::string_view name);
std::vector<std::string> namesOfFunctions();

/// An operator or a function of its values. `anyMachine` as in ExpressionRules. Errors: expression.unit,
/// expression.absolute; the message begins with what is wrong and names no text.
Result<ExpressionValue> applied(std::string_view function, const std::vector<ExpressionValue>& values, bool anyMachine);

} // namespace memscape

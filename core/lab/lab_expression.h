// SPDX-License-Identifier: Apache-2.0
// What of the language of expressions (core/expression) is a lab's own. A lab must be fair on any machine: a literal
// may have a unit of bytes or a share (16KiB, 25%), never one of time or rate, else it would grade the machine and not
// the student. Sources are runs and predictions; these functions ask them:
//     at(run, "latency", x)   predicted(run, "latency", x)   detail(best, "peak.allocated")   capacity(run, "L1")
//     parameter(run, "bytes")
#pragma once

#include "core/expression/expression_template.h"

namespace memscape {

using LabValue = ExpressionValue;
using LabScope = ExpressionScope;

inline LabValue labNumber(double value, Unit unit = Unit::One)
{
    return numberValue(value, unit);
}
inline LabValue labWord(std::string word)
{
    return wordValue(std::move(word));
}

/// Errors: those of Expression::parse() and evaluate(); of the scope lab.missing (not measured or answered yet) and
/// others of the lab.
Result<LabValue> evaluateLab(std::string_view text, const LabScope& scope);

/// Reads an expression without evaluating it: its errors of syntax, and every name in it.
Result<std::vector<std::string>> namesInLab(std::string_view text);

/// Text whose places (expression_template.h) are filled. What has no value yet (a run that was not made) reads "(not
/// measured yet)". Errors: those of evaluateLab(), with the line as place.
Result<std::string> filledLabText(std::string_view text, const LabScope& scope);

/// Every name in the places of a text. Errors: expression.* with the line as place.
Result<std::vector<std::string>> namesInLabText(std::string_view text);

/// `{key}` of texts of parameters replaced by the variant's text of that key. Errors: lab.name.
Result<std::string> filledLabParameter(std::string_view text,
                                       const std::vector<std::pair<std::string, std::string>>& variant);

} // namespace memscape

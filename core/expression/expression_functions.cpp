// SPDX-License-Identifier: Apache-2.0
#include "core/expression/expression_functions.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

struct FunctionRow
{
    std::string_view name;
    std::size_t arguments;
};

constexpr std::array<FunctionRow, 12> functionRows{
    FunctionRow{"abs", 1}, {"sqrt", 1}, {"log2", 1}, {"floor", 1}, {"ceil", 1}, {"round", 1},
    {"count", 1},          {"min", 2},  {"max", 2},  {"if", 3},    {"near", 3}, {"within", 3}};

Dimension scaledDimension(const Dimension& one, double exponent)
{
    return {one.bytes * exponent, one.seconds * exponent, one.operations * exponent};
}

Dimension productOf(const Dimension& one, const Dimension& other, double sign)
{
    return {one.bytes + sign * other.bytes, one.seconds + sign * other.seconds,
            one.operations + sign * other.operations};
}

/// The dimension that two values share.
Result<Dimension> sharedDimension(const ExpressionValue& a, const ExpressionValue& b, bool anyMachine)
{
    if (a.dimension == b.dimension || (!anyMachine && b.dimension.isPlain()))
        return a.dimension;
    if (!anyMachine && a.dimension.isPlain())
        return b.dimension;
    return fail("expression.unit", fmt::format("mixes units: {} and {}", a.text(), b.text()),
                "divide by a quantity of the same unit, or write the number with its unit: 16KiB");
}

Result<void> onlyNumbers(const std::vector<ExpressionValue>& values)
{
    for (const ExpressionValue& value : values)
        if (value.isWord())
            return fail("expression.unit",
                        fmt::format("calculates with the word \"{}\"", quotedForMessage(value.word())),
                        "words can be compared with == and !=, and chosen by if()");
    return {};
}

bool isComparisonTrue(std::string_view sign, double a, double b)
{
    return sign == "<" ? a < b
        : sign == "<=" ? a <= b
        : sign == ">"  ? a > b
        : sign == ">=" ? a >= b
        : sign == "==" ? a == b
                       : a != b;
}

bool isComparison(std::string_view sign)
{
    return sign == "<" || sign == "<=" || sign == ">" || sign == ">=" || sign == "==" || sign == "!=";
}

Result<ExpressionValue> comparedValues(std::string_view sign, const ExpressionValue& a, const ExpressionValue& b,
                                       bool anyMachine)
{
    if (a.isWord() != b.isWord())
        return fail("expression.unit", fmt::format("compares a word with a number: {} and {}", a.text(), b.text()),
                    "compare words with words");
    if (a.isWord()) {
        if (sign != "==" && sign != "!=")
            return fail("expression.unit", "orders words", "use == or !=");
        return numberValue((a.word() == b.word()) == (sign == "=="));
    }
    MEMSCAPE_CHECK(sharedDimension(a, b, anyMachine));
    return numberValue(isComparisonTrue(sign, a.number(), b.number()));
}

Result<ExpressionValue> ofOne(std::string_view function, const ExpressionValue& value, bool anyMachine)
{
    const double x = value.number();
    if (function == "not")
        return numberValue(x == 0);
    if (function == "sqrt")
        return ExpressionValue{std::sqrt(x), scaledDimension(value.dimension, 0.5)};
    if (function == "log2") {
        if (!value.dimension.isPlain())
            return fail("expression.unit", fmt::format("takes a logarithm of {}", value.text()),
                        "divide it by a quantity of the same unit");
        return numberValue(std::log2(x));
    }
    if (function == "count") {
        if (anyMachine && value.dimension.isTimed())
            return fail("expression.absolute", "makes a plain number of a time or a rate",
                        "divide it by another time or rate");
        return numberValue(x);
    }
    return ExpressionValue{function == "-"           ? -x
                               : function == "abs"   ? std::abs(x)
                               : function == "floor" ? std::floor(x)
                               : function == "ceil"  ? std::ceil(x)
                                                     : std::round(x),
                           value.dimension};
}

Result<ExpressionValue> ofTwo(std::string_view function, const ExpressionValue& a, const ExpressionValue& b,
                              bool anyMachine)
{
    const double x = a.number(), y = b.number();
    if (function == "and")
        return numberValue(x != 0 && y != 0);
    if (function == "or")
        return numberValue(x != 0 || y != 0);
    if (function == "*")
        return ExpressionValue{x * y, productOf(a.dimension, b.dimension, 1)};
    if (function == "/")
        return ExpressionValue{x / y, productOf(a.dimension, b.dimension, -1)};
    if (function == "^") {
        if (!b.dimension.isPlain())
            return fail("expression.unit", fmt::format("has the exponent {}, which has a unit", b.text()),
                        "an exponent is a plain number");
        return ExpressionValue{std::pow(x, y), scaledDimension(a.dimension, y)};
    }
    MEMSCAPE_TRY(dimension, sharedDimension(a, b, anyMachine));
    return ExpressionValue{function == "+"         ? x + y
                               : function == "-"   ? x - y
                               : function == "min" ? std::min(x, y)
                                                   : std::max(x, y),
                           dimension};
}

} // namespace

std::optional<std::size_t> argumentsOfFunction(std::string_view name)
{
    const auto row = std::ranges::find(functionRows, name, &FunctionRow::name);
    return row == functionRows.end() ? std::nullopt : std::optional(row->arguments);
}

std::vector<std::string> namesOfFunctions()
{
    std::vector<std::string> names;
    for (const FunctionRow& one : functionRows)
        names.emplace_back(one.name);
    return names;
}

Result<ExpressionValue> applied(std::string_view function, const std::vector<ExpressionValue>& values, bool anyMachine)
{
    if (function == "if")
        return values[0].isTrue() ? values[1] : values[2];
    if (isComparison(function))
        return comparedValues(function, values[0], values[1], anyMachine);
    MEMSCAPE_CHECK(onlyNumbers(values));
    if (values.size() == 1)
        return ofOne(function, values[0], anyMachine);
    if (values.size() == 2)
        return ofTwo(function, values[0], values[1], anyMachine);
    const double x = values[0].number(), a = values[1].number(), b = values[2].number();
    MEMSCAPE_CHECK(sharedDimension(values[0], values[1], anyMachine));
    if (function == "near")
        return numberValue(std::abs(x / a - 1) <= b);
    MEMSCAPE_CHECK(sharedDimension(values[0], values[2], anyMachine));
    return numberValue(x >= a && x <= b);
}

} // namespace memscape

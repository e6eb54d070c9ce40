// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_expression.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array<std::string_view, 5> labFunctions{"at", "predicted", "detail", "capacity", "parameter"};
constexpr ExpressionRules labExpressionRules{labFunctions, true};

} // namespace

Result<LabValue> evaluateLab(std::string_view text, const LabScope& scope)
{
    MEMSCAPE_TRY(expression, Expression::parse(text, labExpressionRules));
    return expression.evaluate(scope);
}

Result<std::vector<std::string>> namesInLab(std::string_view text)
{
    MEMSCAPE_TRY(expression, Expression::parse(text, labExpressionRules));
    return expression.names();
}

Result<std::string> filledLabText(std::string_view text, const LabScope& scope)
{
    MEMSCAPE_TRY(sentence, ExpressionTemplate::parse(text, labExpressionRules));
    FillStyle style;
    style.otherwise = [](const Error& error) {
        return error.code == "lab.missing" ? std::optional<std::string>("(not measured yet)") : std::nullopt;
    };
    return sentence.filled(scope, style);
}

Result<std::vector<std::string>> namesInLabText(std::string_view text)
{
    MEMSCAPE_TRY(sentence, ExpressionTemplate::parse(text, labExpressionRules));
    return sentence.names();
}

Result<std::string> filledLabParameter(std::string_view text,
                                       const std::vector<std::pair<std::string, std::string>>& variant)
{
    std::string all;
    for (std::size_t at = 0; at < text.size();) {
        const auto begin = text.find('{', at);
        all += text.substr(at, begin - at);
        if (begin == std::string_view::npos)
            break;
        const auto end = text.find('}', begin);
        const std::string_view key =
            end == std::string_view::npos ? text.substr(begin + 1) : text.substr(begin + 1, end - begin - 1);
        const auto found = std::ranges::find_if(variant, [&](const auto& one) { return one.first == key; });
        if (end == std::string_view::npos || found == variant.end()) {
            std::vector<std::string> known;
            for (const auto& one : variant)
                known.push_back(one.first);
            return fail("lab.name", fmt::format("\"{{{}}}\" is no key of the variants", quotedForMessage(key)),
                        known.empty() ? "add it to each of \"variants\"" : didYouMean(key, known));
        }
        all += found->second;
        at = end + 1;
    }
    return all;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/expression/expression_template.h"

#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// "digits 3" of a word and a digit: 3; `otherwise` of the word alone, nothing of anything else.
std::optional<int> digitsOf(std::string_view style, std::string_view word, std::optional<int> otherwise)
{
    if (style == word)
        return otherwise;
    const bool fits = style.size() == word.size() + 2 && style.starts_with(word) && style[word.size()] == ' '
        && style.back() >= '1' && style.back() <= '9';
    return fits ? std::optional(style.back() - '0') : std::nullopt;
}

Result<std::string> writtenAs(const ExpressionValue& value, const std::string& style, ByteStyle bytes)
{
    const double x = value.number();
    const Unit unit = value.unit();
    if (value.isWord())
        return value.word();
    if (style.empty())
        return unit == Unit::One && std::abs(x) >= 1000 && x == std::floor(x) && std::isfinite(x)
            ? countText(x)
            : quantityText(x, unit, bytes);
    const auto digits = digitsOf(style, "digits", {}), ofShare = digitsOf(style, "percent", 2);
    if (style == "times")
        return quantityText(x, Unit::One) + "×";
    if (style == "count")
        return countText(x);
    if (style == "decimal" || style == "binary")
        return quantityText(x, Unit::Byte, style == "binary" ? ByteStyle::Binary : ByteStyle::Decimal);
    if (ofShare)
        return percentText(x, *ofShare);
    if (digits)
        return quantityText(x, unit, bytes, *digits);
    if (const auto named = unitFromText(style); named && *named != Unit::One)
        return quantityText(x, *named, bytes);
    return fail("expression.syntax", fmt::format("there is no style \"{}\"", quotedForMessage(style)),
                "percent, times, count, decimal, binary, digits 1 to digits 9, or a unit");
}

Error inLine(Error error, std::ptrdiff_t line)
{
    return placedIn(fmt::format("line {}", line), std::move(error));
}

} // namespace

Result<ExpressionTemplate> ExpressionTemplate::parse(std::string_view text, const ExpressionRules& rules)
{
    ExpressionTemplate made;
    made.m_text = text;
    for (std::size_t at = 0;;) {
        const auto begin = text.find("{{", at);
        made.m_words.emplace_back(text.substr(at, begin == std::string_view::npos ? begin : begin - at));
        if (begin == std::string_view::npos)
            return made;
        const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(begin), '\n');
        const auto end = text.find("}}", begin);
        if (end == std::string_view::npos)
            return fail("expression.syntax", "a place that begins with {{ has no }}", "end it with }}",
                        fmt::format("line {}", line));
        const std::string_view inside = text.substr(begin + 2, end - begin - 2);
        const auto bar = inside.rfind('|');
        const std::string_view style =
            bar == std::string_view::npos ? std::string_view() : trimmed(inside.substr(bar + 1));
        auto expression = Expression::parse(trimmed(inside.substr(0, bar)), rules);
        if (!expression)
            return fail(inLine(expression.error(), line));
        if (const auto known = writtenAs(numberValue(1), std::string(style), ByteStyle::Binary); !known)
            return fail(inLine(known.error(), line));
        made.m_places.push_back({std::move(*expression), std::string(style), line});
        at = end + 2;
    }
}

std::vector<std::string> ExpressionTemplate::names() const
{
    std::vector<std::string> found;
    for (const Place& place : m_places)
        found.insert(found.end(), place.expression.names().begin(), place.expression.names().end());
    return found;
}

Result<std::string> ExpressionTemplate::filled(const ExpressionScope& scope, const FillStyle& style) const
{
    std::string out = m_words.empty() ? std::string() : m_words.front();
    for (std::size_t i = 0; i < m_places.size(); ++i) {
        const Place& place = m_places[i];
        const auto value = place.expression.evaluate(scope);
        std::optional<std::string> words;
        if (!value && style.otherwise)
            words = style.otherwise(value.error());
        if (!value && !words)
            return fail(inLine(value.error(), place.line));
        if (!words)
            MEMSCAPE_SET(words, writtenAs(*value, place.style, style.bytes));
        out += *words + m_words[i + 1];
    }
    return out;
}

} // namespace memscape

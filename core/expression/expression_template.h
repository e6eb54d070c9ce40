// SPDX-License-Identifier: Apache-2.0
// A text with places for values: "{{one.peak_allocated}} against {{two.peak_allocated}}, {{one.weights / two.weights |
// times}}". A place holds an expression and, behind a bar, how its number is written; words stand as they are.
//   nothing   by its dimension; whole numbers from 1000 on in groups of three digits
//   times     a factor, "3.2×"             percent, percent 3   a share, "33 %", "33.3 %"
//   count     in groups of three digits    digits 1 … digits 9  that many digits that count
//   decimal, binary   bytes as GB or as GiB     B, s, B/s, FLOP/s   in that unit
#pragma once

#include "core/expression/expression.h"

#include <optional>

namespace memscape {

/// How a text is filled.
struct FillStyle
{
    ByteStyle bytes = ByteStyle::Binary; ///< where a place says nothing
    /// What stands in place of a value that the scope refuses, or nothing: then its error is the text's.
    std::function<std::optional<std::string>(const Error&)> otherwise = {};
};

class ExpressionTemplate
{
public:
    /// Errors: those of Expression::parse(), expression.syntax (a place that does not end, an unknown style); the place
    /// begins with the line.
    static Result<ExpressionTemplate> parse(std::string_view text, const ExpressionRules& rules = {});

    const std::string& text() const { return m_text; }
    bool empty() const { return m_text.empty(); }
    bool hasValues() const { return !m_places.empty(); }
    /// The names of all places, each once for each place.
    std::vector<std::string> names() const;
    /// The words between the places, one more than there are places.
    const std::vector<std::string>& words() const { return m_words; }

    /// Errors: those of Expression::evaluate(), with the line as place.
    Result<std::string> filled(const ExpressionScope& scope, const FillStyle& style = {}) const;

private:
    struct Place
    {
        Expression expression;
        std::string style;
        std::ptrdiff_t line = 1;
    };
    std::string m_text;
    std::vector<std::string> m_words;
    std::vector<Place> m_places;
};

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// A sentence with places for numbers: "{one.peak_allocated} against {two.peak_allocated}, {one.weights /
// two.weights:×}". A place holds an expression (claim_expression.h) and, behind a colon, how it is written:
//   nothing  by the unit that the expression has, bytes as GB     :KiB  bytes as KiB, MiB, GiB
//   :×       a factor, "3.2×"          :%  a share, "33 %"       :n    a count in groups of three digits
//   :B :s :B/s :FLOP/s                 that unit
#pragma once

#include "core/claims/claim_expression.h"

namespace memscape {

class ClaimTemplate
{
public:
    /// Errors: claims.template (a brace too many or too few, an unknown form), claims.expression.
    static Result<ClaimTemplate> parse(std::string_view text);

    bool empty() const { return m_parts.empty(); }
    /// The names of all places.
    std::vector<std::string> names() const;
    /// Whether any place holds a number.
    bool hasNumbers() const;
    const std::string& text() const { return m_text; }

    Result<std::string> filled(const ClaimLookup& lookup) const;

private:
    struct Part
    {
        std::string words;                        ///< before the number
        std::vector<ClaimExpression> number = {}; ///< one, or none behind the last words
        std::string form = {};
    };
    std::string m_text;
    std::vector<Part> m_parts;
};

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_template.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array forms{"KiB", "×", "%", "n", "B", "s", "B/s", "FLOP/s"};

std::string writtenAs(const ClaimValue& value, const std::string& form)
{
    if (value.isWord)
        return value.word;
    if (form == "×")
        return quantityText(value.number, Unit::One) + "×";
    if (form == "%")
        return percentText(value.number, 3);
    if (form == "n")
        return countText(value.number);
    if (form == "KiB")
        return quantityText(value.number, Unit::Byte, ByteStyle::Binary);
    const Unit unit = form.empty() ? value.unit : unitFromText(form).value_or(Unit::One);
    if (unit == Unit::One && std::fabs(value.number) >= 1000 && value.number == std::floor(value.number))
        return countText(value.number);
    return quantityText(value.number, unit, ByteStyle::Decimal);
}

} // namespace

Result<ClaimTemplate> ClaimTemplate::parse(std::string_view text)
{
    const auto refused = [&](std::string what, std::size_t at) {
        return fail("claims.template", fmt::format("the sentence \"{}\" {}", text.substr(0, 120), what),
                    "write numbers as {expression} or {expression:form}", fmt::format("character {}", at + 1));
    };
    ClaimTemplate made;
    made.m_text = text;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t open = text.find('{', at);
        const std::string_view words = text.substr(at, open == std::string_view::npos ? open : open - at);
        if (words.find('}') != std::string_view::npos)
            return refused("has a } without a {", at + words.find('}'));
        Part part{std::string(words)};
        if (open == std::string_view::npos) {
            made.m_parts.push_back(std::move(part));
            break;
        }
        const std::size_t close = text.find('}', open);
        if (close == std::string_view::npos)
            return refused("misses a }", open);
        std::string_view inside = text.substr(open + 1, close - open - 1);
        if (const std::size_t colon = inside.rfind(':'); colon != std::string_view::npos) {
            part.form = inside.substr(colon + 1);
            inside = inside.substr(0, colon);
            if (std::find(forms.begin(), forms.end(), part.form) == forms.end())
                return refused(fmt::format("asks for the form \"{}\", which is none", part.form), open);
        }
        MEMSCAPE_TRY(expression, ClaimExpression::parse(inside));
        part.number.push_back(std::move(expression));
        made.m_parts.push_back(std::move(part));
        at = close + 1;
    }
    return made;
}

std::vector<std::string> ClaimTemplate::names() const
{
    std::vector<std::string> found;
    for (const Part& part : m_parts) {
        for (const ClaimExpression& number : part.number) {
            for (const std::string& name : number.names())
                found.push_back(name);
        }
    }
    return found;
}

bool ClaimTemplate::hasNumbers() const
{
    return std::any_of(m_parts.begin(), m_parts.end(), [](const Part& part) { return !part.number.empty(); });
}

Result<std::string> ClaimTemplate::filled(const ClaimLookup& lookup) const
{
    std::string out;
    for (const Part& part : m_parts) {
        out += part.words;
        for (const ClaimExpression& number : part.number) {
            MEMSCAPE_TRY(value, number.evaluate(lookup));
            out += writtenAs(value, part.form);
        }
    }
    return out;
}

} // namespace memscape

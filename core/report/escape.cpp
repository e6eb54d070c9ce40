// SPDX-License-Identifier: Apache-2.0
// Foreign text made safe for markup. A record may come from anywhere: its names, notes and
// provenance are shown, never obeyed.
#include "core/report/svg_chart.h"

#include <cstdint>

namespace memscape {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// Length of the valid UTF-8 sequence at the start of `text`, 0 when there is none. Overlong forms,
/// surrogates and values past U+10FFFF are not valid.
std::size_t sequenceLength(std::string_view text)
{
    const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80)
        return 1;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < length)
        return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xC0) != 0x80)
            return 0;
    const std::uint8_t second = byte(1);
    const bool bad = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)
        || (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
    return bad ? 0 : length;
}

std::string_view escapedCharacter(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
    }
}

} // namespace

std::string escapedForXml(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = sequenceLength(text);
        const char c = text.front();
        if (length == 0) {
            out += replacement;
            text.remove_prefix(1);
            continue;
        }
        const std::string_view sequence = text.substr(0, length);
        text.remove_prefix(length);
        const bool control = length == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
        if (control || c == 0x7F || sequence == "\xEF\xBF\xBE" || sequence == "\xEF\xBF\xBF")
            continue; // not allowed in XML 1.0, even escaped (U+007F only discouraged)
        const std::string_view escaped = length == 1 ? escapedCharacter(c) : std::string_view();
        out += escaped.empty() ? sequence : escaped;
    }
    return out;
}

} // namespace memscape

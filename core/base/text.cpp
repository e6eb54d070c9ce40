// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace memscape {

namespace {

char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool isSpace(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool isLetterOrDigit(char c)
{
    const char low = lower(c);
    return (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

std::string lettersAndDigits(std::string_view text)
{
    std::string kept;
    for (const char c : text) {
        if (isLetterOrDigit(c))
            kept += lower(c);
    }
    return kept;
}

/// Whether the first `count` letters and digits of a name are whole words of it: 6 of "llama-3-8b", not of "llama-33b".
bool endsWord(std::string_view name, std::size_t count)
{
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (isLetterOrDigit(name[i]) && count-- == 0)
            return i > 0 && !isLetterOrDigit(name[i - 1]);
    }
    return true;
}

/// Smaller is nearer; nothing when they have too little in common. `sought` holds letters and digits alone.
std::optional<int> nearness(const std::string& sought, std::string_view name)
{
    constexpr std::size_t fewest = 2; // letters that say something about a name
    constexpr int held = 1000;        // behind every prefix, before every slip
    const std::string candidate = lettersAndDigits(name);
    const auto longer = static_cast<int>(candidate.size()) - static_cast<int>(sought.size());
    if (sought.size() >= fewest && candidate.starts_with(sought))
        return longer + (endsWord(name, sought.size()) ? 0 : held / 2);
    if ((sought.size() >= fewest && candidate.find(sought) != std::string::npos)
        || (candidate.size() > fewest && sought.find(candidate) != std::string::npos))
        return held + std::abs(longer);
    const int distance = editDistance(sought, candidate);
    if (distance <= std::max(2, static_cast<int>(sought.size()) / 3))
        return 2 * held + distance;
    return std::nullopt;
}

} // namespace

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && isSpace(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && isSpace(text.back()))
        text.remove_suffix(1);
    return text;
}

std::vector<std::string> split(std::string_view text, char separator)
{
    std::vector<std::string> parts;
    for (std::size_t start = 0;;) {
        const auto end = text.find(separator, start);
        parts.emplace_back(text.substr(start, end - start));
        if (end == std::string_view::npos)
            return parts;
        start = end + 1;
    }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator)
{
    std::string all;
    for (const auto& part : parts) {
        if (!all.empty())
            all += separator;
        all += part;
    }
    return all;
}

std::string lowered(std::string_view text)
{
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), lower);
    return result;
}

int editDistance(std::string_view a, std::string_view b)
{
    // Wagner and Fischer, one row kept.
    std::vector<int> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
        int diagonal = row[0];
        row[0] = static_cast<int>(i) + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const int substitute = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substitute, row[j + 1] + 1, row[j] + 1});
        }
    }
    return row[b.size()];
}

std::vector<std::string> nearest(std::string_view wanted, const std::vector<std::string>& candidates, std::size_t limit)
{
    constexpr std::size_t longest = 64; // a name longer than this is not a typing slip
    const std::string sought = lettersAndDigits(wanted.substr(0, longest));
    if (sought.empty())
        return {};
    std::vector<std::pair<int, std::string>> near; // rank, name
    for (const auto& candidate : candidates) {
        if (const auto rank = nearness(sought, candidate))
            near.emplace_back(*rank, candidate);
    }
    std::ranges::stable_sort(near, [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (const auto& [rank, name] : near) {
        if (names.size() < limit)
            names.push_back(name);
    }
    return names;
}

std::string didYouMean(std::string_view wanted, const std::vector<std::string>& candidates)
{
    const auto near = nearest(wanted, candidates);
    if (near.empty())
        return "known: " + join(candidates, ", ");
    return "did you mean " + join(near, " or ") + "?";
}

bool validUtf8(std::string_view text)
{
    for (std::size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const std::size_t length = first < 0x80 ? 1
            : first < 0xc2                      ? 0
            : first < 0xe0                      ? 2
            : first < 0xf0                      ? 3
            : first < 0xf5                      ? 4
                                                : 0;
        if (length == 0 || length > text.size() - i)
            return false;
        for (std::size_t k = 1; k < length; ++k) {
            if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80)
                return false;
        }
        if (length > 2) { // the second byte rules out overlong forms, surrogates and what is too large
            const auto second = static_cast<unsigned char>(text[i + 1]);
            if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90)
                || (first == 0xf4 && second > 0x8f))
                return false;
        }
        i += length;
    }
    return true;
}

std::string quotedForMessage(std::string_view text, std::size_t limit)
{
    std::string result;
    for (const char c : text.substr(0, limit))
        result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    if (text.size() > limit) {
        while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xc0) == 0x80)
            result.pop_back(); // half of a UTF-8 character
        if (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xc0) == 0xc0)
            result.pop_back();
        result += "…";
    }
    return result;
}

} // namespace memscape

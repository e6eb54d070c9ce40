// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_parts.h"

#include "core/base/json_builder.h"
#include "core/base/json_shape.h"

namespace memscape {

namespace {

constexpr std::size_t smallestText = 1 << 20; // B: less takes milliseconds
constexpr std::size_t smallestPart = 1 << 10; // B

/// Finds the parts; of a text that is not JSON whatever its brackets say.
class Divider
{
public:
    Divider(std::string_view text, std::string_view key)
        : m_text(text)
        , m_key(key)
    {
        for (std::size_t i = 0; i < text.size(); ++i) {
            switch (text[i]) {
            case '"': i = string(i); break;
            case '[':
            case '{': open(text[i], i); break;
            case ']':
            case '}': close(i); break;
            case ',': m_element += m_depth == 2; break;
            case ':': m_rootKeys += m_depth == 1; break;
            default: break;
            }
        }
    }

    std::vector<JsonPart> takeParts() { return std::move(m_parts); }
    std::size_t rootKeys() const { return m_rootKeys; }

private:
    std::size_t string(std::size_t begin)
    {
        const std::size_t end = jsonStringEnd(m_text, begin);
        if (m_depth == 1)
            m_isKey = m_text.substr(begin + 1, end - begin - 1) == m_key + '"';
        return end - 1;
    }
    void open(char bracket, std::size_t at)
    {
        ++m_depth;
        if (m_depth == 2) {
            m_isInArray = bracket == '[' && m_isKey;
            m_element = 0;
        } else if (m_depth == 3 && m_isInArray && bracket == '{') {
            m_begin = at;
        }
    }
    void close(std::size_t at)
    {
        if (m_depth == 3 && m_begin > 0 && at + 1 - m_begin >= smallestPart)
            m_parts.push_back({m_element, m_begin, at + 1});
        if (m_depth == 3)
            m_begin = 0;
        --m_depth;
    }

    std::string_view m_text;
    std::string m_key;
    std::vector<JsonPart> m_parts;
    std::size_t m_rootKeys = 0;
    int m_depth = 0;
    bool m_isKey = false;      ///< the last text of the outermost object is the key
    bool m_isInArray = false;  ///< in its array, at depth 2
    std::size_t m_element = 0; ///< of the open array
    std::size_t m_begin = 0;   ///< of the open part; 0: none
};

std::string withoutParts(std::string_view text, const std::vector<JsonPart>& parts)
{
    std::string rest;
    std::size_t from = 0;
    for (const JsonPart& part : parts) {
        rest.append(text.substr(from, part.begin - from)).append("null");
        from = part.end;
    }
    return rest.append(text.substr(from));
}

std::optional<Json> parsed(std::string_view text)
{
    JsonBuilder builder;
    if (!Json::sax_parse(text, &builder))
        return std::nullopt;
    return builder.take();
}

} // namespace

std::optional<DividedJson> divideJson(std::string_view text, std::string_view key)
{
    if (text.size() < smallestText)
        return std::nullopt;
    Divider divider(text, key);
    std::vector<JsonPart> parts = divider.takeParts();
    if (parts.size() < 2)
        return std::nullopt;
    auto rest = parsed(withoutParts(text, parts));
    if (!rest || !rest->is_object() || rest->size() != divider.rootKeys())
        return std::nullopt;
    const auto array = rest->find(std::string(key));
    if (array == rest->end() || !array->is_array() || array->size() <= parts.back().element)
        return std::nullopt;
    return DividedJson{std::move(*rest), std::move(parts)};
}

std::optional<Json> parsePart(std::string_view text, const JsonPart& part)
{
    return parsed(text.substr(part.begin, part.end - part.begin));
}

} // namespace memscape

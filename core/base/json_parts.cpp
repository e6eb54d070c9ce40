// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_parts.h"

#include "core/base/json_builder.h"
#include "core/base/json_shape.h"
#include "core/base/parallel.h"

namespace memscape {

namespace {

constexpr std::size_t smallestText = 1 << 20; // B: less takes milliseconds
constexpr std::size_t smallestPart = 1 << 10; // B

/// An object among the elements of an array of the outermost object.
struct Part
{
    std::size_t array = 0, element = 0; ///< which array of the outermost object, which element of it
    std::size_t begin = 0, end = 0;     ///< in the text
};

struct Division
{
    std::vector<Part> parts;
    std::size_t rootKeys = 0;
};

/// Finds the parts; of a text that is not JSON whatever its brackets say.
class Divider
{
public:
    Division divide(std::string_view text)
    {
        for (std::size_t i = 0; i < text.size(); ++i) {
            switch (text[i]) {
            case '"': i = jsonStringEnd(text, i) - 1; break;
            case '[':
            case '{': open(text[i], i); break;
            case ']':
            case '}': close(i); break;
            case ',': m_element += m_depth == 2; break;
            case ':': m_division.rootKeys += m_depth == 1; break;
            default: break;
            }
        }
        return std::move(m_division);
    }

private:
    void open(char bracket, std::size_t at)
    {
        ++m_depth;
        if (m_depth == 2) {
            m_isInArray = bracket == '[';
            m_element = 0;
        } else if (m_depth == 3 && m_isInArray && bracket == '{') {
            m_begin = at;
        }
    }
    void close(std::size_t at)
    {
        if (m_depth == 3 && m_begin > 0 && at + 1 - m_begin >= smallestPart)
            m_division.parts.push_back({m_arrays, m_element, m_begin, at + 1});
        if (m_depth == 3)
            m_begin = 0;
        m_arrays += m_depth == 2 && m_isInArray;
        --m_depth;
    }

    Division m_division;
    int m_depth = 0;
    bool m_isInArray = false;  ///< at depth 2
    std::size_t m_arrays = 0;  ///< of the outermost object that have ended
    std::size_t m_element = 0; ///< of the open array
    std::size_t m_begin = 0;   ///< of the open part; 0: none
};

std::string withoutParts(std::string_view text, const std::vector<Part>& parts)
{
    std::string rest;
    std::size_t from = 0;
    for (const Part& part : parts) {
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

/// The arrays that an object holds itself, in their order.
std::vector<Json*> arraysOf(Json& object)
{
    std::vector<Json*> arrays;
    for (auto& [key, value] : object.get_ref<Json::object_t&>()) {
        if (value.is_array())
            arrays.push_back(&value);
    }
    return arrays;
}

} // namespace

std::optional<Json> parseInParts(std::string_view text, std::size_t threads)
{
    if (text.size() < smallestText || threads < 2)
        return std::nullopt;
    const Division division = Divider().divide(text);
    const std::vector<Part>& parts = division.parts;
    if (parts.size() < 2)
        return std::nullopt;
    auto whole = parsed(withoutParts(text, parts));
    if (!whole || !whole->is_object() || whole->size() != division.rootKeys)
        return std::nullopt;
    const std::vector<Json*> arrays = arraysOf(*whole);
    std::vector<std::optional<Json>> values(parts.size());
    inParallel(parts.size(), threads,
               [&](std::size_t i) { values[i] = parsed(text.substr(parts[i].begin, parts[i].end - parts[i].begin)); });
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!values[i] || parts[i].array >= arrays.size() || parts[i].element >= arrays[parts[i].array]->size())
            return std::nullopt;
        (*arrays[parts[i].array])[parts[i].element] = std::move(*values[i]);
    }
    return whole;
}

} // namespace memscape

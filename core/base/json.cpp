// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include "core/base/text.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// A bound on nesting and element count, found by one scan before the parser builds anything.
struct Shape
{
    int depth = 0;
    std::size_t elements = 0;
};

Shape shapeOf(std::string_view text)
{
    Shape shape;
    int depth = 0;
    bool inString = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inString) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                inString = false;
            continue;
        }
        switch (c) {
        case '"': inString = true; break;
        case '[':
        case '{':
            ++shape.elements;
            shape.depth = std::max(shape.depth, ++depth);
            break;
        case ']':
        case '}': --depth; break;
        case ',': ++shape.elements; break;
        default: break;
        }
    }
    return shape;
}

std::string placeOf(std::string_view text, std::size_t byte)
{
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
        ++column;
        if (text[i] == '\n') {
            ++line;
            column = 1;
        }
    }
    return fmt::format("line {}, column {}", line, column);
}

std::string child(const std::string& path, std::string_view key)
{
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string found(const Json& node)
{
    if (node.is_object())
        return "an object";
    if (node.is_array())
        return "an array";
    if (node.is_string())
        return fmt::format("\"{}\"", quotedForMessage(node.get_ref<const std::string&>(), 40));
    return quotedForMessage(node.dump(-1, ' ', false, Json::error_handler_t::replace), 40);
}

} // namespace

Result<Json> parseJson(std::string_view text, const JsonLimits& limits)
{
    if (text.size() > limits.bytes)
        return fail("json.limit", fmt::format("larger than {} MiB", limits.bytes >> 20));
    const Shape shape = shapeOf(text);
    if (shape.depth > limits.depth)
        return fail("json.limit", fmt::format("nested {} deep, at most {} is read", shape.depth,
                                              limits.depth));
    if (shape.elements > limits.elements)
        return fail("json.limit", fmt::format("{} elements, at most {} are read", shape.elements,
                                              limits.elements));
    try {
        return Json::parse(text);
    } catch (const Json::parse_error& error) {
        const bool ended = error.byte >= text.size();
        return fail("json.syntax",
                    ended ? "not valid JSON: the text ends too early" : "not valid JSON",
                    ended ? "the file is empty or was cut off" : "this is not a JSON document, or it was damaged",
                    placeOf(text, error.byte));
    } catch (const Json::exception& error) {
        return fail("json.syntax", fmt::format("not valid JSON: {}", error.what()));
    }
}

std::string jsonText(const Json& json)
{
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string jsonLine(const Json& json)
{
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json jsonNumber(double value)
{
    if (!std::isfinite(value))
        return nullptr;
    if (value == std::floor(value) && std::fabs(value) <= 0x1p53)
        return static_cast<std::int64_t>(value);
    return value;
}

JsonReader::JsonReader(const Json& node, std::string path) : m_node(&node), m_path(std::move(path)) { }

tl::unexpected<Error> JsonReader::expected(std::string_view what) const
{
    return fail("json.type", fmt::format("expected {}, found {}", what, found(*m_node)), {}, m_path);
}

bool JsonReader::has(std::string_view key) const
{
    return m_node->is_object() && m_node->contains(std::string(key));
}

Result<JsonReader> JsonReader::at(std::string_view key) const
{
    if (!m_node->is_object())
        return expected("an object");
    const auto it = m_node->find(std::string(key));
    if (it == m_node->end())
        return fail("json.missing", "is missing", {}, child(m_path, key));
    return JsonReader(*it, child(m_path, key));
}

Result<JsonReader> JsonReader::at(std::size_t index) const
{
    if (!m_node->is_array())
        return expected("an array");
    if (index >= m_node->size())
        return fail("json.missing", "is missing", {}, fmt::format("{}[{}]", m_path, index));
    return JsonReader((*m_node)[index], fmt::format("{}[{}]", m_path, index));
}

Result<std::vector<JsonReader>> JsonReader::items() const
{
    if (!m_node->is_array())
        return expected("an array");
    std::vector<JsonReader> items;
    items.reserve(m_node->size());
    for (std::size_t i = 0; i < m_node->size(); ++i)
        items.emplace_back((*m_node)[i], fmt::format("{}[{}]", m_path, i));
    return items;
}

Result<std::vector<std::pair<std::string, JsonReader>>> JsonReader::members() const
{
    if (!m_node->is_object())
        return expected("an object");
    std::vector<std::pair<std::string, JsonReader>> members;
    for (const auto& [key, value] : m_node->items())
        members.emplace_back(key, JsonReader(value, child(m_path, key)));
    return members;
}

Result<double> JsonReader::number() const
{
    if (!m_node->is_number())
        return expected("a number");
    const double value = m_node->get<double>();
    if (!std::isfinite(value))
        return expected("a finite number");
    return value;
}

Result<double> JsonReader::numberOrNan() const
{
    if (m_node->is_null())
        return std::numeric_limits<double>::quiet_NaN();
    return number();
}

Result<std::int64_t> JsonReader::integer() const
{
    MEMSCAPE_TRY(value, number());
    if (value != std::floor(value) || std::fabs(value) > 0x1p53)
        return expected("a whole number");
    return static_cast<std::int64_t>(value);
}

Result<bool> JsonReader::boolean() const
{
    if (!m_node->is_boolean())
        return expected("true or false");
    return m_node->get<bool>();
}

Result<std::string> JsonReader::string() const
{
    if (!m_node->is_string())
        return expected("a text");
    return m_node->get<std::string>();
}

Result<std::vector<double>> JsonReader::numbers() const
{
    if (!m_node->is_array())
        return expected("an array of numbers");
    std::vector<double> values;
    values.reserve(m_node->size());
    for (std::size_t i = 0; i < m_node->size(); ++i) {
        MEMSCAPE_TRY(value, JsonReader((*m_node)[i], fmt::format("{}[{}]", m_path, i)).numberOrNan());
        values.push_back(value);
    }
    return values;
}

Result<double> JsonReader::number(std::string_view key) const
{
    MEMSCAPE_TRY(value, at(key));
    return value.number();
}

Result<std::string> JsonReader::string(std::string_view key) const
{
    MEMSCAPE_TRY(value, at(key));
    return value.string();
}

Result<double> JsonReader::number(std::string_view key, double fallback) const
{
    if (!has(key))
        return fallback;
    return number(key);
}

Result<std::string> JsonReader::string(std::string_view key, std::string fallback) const
{
    if (!has(key))
        return fallback;
    return string(key);
}

Result<std::int64_t> JsonReader::integer(std::string_view key, std::int64_t fallback) const
{
    if (!has(key))
        return fallback;
    MEMSCAPE_TRY(value, at(key));
    return value.integer();
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include "core/base/json_builder.h"
#include "core/base/json_shape.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

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

Error syntaxError(std::string_view text, const JsonBuilder::Fault& fault)
{
    if (fault.tooLarge) {
        const std::size_t before = fault.byte - std::min(fault.byte, fault.token.size());
        return {"json.syntax",
                fmt::format("{} is larger than any number that is read", quotedForMessage(fault.token, 40)),
                jsonPlace(text, before + 1), "numbers end at 1.8e308"};
    }
    const bool ended = fault.byte >= text.size();
    return {"json.syntax", ended ? "not valid JSON: the text ends too early" : "not valid JSON",
            jsonPlace(text, fault.byte),
            ended ? "the file is empty or was cut off" : "this is not a JSON document, or it was damaged"};
}

/// The end of the array that begins at `begin` when it holds numbers, true, false and null alone; 0 when
/// it holds anything else.
std::size_t plainArrayEnd(std::string_view compact, std::size_t begin)
{
    std::size_t end = begin + 1; // find_first_of() asks for every character among the four by a call
    while (end < compact.size() && compact[end] != '[' && compact[end] != ']' && compact[end] != '{'
           && compact[end] != '"')
        ++end;
    return end < compact.size() && compact[end] == ']' ? end + 1 : 0;
}

/// Compact JSON with an indent of two spaces, but samples and the values of curves on one line each: a
/// line for every number makes a study several times as large.
std::string laidOut(std::string_view compact)
{
    std::string out;
    out.reserve(compact.size() + compact.size() / 4);
    std::size_t depth = 0;
    const auto newLine = [&] { out.append(1, '\n').append(2 * depth, ' '); };
    for (std::size_t i = 0; i < compact.size();) {
        const char c = compact[i];
        std::size_t whole = 0; // end of what is copied as it is
        if (c == '"')
            whole = jsonStringEnd(compact, i);
        else if (c == '[')
            whole = plainArrayEnd(compact, i);
        else if (c == '{' && compact[i + 1] == '}')
            whole = i + 2;
        if (whole > 0) {
            out += compact.substr(i, whole - i);
            i = whole;
            continue;
        }
        if (c == ']' || c == '}') {
            --depth;
            newLine();
        }
        out += c;
        if (c == '[' || c == '{')
            ++depth;
        if (c == '[' || c == '{' || c == ',')
            newLine();
        else if (c == ':')
            out += ' ';
        ++i;
    }
    return out;
}

} // namespace

Result<Json> parseJson(std::string_view text, const JsonLimits& limits)
{
    MEMSCAPE_CHECK(checkJsonShape(text, limits));
    JsonBuilder builder;
    if (Json::sax_parse(text, &builder))
        return builder.take();
    return fail(syntaxError(text, builder.fault().value_or(JsonBuilder::Fault{})));
}

std::string jsonText(const Json& json)
{
    return laidOut(jsonLine(json)) + '\n';
}

std::string jsonLine(const Json& json)
{
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void addMember(Json& object, std::string key, Json value)
{
    object.get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

Json jsonNumber(double value)
{
    if (!std::isfinite(value))
        return nullptr;
    if (value == std::floor(value) && std::fabs(value) <= 0x1p53)
        return static_cast<std::int64_t>(value);
    return value;
}

JsonReader::JsonReader(const Json& node, std::string path)
    : m_node(&node)
    , m_path(std::move(path))
{ }

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

Result<bool> JsonReader::boolean(std::string_view key, bool fallback) const
{
    if (!has(key))
        return fallback;
    MEMSCAPE_TRY(value, at(key));
    return value.boolean();
}

} // namespace memscape

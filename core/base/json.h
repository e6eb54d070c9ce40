// SPDX-License-Identifier: Apache-2.0
// JSON read with errors that name the place, written with stable key order. Documents are
// nlohmann::ordered_json; a Reader walks them and turns every wrong type, missing key or foreign
// value into an Error such as `predicted.figures.peak.value: expected a number, found "12 GB"`.
// Hostile input is bounded before it is built: size, nesting depth, element count, keys of an object.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace memscape {

using Json = nlohmann::ordered_json;

struct JsonLimits
{
    std::size_t bytes = 256u << 20;
    int depth = 64;
    std::size_t elements = 20'000'000;
    std::size_t keys = 100'000; ///< of one object; those that come again included
};

/// Errors: json.syntax and json.limit, with "line L, column C" as place.
Result<Json> parseJson(std::string_view text, const JsonLimits& limits = {});

/// Two-space indent, invalid UTF-8 replaced, NaN and infinities as null, final newline.
std::string jsonText(const Json& json);
/// One line, no newline: for the worker protocol.
std::string jsonLine(const Json& json);

/// Puts a member at the end of an object without looking whether the key is there already: it must not be.
void addMember(Json& object, std::string key, Json value);

/// A finite double, or null when it is not finite.
Json jsonNumber(double value);

/// Reads one node of a document and knows its path. Cheap to copy; the document must outlive it.
class JsonReader
{
public:
    explicit JsonReader(const Json& node, std::string path = {});

    const Json& node() const { return *m_node; }
    const std::string& path() const { return m_path; }

    bool has(std::string_view key) const;
    Result<JsonReader> at(std::string_view key) const; ///< json.missing, json.type
    Result<JsonReader> at(std::size_t index) const;
    Result<std::vector<JsonReader>> items() const;                           ///< of an array
    Result<std::vector<std::pair<std::string, JsonReader>>> members() const; ///< of an object

    Result<double> number() const;      ///< finite; json.type
    Result<double> numberOrNan() const; ///< null reads as NaN
    Result<std::int64_t> integer() const;
    Result<bool> boolean() const;
    Result<std::string> string() const;
    Result<std::vector<double>> numbers() const; ///< null elements read as NaN

    // at(key) then the value; `fallback` when the key is missing (a wrong type is still an error).
    Result<double> number(std::string_view key) const;
    Result<std::string> string(std::string_view key) const;
    Result<double> number(std::string_view key, double fallback) const;
    Result<std::string> string(std::string_view key, std::string fallback) const;
    Result<std::int64_t> integer(std::string_view key, std::int64_t fallback) const;
    Result<bool> boolean(std::string_view key, bool fallback) const;

    /// json.type at this path: "expected a number, found "12 GB"".
    tl::unexpected<Error> expected(std::string_view what) const;

private:
    const Json* m_node;
    std::string m_path;
};

} // namespace memscape

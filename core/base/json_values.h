// SPDX-License-Identifier: Apache-2.0
// Values of a record's `detail` for what shows them. A record may come from a file: what is missing or of another
// kind reads as nothing, and pictures and reports leave it out. Where an error is reported, see JsonReader.
#pragma once

#include "core/base/json.h"

#include <limits>

namespace memscape {

/// Null when `object` is none or has no such key.
inline const Json& member(const Json& object, const char* key)
{
    static const Json none;
    if (!object.is_object())
        return none;
    const auto at = object.find(key);
    return at == object.end() ? none : *at;
}

/// The array under a key; an empty one when there is none.
inline const Json& listOf(const Json& object, const char* key)
{
    static const Json none = Json::array();
    const Json& value = member(object, key);
    return value.is_array() ? value : none;
}

inline std::string words(const Json& value)
{
    return value.is_string() ? value.get<std::string>() : std::string();
}
inline std::string words(const Json& object, const char* key)
{
    return words(member(object, key));
}

inline double number(const Json& object, const char* key, double otherwise = std::numeric_limits<double>::quiet_NaN())
{
    const Json& value = member(object, key);
    return value.is_number() ? value.get<double>() : otherwise;
}

/// A number from 0 to `most`, without its fraction.
inline std::int64_t whole(const Json& object, const char* key, std::int64_t otherwise, double most)
{
    const double value = number(object, key);
    return value >= 0 && value <= most ? std::int64_t(value) : otherwise;
}

inline bool isTrue(const Json& object, const char* key, bool otherwise = false)
{
    const Json& value = member(object, key);
    return value.is_boolean() ? value.get<bool>() : otherwise;
}

/// As many as the array has elements.
inline std::vector<double> numbers(const Json& array, double otherwise = std::numeric_limits<double>::quiet_NaN())
{
    std::vector<double> values;
    if (!array.is_array())
        return values;
    values.reserve(array.size());
    for (const Json& one : array)
        values.push_back(one.is_number() ? one.get<double>() : otherwise);
    return values;
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// Values of a record's `detail` for a picture. A record may come from a file: what is missing or of
// another kind reads as nothing, and the picture leaves it out.
#pragma once

#include "core/base/json.h"

#include <QString>

#include <limits>
#include <string>

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

/// Empty when there is none or it is no text.
inline QString textOf(const Json& object, const char* key)
{
    const Json& value = member(object, key);
    return value.is_string() ? QString::fromStdString(value.get<std::string>()) : QString();
}

inline double number(const Json& object, const char* key, double otherwise = std::numeric_limits<double>::quiet_NaN())
{
    const Json& value = member(object, key);
    return value.is_number() ? value.get<double>() : otherwise;
}

} // namespace memscape

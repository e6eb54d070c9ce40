// SPDX-License-Identifier: GPL-3.0-or-later
// core/base/json_values.h for a picture, with the texts as it draws them.
#pragma once

#include "core/base/json_values.h"

#include <QString>

namespace memscape {

inline QString textOf(const Json& value)
{
    return QString::fromStdString(words(value));
}
/// Empty when there is none or it is no text.
inline QString textOf(const Json& object, const char* key)
{
    return textOf(member(object, key));
}

} // namespace memscape

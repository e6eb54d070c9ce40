// SPDX-License-Identifier: Apache-2.0
// One value of a document by its path, for tables that name it: "phases.1.begin" is keys of objects and indices of
// arrays.
#pragma once

#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/text.h"

#include <string>

namespace memscape {

/// Null where there is nothing at that path.
inline const Json* nodeAt(const Json& document, const std::string& path)
{
    const Json* node = &document;
    for (const std::string& key : split(path, '.')) {
        const auto index = parseNumber(key);
        if (node->is_object() && node->contains(key))
            node = &(*node)[key];
        else if (node->is_array() && index && *index >= 0 && *index < double(node->size()))
            node = &(*node)[std::size_t(*index)];
        else
            return nullptr;
    }
    return node;
}

} // namespace memscape

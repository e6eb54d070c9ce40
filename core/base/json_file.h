// SPDX-License-Identifier: Apache-2.0
// JSON that lies in a file: its errors name the file.
#pragma once

#include "core/base/file.h"
#include "core/base/json.h"

#include <nlohmann/json.hpp>

namespace memscape {

/// What was read of the file. Errors: those of parseJson, at "FILE, PLACE".
inline Result<Json> parseJsonOf(const std::filesystem::path& file, std::string_view text, const JsonLimits& limits = {})
{
    auto json = parseJson(text, limits);
    if (!json)
        return fail(placedIn(file.string(), json.error()));
    return json;
}

/// Errors: those of readFile, too.
inline Result<Json> readJsonFile(const std::filesystem::path& file, std::size_t limit)
{
    MEMSCAPE_TRY(text, readFile(file, limit));
    return parseJsonOf(file, text);
}

} // namespace memscape

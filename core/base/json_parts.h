// SPDX-License-Identifier: Apache-2.0
// A large document is read in parts: the objects in one array of its outermost object (the records of a study) stay
// text, to be parsed on several cores and dropped one by one; the rest is parsed with nulls in their places.
// Left out: large objects elsewhere, which are parsed with the rest.
#pragma once

#include "core/base/json.h"

#include <optional>

namespace memscape {

/// An object in the divided array.
struct JsonPart
{
    std::size_t element = 0;        ///< of the array
    std::size_t begin = 0, end = 0; ///< in the text, B
};

struct DividedJson
{
    Json rest;                   ///< the document, null in the place of each part
    std::vector<JsonPart> parts; ///< in their order
};

/// The document divided at the array under `key`, or nothing where one parse must read it: the text is small, holds no
/// two such objects, a key of the outermost object comes twice, or what is outside of the parts is not JSON. `text` is
/// within the limits of checkJsonShape(); whether a part is JSON is seen when it is parsed.
std::optional<DividedJson> divideJson(std::string_view text, std::string_view key);

/// One part. Nothing of a text that is not JSON.
std::optional<Json> parsePart(std::string_view text, const JsonPart& part);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// A large document is parsed on several cores: the objects in the arrays of its outermost object (the records of a
// study) each by themselves, the rest with nulls in their places. The document is that of one parse from front to
// back, which is also what says where an error is.
// Left out: large objects elsewhere, and arrays of numbers, which are parsed with the rest.
#pragma once

#include "core/base/json.h"

#include <optional>

namespace memscape {

/// The document, or nothing where one parse must do it: the text is small, holds no two such objects, is not JSON, or
/// a key of the outermost object comes twice. `text` is within the limits of checkJsonShape().
std::optional<Json> parseInParts(std::string_view text, std::size_t threads);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// The bounds of a JSON text, found by one scan that builds nothing: what is read is checked before the
// parser runs, and what is written before it replaces a file that could still be read.
#pragma once

#include "core/base/json.h"

namespace memscape {

/// "line 3, column 8" of the byte-th character, counted from 1.
std::string jsonPlace(std::string_view text, std::size_t byte);

/// Behind the closing quote of the string whose opening one is at `begin`; the text's end where it has none.
std::size_t jsonStringEnd(std::string_view text, std::size_t begin);

/// json.limit when parseJson() would refuse the text for its size, its nesting, its elements or an object's keys; the
/// place is that of the first one beyond the limit.
Result<void> checkJsonShape(std::string_view text, const JsonLimits& limits = {});

/// The same for a text of our own that is about to be saved: nothing is written that cannot be opened.
/// document.limit with the remedy.
Result<void> checkReadable(std::string_view text, const JsonLimits& limits = {});

} // namespace memscape

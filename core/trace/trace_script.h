// SPDX-License-Identifier: Apache-2.0
// A small script of requests, one a line (or several in one line, with ';' between them):
//
//     # what is behind a # is a comment
//     alloc a 96MiB                      a block, by a name of one's own
//     alloc b 1.5GiB stream 1 as weights on another stream; its colour
//     record b stream 0                  tensor.record_stream(): stream 0 uses it too …
//     free b                             … so this waits
//     synchronize                        for this
//     free a
//     empty_cache
//
// A name can be used again once its block is freed.
#pragma once

#include "core/trace/request_trace.h"

#include <string_view>

namespace memscape {

inline constexpr std::size_t mostScriptLines = 1'000'000;

/// Errors: script.syntax, script.verb, script.size, script.stream, script.category, script.name (unknown, freed
/// already, still alive), script.length, script.empty; the place is "FILE, line 3" (`file` may be empty).
Result<RequestTrace> parseTraceScript(std::string_view text, std::string_view file = {});

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Memory that runs out where no error can be returned. Most of it ends as std::bad_alloc, which the programs catch
// and report; but destructors of the JSON library (nlohmann/json 3.11, json_value::destroy) allocate, and an exception
// that leaves a destructor ends the process with "terminate called". That end says what happened.
#pragma once

namespace memscape {

inline constexpr int outOfMemoryStatus = 1; ///< as of every run that failed

/// From now on, a process that std::bad_alloc ends says "`program`: out of memory" on standard error and exits with
/// outOfMemoryStatus; nothing of it takes memory. `program` must live as long as the process.
void endClearlyWithoutMemory(const char* program);

} // namespace memscape

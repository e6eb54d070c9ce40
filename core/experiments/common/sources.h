// SPDX-License-Identifier: Apache-2.0
// Texts that several experiments cite, named once.
#pragma once

namespace memscape {

inline constexpr const char* coalescingGuide = "CUDA C++ Best Practices Guide, Coalesced Access to Global Memory";
inline constexpr const char* sharedMemoryGuide = "CUDA Programming Guide, Shared Memory Access Patterns";
inline constexpr const char* managementNotes = "course notes, GPU memory management";

} // namespace memscape

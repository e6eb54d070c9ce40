// SPDX-License-Identifier: Apache-2.0
// What libmemscape-cuda.so exports: one C function that returns a backend and says what it was
// built from. C++ objects cross the border, so program and module must come from the same version,
// the same compiler and the same layout of the shared types; otherwise the loader refuses it with a
// message.
#pragma once

#include "kernels/measure/backend.h"

#include <cstddef>

namespace memscape::cuda {

/// Version and compiler of this translation unit.
inline constexpr const char* moduleAbi = "memscape-cuda 3, memscape " MEMSCAPE_VERSION ", compiler " __VERSION__;
/// Changes when a shared type changes its size: catches a module left over from an older build.
inline constexpr std::size_t moduleLayout = sizeof(Device) + 3 * sizeof(BackendDevice) + 5 * sizeof(MeasuredRun)
    + 7 * sizeof(Point) + 11 * sizeof(Parameters) + 13 * sizeof(SelftestLine) + 17 * sizeof(Figure);

struct Module
{
    const char* abi;
    std::size_t layout;
    Backend* (*makeBackend)(); ///< the caller owns it
};

inline constexpr const char* moduleSymbol = "memscape_cuda_module";
using ModuleFunction = const Module* (*)();

} // namespace memscape::cuda

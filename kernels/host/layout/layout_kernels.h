// SPDX-License-Identifier: Apache-2.0
// Reading a tensor through a view, and the copy that contiguous() makes of it. See layout_kernels.cpp.
#pragma once

#include "core/access/views/tensor_walk.h"
#include "kernels/host/common/simd.h"
#include "kernels/measure/check.h"

#include <cstddef>
#include <string>
#include <vector>

namespace memscape::host {

/// Visits every element once, in the order of the walk; the sum of their bits as whole numbers of
/// their size, modulo 2 to the bits of one (of 16-byte elements, of their halves). `storage` holds the elements that
/// the walk names.
std::uint64_t readWalk(const TensorWalk& walk, const std::byte* storage);

/// Writes the elements to `target` in the order of the walk, one after the other: what contiguous()
/// does when the walk is last-fastest.
using CopyFunction = void (*)(const TensorWalk& walk, const std::byte* storage, std::byte* target);

struct CopyKernel
{
    int version = 1;
    Isa isa = Isa::Scalar;
    int itemBytes = 4;
    std::string lesson; ///< "element by element, in the order of the target"
    CopyFunction run = nullptr;

    std::string name() const; ///< "copy of a view 4 B v3 AVX2"
};

/// Every version for elements of 1, 2, 4, 8 or 16 bytes that this processor runs, naive first.
std::vector<CopyKernel> copyKernels(int itemBytes);
/// The version asked for, 0 the last; a version that is missing here is the one before it.
CopyKernel copyKernel(int itemBytes, int version);
inline constexpr int copyVersions = 4;

/// Views of every kind against a loop over the indices, targets poisoned and guarded.
Check checkCopy(const CopyKernel& kernel);
Check checkReadWalk(int itemBytes);

} // namespace memscape::host

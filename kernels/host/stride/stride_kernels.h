// SPDX-License-Identifier: Apache-2.0
// Access patterns: elements of 1 to 16 bytes, a stride apart, or in random order, or as neighbours;
// read, written or copied. See stride_kernels.cpp.
#pragma once

#include "core/device/device.h"
#include "kernels/host/common/simd.h"
#include "kernels/measure/check.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memscape::host {

/// What one thread touches: `count` elements, the i-th at source + i·stride elements; for a random walk
/// at source + randomElement(first + i, elements) elements.
struct StrideWork
{
    const std::byte* source = nullptr; ///< of read and copy
    std::byte* target = nullptr;       ///< of write and copy
    std::size_t stride = 1;            ///< in elements; 0 touches the same one again and again
    std::size_t count = 0;
    std::size_t elements = 1; ///< random: how many there are to draw from
    std::uint64_t first = 0;  ///< random: number of the first draw
};

/// The exclusive or of what was read, folded to 64 bits (sum over the elements' little-endian words,
/// an element narrower than a word counting as its value); 0 for write and copy.
using StrideFunction = std::uint64_t (*)(const StrideWork& work);

enum class StrideWalk { Strided, Random, Contiguous };

struct StrideKernel
{
    StrideWalk walk = StrideWalk::Strided;
    Operation operation = Operation::Read;
    int elementBytes = 4; ///< 1, 2, 4, 8, 16
    int version = 1;
    Isa isa = Isa::Scalar;
    StrideFunction run = nullptr;

    std::string name() const; ///< "stride strided read 4 B v2 scalar"
};

/// Every version that this processor runs, naive first.
std::vector<StrideKernel> strideKernels(StrideWalk walk, Operation operation, int elementBytes);
/// The last of them: what is measured.
StrideKernel bestStride(StrideWalk walk, Operation operation, int elementBytes);

/// Runs the kernel on small and odd cases, with outputs poisoned and guarded, against the reference.
Check checkStride(const StrideKernel& kernel);

/// Every byte that a write stores.
inline constexpr std::uint8_t strideFill = 0xa5;

} // namespace memscape::host

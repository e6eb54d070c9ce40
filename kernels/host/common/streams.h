// SPDX-License-Identifier: Apache-2.0
// Streams: how many bytes a second a core moves when it names them in order. See streams.cpp.
#pragma once

#include "core/device/operation.h"
#include "kernels/host/common/simd.h"
#include "kernels/measure/check.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memscape::host {

/// What one thread works on, in bytes that are a multiple of 8. Read uses a; write fills a; copy is
/// a ← b; triad is a ← b + 3 c over doubles.
struct StreamSlice
{
    std::byte* a = nullptr;
    const std::byte* b = nullptr;
    const std::byte* c = nullptr;
    std::size_t bytes = 0; ///< of each array
};

/// `repeats` passes over the slice; the exclusive or of all words read (of one pass when `repeats` is
/// odd), 0 for the other operations.
using StreamFunction = std::uint64_t (*)(const StreamSlice& slice, std::size_t repeats);

struct StreamKernel
{
    Operation operation = Operation::Read;
    int version = 1;
    Isa isa = Isa::Scalar;
    StreamFunction run = nullptr;

    std::string name() const; ///< "stream read v3 AVX-512"
};

/// Every version for every vector width that this processor runs, naive first.
std::vector<StreamKernel> streamKernels(Operation operation);
/// What is measured: the widest v3, which stores like ordinary code does (write-allocate).
StreamKernel bestStream(Operation operation);

/// Runs the kernel over small and odd sizes with poisoned outputs against the reference.
Check checkStream(const StreamKernel& kernel);

/// The word that `Write` stores.
inline constexpr std::uint64_t streamFill = 0x0123456789abcdefu;

} // namespace memscape::host

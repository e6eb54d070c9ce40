// SPDX-License-Identifier: Apache-2.0
// The access patterns against a reference that goes byte by byte. A check needs no tolerance: reads
// fold into an exclusive or, writes store a fixed byte, copies move bits, so a lost or doubled access is
// seen. Outputs are poisoned and guarded on both sides.
#include "kernels/host/common/permutation.h"
#include "kernels/host/stride/stride_kernels.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape::host {

namespace {

std::size_t elementOf(const StrideWork& work, std::size_t i, bool random)
{
    return random ? randomElement(work.first + i, work.elements) : i * work.stride;
}

std::uint64_t referenceRead(const StrideWork& work, std::size_t elementBytes, bool random)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < work.count; ++i) {
        const std::byte* const at = work.source + elementOf(work, i, random) * elementBytes;
        for (std::size_t b = 0; b < elementBytes; ++b)
            sum ^= std::to_integer<std::uint64_t>(at[b]) << (8 * (b % 8));
    }
    return sum;
}

/// What the target must hold afterwards.
void referenceStore(const StrideWork& work, Operation operation, std::size_t elementBytes, bool random)
{
    for (std::size_t i = 0; i < work.count; ++i) {
        const std::size_t at = elementOf(work, i, random) * elementBytes;
        for (std::size_t b = 0; b < elementBytes; ++b)
            work.target[at + b] = operation == Operation::Copy ? work.source[at + b] : std::byte{strideFill};
    }
}

struct StrideCheckCase
{
    std::size_t count, stride, offset;
};

/// Counts around the unrolling, strides around the line, starts that are not aligned.
std::vector<StrideCheckCase> checkCases(StrideWalk walk)
{
    std::vector<StrideCheckCase> cases;
    for (const std::size_t count : {1u, 2u, 7u, 8u, 9u, 17u, 64u, 255u, 257u, 1000u}) {
        if (walk == StrideWalk::Strided) {
            for (const std::size_t stride : {0u, 1u, 2u, 3u, 16u, 17u, 64u})
                cases.push_back({count, stride, 0});
        } else {
            for (const std::size_t offset : {0u, 1u, 4u, 60u})
                cases.push_back({count, 1, offset});
        }
    }
    return cases;
}

void checkCase(const StrideKernel& kernel, const StrideCheckCase& one, Check& check)
{
    constexpr std::size_t guard = 128;
    const auto element = static_cast<std::size_t>(kernel.elementBytes);
    const bool random = kernel.walk == StrideWalk::Random;
    const std::size_t span = std::max(one.count * std::max<std::size_t>(one.stride, 1), one.count) * element;
    std::uint64_t seed = 11 + one.count;
    std::vector<std::byte> source(span + one.offset + 2 * guard);
    for (std::byte& byte : source)
        byte = static_cast<std::byte>(nextRandom(seed));
    std::vector<std::byte> found(source.size(), std::byte{0xee}), expected = found;

    StrideWork work{
        source.data() + guard + one.offset, found.data() + guard + one.offset, one.stride, one.count, one.count, seed};
    const std::uint64_t sum = kernel.run(work);
    const std::string what =
        fmt::format("wrong with {} elements, stride {}, offset {}", one.count, one.stride, one.offset);
    if (kernel.operation == Operation::Read) {
        check.require(one.count, sum == referenceRead(work, element, random), what);
        return;
    }
    work.target = expected.data() + guard + one.offset;
    referenceStore(work, kernel.operation, element, random);
    for (std::size_t i = 0; i < found.size(); ++i)
        check.require(i, found[i] == expected[i], what);
}

} // namespace

Check checkStride(const StrideKernel& kernel)
{
    Check check;
    for (const StrideCheckCase& one : checkCases(kernel.walk))
        checkCase(kernel, one, check);
    return check;
}

} // namespace memscape::host

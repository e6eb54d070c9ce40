// SPDX-License-Identifier: Apache-2.0
// Copies and reads of views against a loop over the visits of the walk, byte by byte: elements are
// moved, not computed with, so nothing is tolerated. Targets are poisoned and guarded on both sides.
#include "kernels/host/layout/layout_kernels.h"

#include "core/access/views/view_step.h"

#include <cstring>

#include <fmt/format.h>

namespace memscape::host {

namespace {

constexpr std::size_t guardElements = 128;
constexpr std::byte poison{0xa5};

struct LayoutCheckCase
{
    Sizes shape;
    const char* views;
};

/// Sides around the tiles, runs of one, broadcasts, overlaps, offsets, four dimensions.
const std::vector<LayoutCheckCase>& checkCases()
{
    static const std::vector<LayoutCheckCase> cases{
        {{1, 1}, ""},
        {{64, 64}, "t()"},
        {{33, 65}, "t()"},
        {{15, 130}, "t()"},
        {{160, 48}, "t()"},
        {{7, 3}, "t()"},
        {{1, 50}, "expand(20,-1);t()"},
        {{300}, "unfold(0,17,3)"},
        {{40, 40}, "diagonal(3)"},
        {{40, 50}, "narrow(0,3,20);narrow(1,5,33);t()"},
        {{40, 64}, "slice(1,1,none,2);t()"},
        {{3, 5, 17, 19}, "permute(0,2,3,1)"},
        {{2, 32, 16, 16}, "permute(0,2,3,1)"},
        {{2, 16, 4, 8}, "transpose(1,2);contiguous();transpose(2,3)"},
        {{6, 10}, "flatten()"},
        {{4, 0}, "t()"},
    };
    return cases;
}

TensorWalk walkOfCase(const LayoutCheckCase& one, int itemBytes, TensorView& base)
{
    base = *freshTensor(one.shape);
    const auto steps = applyAll(base, *parseViews(one.views), itemBytes);
    const TensorView view = steps->empty() ? base : steps->back().view;
    base.storage = view.storage; // copies on the way have storages of their own
    return walkOf(view, WalkOrder::LastFastest, itemBytes);
}

std::vector<std::byte> numbered(std::int64_t elements, int itemBytes)
{
    std::vector<std::byte> storage(std::size_t(elements) * std::size_t(itemBytes));
    std::uint64_t state = 1;
    for (std::byte& byte : storage) {
        state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX generator
        byte = std::byte(state >> 56);
    }
    return storage;
}

void checkCase(const CopyKernel& kernel, const LayoutCheckCase& one, Check& check)
{
    TensorView base;
    const TensorWalk walk = walkOfCase(one, kernel.itemBytes, base);
    const auto item = std::size_t(kernel.itemBytes);
    const std::vector<std::byte> storage = numbered(base.storage, kernel.itemBytes);
    const std::size_t bytes = std::size_t(walk.elements) * item;
    std::vector<std::byte> room(bytes + 2 * guardElements + 64, poison);
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(room.data()) % 64;
    std::byte* target = room.data() + (64 - misaligned) % 64 + guardElements;
    kernel.run(walk, storage.data(), target);
    for (std::int64_t i = 0; i < walk.elements; ++i) {
        const bool isEqual = std::memcmp(target + std::size_t(i) * item, storage.data() + walk.address(i), item) == 0;
        check.require(std::size_t(i), isEqual, fmt::format("{} {}: another element", sizesText(one.shape), one.views));
    }
    for (std::size_t i = 0; i < guardElements; ++i) {
        check.require(i, *(target - 1 - i) == poison, "written before the target");
        check.require(i, target[bytes + i] == poison, "written behind the target");
    }
}

} // namespace

Check checkCopy(const CopyKernel& kernel)
{
    Check check;
    for (const LayoutCheckCase& one : checkCases())
        checkCase(kernel, one, check);
    return check;
}

Check checkReadWalk(int itemBytes)
{
    Check check;
    std::size_t index = 0;
    for (const LayoutCheckCase& one : checkCases()) {
        TensorView base;
        const TensorWalk walk = walkOfCase(one, itemBytes, base);
        const std::vector<std::byte> storage = numbered(base.storage, itemBytes);
        std::uint64_t sum = 0;
        for (std::int64_t i = 0; i < walk.elements; ++i) {
            for (std::size_t word = 0; word < std::size_t(itemBytes); word += 8) {
                std::uint64_t value = 0;
                std::memcpy(&value, storage.data() + walk.address(i) + word,
                            std::min<std::size_t>(8, std::size_t(itemBytes)));
                sum += value;
            }
        }
        if (itemBytes < 8)
            sum &= (std::uint64_t(1) << 8 * itemBytes) - 1;
        check.require(index++, readWalk(walk, storage.data()) == sum,
                      fmt::format("{} {}: another sum", sizesText(one.shape), one.views));
    }
    return check;
}

} // namespace memscape::host

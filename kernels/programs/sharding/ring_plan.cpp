// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/sharding/ring_plan.h"

#include "core/base/rounding.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace memscape {

namespace {

/// Element i of what a rank begins with.
int startNumber(int rank, std::size_t i)
{
    return int((i * 2654435761U >> 7) % 509) + 3 * rank;
}

template <typename Number> void fillWith(std::byte* to, std::size_t count, int rank, std::size_t from)
{
    auto* const numbers = reinterpret_cast<Number*>(to);
    for (std::size_t i = 0; i < count; ++i)
        numbers[i] = Number(startNumber(rank, from + i));
}

/// Elements that are not Σ over `ranks` ranks from `first` on.
template <typename Number>
std::uint64_t differences(const std::byte* found, std::size_t count, int first, int ranks, std::size_t from)
{
    const auto* const numbers = reinterpret_cast<const Number*>(found);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
        int sum = 0;
        for (int rank = first; rank < first + ranks; ++rank)
            sum += startNumber(rank, from + i);
        wrong += numbers[i] != Number(sum);
    }
    return wrong;
}

} // namespace

void fillRing(std::byte* memory, const RingOperation& operation, int rank, int ranks)
{
    const auto fillPiece = [&](std::byte* at, int piece) {
        const std::size_t from = std::size_t(piece) * operation.pieceElements;
        if (operation.elementBytes == 4)
            fillWith<float>(at, operation.pieceElements, rank, from);
        else
            fillWith<std::uint16_t>(at, operation.pieceElements, rank, from);
    };
    if (operation.kind == CollectiveKind::AllGather && operation.hasOwn())
        return fillPiece(memory + operation.own, rank);
    for (int piece = 0; piece < ranks; ++piece)
        fillPiece(memory + operation.placeOf(piece, ranks), piece);
}

std::uint64_t wrongInRing(const std::byte* memory, const RingOperation& operation, int rank, int ranks)
{
    std::uint64_t wrong = 0;
    const bool isGather = operation.kind == CollectiveKind::AllGather,
               isScatter = operation.kind == CollectiveKind::ReduceScatter;
    for (int piece = 0; piece < ranks; ++piece) {
        if (isScatter && piece != rank)
            continue;
        const std::byte* const at =
            memory + (isScatter && operation.hasOwn() ? operation.own : operation.placeOf(piece, ranks));
        const std::size_t from = std::size_t(piece) * operation.pieceElements;
        const int first = isGather ? piece : 0, count = isGather ? 1 : ranks;
        wrong += operation.elementBytes == 4
            ? differences<float>(at, operation.pieceElements, first, count, from)
            : differences<std::uint16_t>(at, operation.pieceElements, first, count, from);
    }
    return wrong;
}

std::uint64_t comparedInRing(const std::vector<RingOperation>& operations, int ranks)
{
    std::uint64_t compared = 0;
    for (const RingOperation& operation : operations)
        compared += operation.pieceElements
            * std::uint64_t(operation.kind == CollectiveKind::ReduceScatter ? ranks : ranks * ranks);
    return compared;
}

std::vector<RingOperation> smallRings()
{
    using enum CollectiveKind;
    std::vector<RingOperation> operations;
    std::size_t offset = 0;
    for (const std::size_t bytes : {std::size_t(4), std::size_t(2)}) {
        for (const CollectiveKind kind : {AllReduce, ReduceScatter, AllGather}) {
            operations.push_back({kind, 77, bytes, offset});
            offset += smallRingsMemory / 6;
        }
    }
    return operations;
}

RingPlan ringPlan(const std::vector<ShardCollective>& collectives, int zeroStage)
{
    constexpr std::size_t line = 64;
    const auto rounded = [](std::size_t bytes) { return roundedUp(bytes, line); };
    RingPlan plan;
    std::size_t transient = 0;
    std::map<std::pair<std::string_view, std::size_t>, std::size_t> pieces; // what, unit: where
    const auto isTransient = [&](const ShardCollective& one) {
        return one.what == "activations" || one.what == "weights" || (one.what == "gradients" && zeroStage >= 2);
    };
    for (const ShardCollective& one : collectives) {
        if (one.kind != CollectiveKind::HostCopy && isTransient(one))
            transient = std::max(transient, rounded(std::size_t(one.payload())));
    }
    plan.memory = transient;
    for (const ShardCollective& one : collectives) {
        if (one.kind == CollectiveKind::HostCopy)
            continue;
        RingOperation operation{one.kind, std::size_t(one.pieceElements), std::size_t(one.elementBytes)};
        if (!isTransient(one)) {
            operation.offset = plan.memory;
            plan.memory += rounded(std::size_t(one.payload()));
        } else if (one.what != "activations") { // its piece stays where it is between steps
            const auto [place, isNew] = pieces.try_emplace({one.what, one.unit}, plan.memory);
            operation.own = place->second;
            if (isNew)
                plan.memory += rounded(operation.pieceBytes());
        }
        if (one.what == "weights")
            plan.gathered = std::max(plan.gathered, std::uint64_t(one.payload()));
        for (double times = 0; times < one.count; ++times)
            plan.operations.push_back(operation);
    }
    return plan;
}

} // namespace memscape

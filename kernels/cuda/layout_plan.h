// SPDX-License-Identifier: Apache-2.0
// Which element of a view a thread reads, which tile of a transposition a block turns, and where an element of the
// tile lies in shared memory: arithmetic that the GPU and the tests on the host compile from the same lines. C++17,
// no library of ours: nvcc reads this file.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MEMSCAPE_VIEW __host__ __device__ inline
#else
#define MEMSCAPE_VIEW inline
#endif

namespace memscape::cuda {

constexpr int viewLoops = 8;

/// A walk over a view: loops fastest first, as TensorWalk has them; counts and strides in elements.
struct ViewNest
{
    int rank = 0;
    std::uint64_t count[viewLoops] = {}, stride[viewLoops] = {};
    std::uint64_t offset = 0, elements = 1;
};

/// Element of the storage at a visit. `Index` is 32 bits wide where all visits fit: its divisions are quicker.
template <typename Index> MEMSCAPE_VIEW std::uint64_t elementAt(const ViewNest& nest, Index visit)
{
    std::uint64_t at = nest.offset;
    for (int i = 0; i < nest.rank; ++i) {
        const Index count = static_cast<Index>(nest.count[i]);
        const Index rest = visit / count;
        at += static_cast<std::uint64_t>(visit - rest * count) * nest.stride[i];
        visit = rest;
    }
    return at;
}

/// A copy as the transposition of two loops: `a` is fastest in the target, `b` in the storage. The other loops are
/// planes. `turns` is false when both are the same: then rows are copied as they are, b is 1.
struct TurnPlan
{
    std::uint64_t aCount = 1, aFrom = 0;
    std::uint64_t bCount = 1, bFrom = 0, bTo = 0;
    int others = 0;
    std::uint64_t count[viewLoops] = {}, from[viewLoops] = {}, to[viewLoops] = {};
    std::uint64_t offset = 0, planes = 1;
    bool turns = false;
};

inline TurnPlan turnPlanOf(const ViewNest& nest)
{
    TurnPlan plan;
    plan.offset = nest.offset;
    if (nest.rank == 0)
        return plan;
    plan.aCount = nest.count[0];
    plan.aFrom = nest.stride[0];
    int fastest = 0;
    for (int i = 1; i < nest.rank; ++i) {
        if (nest.stride[i] > 0 && nest.stride[i] < nest.stride[fastest])
            fastest = i;
    }
    std::uint64_t step = nest.count[0];
    for (int i = 1; i < nest.rank; ++i) {
        if (i == fastest) {
            plan.bCount = nest.count[i];
            plan.bFrom = nest.stride[i];
            plan.bTo = step;
            plan.turns = true;
        } else {
            plan.count[plan.others] = nest.count[i];
            plan.from[plan.others] = nest.stride[i];
            plan.to[plan.others++] = step;
            plan.planes *= nest.count[i];
        }
        step *= nest.count[i];
    }
    return plan;
}

/// Four elements at once are possible: neighbours in storage and target, and whole quads everywhere.
MEMSCAPE_VIEW bool hasQuads(const TurnPlan& plan)
{
    bool whole = plan.turns && plan.bFrom == 1 && plan.aCount % 4 == 0 && plan.bCount % 4 == 0 && plan.aFrom % 4 == 0
        && plan.bTo % 4 == 0 && plan.offset % 4 == 0;
    for (int i = 0; i < plan.others; ++i)
        whole = whole && plan.from[i] % 4 == 0 && plan.to[i] % 4 == 0;
    return whole;
}

constexpr int turnSide = 32; ///< elements of a tile's side
constexpr int turnQuadTiles = 4; ///< tiles along b that version 4 turns at once

struct TurnTile
{
    std::uint64_t from = 0, to = 0; ///< of the plane
    std::uint64_t a = 0, b = 0;     ///< of the tile's first element
};

MEMSCAPE_VIEW std::uint64_t turnBlocks(const TurnPlan& plan, int aSide, int bSide)
{
    return (plan.aCount + aSide - 1) / aSide * ((plan.bCount + bSide - 1) / bSide) * plan.planes;
}

/// Tiles follow each other along b, so that blocks which run together read whole rows of the storage.
MEMSCAPE_VIEW TurnTile turnTile(const TurnPlan& plan, std::uint64_t block, int aSide, int bSide)
{
    const std::uint64_t bTiles = (plan.bCount + bSide - 1) / bSide, aTiles = (plan.aCount + aSide - 1) / aSide;
    TurnTile tile;
    tile.from = plan.offset;
    tile.b = block % bTiles * bSide;
    block /= bTiles;
    tile.a = block % aTiles * aSide;
    block /= aTiles;
    for (int i = 0; i < plan.others; ++i) {
        tile.from += block % plan.count[i] * plan.from[i];
        tile.to += block % plan.count[i] * plan.to[i];
        block /= plan.count[i];
    }
    return tile;
}

/// Word of the tile's element (a, b): rows of 32, or of 33 in version 3. Version 4 exchanges quads of a row:
/// lanes that read four neighbours of a, eight quads of a by four of b, find them in 32 different banks.
MEMSCAPE_VIEW int tileWord(int version, int a, int b)
{
    if (version == 4)
        return a * turnSide + ((b / 4 ^ (a / 4 & 7)) * 4 + b % 4);
    return a * (turnSide + (version == 3 ? 1 : 0)) + b;
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// A tile in shared memory and what the lanes of a warp ask of it. Where an element lies is
// core/access/shared_tile.h's arithmetic, the same that the model counts. Templates over a machine: the
// GPU's is attention/gpu_machine.cuh, the tests' counts the turns that its banks take. C++17, no library
// of ours: nvcc reads this file.
#pragma once

#include "core/access/shared_tile.h"
#include "kernels/cuda/attention/shape.h"
#include "kernels/cuda/common/plan.h"

namespace memscape::cuda {

/// One request, the same for every warp.
struct BankWork
{
    SharedTile tile;
    std::uint32_t elements = 0;             ///< of the tile, whole rows
    std::uint32_t lanes = 0;                ///< that take part, from the first on
    std::uint32_t asked[lanesPerWarp] = {}; ///< element of each lane
};

/// The element of a lane, 0 for one that takes no part.
MEMSCAPE_BOTH std::uint32_t askedOf(const BankWork& work, int lane)
{
    return std::uint32_t(lane) < work.lanes ? work.asked[lane] : 0;
}

/// Element e of the tile holds mixed(e).
template <typename Word, typename Machine>
MEMSCAPE_KERNEL void fillTile(Machine& m, const BankWork& work, std::uint32_t threads)
{
    for (std::uint32_t e = std::uint32_t(m.thread()); e < work.elements; e += threads)
        m.storeShared(addressIn(work.tile, e), wordOf<Word>(mixed(e)));
}

/// The tile, element by element in the program's order, to memory.
template <typename Word, typename Machine>
MEMSCAPE_KERNEL void copyTile(Machine& m, const BankWork& work, std::uint32_t threads, Word* target)
{
    for (std::uint32_t e = std::uint32_t(m.thread()); e < work.elements; e += threads)
        m.store(target + e, m.template loadShared<Word>(addressIn(work.tile, e)));
}

/// The request once, as a program writes it.
template <typename Word, typename Machine> MEMSCAPE_KERNEL Word readAsked(Machine& m, const BankWork& work)
{
    return m.template loadShared<Word>(addressIn(work.tile, askedOf(work, m.thread() % lanesPerWarp)));
}
template <typename Word, typename Machine> MEMSCAPE_KERNEL void writeAsked(Machine& m, const BankWork& work)
{
    const std::uint32_t element = askedOf(work, m.thread() % lanesPerWarp);
    m.storeShared(addressIn(work.tile, element), wordOf<Word>(writtenBits(element)));
}

} // namespace memscape::cuda

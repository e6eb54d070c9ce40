// SPDX-License-Identifier: Apache-2.0
// How many blocks the shared memory of a multiprocessor holds, so that a tile that grows cannot halve
// them unnoticed: every launcher of attention states the numbers of its kernels, and does not compile
// when they change. Registers allow 65536 / (registers × threads) blocks, which only ptxas knows
// (tests/gpu/kernels.txt).
//
// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; from sm_80
// on the system keeps 1 KiB of every block.
#pragma once

namespace memscape::cuda {

struct SharedMemory
{
    int perMultiprocessor, perBlock;
};
constexpr SharedMemory sharedMemoryOf80{164 << 10, 163 << 10},
    sharedMemoryOf86{100 << 10, 99 << 10},  ///< and of 89 and 120
    sharedMemoryOf90{228 << 10, 227 << 10}; ///< and of 100

constexpr int blocksThatFit(const SharedMemory& memory, int blockBytes)
{
    constexpr int ofSystem = 1 << 10;
    return blockBytes > memory.perBlock ? 0 : memory.perMultiprocessor / (blockBytes + ofSystem);
}

/// Whether so many blocks fit sm_80; sm_86, 89 and 120; sm_90 and 100.
constexpr bool blocksFit(int blockBytes, int on80, int on86, int on90)
{
    return blocksThatFit(sharedMemoryOf80, blockBytes) == on80 && blocksThatFit(sharedMemoryOf86, blockBytes) == on86
        && blocksThatFit(sharedMemoryOf90, blockBytes) == on90;
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// Flash attention forward, versions 6 and 7, of 32 rows a warp: the launchers of flash_v5.h's wide
// kernel and of flash_v7.h, in a file of their own because with a head dimension of 128 version 6 is
// the one that may spill a few registers.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash_v5.h"
#include "kernels/cuda/attention/flash_v7.h"
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"

namespace memscape::cuda {

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) flash_6(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        flash_v6<Tile>(m, s, arrays);
    }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) flash_7(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        flash_v7<Tile>(m, s, arrays);
    }
}

static_assert(blocksFit(flashSharedBytesV6<FlashSix<Half, 64>>, 3, 2, 4));
static_assert(blocksFit(flashSharedBytesV6<FlashSix<Half, 128>>, 1, 1, 2));
static_assert(blocksFit(flashSharedBytesV6<FlashSeven<Half, 64>>, 3, 2, 4));
static_assert(blocksFit(flashSharedBytesV6<FlashSeven<Half, 128>>, 2, 1, 2));

template <typename Element, int headDim> static cudaError_t launchWide(const FlashLaunch& w, cudaStream_t stream)
{
    using Six = FlashSix<Element, headDim>;
    using Seven = FlashSeven<Element, headDim>;
    if (w.version == 6)
        return launchRows<Six>(flash_6<Six>, flashSharedBytesV6<Six>, w.sizes, w.arrays, stream);
    return launchRows<Seven>(flash_7<Seven>, flashSharedBytesV6<Seven>, w.sizes, w.arrays, stream);
}

cudaError_t launchFlashWide(const FlashLaunch& w, cudaStream_t stream)
{
    const bool isShort = w.sizes.headDim == 64;
    if (w.format == ElementFormat::Float32 || (!isShort && w.sizes.headDim != 128))
        return cudaErrorInvalidValue;
    if (w.format == ElementFormat::Float16)
        return isShort ? launchWide<Half, 64>(w, stream) : launchWide<Half, 128>(w, stream);
    return isShort ? launchWide<Bfloat, 64>(w, stream) : launchWide<Bfloat, 128>(w, stream);
}

} // namespace memscape::cuda

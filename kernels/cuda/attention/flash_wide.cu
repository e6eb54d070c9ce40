// SPDX-License-Identifier: Apache-2.0
// Flash attention forward, version 6: the launcher of flash_v5.h's wide kernel, in a file of its own
// because with a head dimension of 128 it is the one that may spill a few registers.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash_v5.h"
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

template <typename Element, int headDim>
static cudaError_t launchWide(const FlashLaunch& w, cudaStream_t stream)
{
    using Tile = FlashSix<Element, headDim>;
    return launchRows<Tile>(flash_6<Tile>, flashSharedBytesV6<Tile>, w.sizes, w.arrays, stream);
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

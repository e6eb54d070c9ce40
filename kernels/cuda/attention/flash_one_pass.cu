// SPDX-License-Identifier: Apache-2.0
// Flash attention backward in one pass, version 9: the launchers of flash_one_pass.h.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash_one_pass.h"
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"

namespace memscape::cuda {

template <typename Element, int headDim>
__global__ void __launch_bounds__(deltaThreads) flashDelta_9(AttentionSizes s, AttentionArrays arrays)
{
    GpuMachine m(dynamicShared());
    flashDelta<Element, headDim, true>(m, s, arrays);
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) gradientsOfAll_9(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        gradientsInOnePass<Tile>(m, s, arrays);
    }
}

template <typename Element, int headDim>
__global__ void __launch_bounds__(roundThreads) roundQueryGradient_9(AttentionSizes s, AttentionArrays arrays)
{
    GpuMachine m(dynamicShared());
    roundQueryGradient<Element, headDim>(m, s, arrays);
}

static_assert(blocksFit(LargeOnePassTile<Half, 64>::sharedBytes, 1, 0, 1));
static_assert(blocksFit(SmallOnePassTile<Half, 64>::sharedBytes, 1, 1, 2));
static_assert(blocksFit(LargeOnePassTile<Half, 128>::sharedBytes, 1, 0, 1));
static_assert(blocksFit(SmallOnePassTile<Half, 128>::sharedBytes, 1, 1, 2));

template <typename Tile> static cudaError_t launchTile(const FlashLaunch& w, cudaStream_t stream)
{
    const AttentionSizes& s = w.sizes;
    return launchBlocks(gradientsOfAll_9<Tile>, over(s.keys, Tile::keys), s.batch * s.kvHeads, Tile::threads,
                        Tile::sharedBytes, s, w.arrays, stream);
}

/// With the tile that a block of this GPU has shared memory for.
template <typename Element, int headDim> static cudaError_t launchFitting(const FlashLaunch& w, cudaStream_t stream)
{
    using Large = LargeOnePassTile<Element, headDim>;
    using Small = SmallOnePassTile<Element, headDim>;
    int device = 0, most = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess)
        return error;
    return most >= Large::sharedBytes ? launchTile<Large>(w, stream) : launchTile<Small>(w, stream);
}

template <typename Element, int headDim> static cudaError_t launchGradients(const FlashLaunch& w, cudaStream_t stream)
{
    const AttentionSizes& s = w.sizes;
    const std::int64_t rows = std::int64_t(s.batch) * s.heads * s.queries;
    const auto blocks = [](std::int64_t count, int size) { return (count + size - 1) / size; };
    const std::int64_t deltas = blocks(rows, deltaThreads / 32),
                       rounds = blocks(rows * (headDim / sumsTogether), roundThreads);
    if (deltas > 0x7fffffff || rounds > 0x7fffffff)
        return cudaErrorInvalidConfiguration;
    cudaError_t error =
        launchBlocks(flashDelta_9<Element, headDim>, int(deltas), 1, deltaThreads, 0, s, w.arrays, stream);
    if (error == cudaSuccess)
        error = launchFitting<Element, headDim>(w, stream);
    if (error == cudaSuccess)
        error =
            launchBlocks(roundQueryGradient_9<Element, headDim>, int(rounds), 1, roundThreads, 0, s, w.arrays, stream);
    return error;
}

cudaError_t launchFlashOnePass(const FlashLaunch& w, cudaStream_t stream)
{
    const bool isShort = w.sizes.headDim == 64;
    if (w.format == ElementFormat::Float32 || (!isShort && w.sizes.headDim != 128)
        || w.arrays.queryGradientSums == nullptr)
        return cudaErrorInvalidValue;
    if (w.format == ElementFormat::Float16)
        return isShort ? launchGradients<Half, 64>(w, stream) : launchGradients<Half, 128>(w, stream);
    return isShort ? launchGradients<Bfloat, 64>(w, stream) : launchGradients<Bfloat, 128>(w, stream);
}

} // namespace memscape::cuda

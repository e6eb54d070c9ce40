// SPDX-License-Identifier: Apache-2.0
// Flash attention backward: the launchers of flash_backward.h.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash_backward.h"
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"

namespace memscape::cuda {

template <typename Element, int headDim>
__global__ void __launch_bounds__(deltaThreads) flashDelta_1(AttentionSizes s, AttentionArrays arrays)
{
    GpuMachine m(dynamicShared());
    flashDelta<Element, headDim>(m, s, arrays);
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) gradientsOfKeys_1(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        gradientsOfKeys<Tile>(m, s, arrays);
    }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) gradientsOfQueries_1(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        gradientsOfQueries<Tile>(m, s, arrays);
    }
}

static_assert(blocksFit(NarrowKeysTile<Half, 64>::sharedBytes, 3, 2, 4));
static_assert(blocksFit(NarrowKeysTile<Half, 128>::sharedBytes, 2, 1, 3));
static_assert(blocksFit(WideKeysTile<Half, 64>::sharedBytes, 3, 2, 4));
static_assert(blocksFit(WideKeysTile<Half, 128>::sharedBytes, 1, 1, 2));
static_assert(blocksFit(flashSharedBytesOfQueries<NarrowQueriesTile<Half, 64>>, 3, 2, 4));
static_assert(blocksFit(flashSharedBytesOfQueries<NarrowQueriesTile<Half, 128>>, 1, 1, 2));
static_assert(blocksFit(flashSharedBytesOfQueries<WideQueriesTile<Half, 64>>, 2, 1, 4));
static_assert(blocksFit(flashSharedBytesOfQueries<WideQueriesTile<Half, 128>>, 1, 1, 2));

template <typename Keys, typename Queries> static cudaError_t launchTiles(const FlashLaunch& w, cudaStream_t stream)
{
    using Element = typename Keys::Element;
    constexpr int headDim = Keys::headDim;
    const AttentionSizes& s = w.sizes;
    const std::int64_t rows = std::int64_t(s.batch) * s.heads * s.queries;
    const std::int64_t blocks = (rows + deltaThreads / 32 - 1) / (deltaThreads / 32);
    if (blocks > 0x7fffffff)
        return cudaErrorInvalidConfiguration;
    cudaError_t error =
        launchBlocks(flashDelta_1<Element, headDim>, int(blocks), 1, deltaThreads, 0, s, w.arrays, stream);
    if (error == cudaSuccess)
        error = launchBlocks(gradientsOfKeys_1<Keys>, over(s.keys, Keys::keys), s.batch * s.kvHeads, Keys::threads,
                             Keys::sharedBytes, s, w.arrays, stream);
    if (error == cudaSuccess)
        error =
            launchRows<Queries>(gradientsOfQueries_1<Queries>, flashSharedBytesOfQueries<Queries>, s, w.arrays, stream);
    return error;
}

template <typename Element, int headDim> static cudaError_t launchGradients(const FlashLaunch& w, cudaStream_t stream)
{
    if (w.version < firstWideBackward)
        return launchTiles<NarrowKeysTile<Element, headDim>, NarrowQueriesTile<Element, headDim>>(w, stream);
    return launchTiles<WideKeysTile<Element, headDim>, WideQueriesTile<Element, headDim>>(w, stream);
}

cudaError_t launchFlashBackward(const FlashLaunch& w, cudaStream_t stream)
{
    if (w.version == onePassBackward)
        return launchFlashOnePass(w, stream);
    const bool isShort = w.sizes.headDim == 64;
    if (w.format == ElementFormat::Float32 || (!isShort && w.sizes.headDim != 128))
        return cudaErrorInvalidValue;
    if (w.format == ElementFormat::Float16)
        return isShort ? launchGradients<Half, 64>(w, stream) : launchGradients<Half, 128>(w, stream);
    return isShort ? launchGradients<Bfloat, 64>(w, stream) : launchGradients<Bfloat, 128>(w, stream);
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// How the attention kernels are launched: a block per tile of rows and per head, more shared memory
// than a kernel gets unasked, and which architectures a kernel has code for.
#pragma once

#include "kernels/cuda/attention/shape.h"
#include "kernels/cuda/attention/shared_memory.h"

#include <cuda_runtime.h>

namespace memscape::cuda {

/// The block's dynamic shared memory.
__device__ __forceinline__ char* dynamicShared()
{
    extern __shared__ __align__(128) char shared[];
    return shared;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool hasAsyncCopies = false; ///< and bfloat16 products; such a kernel is empty
#else
constexpr bool hasAsyncCopies = true;
#endif
template <typename Element> constexpr bool hasProducts = hasAsyncCopies;
template <> inline constexpr bool hasProducts<Half> = true;

using AttentionKernel = void (*)(AttentionSizes, AttentionArrays);

constexpr int sharedUnasked = 48 << 10, mostBlocksInY = 65535;

inline cudaError_t launchBlocks(AttentionKernel kernel, int blocks, int planes, int threads, int sharedBytes,
                                const AttentionSizes& s, const AttentionArrays& arrays, cudaStream_t stream)
{
    if (planes > mostBlocksInY)
        return cudaErrorInvalidConfiguration;
    if (sharedBytes > sharedUnasked) {
        const cudaError_t error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sharedBytes);
        if (error != cudaSuccess)
            return error;
    }
    const dim3 grid{unsigned(blocks), unsigned(planes), 1};
    kernel<<<grid, unsigned(threads), std::size_t(sharedBytes), stream>>>(s, arrays);
    return cudaGetLastError();
}

/// A block for every Tile::rows rows of every plane of Q.
template <typename Tile>
cudaError_t launchRows(AttentionKernel kernel, int sharedBytes, const AttentionSizes& s, const AttentionArrays& arrays,
                       cudaStream_t stream)
{
    return launchBlocks(kernel, over(s.queries, Tile::rows), s.batch * s.heads, Tile::threads, sharedBytes, s, arrays,
                        stream);
}

} // namespace memscape::cuda

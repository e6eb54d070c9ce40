// SPDX-License-Identifier: Apache-2.0
// Flash attention forward, version 8: the launcher of flash_hopper.h's kernel. Compiled for sm_90a
// alone, beside the kernels whose machine code and PTX serve every GPU.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash_hopper.h"
#include "kernels/cuda/attention/flash_hopper_machine.cuh"
#include "kernels/cuda/attention/flash_hopper_map.h"
#include "kernels/cuda/attention/shared_memory.h"

#include <cuda_runtime.h>

namespace memscape::cuda {

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    flash_8(AttentionSizes s, AttentionArrays arrays, const __grid_constant__ CUtensorMap query,
            const __grid_constant__ CUtensorMap key, const __grid_constant__ CUtensorMap value)
{
    extern __shared__ __align__(1024) char tiles[];
    HopperMachine m(tiles);
    flash_v8<Tile>(m, s, arrays, query, key, value);
}

// Registers hold one block of 384 threads whatever the shared memory.
static_assert(blocksThatFit(sharedMemoryOf90, FlashHopper<Half, 64>::sharedBytes) == 2);
static_assert(blocksThatFit(sharedMemoryOf90, FlashHopper<Half, 128>::sharedBytes) == 1);

/// sm_90a is no ancestor of any other: later GPUs do not run it, either.
static bool isHopper()
{
    int device = 0, major = 0, minor = 0;
    return cudaGetDevice(&device) == cudaSuccess
        && cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess
        && cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9
        && minor == 0;
}

template <typename Element, int headDim> static cudaError_t launchHopper(const FlashLaunch& w, cudaStream_t stream)
{
    using Tile = FlashHopper<Element, headDim>;
    const AttentionSizes& s = w.sizes;
    const bool isBfloat = w.format == ElementFormat::BFloat16;
    CUtensorMap query, key, value;
    cudaError_t error = encodeTileMap(queryMap<Tile>(s, w.arrays.query, isBfloat), &query);
    if (error == cudaSuccess)
        error = encodeTileMap(keyMap<Tile>(s, w.arrays.key, isBfloat), &key);
    if (error == cudaSuccess)
        error = encodeTileMap(keyMap<Tile>(s, w.arrays.value, isBfloat), &value);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(flash_8<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::sharedBytes);
    if (error != cudaSuccess)
        return error;
    const dim3 grid{unsigned(over(s.queries, Tile::rows)), unsigned(s.batch * s.heads), 1};
    flash_8<Tile><<<grid, Tile::threads, Tile::sharedBytes, stream>>>(s, w.arrays, query, key, value);
    return cudaGetLastError();
}

cudaError_t launchFlashHopper(const FlashLaunch& w, cudaStream_t stream)
{
    const bool isShort = w.sizes.headDim == 64;
    if (w.format == ElementFormat::Float32 || (!isShort && w.sizes.headDim != 128))
        return cudaErrorInvalidValue;
    if (w.sizes.batch * w.sizes.heads > 65535)
        return cudaErrorInvalidConfiguration;
    if (!isHopper())
        return cudaErrorNoKernelImageForDevice;
    if (w.format == ElementFormat::Float16)
        return isShort ? launchHopper<Half, 64>(w, stream) : launchHopper<Half, 128>(w, stream);
    return isShort ? launchHopper<Bfloat, 64>(w, stream) : launchHopper<Bfloat, 128>(w, stream);
}

} // namespace memscape::cuda

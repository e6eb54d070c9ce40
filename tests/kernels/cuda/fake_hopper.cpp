// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cuda/fake_hopper.h"

#include "kernels/cuda/attention/flash_hopper.h"
#include "kernels/cuda/attention/flash_hopper_map.h"
#include "tests/kernels/cuda/fake_gpu.h"
#include "tests/support/hopper_emulator.h"

#include <cstdio>
#include <cstring>

namespace {

using memscape::cuda::TileMap;

/// The rules of cuTensorMapEncodeTiled for three dimensions of 16-bit numbers, swizzled within 128 bytes.
bool isEncodable(const CUtensorMap* map, const void* data, const cuuint64_t* sizes, const cuuint64_t* strides,
                 const cuuint32_t* box, const cuuint32_t* steps)
{
    constexpr cuuint64_t mostSize = 1ULL << 32, mostStride = 1ULL << 40;
    constexpr cuuint32_t mostBox = 256, swizzleBytes = 128, mostStep = 8;
    if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0 || reinterpret_cast<std::uintptr_t>(data) % 16 != 0)
        return false;
    for (int i = 0; i < 3; ++i) {
        if (sizes[i] == 0 || sizes[i] > mostSize || box[i] == 0 || box[i] > mostBox || steps[i] == 0
            || steps[i] > mostStep)
            return false;
    }
    cuuint64_t least = sizes[0] * 2; // a row, then a plane
    for (int i = 0; i < 2; ++i) {
        if (strides[i] % 16 != 0 || strides[i] >= mostStride || strides[i] < least)
            return false;
        least = strides[i] * sizes[i + 1];
    }
    return box[0] * 2 <= swizzleBytes && box[0] * 2 % 16 == 0;
}

/// Its map holds what the emulated copy engine needs.
CUresult encodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t dimensions, void* data,
                     const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps,
                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                     CUtensorMapFloatOOBfill)
{
    const bool isHalf = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    if (dimensions != 3 || !isHalf || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE
        || swizzle != CU_TENSOR_MAP_SWIZZLE_128B || !isEncodable(map, data, sizes, strides, box, steps))
        return CUDA_ERROR_INVALID_VALUE;
    const TileMap tile{data,     strides[0] / 2, strides[1] / strides[0],
                       sizes[2], box[1],         type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16};
    static_assert(sizeof tile <= sizeof *map, "a tile's map fits a tensor map");
    std::memcpy(map, &tile, sizeof tile);
    return CUDA_SUCCESS;
}

} // namespace

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                                        unsigned long long, cudaDriverEntryPointQueryResult* found)
{
    const bool isThere = fakeGpu().hasTensorMaps && std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
    *function = isThere ? reinterpret_cast<void*>(encodeTiled) : nullptr;
    *found = isThere ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

namespace memscape::cuda {

namespace {

struct WithoutBlockBarrier : emulated::HopperMachine
{
    void syncThreads() { }
};

template <typename Tile> cudaError_t emulate(const FlashLaunch& w, emulated::GlobalMemory& memory)
{
    const AttentionSizes& s = w.sizes;
    const bool isBfloat = w.format == ElementFormat::BFloat16;
    CUtensorMap maps[3];
    const TileMap wanted[3] = {queryMap<Tile>(s, w.arrays.query, isBfloat), keyMap<Tile>(s, w.arrays.key, isBfloat),
                               keyMap<Tile>(s, w.arrays.value, isBfloat)};
    TileMap found[3];
    for (int i = 0; i < 3; ++i) {
        if (const cudaError_t error = encodeTileMap(wanted[i], &maps[i]); error != cudaSuccess)
            return error;
        std::memcpy(static_cast<void*>(&found[i]), &maps[i], sizeof found[i]);
    }
    emulated::Launch launch;
    launch.blocksX = over(s.queries, Tile::rows);
    launch.blocksY = s.batch * s.heads;
    launch.threads = Tile::threads;
    launch.sharedBytes = Tile::sharedBytes;
    try {
        emulated::run(launch, memory, [&](emulated::Machine& m) {
            if (fakeGpu().forgetsBarriers)
                flash_v8<Tile>(static_cast<WithoutBlockBarrier&>(m), s, w.arrays, found[0], found[1], found[2]);
            else
                flash_v8<Tile>(static_cast<emulated::HopperMachine&>(m), s, w.arrays, found[0], found[1], found[2]);
        });
    } catch (const emulated::Fault& fault) {
        std::fprintf(stderr, "emulated GPU: %s\n", fault.what());
        return cudaErrorIllegalAddress;
    }
    return cudaSuccess;
}

} // namespace

cudaError_t emulateFlashHopper(const FlashLaunch& w, emulated::GlobalMemory& memory)
{
    const bool isShort = w.sizes.headDim == 64;
    if (fakeGpu().computeCapability != 90)
        return cudaErrorNoKernelImageForDevice;
    if (w.format == ElementFormat::Float16)
        return isShort ? emulate<FlashHopper<Half, 64>>(w, memory) : emulate<FlashHopper<Half, 128>>(w, memory);
    return isShort ? emulate<FlashHopper<Bfloat, 64>>(w, memory) : emulate<FlashHopper<Bfloat, 128>>(w, memory);
}

} // namespace memscape::cuda

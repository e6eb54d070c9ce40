// SPDX-License-Identifier: Apache-2.0
// Source: CUDA Driver API, "Tensor Map Object Management": strides in bytes from the second dimension
// on, multiples of 16; a box at most 256 wide in each dimension, and 128 bytes in the first when it is
// swizzled so.
#include "kernels/cuda/attention/flash_hopper_map.h"

namespace memscape::cuda {

namespace {

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// Null where the driver has no such function.
EncodeTiled encoder()
{
    constexpr const char* name = "cuTensorMapEncodeTiled";
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    constexpr unsigned since = 12000;
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
    const bool isThere = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
    return isThere ? reinterpret_cast<EncodeTiled>(function) : nullptr;
}

} // namespace

cudaError_t encodeTileMap(const TileMap& map, CUtensorMap* encoded)
{
    const EncodeTiled encode = encoder();
    if (encode == nullptr)
        return cudaErrorNotSupported;
    constexpr cuuint32_t dimensions = 3;
    const cuuint64_t sizes[dimensions] = {map.columns, map.rows, map.planes};
    const cuuint64_t strides[dimensions - 1] = {map.columns * 2, map.rows * map.columns * 2};
    const cuuint32_t box[dimensions] = {pieceColumns, map.boxRows, 1}, steps[dimensions] = {1, 1, 1};
    const CUresult result =
        encode(encoded, map.isBfloat ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, dimensions,
               const_cast<void*>(map.data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace memscape::cuda

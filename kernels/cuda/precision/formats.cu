// SPDX-License-Identifier: Apache-2.0
// Numbers in other formats than float: the operands of products, and the GPU's own conversions. A matrix is
// filled from a table of bit patterns that the host made, so that no format needs arithmetic here and the
// host knows every element. Conversions are the instructions that a training step uses; FP8's exist from
// compute capability 8.9 on, NVIDIA's header computes them before.
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/common/words.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

namespace memscape::cuda {

// ---- kernels ----------------------------------------------------------------------------------

/// to: (count) words; word i is table[operandPlace(seed, i)].
template <typename Word>
__global__ void operands_v1(Word* to, const Word* table, std::uint64_t count, std::uint64_t seed)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += all)
        to[i] = table[operandPlace(seed, i)];
}

template <ShortFormat format> __device__ __forceinline__ std::uint16_t narrowed(float value, bool saturates)
{
    if (format == ShortFormat::Float16)
        return __half_as_ushort(__float2half_rn(value));
    if (format == ShortFormat::Bfloat16)
        return __bfloat16_as_ushort(__float2bfloat16_rn(value));
    return __nv_cvt_float_to_fp8(value, saturates ? __NV_SATFINITE : __NV_NOSAT,
                                 format == ShortFormat::E4M3 ? __NV_E4M3 : __NV_E5M2);
}

template <ShortFormat format> __device__ __forceinline__ float widened(std::uint16_t bits)
{
    if (format == ShortFormat::Float16)
        return __half2float(__ushort_as_half(bits));
    if (format == ShortFormat::Bfloat16)
        return __bfloat162float(__ushort_as_bfloat16(bits));
    const __half_raw half = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits),
                                                    format == ShortFormat::E4M3 ? __NV_E4M3 : __NV_E5M2);
    return __half2float(__half(half));
}

template <ShortFormat format>
__global__ void narrow_v1(const float* from, std::uint16_t* bits, std::uint64_t count, bool saturates)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += all)
        bits[i] = narrowed<format>(from[i], saturates);
}

template <ShortFormat format> __global__ void widen_v1(const std::uint16_t* bits, float* to, std::uint64_t count)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += all)
        to[i] = widened<format>(bits[i]);
}

// ---- launchers --------------------------------------------------------------------------------

static unsigned gridOf(std::uint64_t count)
{
    return static_cast<unsigned>(std::min<std::uint64_t>(blocksFor(count, 256), 8192));
}

template <typename Word>
static cudaError_t launchWords(void* to, const void* table, std::uint64_t count, std::uint64_t seed,
                               cudaStream_t stream)
{
    operands_v1<<<gridOf(count), 256, 0, stream>>>(static_cast<Word*>(to), static_cast<const Word*>(table), count,
                                                   seed);
    return cudaGetLastError();
}

cudaError_t launchOperands(void* to, int bytes, const void* table, std::uint64_t count, std::uint64_t seed,
                           cudaStream_t stream)
{
    return withWord(bytes, cudaErrorInvalidValue, [&](auto tag) {
        return launchWords<typename decltype(tag)::Type>(to, table, count, seed, stream);
    });
}

cudaError_t launchNarrow(ShortFormat format, const float* from, std::uint16_t* bits, std::uint64_t count,
                         bool saturates, cudaStream_t stream)
{
    const unsigned grid = gridOf(count);
    switch (format) {
    case ShortFormat::Float16:
        narrow_v1<ShortFormat::Float16><<<grid, 256, 0, stream>>>(from, bits, count, saturates);
        break;
    case ShortFormat::Bfloat16:
        narrow_v1<ShortFormat::Bfloat16><<<grid, 256, 0, stream>>>(from, bits, count, saturates);
        break;
    case ShortFormat::E4M3: narrow_v1<ShortFormat::E4M3><<<grid, 256, 0, stream>>>(from, bits, count, saturates); break;
    case ShortFormat::E5M2: narrow_v1<ShortFormat::E5M2><<<grid, 256, 0, stream>>>(from, bits, count, saturates); break;
    }
    return cudaGetLastError();
}

cudaError_t launchWiden(ShortFormat format, const std::uint16_t* bits, float* to, std::uint64_t count,
                        cudaStream_t stream)
{
    const unsigned grid = gridOf(count);
    switch (format) {
    case ShortFormat::Float16: widen_v1<ShortFormat::Float16><<<grid, 256, 0, stream>>>(bits, to, count); break;
    case ShortFormat::Bfloat16: widen_v1<ShortFormat::Bfloat16><<<grid, 256, 0, stream>>>(bits, to, count); break;
    case ShortFormat::E4M3: widen_v1<ShortFormat::E4M3><<<grid, 256, 0, stream>>>(bits, to, count); break;
    case ShortFormat::E5M2: widen_v1<ShortFormat::E5M2><<<grid, 256, 0, stream>>>(bits, to, count); break;
    }
    return cudaGetLastError();
}

} // namespace memscape::cuda

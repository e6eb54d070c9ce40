// SPDX-License-Identifier: Apache-2.0
// The instructions that the kernel templates of this folder are written in, on a real GPU. The tests
// have the same names on the host (tests/support/warp_emulator.h). Addresses in shared memory are
// bytes from the block's start. Source: PTX ISA, mma.sync, ldmatrix, cp.async, red. Products of FP8 on tensor
// cores came with Ada (sm_89), and with CUDA 12.4.
//
// Turing multiplies 16 × 8 × 8 at a time and has neither bfloat16 products nor asynchronous copies;
// the launchers keep kernels that need them away from it.
#pragma once

#include "kernels/cuda/precision/format_tags.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace memscape::cuda {

template <typename Left, typename Right> struct SameType
{
    static constexpr bool value = false;
};
template <typename Type> struct SameType<Type, Type>
{
    static constexpr bool value = true;
};

class GpuMachine
{
public:
    /// `shared`: the block's dynamic shared memory.
    __device__ __forceinline__ explicit GpuMachine(char* shared)
        : m_shared(shared)
        , m_base(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)))
    { }

    __device__ __forceinline__ int thread() const { return int(threadIdx.x); }
    /// The same, asked for again: what is computed from it is computed here, instead of being kept in
    /// registers from before a loop that has none to spare.
    __device__ __forceinline__ int threadAnew() const
    {
        int thread;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
        return thread;
    }
    __device__ __forceinline__ int blockX() const { return int(blockIdx.x); }
    __device__ __forceinline__ int blockY() const { return int(blockIdx.y); }
    __device__ __forceinline__ int blocksX() const { return int(gridDim.x); }

    template <typename T> __device__ __forceinline__ T load(const T* from) { return *from; }
    template <typename T> __device__ __forceinline__ void store(T* to, T value) { *to = value; }
    __device__ __forceinline__ void addAtomically(float* to, float value) { atomicAdd(to, value); }
    /// To four neighbours, each by itself; `to` is a multiple of 16 bytes.
    __device__ __forceinline__ void addFourAtomically(float* to, float a, float b, float c, float d)
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                     "f"(a), "f"(b), "f"(c), "f"(d)
                     : "memory");
#else
        atomicAdd(to, a);
        atomicAdd(to + 1, b);
        atomicAdd(to + 2, c);
        atomicAdd(to + 3, d);
#endif
    }

    template <typename T> __device__ __forceinline__ T loadShared(std::uint32_t at)
    {
        return *reinterpret_cast<const T*>(m_shared + at);
    }
    template <typename T> __device__ __forceinline__ void storeShared(std::uint32_t at, T value)
    {
        *reinterpret_cast<T*>(m_shared + at) = value;
    }
    __device__ __forceinline__ void copyAsync(std::uint32_t at, const void* from, bool wanted)
    {
#if __CUDA_ARCH__ >= 800
        const int bytes = wanted ? 16 : 0; // of the source; the rest of the 16 is zeros
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(m_base + at), "l"(from), "r"(bytes)
                     : "memory");
#endif
    }
    __device__ __forceinline__ void commitCopies()
    {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
    }
    template <int pending> __device__ __forceinline__ void waitForCopies()
    {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
    }

    __device__ __forceinline__ void loadMatrices(std::uint32_t (&r)[4], std::uint32_t at)
    {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(m_base + at)
                     : "memory");
    }
    __device__ __forceinline__ void loadMatricesTransposed(std::uint32_t (&r)[4], std::uint32_t at)
    {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(m_base + at)
                     : "memory");
    }

    /// D += A · B, see fragments.h.
    template <typename Element>
    __device__ __forceinline__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1)
    {
#if __CUDA_ARCH__ >= 800
        if constexpr (SameType<Element, Bfloat>::value)
            asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
        else
            asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
        multiplyEight(d, a[0], a[1], b0);
        multiplyEight(d, a[2], a[3], b1);
#endif
    }

    /// D += A · B in a format of format_tags.h: 16 rows × 32 bytes times 32 bytes × 8 columns.
    template <typename Numbers>
    __device__ __forceinline__ void multiplyNumbers(typename Numbers::Sum (&d)[4], const std::uint32_t (&a)[4],
                                                    std::uint32_t b0, std::uint32_t b1)
    {
        if constexpr (Numbers::format == TensorFormat::Int8) {
#if __CUDA_ARCH__ >= 800
            asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
            multiplyEightBytes(d[0], d[1], a[0], b0);
            multiplyEightBytes(d[0], d[1], a[2], b1);
            multiplyEightBytes(d[2], d[3], a[1], b0);
            multiplyEightBytes(d[2], d[3], a[3], b1);
#endif
        }
#if __CUDA_ARCH__ >= 800
        if constexpr (Numbers::format == TensorFormat::Tf32)
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
#if __CUDA_ARCH__ >= 890 && CUDART_VERSION >= MEMSCAPE_CUDA_FP8
        if constexpr (Numbers::format == TensorFormat::E4M3)
            asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
        if constexpr (Numbers::format == TensorFormat::E5M2)
            asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
    }
    /// D (8 × 8) += A (8 × 4) · B (4 × 8): lane 4 i + j holds A[i][j], B[j][i], D[i][2 j] and D[i][2 j + 1].
    __device__ __forceinline__ void multiplyDoubles(double (&d)[2], double a, double b)
    {
#if __CUDA_ARCH__ >= 800
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(d[0]), "+d"(d[1])
            : "d"(a), "d"(b));
#endif
    }

    __device__ __forceinline__ float shuffleXor(float value, int distance)
    {
        return __shfl_xor_sync(0xffffffffU, value, distance);
    }
    /// Whether any lane of the warp says so.
    __device__ __forceinline__ bool anyInWarp(bool value)
    {
        return __any_sync(0xffffffffU, value ? 1 : 0) != 0;
    }
    __device__ __forceinline__ void syncThreads()
    {
        __syncthreads();
    }
    __device__ __forceinline__ void syncWarp()
    {
        __syncwarp();
    }

    /// Two elements in one register, the low half first.
    template <typename Element> __device__ __forceinline__ std::uint32_t pack(float low, float high)
    {
        if constexpr (SameType<Element, Bfloat>::value) {
            const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
            return *reinterpret_cast<const std::uint32_t*>(&both);
        } else {
            const __half2 both = __floats2half2_rn(low, high);
            return *reinterpret_cast<const std::uint32_t*>(&both);
        }
    }
    template <typename Element> __device__ __forceinline__ float widen(Element value)
    {
        if constexpr (SameType<Element, float>::value)
            return value;
        else if constexpr (SameType<Element, Bfloat>::value)
            return __uint_as_float(std::uint32_t(value.bits) << 16);
        else
            return __half2float(__ushort_as_half(value.bits));
    }
    template <typename Element> __device__ __forceinline__ Element narrow(float value)
    {
        if constexpr (SameType<Element, float>::value)
            return value;
        else if constexpr (SameType<Element, Bfloat>::value)
            return Bfloat{__bfloat16_as_ushort(__float2bfloat16_rn(value))};
        else
            return Half{__half_as_ushort(__float2half_rn(value))};
    }
    /// One instruction, where a > b ? a : b is a comparison and a choice: that one says otherwise what
    /// becomes of a NaN, and nvcc keeps to it.
    __device__ __forceinline__ float maximum(float a, float b)
    {
        return fmaxf(a, b);
    }
    __device__ __forceinline__ float exponential(float x)
    {
        return __expf(x);
    }
    __device__ __forceinline__ float powerOfTwo(float x)
    {
        float y;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
    }
    __device__ __forceinline__ float logarithm(float x)
    {
        return logf(x);
    }

private:
    __device__ __forceinline__ static void multiplyEight(float (&d)[4], std::uint32_t a0, std::uint32_t a1,
                                                         std::uint32_t b)
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a0), "r"(a1), "r"(b));
    }

    __device__ __forceinline__ static void multiplyEightBytes(std::int32_t& d0, std::int32_t& d1, std::uint32_t a,
                                                              std::uint32_t b)
    {
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(d0), "+r"(d1)
            : "r"(a), "r"(b));
    }

    char* m_shared;
    std::uint32_t m_base;
};

} // namespace memscape::cuda

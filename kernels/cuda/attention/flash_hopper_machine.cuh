// SPDX-License-Identifier: Apache-2.0
// What only Hopper can do, beside gpu_machine.cuh's instructions: barriers in shared memory that count
// arrivals and bytes, the copy engine, products of a warpgroup, registers that change hands, barriers
// for a part of the block. The tests have the same names on the host (tests/support/hopper_emulator.h).
// For sm_90a; addresses in shared memory are bytes from the block's start.
//
// The compiler does not know that a product reads its left side and writes its sums later: landed() states, after the
// wait, that they were in use until there and may have changed.
//
// Source: PTX ISA, "mbarrier", "cp.async.bulk.tensor", "wgmma", "setmaxnreg", "barrier".
#pragma once

#include "kernels/cuda/attention/flash_hopper_tiles.h"
#include "kernels/cuda/attention/gpu_machine.cuh"

#include <cuda.h>

namespace memscape::cuda {

// The operands of an instruction with 32 or 64 sums, four for every block of eight columns.
#define MEMSCAPE_SUM_NAMES_32                                                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define MEMSCAPE_SUM_NAMES_64                                                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                 \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define MEMSCAPE_FOUR_SUMS(b) "+f"(d[b][0]), "+f"(d[b][1]), "+f"(d[b][2]), "+f"(d[b][3])
#define MEMSCAPE_SUMS_16(b)                                                                                            \
    MEMSCAPE_FOUR_SUMS(b), MEMSCAPE_FOUR_SUMS(b + 1), MEMSCAPE_FOUR_SUMS(b + 2), MEMSCAPE_FOUR_SUMS(b + 3)
#define MEMSCAPE_SUMS_32 MEMSCAPE_SUMS_16(0), MEMSCAPE_SUMS_16(4)
#define MEMSCAPE_SUMS_64 MEMSCAPE_SUMS_32, MEMSCAPE_SUMS_16(8), MEMSCAPE_SUMS_16(12)

/// 64 × 128 += A · Bᵀ, both from shared memory, their rows along the depth; or = without `adds`.
#define MEMSCAPE_MULTIPLY_SHARED(type)                                                                                 \
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"                                                    \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" MEMSCAPE_SUM_NAMES_64               \
                 "}, %64, %65, adds, 1, 1, 0, 0;\n}"                                                                   \
                 : MEMSCAPE_SUMS_64                                                                                    \
                 : "l"(a), "l"(b), "r"(adds ? 1 : 0))
/// 64 × 64 or 64 × 128 += A · B, A in registers, B's rows across the depth.
#define MEMSCAPE_MULTIPLY_REGISTERS_64(type)                                                                           \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" MEMSCAPE_SUM_NAMES_32                \
                 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"                                                           \
                 : MEMSCAPE_SUMS_32                                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define MEMSCAPE_MULTIPLY_REGISTERS_128(type)                                                                          \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" MEMSCAPE_SUM_NAMES_64               \
                 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"                                                           \
                 : MEMSCAPE_SUMS_64                                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

class HopperMachine : public GpuMachine
{
public:
    /// `shared`: the block's dynamic shared memory, at a multiple of 1024 bytes.
    __device__ __forceinline__ explicit HopperMachine(char* shared)
        : GpuMachine(shared)
        , m_base(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)))
    { }

    // ---- barriers in shared memory

    __device__ __forceinline__ void makeBarrier(std::uint32_t at, int arrivals)
    {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(m_base + at), "r"(arrivals) : "memory");
    }
    /// Barriers that were made are there for the copy engine, too.
    __device__ __forceinline__ void publishBarriers()
    {
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    }
    __device__ __forceinline__ void arrive(std::uint32_t at)
    {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(m_base + at) : "memory");
    }
    __device__ __forceinline__ void arriveExpecting(std::uint32_t at, std::uint32_t bytes)
    {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(m_base + at), "r"(bytes)
                     : "memory");
    }
    /// Until the phase of that parity is complete.
    __device__ __forceinline__ void waitBarrier(std::uint32_t at, std::uint32_t parity)
    {
        asm volatile("{\n.reg .pred there;\nagain:\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
                     "@there bra done;\nbra again;\ndone:\n}" ::"r"(m_base + at),
                     "r"(parity)
                     : "memory");
    }
    /// A box from (column, row, plane) on; its bytes count at `there`.
    __device__ __forceinline__ void copyBox(std::uint32_t to, const CUtensorMap& map, int column, int row, int plane,
                                            std::uint32_t there)
    {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(m_base + to),
                     "l"(&map), "r"(column), "r"(row), "r"(plane), "r"(m_base + there)
                     : "memory");
    }

    // ---- a part of the block

    __device__ __forceinline__ void waitNamed(int barrier, int threads)
    {
        asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
    }
    __device__ __forceinline__ void arriveNamed(int barrier, int threads)
    {
        asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
    }
    template <int registers> __device__ __forceinline__ void giveRegisters()
    {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
    }
    template <int registers> __device__ __forceinline__ void takeRegisters()
    {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
    }

    // ---- products of a warpgroup

    __device__ __forceinline__ std::uint64_t matrix(std::uint32_t at, std::uint32_t leading, std::uint32_t stride) const
    {
        return matrixDescriptor(m_base + at, leading, stride);
    }
    /// Sums and left sides that were touched may be used by products again.
    __device__ __forceinline__ void fenceRegisters() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
    __device__ __forceinline__ void commitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
    template <int pending> __device__ __forceinline__ void waitForProducts()
    {
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
    }
    template <int blocks> __device__ __forceinline__ void landed(Sums<1, blocks>& sums)
    {
        MEMSCAPE_UNROLL
        for (int b = 0; b < blocks; ++b) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; ++r)
                asm volatile("" : "+f"(sums.at[0][b][r])::"memory");
        }
    }

    /// Left sides stay where they are until here.
    template <int steps> __device__ __forceinline__ void landed(std::uint32_t (&left)[steps][4])
    {
        MEMSCAPE_UNROLL
        for (int s = 0; s < steps; ++s) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; ++r)
                asm volatile("" : "+r"(left[s][r])::"memory");
        }
    }

    template <typename Element>
    __device__ __forceinline__ void multiplyShared(Sums<1, 16>& sums, std::uint64_t a, std::uint64_t b, bool adds)
    {
        float(&d)[16][4] = sums.at[0];
        if constexpr (SameType<Element, Bfloat>::value)
            MEMSCAPE_MULTIPLY_SHARED("bf16");
        else
            MEMSCAPE_MULTIPLY_SHARED("f16");
    }
    template <typename Element>
    __device__ __forceinline__ void multiplyRegisters(Sums<1, 8>& sums, const std::uint32_t (&a)[4], std::uint64_t b)
    {
        float(&d)[8][4] = sums.at[0];
        if constexpr (SameType<Element, Bfloat>::value)
            MEMSCAPE_MULTIPLY_REGISTERS_64("bf16");
        else
            MEMSCAPE_MULTIPLY_REGISTERS_64("f16");
    }
    template <typename Element>
    __device__ __forceinline__ void multiplyRegisters(Sums<1, 16>& sums, const std::uint32_t (&a)[4], std::uint64_t b)
    {
        float(&d)[16][4] = sums.at[0];
        if constexpr (SameType<Element, Bfloat>::value)
            MEMSCAPE_MULTIPLY_REGISTERS_128("bf16");
        else
            MEMSCAPE_MULTIPLY_REGISTERS_128("f16");
    }

private:
    std::uint32_t m_base;
};

} // namespace memscape::cuda

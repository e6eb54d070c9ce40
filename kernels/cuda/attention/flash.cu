// SPDX-License-Identifier: Apache-2.0
// Flash attention forward: the launchers. What and why is in flash_v1.h (the algorithm), flash_v2.h
// (tensor cores), flash_v3.h (swizzled shared memory, ldmatrix), flash_v4.h (asynchronous copies),
// flash_v5.h (powers of two, Q in registers; then 32 rows a warp) and flash_v7.h (O left alone while
// no maximum rises); the reference and the checks are kernels/programs/attention/attention_reference.h, for host
// and GPU alike. The kernels are templates over a machine, and the tests run the same code on the
// host.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash_v1.h"
#include "kernels/cuda/attention/flash_v2.h"
#include "kernels/cuda/attention/flash_v3.h"
#include "kernels/cuda/attention/flash_v4.h"
#include "kernels/cuda/attention/flash_v5.h"
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"

namespace memscape::cuda {

template <typename Element, int headDim>
__global__ void __launch_bounds__(FlashOne<headDim>::threads, 2) flash_1(AttentionSizes s, AttentionArrays arrays)
{
    GpuMachine m(dynamicShared());
    flash_v1<Element, headDim>(m, s, arrays);
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) flash_2(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasProducts<typename Tile::Element>) {
        GpuMachine m(dynamicShared());
        flash_v2<Tile>(m, s, arrays);
    }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) flash_3(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasProducts<typename Tile::Element>) {
        GpuMachine m(dynamicShared());
        flash_v3<Tile>(m, s, arrays);
    }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) flash_4(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        flash_v4<Tile>(m, s, arrays);
    }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) flash_5(AttentionSizes s, AttentionArrays arrays)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        flash_v5<Tile>(m, s, arrays);
    }
}

static_assert(blocksFit(FlashOne<64>::sharedBytes, 9, 5, 13));
static_assert(blocksFit(FlashOne<128>::sharedBytes, 4, 3, 6));
static_assert(blocksFit(flashSharedBytesV3<FlashThree<Half, 64>>, 6, 4, 9));
static_assert(blocksFit(flashSharedBytesV3<FlashThree<Half, 128>>, 3, 2, 4));
static_assert(blocksFit(flashSharedBytesV4<FlashFour<Half, 64>>, 4, 2, 5));
static_assert(blocksFit(flashSharedBytesV4<FlashFour<Half, 128>>, 2, 1, 2));
static_assert(blocksFit(flashSharedBytesV5<FlashFive<Half, 64>>, 4, 3, 6));
static_assert(blocksFit(flashSharedBytesV5<FlashFive<Half, 128>>, 2, 1, 3));

template <typename Element, int headDim>
static cudaError_t launchTensor(int version, const AttentionSizes& s, const AttentionArrays& arrays,
                                cudaStream_t stream)
{
    using Plain = FlashTwo<Element, headDim>;
    using Tile = FlashThree<Element, headDim>;
    switch (version) {
    case 2: return launchRows<Plain>(flash_2<Plain>, flashSharedBytesV2<Plain>, s, arrays, stream);
    case 3: return launchRows<Tile>(flash_3<Tile>, flashSharedBytesV3<Tile>, s, arrays, stream);
    case 4: return launchRows<Tile>(flash_4<Tile>, flashSharedBytesV4<Tile>, s, arrays, stream);
    case 5: return launchRows<Tile>(flash_5<Tile>, flashSharedBytesV5<Tile>, s, arrays, stream);
    default: return cudaErrorInvalidValue;
    }
}

template <int headDim> static cudaError_t launchHeadDim(const FlashLaunch& w, cudaStream_t stream)
{
    using One = FlashOne<headDim>;
    if (w.version == 1) {
        switch (w.format) {
        case ElementFormat::Float32:
            return launchRows<One>(flash_1<float, headDim>, One::sharedBytes, w.sizes, w.arrays, stream);
        case ElementFormat::Float16:
            return launchRows<One>(flash_1<Half, headDim>, One::sharedBytes, w.sizes, w.arrays, stream);
        case ElementFormat::BFloat16:
            return launchRows<One>(flash_1<Bfloat, headDim>, One::sharedBytes, w.sizes, w.arrays, stream);
        }
    }
    if (w.format == ElementFormat::Float16)
        return launchTensor<Half, headDim>(w.version, w.sizes, w.arrays, stream);
    if (w.format == ElementFormat::BFloat16)
        return launchTensor<Bfloat, headDim>(w.version, w.sizes, w.arrays, stream);
    return cudaErrorInvalidValue;
}

#ifndef MEMSCAPE_SM90A
cudaError_t launchFlashHopper(const FlashLaunch&, cudaStream_t)
{
    return cudaErrorNoKernelImageForDevice;
}
#endif

cudaError_t launchFlash(const FlashLaunch& w, cudaStream_t stream)
{
    if (w.version == 6 || w.version == 7 || w.version == 9)
        return launchFlashWide(w, stream);
    if (w.version == 8)
        return launchFlashHopper(w, stream);
    if (w.sizes.headDim == 64)
        return launchHeadDim<64>(w, stream);
    return w.sizes.headDim == 128 ? launchHeadDim<128>(w, stream) : cudaErrorInvalidValue;
}

} // namespace memscape::cuda

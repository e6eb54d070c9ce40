// SPDX-License-Identifier: Apache-2.0
// The launchers of format_tiles.h.
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/precision/format_tiles.h"

namespace memscape::cuda {

// ---- kernels ----------------------------------------------------------------------------------

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890 || CUDART_VERSION < MEMSCAPE_CUDA_FP8
constexpr bool hasFp8 = false;
#else
constexpr bool hasFp8 = true;
#endif
/// Whether this pass of the compiler knows the format's products; else the kernel is empty, and
/// ownProduct() (format_product.cpp) keeps it away from such a GPU.
template <typename Numbers> constexpr bool hasNumbers = hasFp8;
template <> inline constexpr bool hasNumbers<Int8Numbers> = true;
template <> inline constexpr bool hasNumbers<Tf32Numbers> = hasAsyncCopies;

/// As launched; a kernel's pass of the compiler knows whether copies are asynchronous.
template <typename Numbers> using LaunchedTile = FormatTile<Numbers, true>;

template <typename Numbers, bool isAligned>
__global__ void __launch_bounds__(LaunchedTile<Numbers>::threads) formatProduct_1(FormatArguments w)
{
    if constexpr (hasNumbers<Numbers>) {
        GpuMachine m(dynamicShared());
        formatProduct<FormatTile<Numbers, hasAsyncCopies>, isAligned>(m, w);
    }
}

template <bool isAligned> __global__ void __launch_bounds__(DoubleTile::threads) doubleProduct_1(FormatArguments w)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        doubleProduct<isAligned>(m, w);
    }
}

// Two blocks on a multiprocessor hide each other's barriers. With 100 KB there is room for one in TF32 and FP64.
constexpr int byteShared = LaunchedTile<Int8Numbers>::sharedBytes;
static_assert(byteShared == LaunchedTile<E4M3Numbers>::sharedBytes
                  && byteShared == LaunchedTile<E5M2Numbers>::sharedBytes
                  && byteShared >= FormatTile<Int8Numbers, false>::sharedBytes,
              "one size serves all formats of a byte, and Turing's one stage");
static_assert(twoBlocksFit(byteShared, 164) && twoBlocksFit(byteShared, 100) && twoBlocksFit(byteShared, 228),
              "8 bits");
constexpr int wordShared = LaunchedTile<Tf32Numbers>::sharedBytes;
static_assert(twoBlocksFit(wordShared, 164) && twoBlocksFit(wordShared, 228) && wordShared <= mostShared, "TF32");
static_assert(twoBlocksFit(DoubleTile::sharedBytes, 164) && twoBlocksFit(DoubleTile::sharedBytes, 228)
                  && DoubleTile::sharedBytes <= mostShared,
              "FP64");

// ---- launchers --------------------------------------------------------------------------------

static cudaError_t launchBlocksOf(void (*kernel)(FormatArguments), const FormatArguments& w, int side, int threads,
                                  int sharedBytes, cudaStream_t stream)
{
    const std::int64_t blocks = std::int64_t(over(w.rows, side)) * over(w.columns, side);
    if (blocks > 0x7fffffff)
        return cudaErrorInvalidConfiguration;
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sharedBytes);
    if (error != cudaSuccess)
        return error;
    kernel<<<unsigned(blocks), unsigned(threads), std::size_t(sharedBytes), stream>>>(w);
    return cudaGetLastError();
}

template <typename Numbers> static cudaError_t launchNumbers(const FormatArguments& w, cudaStream_t stream)
{
    using Tile = LaunchedTile<Numbers>;
    return launchBlocksOf(w.isAligned ? formatProduct_1<Numbers, true> : formatProduct_1<Numbers, false>, w, Tile::side,
                          Tile::threads, Tile::sharedBytes, stream);
}

cudaError_t launchFormatProduct(const FormatProductLaunch& w, cudaStream_t stream)
{
    if (w.rows < 1 || w.columns < 1 || w.inner < 1)
        return cudaErrorInvalidValue;
    const FormatArguments arguments = formatArguments(w);
    switch (w.format) {
    case TensorFormat::Fp64:
        return launchBlocksOf(arguments.isAligned ? doubleProduct_1<true> : doubleProduct_1<false>, arguments,
                              DoubleTile::side, DoubleTile::threads, DoubleTile::sharedBytes, stream);
    case TensorFormat::Tf32: return launchNumbers<Tf32Numbers>(arguments, stream);
    case TensorFormat::E4M3: return launchNumbers<E4M3Numbers>(arguments, stream);
    case TensorFormat::E5M2: return launchNumbers<E5M2Numbers>(arguments, stream);
    case TensorFormat::Int8: return launchNumbers<Int8Numbers>(arguments, stream);
    }
    return cudaErrorInvalidValue;
}

} // namespace memscape::cuda

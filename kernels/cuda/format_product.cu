// SPDX-License-Identifier: Apache-2.0
// The launchers of format_tiles.h.
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/format_tiles.h"
#include "kernels/cuda/kernels.h"

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

template <typename Tile> __global__ void __launch_bounds__(Tile::threads) formatProduct_1(FormatArguments w)
{
    if constexpr (hasNumbers<typename Tile::Numbers>) {
        GpuMachine m(dynamicShared());
        formatProduct<Tile, hasAsyncCopies>(m, w);
    }
}

__global__ void __launch_bounds__(DoubleTile::threads) doubleProduct_1(FormatArguments w)
{
    if constexpr (hasAsyncCopies) {
        GpuMachine m(dynamicShared());
        doubleProduct(m, w);
    }
}

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
    using Tile = FormatTile<Numbers>;
    return launchBlocksOf(formatProduct_1<Tile>, w, Tile::side, Tile::threads, 2 * Tile::stageBytes, stream);
}

cudaError_t launchFormatProduct(const FormatProductLaunch& w, cudaStream_t stream)
{
    if (w.rows < 1 || w.columns < 1 || w.inner < 1)
        return cudaErrorInvalidValue;
    const FormatArguments arguments = formatArguments(w);
    switch (w.format) {
    case TensorFormat::Fp64:
        return launchBlocksOf(doubleProduct_1, arguments, DoubleTile::side, DoubleTile::threads,
                              2 * DoubleTile::stageBytes, stream);
    case TensorFormat::Tf32:
        return launchNumbers<Tf32Numbers>(arguments, stream);
    case TensorFormat::E4M3:
        return launchNumbers<E4M3Numbers>(arguments, stream);
    case TensorFormat::E5M2:
        return launchNumbers<E5M2Numbers>(arguments, stream);
    case TensorFormat::Int8:
        return launchNumbers<Int8Numbers>(arguments, stream);
    }
    return cudaErrorInvalidValue;
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// Standard attention: the launchers of standard.h (softmax and its gradient) and of tensor_product.h
// (products of halves). Products of floats are product.cu's, all of them may be cuBLASLt's.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/standard.h"
#include "kernels/cuda/attention/tensor_product.h"

namespace memscape::cuda {

// ---- kernels ----------------------------------------------------------------------------------

template <typename Element, bool isGradient>
__global__ void __launch_bounds__(softmaxThreads) softmax_1(AttentionSizes s, SoftmaxArguments w)
{
    GpuMachine m(dynamicShared());
    standardSoftmax<Element, isGradient>(m, s, w);
}

constexpr int productThreads = 128;
/// Of either way to copy: a launcher does not know which the GPU has.
constexpr int productSharedBytes = ProductTile<Half, false, false, true>::sharedBytes;
static_assert(productSharedBytes >= ProductTile<Half, false, false, false>::sharedBytes, "Turing's one stage");
static_assert(twoBlocksFit(productSharedBytes, 164) && twoBlocksFit(productSharedBytes, 100)
                  && twoBlocksFit(productSharedBytes, 228),
              "two blocks hide each other's barriers on every GPU");

template <typename Element, bool aTransposed, bool bTransposed, bool isAligned>
__global__ void __launch_bounds__(productThreads) tensorProduct_1(TensorProductArguments w)
{
    if constexpr (hasProducts<Element>) {
        using Tile = ProductTile<Element, aTransposed, bTransposed, hasAsyncCopies>;
        static_assert(Tile::threads == productThreads, "as it is launched");
        GpuMachine m(dynamicShared());
        tensorProduct<Tile, isAligned>(m, w);
    }
}

template <typename Element>
__global__ void attentionInput_1(Element* to, AttentionTensor tensor, AttentionInputs inputs, std::uint64_t count,
                                 std::uint64_t headDim)
{
    GpuMachine m(nullptr);
    const std::uint64_t step = std::uint64_t(gridDim.x) * blockDim.x;
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        to[i] = m.template narrow<Element>(attentionInput(tensor, i, headDim, inputs));
}

// ---- launchers --------------------------------------------------------------------------------

template <typename Element>
static cudaError_t launchSoftmaxOf(const SoftmaxLaunch& w, unsigned rows, cudaStream_t stream)
{
    const SoftmaxArguments arguments{w.scores, w.gradient, w.result, w.sizes.scale};
    if (w.gradient != nullptr)
        softmax_1<Element, true><<<rows, softmaxThreads, softmaxSharedBytes, stream>>>(w.sizes, arguments);
    else
        softmax_1<Element, false><<<rows, softmaxThreads, softmaxSharedBytes, stream>>>(w.sizes, arguments);
    return cudaGetLastError();
}

cudaError_t launchSoftmax(const SoftmaxLaunch& w, cudaStream_t stream)
{
    const std::int64_t rows = std::int64_t(w.sizes.batch) * w.sizes.heads * w.sizes.queries;
    if (rows < 1 || rows > 0x7fffffff)
        return cudaErrorInvalidConfiguration;
    switch (w.format) {
    case ElementFormat::Float32: return launchSoftmaxOf<float>(w, unsigned(rows), stream);
    case ElementFormat::Float16: return launchSoftmaxOf<Half>(w, unsigned(rows), stream);
    case ElementFormat::BFloat16: return launchSoftmaxOf<Bfloat>(w, unsigned(rows), stream);
    }
    return cudaErrorInvalidValue;
}

cudaError_t launchAttentionInput(void* to, ElementFormat format, AttentionTensor tensor, AttentionInputs inputs,
                                 std::uint64_t count, std::uint64_t headDim, cudaStream_t stream)
{
    constexpr int blocks = 1024, threads = 256;
    switch (format) {
    case ElementFormat::Float32:
        attentionInput_1<<<blocks, threads, 0, stream>>>(static_cast<float*>(to), tensor, inputs, count, headDim);
        break;
    case ElementFormat::Float16:
        attentionInput_1<<<blocks, threads, 0, stream>>>(static_cast<Half*>(to), tensor, inputs, count, headDim);
        break;
    case ElementFormat::BFloat16:
        attentionInput_1<<<blocks, threads, 0, stream>>>(static_cast<Bfloat*>(to), tensor, inputs, count, headDim);
        break;
    }
    return cudaGetLastError();
}

static cudaError_t launchTiles(void (*kernel)(TensorProductArguments), const TensorProductArguments& w,
                               cudaStream_t stream)
{
    constexpr int side = ProductTile<Half, false, false, true>::side;
    const std::int64_t blocks = std::int64_t(over(w.sizes.rows, side)) * over(w.sizes.columns, side);
    if (blocks > 0x7fffffff || w.sizes.batch > mostBlocksInY)
        return cudaErrorInvalidConfiguration;
    const dim3 grid{unsigned(blocks), unsigned(w.sizes.batch), 1};
    static_assert(productSharedBytes <= sharedUnasked, "else it must be asked for");
    kernel<<<grid, productThreads, productSharedBytes, stream>>>(w);
    return cudaGetLastError();
}

template <typename Element, bool aTransposed, bool bTransposed>
static cudaError_t launchLying(const TensorProductArguments& w, bool isAligned, cudaStream_t stream)
{
    return launchTiles(isAligned ? tensorProduct_1<Element, aTransposed, bTransposed, true>
                                 : tensorProduct_1<Element, aTransposed, bTransposed, false>,
                       w, stream);
}

template <typename Element>
static cudaError_t launchElement(const TensorProductArguments& w, bool aTransposed, bool bTransposed, bool isAligned,
                                 cudaStream_t stream)
{
    if (aTransposed && bTransposed)
        return launchLying<Element, true, true>(w, isAligned, stream);
    if (aTransposed)
        return launchLying<Element, true, false>(w, isAligned, stream);
    return bTransposed ? launchLying<Element, false, true>(w, isAligned, stream)
                       : launchLying<Element, false, false>(w, isAligned, stream);
}

static bool isAligned(const void* data)
{
    return reinterpret_cast<std::uintptr_t>(data) % chunkBytes == 0;
}

cudaError_t launchTensorProduct(const TensorProductLaunch& w, cudaStream_t stream)
{
    TensorProductArguments arguments;
    arguments.sizes = {w.rows, w.columns, w.inner, w.batch};
    arguments.a = w.a;
    arguments.b = w.b;
    arguments.c = w.c;
    arguments.aStride = w.aTransposed ? w.rows : w.inner;
    arguments.bStride = w.bTransposed ? w.inner : w.columns;
    arguments.cStride = w.columns;
    arguments.aBatch = std::int64_t(w.rows) * w.inner;
    arguments.bBatch = std::int64_t(w.inner) * w.columns;
    arguments.cBatch = std::int64_t(w.rows) * w.columns;
    arguments.factor = w.factor;
    const bool areRowsAligned =
        alignedForChunks(arguments, w.aTransposed, w.bTransposed) && isAligned(w.a) && isAligned(w.b);
    if (w.format == ElementFormat::Float16)
        return launchElement<Half>(arguments, w.aTransposed, w.bTransposed, areRowsAligned, stream);
    return w.format == ElementFormat::BFloat16
        ? launchElement<Bfloat>(arguments, w.aTransposed, w.bTransposed, areRowsAligned, stream)
        : cudaErrorInvalidValue;
}

} // namespace memscape::cuda

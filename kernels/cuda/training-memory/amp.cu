// SPDX-License-Identifier: Apache-2.0
// The passes of a training step of `precision` beside its products: casts, bias and ReLU in one, cross
// entropy, the bias's gradients, unscaling with the look for infinities, AdamW over all arrays in one
// launch, and the histogram of gradients. What a thread does is in amp_threads.h; a sum runs in an order
// that the sizes decide, so the same sizes give the same bits (but for the histogram's, whose integers
// give the same in any order). Left out: biases added and gradients summed in the product's own kernel,
// as cuBLASLt's epilogues can.
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/training-memory/amp_threads.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

namespace memscape::cuda {

// ---- formats ----------------------------------------------------------------------------------

struct Floats
{
    using Word = float;
    __device__ static float widen(float word) { return word; }
    __device__ static float narrow(float value) { return value; }
    __device__ static void load(const float* from, float (&v)[4])
    {
        const float4 four = *reinterpret_cast<const float4*>(from);
        v[0] = four.x;
        v[1] = four.y;
        v[2] = four.z;
        v[3] = four.w;
    }
    __device__ static void store(float* to, const float (&v)[4])
    {
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
    }
};

/// Four words of 16 bits are one load of 8 bytes.
template <typename Conversions> struct ShortNumbers
{
    using Word = std::uint16_t;
    __device__ static float widen(std::uint16_t word) { return Conversions::widen(word); }
    __device__ static std::uint16_t narrow(float value) { return Conversions::narrow(value); }
    __device__ static void load(const std::uint16_t* from, float (&v)[4])
    {
        const ushort4 four = *reinterpret_cast<const ushort4*>(from);
        v[0] = widen(four.x);
        v[1] = widen(four.y);
        v[2] = widen(four.z);
        v[3] = widen(four.w);
    }
    __device__ static void store(std::uint16_t* to, const float (&v)[4])
    {
        *reinterpret_cast<ushort4*>(to) = make_ushort4(narrow(v[0]), narrow(v[1]), narrow(v[2]), narrow(v[3]));
    }
};
struct HalfConversions
{
    __device__ static float widen(std::uint16_t word) { return __half2float(__ushort_as_half(word)); }
    __device__ static std::uint16_t narrow(float value) { return __half_as_ushort(__float2half_rn(value)); }
};
struct BfloatConversions
{
    __device__ static float widen(std::uint16_t word) { return __bfloat162float(__ushort_as_bfloat16(word)); }
    __device__ static std::uint16_t narrow(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
};
using Halves = ShortNumbers<HalfConversions>;
using Bfloats = ShortNumbers<BfloatConversions>;

// ---- kernels ----------------------------------------------------------------------------------

__device__ __forceinline__ GridPlace placeInGrid()
{
    return {blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x, gridDim.x * std::uint64_t(blockDim.x)};
}

__global__ void directions_v1(float* directions, std::uint64_t inputs)
{
    const GridPlace place = placeInGrid();
    for (std::uint64_t i = place.first; i < inputs * ampClasses; i += place.all)
        directions[i] = ampDirection(inputs, i / ampClasses, static_cast<int>(i % ampClasses));
}

__global__ void batch_v1(std::uint64_t batch, std::uint64_t rows, std::uint64_t inputs, const float* directions,
                         float* x, std::int64_t* labels)
{
    const GridPlace place = placeInGrid();
    for (std::uint64_t row = place.first; row < rows; row += place.all)
        labels[row] = ampExample(batch, row, inputs, directions, x + row * inputs);
}

template <typename From, typename To>
__global__ void convert_v1(const typename From::Word* from, typename To::Word* to, std::uint64_t count)
{
    convertThread<From, To>(placeInGrid(), from, to, count);
}

template <typename Numbers, bool active>
__global__ void bias_v1(const typename Numbers::Word* bias, const typename Numbers::Word* sums,
                        typename Numbers::Word* to, std::uint64_t count, std::uint64_t width)
{
    biasThread<Numbers, active>(placeInGrid(), bias, sums, to, count, width);
}

template <typename Numbers>
__global__ void reluBackward_v1(const typename Numbers::Word* activation, const typename Numbers::Word* gradient,
                                typename Numbers::Word* to, std::uint64_t count)
{
    reluBackwardThread<Numbers>(placeInGrid(), activation, gradient, to, count);
}

template <typename Numbers>
__global__ void sumSlice_v1(const typename Numbers::Word* values, std::uint64_t rows, std::uint64_t width,
                            float* partial)
{
    __shared__ SumParts parts;
    const int x = int(threadIdx.x), y = int(threadIdx.y);
    sumSliceRows<Numbers>(x, y, blockIdx.x, blockIdx.y, values, rows, width, parts);
    __syncthreads();
    if (y == 0)
        sumSlice(x, blockIdx.x, blockIdx.y, width, parts, partial);
}

template <typename Numbers>
__global__ void sumSlices_v1(const float* partial, std::uint64_t slices, std::uint64_t width,
                             typename Numbers::Word* sums)
{
    sumSlicesThread<Numbers>(placeInGrid(), partial, slices, width, sums);
}

template <typename Numbers>
__global__ void logSoftmax_v1(const typename Numbers::Word* logits, typename Numbers::Word* logProbabilities,
                              std::uint64_t rows)
{
    logSoftmaxThread<Numbers>(placeInGrid(), logits, logProbabilities, rows);
}

__global__ void meanLoss_v1(const float* logProbabilities, const std::int64_t* labels, std::uint64_t rows, float* loss,
                            double* mean)
{
    __shared__ double sums[lossThreads];
    meanLossRows(int(threadIdx.x), logProbabilities, labels, rows, sums);
    __syncthreads();
    if (threadIdx.x == 0)
        meanLossOf(sums, rows, loss, mean);
}

template <typename Numbers>
__global__ void lossBackward_v1(const typename Numbers::Word* logProbabilities, const std::int64_t* labels,
                                typename Numbers::Word* gradient, std::uint64_t count, float factor)
{
    lossBackwardThread<Numbers>(placeInGrid(), logProbabilities, labels, gradient, count, factor);
}

/// Row y of the grid: array y.
__global__ void unscale_v1(AmpTensors tensors, float factor, int* infinite)
{
    const bool finite = unscaleThread<Floats>(placeInGrid(), tensors, int(blockIdx.y), factor);
    if (__syncthreads_or(!finite) != 0 && threadIdx.x == 0)
        atomicExch(infinite, 1);
}

__global__ void adam_v1(AmpTensors tensors, AmpAdamStep step)
{
    adamThread<Floats>(placeInGrid(), tensors, int(blockIdx.y), step);
}

constexpr int countThreads = 256;

template <typename Numbers>
__global__ void count_v1(const typename Numbers::Word* gradients, std::uint64_t count, double scale, AmpCounts* counts)
{
    __shared__ unsigned bars[ampBars + 1];
    __shared__ AmpCountPart parts[countThreads];
    for (int i = int(threadIdx.x); i <= ampBars; i += countThreads)
        bars[i] = 0;
    __syncthreads();
    parts[threadIdx.x] =
        countThread<Numbers>(placeInGrid(), gradients, count, scale, [&](int bar) { atomicAdd(bars + bar, 1U); });
    __syncthreads();
    for (int i = int(threadIdx.x); i <= ampBars; i += countThreads) {
        if (bars[i] != 0)
            atomicAdd(counts->bars + i, static_cast<unsigned long long>(bars[i]));
    }
    if (threadIdx.x != 0)
        return;
    AmpCountPart all{0, 0, 0};
    for (const AmpCountPart& part : parts) {
        all.sum += part.sum;
        all.squares += part.squares;
        all.largest = part.largest > all.largest ? part.largest : all.largest;
    }
    counts->parts[blockIdx.x] = all;
}

// ---- launchers --------------------------------------------------------------------------------

static unsigned gridFor(std::uint64_t threads)
{
    return static_cast<unsigned>(std::clamp<std::uint64_t>((threads + 255) / 256, 1, 4096));
}
static unsigned gridForFours(std::uint64_t count)
{
    return gridFor((count + 3) / 4);
}

/// visit(Numbers{}) for the format.
template <typename Visit> static cudaError_t inFormat(ElementFormat format, const Visit& visit)
{
    switch (format) {
    case ElementFormat::Float32: visit(Floats{}); break;
    case ElementFormat::Float16: visit(Halves{}); break;
    case ElementFormat::BFloat16: visit(Bfloats{}); break;
    }
    return cudaGetLastError();
}
template <typename Numbers> static auto* wordsOf(Numbers, void* data)
{
    return static_cast<typename Numbers::Word*>(data);
}
template <typename Numbers> static const auto* wordsOf(Numbers, const void* data)
{
    return static_cast<const typename Numbers::Word*>(data);
}

cudaError_t launchAmpDirections(float* directions, std::uint64_t inputs, cudaStream_t stream)
{
    directions_v1<<<gridFor(inputs * ampClasses), 256, 0, stream>>>(directions, inputs);
    return cudaGetLastError();
}

cudaError_t launchAmpBatch(std::uint64_t batch, std::uint64_t rows, std::uint64_t inputs, const float* directions,
                           float* x, std::int64_t* labels, cudaStream_t stream)
{
    // Rows are few and long: small blocks spread them over the multiprocessors.
    const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>((rows + 31) / 32, 1, 65535));
    batch_v1<<<blocks, 32, 0, stream>>>(batch, rows, inputs, directions, x, labels);
    return cudaGetLastError();
}

cudaError_t launchAmpConvert(const AmpValues& from, const AmpValues& to, cudaStream_t stream)
{
    const unsigned grid = gridForFours(from.count);
    const auto* floats = static_cast<const float*>(from.data);
    if (from.format == ElementFormat::Float32)
        return inFormat(to.format, [&](auto numbers) {
            convert_v1<Floats, decltype(numbers)>
                <<<grid, 256, 0, stream>>>(floats, wordsOf(numbers, to.data), from.count);
        });
    if (to.format != ElementFormat::Float32)
        return cudaErrorInvalidValue;
    return inFormat(from.format, [&](auto numbers) {
        const void* words = from.data;
        convert_v1<decltype(numbers), Floats>
            <<<grid, 256, 0, stream>>>(wordsOf(numbers, words), static_cast<float*>(to.data), from.count);
    });
}

cudaError_t launchAmpBias(const AmpValues& bias, const AmpValues& sums, void* to, bool active, cudaStream_t stream)
{
    const unsigned grid = gridForFours(sums.count);
    return inFormat(sums.format, [&](auto numbers) {
        using Numbers = decltype(numbers);
        const auto* biases = wordsOf(numbers, bias.data);
        const auto* from = wordsOf(numbers, sums.data);
        auto* result = wordsOf(numbers, to);
        if (active)
            bias_v1<Numbers, true><<<grid, 256, 0, stream>>>(biases, from, result, sums.count, bias.count);
        else
            bias_v1<Numbers, false><<<grid, 256, 0, stream>>>(biases, from, result, sums.count, bias.count);
    });
}

cudaError_t launchAmpReluBackward(const AmpValues& activation, const void* gradient, void* to, cudaStream_t stream)
{
    return inFormat(activation.format, [&](auto numbers) {
        reluBackward_v1<decltype(numbers)><<<gridForFours(activation.count), 256, 0, stream>>>(
            wordsOf(numbers, activation.data), wordsOf(numbers, gradient), wordsOf(numbers, to), activation.count);
    });
}

cudaError_t launchAmpSumRows(const AmpValues& gradient, const AmpValues& bias, float* partial, cudaStream_t stream)
{
    const std::uint64_t width = bias.count, rows = gradient.count / width, slices = slicesOf(rows);
    const dim3 grid(static_cast<unsigned>((width + sumColumns - 1) / sumColumns), static_cast<unsigned>(slices));
    return inFormat(gradient.format, [&](auto numbers) {
        using Numbers = decltype(numbers);
        sumSlice_v1<Numbers><<<grid, dim3(sumColumns, sumRowsAtOnce), 0, stream>>>(wordsOf(numbers, gradient.data),
                                                                                   rows, width, partial);
        sumSlices_v1<Numbers><<<gridFor(width), 256, 0, stream>>>(partial, slices, width, wordsOf(numbers, bias.data));
    });
}

cudaError_t launchAmpLogSoftmax(const AmpValues& logits, void* logProbabilities, cudaStream_t stream)
{
    const std::uint64_t rows = logits.count / ampClasses;
    return inFormat(logits.format, [&](auto numbers) {
        logSoftmax_v1<decltype(numbers)><<<gridFor(rows), 256, 0, stream>>>(wordsOf(numbers, logits.data),
                                                                            wordsOf(numbers, logProbabilities), rows);
    });
}

cudaError_t launchAmpMeanLoss(const float* logProbabilities, const std::int64_t* labels, std::uint64_t rows,
                              float* loss, double* mean, cudaStream_t stream)
{
    meanLoss_v1<<<1, lossThreads, 0, stream>>>(logProbabilities, labels, rows, loss, mean);
    return cudaGetLastError();
}

cudaError_t launchAmpLossBackward(const AmpValues& logProbabilities, const std::int64_t* labels, void* gradient,
                                  float factor, cudaStream_t stream)
{
    const std::uint64_t count = logProbabilities.count;
    return inFormat(logProbabilities.format, [&](auto numbers) {
        lossBackward_v1<decltype(numbers)><<<gridForFours(count), 256, 0, stream>>>(
            wordsOf(numbers, logProbabilities.data), labels, wordsOf(numbers, gradient), count, factor);
    });
}

/// A row of blocks for every array, as long as the largest one wants.
static dim3 gridForTensors(const AmpTensors& tensors)
{
    std::uint64_t most = 0;
    for (int i = 0; i < tensors.count; ++i)
        most = std::max(most, tensors.elements[i]);
    return dim3(std::min(gridForFours(most), 1024U), static_cast<unsigned>(tensors.count));
}

cudaError_t launchAmpUnscale(const AmpTensors& tensors, float factor, int* infinite, cudaStream_t stream)
{
    unscale_v1<<<gridForTensors(tensors), 256, 0, stream>>>(tensors, factor, infinite);
    return cudaGetLastError();
}

cudaError_t launchAmpAdam(const AmpTensors& tensors, const AmpAdamStep& step, cudaStream_t stream)
{
    adam_v1<<<gridForTensors(tensors), 256, 0, stream>>>(tensors, step);
    return cudaGetLastError();
}

cudaError_t launchAmpCount(const AmpValues& gradients, double scale, AmpCounts* counts, cudaStream_t stream)
{
    return inFormat(gradients.format, [&](auto numbers) {
        count_v1<decltype(numbers)><<<ampCountBlocks, countThreads, 0, stream>>>(wordsOf(numbers, gradients.data),
                                                                                 gradients.count, scale, counts);
    });
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// The passes of a training step on the GPU of the tests' own making: every thread of every grid runs, one
// after the other, what it would run on a GPU (kernels/cuda/training-memory/amp_threads.h), in the grids that amp.cu
// launches but for their width. Formats by the definitions of half.h; a load of four numbers that is not
// aligned to them is an illegal address, as on a GPU.
#include "kernels/cuda/training-memory/amp_threads.h"
#include "kernels/programs/common/half.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace memscape::cuda {

namespace {

template <typename TheWord, typename Conversions> struct Numbers
{
    using Word = TheWord;
    static float widen(Word word) { return Conversions::widen(word); }
    static Word narrow(float value) { return Conversions::narrow(value); }
    static void load(const Word* from, float (&v)[4])
    {
        checkAligned(from);
        for (int j = 0; j < 4; ++j)
            v[j] = widen(from[j]);
    }
    static void store(Word* to, const float (&v)[4])
    {
        checkAligned(to);
        for (int j = 0; j < 4; ++j)
            to[j] = narrow(v[j]);
    }
    static void checkAligned(const Word* at)
    {
        if (reinterpret_cast<std::uintptr_t>(at) % (4 * sizeof(Word)) == 0)
            return;
        std::fprintf(stderr, "fake GPU: misaligned address\n");
        std::abort();
    }
};
struct FloatConversions
{
    static float widen(float word) { return word; }
    static float narrow(float value) { return value; }
};
struct HalfConversions
{
    static float widen(std::uint16_t word) { return float16ToFloat(word); }
    static std::uint16_t narrow(float value) { return floatToFloat16(value); }
};
struct BfloatConversions
{
    static float widen(std::uint16_t word) { return bfloat16ToFloat(word); }
    static std::uint16_t narrow(float value) { return floatToBfloat16(value); }
};
using Floats = Numbers<float, FloatConversions>;
using Halves = Numbers<std::uint16_t, HalfConversions>;
using Bfloats = Numbers<std::uint16_t, BfloatConversions>;

template <typename Visit> void inFormat(ElementFormat format, const Visit& visit)
{
    if (format == ElementFormat::Float32)
        visit(Floats());
    else if (format == ElementFormat::Float16)
        visit(Halves());
    else
        visit(Bfloats());
}
template <typename Of> auto* wordsOf(Of, void* data)
{
    return static_cast<typename Of::Word*>(data);
}
template <typename Of> const auto* wordsOf(Of, const void* data)
{
    return static_cast<const typename Of::Word*>(data);
}

/// body(place) for every thread of a grid of `threads`.
template <typename Body> void overThreads(std::uint64_t threads, const Body& body)
{
    for (std::uint64_t thread = 0; thread < threads && fakeError() == cudaSuccess; ++thread)
        body(GridPlace{thread, threads});
}
constexpr std::uint64_t threadsOfGrid = 768; ///< fewer than elements, so that threads come back

cudaError_t passOver(const char* kernel, std::uint64_t variant, std::uint64_t bytes)
{
    return fakeLaunch(kernel, variant, double(bytes) / fakeGpu().streamBytesPerSecond);
}
std::uint64_t bytesOf(const AmpValues& values)
{
    return values.count * (values.format == ElementFormat::Float32 ? 4 : 2);
}

} // namespace

cudaError_t launchAmpDirections(float* directions, std::uint64_t inputs, cudaStream_t)
{
    for (std::uint64_t i = 0; i < inputs * ampClasses; ++i)
        directions[i] = ampDirection(inputs, i / ampClasses, int(i % ampClasses));
    return passOver("directions", 0, 4 * inputs * ampClasses);
}

cudaError_t launchAmpBatch(std::uint64_t batch, std::uint64_t rows, std::uint64_t inputs, const float* directions,
                           float* x, std::int64_t* labels, cudaStream_t)
{
    for (std::uint64_t row = 0; row < rows && fakeError() == cudaSuccess; ++row)
        labels[row] = ampExample(batch, row, inputs, directions, x + row * inputs);
    return passOver("examples", 0, 4 * rows * inputs);
}

cudaError_t launchAmpConvert(const AmpValues& from, const AmpValues& to, cudaStream_t)
{
    if (from.format == ElementFormat::Float32)
        inFormat(to.format, [&](auto numbers) {
            overThreads(threadsOfGrid, [&](const GridPlace& place) {
                convertThread<Floats, decltype(numbers)>(place, static_cast<const float*>(from.data),
                                                         wordsOf(numbers, to.data), from.count);
            });
        });
    else if (to.format != ElementFormat::Float32)
        return cudaErrorInvalidValue;
    else
        inFormat(from.format, [&](auto numbers) {
            const void* words = from.data;
            overThreads(threadsOfGrid, [&](const GridPlace& place) {
                convertThread<decltype(numbers), Floats>(place, wordsOf(numbers, words), static_cast<float*>(to.data),
                                                         from.count);
            });
        });
    return passOver("convert", fakeVariant(from.format, to.format), bytesOf(from) + bytesOf(to));
}

cudaError_t launchAmpBias(const AmpValues& bias, const AmpValues& sums, void* to, bool active, cudaStream_t)
{
    inFormat(sums.format, [&](auto numbers) {
        using Of = decltype(numbers);
        const auto* biases = wordsOf(numbers, bias.data);
        const auto* from = wordsOf(numbers, sums.data);
        overThreads(threadsOfGrid, [&](const GridPlace& place) {
            if (active)
                biasThread<Of, true>(place, biases, from, wordsOf(numbers, to), sums.count, bias.count);
            else
                biasThread<Of, false>(place, biases, from, wordsOf(numbers, to), sums.count, bias.count);
        });
    });
    if (fakeGpu().wrongKernel)
        *static_cast<std::uint16_t*>(to) ^= 0x4000;
    return passOver("bias", fakeVariant(sums.format, active), 2 * bytesOf(sums));
}

cudaError_t launchAmpReluBackward(const AmpValues& activation, const void* gradient, void* to, cudaStream_t)
{
    inFormat(activation.format, [&](auto numbers) {
        overThreads(threadsOfGrid, [&](const GridPlace& place) {
            reluBackwardThread<decltype(numbers)>(place, wordsOf(numbers, activation.data), wordsOf(numbers, gradient),
                                                  wordsOf(numbers, to), activation.count);
        });
    });
    return passOver("ReLU backward", fakeVariant(activation.format), 3 * bytesOf(activation));
}

cudaError_t launchAmpSumRows(const AmpValues& gradient, const AmpValues& bias, float* partial, cudaStream_t)
{
    const std::uint64_t width = bias.count, rows = gradient.count / width, slices = slicesOf(rows);
    inFormat(gradient.format, [&](auto numbers) {
        using Of = decltype(numbers);
        const auto* values = wordsOf(numbers, gradient.data);
        for (std::uint64_t block = 0; block < (width + sumColumns - 1) / sumColumns; ++block) {
            for (std::uint64_t slice = 0; slice < slices && fakeError() == cudaSuccess; ++slice) {
                SumParts parts;
                for (int thread = 0; thread < sumColumns * sumRowsAtOnce; ++thread)
                    sumSliceRows<Of>(thread % sumColumns, thread / sumColumns, block, slice, values, rows, width,
                                     parts);
                for (int x = 0; x < sumColumns; ++x)
                    sumSlice(x, block, slice, width, parts, partial);
            }
        }
        overThreads(threadsOfGrid, [&](const GridPlace& place) {
            sumSlicesThread<Of>(place, partial, slices, width, wordsOf(numbers, bias.data));
        });
    });
    return passOver("sum of rows", fakeVariant(gradient.format), bytesOf(gradient));
}

cudaError_t launchAmpLogSoftmax(const AmpValues& logits, void* logProbabilities, cudaStream_t)
{
    inFormat(logits.format, [&](auto numbers) {
        overThreads(threadsOfGrid, [&](const GridPlace& place) {
            logSoftmaxThread<decltype(numbers)>(place, wordsOf(numbers, logits.data),
                                                wordsOf(numbers, logProbabilities), logits.count / ampClasses);
        });
    });
    return passOver("log softmax", fakeVariant(logits.format), 2 * bytesOf(logits));
}

cudaError_t launchAmpMeanLoss(const float* logProbabilities, const std::int64_t* labels, std::uint64_t rows,
                              float* loss, double* mean, cudaStream_t)
{
    double sums[lossThreads];
    for (int thread = 0; thread < lossThreads; ++thread)
        meanLossRows(thread, logProbabilities, labels, rows, sums);
    meanLossOf(sums, rows, loss, mean);
    return passOver("mean loss", 0, 12 * rows);
}

cudaError_t launchAmpLossBackward(const AmpValues& logProbabilities, const std::int64_t* labels, void* gradient,
                                  float factor, cudaStream_t)
{
    inFormat(logProbabilities.format, [&](auto numbers) {
        overThreads(threadsOfGrid, [&](const GridPlace& place) {
            lossBackwardThread<decltype(numbers)>(place, wordsOf(numbers, logProbabilities.data), labels,
                                                  wordsOf(numbers, gradient), logProbabilities.count, factor);
        });
    });
    return passOver("loss backward", fakeVariant(logProbabilities.format), 2 * bytesOf(logProbabilities));
}

cudaError_t launchAmpUnscale(const AmpTensors& tensors, float factor, int* infinite, cudaStream_t)
{
    std::uint64_t bytes = 0;
    for (int tensor = 0; tensor < tensors.count; ++tensor) {
        overThreads(threadsOfGrid, [&](const GridPlace& place) {
            if (!unscaleThread<Floats>(place, tensors, tensor, factor))
                *infinite = 1;
        });
        bytes += 8 * tensors.elements[tensor];
    }
    return passOver("unscale", 0, bytes);
}

cudaError_t launchAmpAdam(const AmpTensors& tensors, const AmpAdamStep& step, cudaStream_t)
{
    std::uint64_t bytes = 0;
    for (int tensor = 0; tensor < tensors.count; ++tensor) {
        overThreads(threadsOfGrid, [&](const GridPlace& place) { adamThread<Floats>(place, tensors, tensor, step); });
        bytes += 28 * tensors.elements[tensor];
    }
    return passOver("Adam", 0, bytes);
}

cudaError_t launchAmpCount(const AmpValues& gradients, double scale, AmpCounts* counts, cudaStream_t)
{
    constexpr std::uint64_t threads = 256;
    inFormat(gradients.format, [&](auto numbers) {
        for (std::uint64_t block = 0; block < ampCountBlocks && fakeError() == cudaSuccess; ++block) {
            AmpCountPart all{0, 0, 0};
            for (std::uint64_t thread = 0; thread < threads; ++thread) {
                const AmpCountPart part = countThread<decltype(numbers)>(
                    {block * threads + thread, ampCountBlocks * threads}, wordsOf(numbers, gradients.data),
                    gradients.count, scale, [&](int bar) { ++counts->bars[bar]; });
                all.sum += part.sum;
                all.squares += part.squares;
                all.largest = std::max(all.largest, part.largest);
            }
            counts->parts[block] = all;
        }
    });
    return passOver("count of gradients", fakeVariant(gradients.format), bytesOf(gradients));
}

} // namespace memscape::cuda

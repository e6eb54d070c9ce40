// SPDX-License-Identifier: Apache-2.0
// What one thread does in each pass of a training step (amp.h): apart from the kernels, so that the tests
// run every thread of a grid on the host, where no GPU is needed to find an index that is wrong.
//
// `Numbers` is how a format lies in memory: Word, widen(), narrow(), and four neighbours at once,
// load() and store(), from an address that is a multiple of their size. A thread takes four elements
// at a time and comes back a grid further on; the last few go one by one. C++17.
#pragma once

#include "kernels/cuda/training-memory/amp.h"

namespace memscape::cuda {

/// This thread, and all threads of the grid.
struct GridPlace
{
    std::uint64_t first, all;
};

template <typename Numbers>
MEMSCAPE_AMP void loadFour(const typename Numbers::Word* from, int inside, float (&values)[4])
{
    if (inside == 4)
        return Numbers::load(from, values);
    for (int j = 0; j < inside; ++j)
        values[j] = Numbers::widen(from[j]);
}

template <typename Numbers>
MEMSCAPE_AMP void storeFour(typename Numbers::Word* to, int inside, const float (&values)[4])
{
    if (inside == 4)
        return Numbers::store(to, values);
    for (int j = 0; j < inside; ++j)
        to[j] = Numbers::narrow(values[j]);
}

/// body(at, inside) over fours of `count` elements.
template <typename Body> MEMSCAPE_AMP void overFours(const GridPlace& place, std::uint64_t count, const Body& body)
{
    for (std::uint64_t at = 4 * place.first; at < count; at += 4 * place.all)
        body(at, count - at < 4 ? static_cast<int>(count - at) : 4);
}

template <typename From, typename To>
MEMSCAPE_AMP void convertThread(const GridPlace& place, const typename From::Word* from, typename To::Word* to,
                                std::uint64_t count)
{
    overFours(place, count, [&](std::uint64_t at, int inside) {
        float values[4] = {};
        loadFour<From>(from + at, inside, values);
        storeFour<To>(to + at, inside, values);
    });
}

template <typename Numbers, bool active>
MEMSCAPE_AMP void biasThread(const GridPlace& place, const typename Numbers::Word* bias,
                             const typename Numbers::Word* sums, typename Numbers::Word* to, std::uint64_t count,
                             std::uint64_t width)
{
    overFours(place, count, [&](std::uint64_t at, int inside) {
        float values[4] = {};
        loadFour<Numbers>(sums + at, inside, values);
        // Division of 64 bits takes several times as long.
        std::uint64_t column =
            count >> 32 == 0 ? static_cast<std::uint32_t>(at) % static_cast<std::uint32_t>(width) : at % width;
        for (int j = 0; j < inside; ++j) {
            const float sum = values[j] + Numbers::widen(bias[column]);
            values[j] = active ? ampActive(sum) : sum;
            column = column + 1 == width ? 0 : column + 1;
        }
        storeFour<Numbers>(to + at, inside, values);
    });
}

template <typename Numbers>
MEMSCAPE_AMP void reluBackwardThread(const GridPlace& place, const typename Numbers::Word* activation,
                                     const typename Numbers::Word* gradient, typename Numbers::Word* to,
                                     std::uint64_t count)
{
    overFours(place, count, [&](std::uint64_t at, int inside) {
        float values[4] = {}, above[4] = {};
        loadFour<Numbers>(gradient + at, inside, values);
        loadFour<Numbers>(activation + at, inside, above);
        for (int j = 0; j < 4; ++j)
            values[j] = ampPassed(above[j], values[j]);
        storeFour<Numbers>(to + at, inside, values);
    });
}

// ---- the loss ---------------------------------------------------------------------------------

/// A row at a time.
template <typename Numbers>
MEMSCAPE_AMP void logSoftmaxThread(const GridPlace& place, const typename Numbers::Word* logits,
                                   typename Numbers::Word* logProbabilities, std::uint64_t rows)
{
    for (std::uint64_t row = place.first; row < rows; row += place.all) {
        float values[ampClasses], four[4];
        for (int j = 0; j < ampClasses; j += 4) {
            Numbers::load(logits + row * ampClasses + j, four);
            for (int i = 0; i < 4; ++i)
                values[j + i] = four[i];
        }
        ampLogSoftmax(values);
        for (int j = 0; j < ampClasses; j += 4) {
            for (int i = 0; i < 4; ++i)
                four[i] = values[j + i];
            Numbers::store(logProbabilities + row * ampClasses + j, four);
        }
    }
}

template <typename Numbers>
MEMSCAPE_AMP void lossBackwardThread(const GridPlace& place, const typename Numbers::Word* logProbabilities,
                                     const std::int64_t* labels, typename Numbers::Word* gradient, std::uint64_t count,
                                     float factor)
{
    overFours(place, count, [&](std::uint64_t at, int inside) {
        float values[4] = {};
        loadFour<Numbers>(logProbabilities + at, inside, values);
        const std::int64_t label = labels[at / ampClasses];
        const auto first = static_cast<std::int64_t>(at % ampClasses);
        for (int j = 0; j < 4; ++j)
            values[j] = ampLossGradient(values[j], first + j == label, factor);
        storeFour<Numbers>(gradient + at, inside, values);
    });
}

constexpr int lossThreads = 256; ///< of one block

/// Before the barrier: what this thread's rows add.
MEMSCAPE_AMP void meanLossRows(int thread, const float* logProbabilities, const std::int64_t* labels,
                               std::uint64_t rows, double (&sums)[lossThreads])
{
    double sum = 0;
    for (auto row = static_cast<std::uint64_t>(thread); row < rows; row += lossThreads)
        sum -= static_cast<double>(logProbabilities[row * ampClasses + static_cast<std::uint64_t>(labels[row])]);
    sums[thread] = sum;
}
/// Behind it, the first thread alone.
MEMSCAPE_AMP void meanLossOf(const double (&sums)[lossThreads], std::uint64_t rows, float* loss, double* mean)
{
    double sum = 0;
    for (const double part : sums)
        sum += part;
    *mean = sum / static_cast<double>(rows);
    *loss = static_cast<float>(*mean);
}

// ---- sums over rows ---------------------------------------------------------------------------

constexpr int sumColumns = 32, sumRowsAtOnce = 8; ///< of a block
using SumParts = float[sumRowsAtOnce][sumColumns];

/// Slices that `rows` are cut into: by the sizes alone, so the same sizes give the same bits.
MEMSCAPE_AMP std::uint64_t slicesOf(std::uint64_t rows)
{
    const std::uint64_t slices = (rows + 63) / 64;
    return slices < ampSlices ? slices : ampSlices;
}

/// Thread (x, y) of block (column block, slice): the rows y, y + 8, … of the slice.
template <typename Numbers>
MEMSCAPE_AMP void sumSliceRows(int x, int y, std::uint64_t columnBlock, std::uint64_t slice,
                               const typename Numbers::Word* values, std::uint64_t rows, std::uint64_t width,
                               SumParts& parts)
{
    const std::uint64_t column = columnBlock * sumColumns + static_cast<std::uint64_t>(x);
    const std::uint64_t slices = slicesOf(rows), each = (rows + slices - 1) / slices;
    const std::uint64_t begin = slice * each, end = begin + each < rows ? begin + each : rows;
    float sum = 0;
    for (std::uint64_t row = begin + static_cast<std::uint64_t>(y); row < end && column < width; row += sumRowsAtOnce)
        sum += Numbers::widen(values[row * width + column]);
    parts[y][x] = sum;
}
/// Behind the barrier, the first row of threads alone.
MEMSCAPE_AMP void sumSlice(int x, std::uint64_t columnBlock, std::uint64_t slice, std::uint64_t width,
                           const SumParts& parts, float* partial)
{
    const std::uint64_t column = columnBlock * sumColumns + static_cast<std::uint64_t>(x);
    float sum = 0;
    for (int y = 0; y < sumRowsAtOnce; ++y)
        sum += parts[y][x];
    if (column < width)
        partial[slice * width + column] = sum;
}
/// The second kernel: a column a thread.
template <typename Numbers>
MEMSCAPE_AMP void sumSlicesThread(const GridPlace& place, const float* partial, std::uint64_t slices,
                                  std::uint64_t width, typename Numbers::Word* sums)
{
    for (std::uint64_t column = place.first; column < width; column += place.all) {
        float sum = 0;
        for (std::uint64_t slice = 0; slice < slices; ++slice)
            sum += partial[slice * width + column];
        sums[column] = Numbers::narrow(sum);
    }
}

// ---- gradients and weights --------------------------------------------------------------------

/// Whether every product was finite.
template <typename Numbers>
MEMSCAPE_AMP bool unscaleThread(const GridPlace& place, const AmpTensors& tensors, int tensor, float factor)
{
    bool finite = true;
    float* const all = tensors.values[tensor];
    overFours(place, tensors.elements[tensor], [&](std::uint64_t at, int inside) {
        float values[4] = {};
        loadFour<Numbers>(all + at, inside, values);
        for (float& value : values) {
            value *= factor;
            finite = finite && value - value == 0; // infinite or no number: the difference is none
        }
        storeFour<Numbers>(all + at, inside, values);
    });
    return finite;
}

template <typename Numbers>
MEMSCAPE_AMP void adamThread(const GridPlace& place, const AmpTensors& tensors, int tensor, const AmpAdamStep& step)
{
    overFours(place, tensors.elements[tensor], [&](std::uint64_t at, int inside) {
        float gradients[4] = {}, weights[4] = {}, moments[4] = {}, squares[4] = {};
        loadFour<Numbers>(tensors.gradients[tensor] + at, inside, gradients);
        loadFour<Numbers>(tensors.values[tensor] + at, inside, weights);
        loadFour<Numbers>(tensors.moments[tensor] + at, inside, moments);
        loadFour<Numbers>(tensors.squares[tensor] + at, inside, squares);
        for (int j = 0; j < 4; ++j)
            ampAdam(step, gradients[j], weights[j], moments[j], squares[j]);
        storeFour<Numbers>(tensors.values[tensor] + at, inside, weights);
        storeFour<Numbers>(tensors.moments[tensor] + at, inside, moments);
        storeFour<Numbers>(tensors.squares[tensor] + at, inside, squares);
    });
}

/// bar(i) for every gradient that is finite, i = ampBars for zero; what else this thread saw.
template <typename Numbers, typename Bar>
MEMSCAPE_AMP AmpCountPart countThread(const GridPlace& place, const typename Numbers::Word* gradients,
                                      std::uint64_t count, double scale, const Bar& bar)
{
    AmpCountPart seen{0, 0, 0};
    for (std::uint64_t i = place.first; i < count; i += place.all) {
        const double magnitude = std::fabs(static_cast<double>(Numbers::widen(gradients[i]))) / scale;
        if (!(magnitude - magnitude == 0))
            continue;
        if (magnitude == 0) {
            bar(ampBars);
            continue;
        }
        const double log = std::log2(magnitude);
        bar(ampBarOf(magnitude));
        seen.sum += log;
        seen.squares += log * log;
        seen.largest = seen.largest < magnitude ? magnitude : seen.largest;
    }
    return seen;
}

} // namespace memscape::cuda

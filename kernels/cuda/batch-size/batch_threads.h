// SPDX-License-Identifier: Apache-2.0
// What one thread does in each kernel of batch.cu, and the grids that they run in: apart from the kernels, so that
// the tests run every thread of a grid on the host, where no GPU is needed to find an index that is wrong. C++17.
#pragma once

#include "kernels/cuda/batch-size/batch_kernels.h"
#include "kernels/programs/batch-size/batch_numbers.h"

namespace memscape::cuda {

constexpr unsigned batchThreads = 256, batchWarps = batchThreads / 32;         ///< of a block
constexpr unsigned batchColumns = 32, batchRows = batchThreads / batchColumns; ///< of a block over rows

/// This thread, and all threads of the grid (or of the block, where each block takes something of its own).
struct BatchPlace
{
    std::uint64_t first, all;
};
/// Blocks for a pass over elements, enough for every GPU we know.
constexpr unsigned batchBlocks(std::uint64_t count)
{
    const std::uint64_t blocks = (count + batchThreads - 1) / batchThreads;
    return blocks < 1 ? 1 : blocks < 4096 ? static_cast<unsigned>(blocks) : 4096;
}

/// This thread's column and its first row, and how far on the next row is.
struct BatchCell
{
    std::uint64_t column, row, rowStep;
};
/// Blocks over the columns, and over rows: four rows to a thread, as far as 1024 blocks go.
struct BatchGrid
{
    unsigned columns, rows;
};
constexpr BatchGrid batchGrid(std::uint64_t rows, std::uint64_t width)
{
    const std::uint64_t high = (rows + 4 * batchRows - 1) / (4 * batchRows);
    return {static_cast<unsigned>((width + batchColumns - 1) / batchColumns),
            high < 1          ? 1
                : high < 1024 ? static_cast<unsigned>(high)
                              : 1024};
}

template <BatchPass pass> MEMSCAPE_HD void batchElementsThread(const BatchPlace& place, const BatchElements& w)
{
    for (std::uint64_t i = place.first; i < w.count; i += place.all) {
        const float a = w.a[i];
        if constexpr (pass == BatchPass::Relu)
            w.result[i] = a < 0 ? 0.0F : a; // what is no number stays none
        else if constexpr (pass == BatchPass::ReluGradient)
            w.result[i] = w.b[i] > 0 ? a : 0.0F;
        else if constexpr (pass == BatchPass::LossGradient)
            w.result[i] = w.factor * (a - w.b[i]);
        else if constexpr (pass == BatchPass::Add)
            w.result[i] += a;
        else
            w.result[i] -= w.factor * a;
    }
}

MEMSCAPE_HD void biasThread(const BatchCell& cell, float* y, const float* bias, std::uint64_t rows, std::uint64_t width)
{
    if (cell.column >= width)
        return;
    const float own = bias[cell.column];
    for (std::uint64_t row = cell.row; row < rows; row += cell.rowStep)
        y[row * width + cell.column] += own;
}

/// What this thread adds to the loss.
MEMSCAPE_HD double batchLossThread(const BatchPlace& place, const float* y, const float* t, std::uint64_t count)
{
    double sum = 0;
    for (std::uint64_t i = place.first; i < count; i += place.all) {
        const float difference = y[i] - t[i];
        sum += static_cast<double>(difference * difference);
    }
    return sum;
}

/// What this lane adds to |values|² of one row; place: of the warp.
MEMSCAPE_HD float squaresLane(const BatchPlace& place, const float* values, std::uint64_t count)
{
    float sum = 0;
    for (std::uint64_t i = place.first; i < count; i += place.all)
        sum += values[i] * values[i];
    return sum;
}

/// What this thread adds to the risk of output k; place: of the block.
MEMSCAPE_HD double batchRiskThread(const BatchPlace& place, const float* weights, const float* bias,
                                   const float* scales, float magnitude, std::uint64_t inputs, std::uint64_t k)
{
    double sum = 0;
    for (std::uint64_t j = place.first; j < inputs; j += place.all) {
        const std::uint64_t at = k * inputs + j;
        const float off = (weights[at] - batchTruth(at, magnitude)) * scales[j];
        sum += static_cast<double>(off * off);
    }
    if (place.first == 0)
        sum += static_cast<double>(bias[k]) * static_cast<double>(bias[k]);
    return sum;
}

MEMSCAPE_HD void batchInputsThread(const BatchCell& cell, float* x, const float* scales, std::uint64_t first,
                                   std::uint64_t rows, std::uint64_t inputs)
{
    if (cell.column >= inputs)
        return;
    const float scale = scales[cell.column];
    for (std::uint64_t row = cell.row; row < rows; row += cell.rowStep)
        x[row * inputs + cell.column] = batchInput((first + row) * inputs + cell.column, scale);
}

MEMSCAPE_HD void batchTruthThread(const BatchPlace& place, float* truth, std::uint64_t count, float magnitude)
{
    for (std::uint64_t i = place.first; i < count; i += place.all)
        truth[i] = batchTruth(i, magnitude);
}

MEMSCAPE_HD void batchTargetsThread(const BatchPlace& place, float* t, std::uint64_t first, std::uint64_t count,
                                    bool isLinear, float noise)
{
    for (std::uint64_t i = place.first; i < count; i += place.all)
        t[i] = batchTarget(first + i, t[i], isLinear, noise);
}

} // namespace memscape::cuda

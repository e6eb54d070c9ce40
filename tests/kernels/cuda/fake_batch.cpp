// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step on the fake GPU: every thread of their grids one after the other (batch_threads.h),
// in the time that their memory takes.
#include "kernels/cuda/batch-size/batch_threads.h"

#include "tests/kernels/cuda/fake_gpu.h"

#include <cstdio>

namespace memscape::cuda {

namespace {

cudaError_t passOver(const char* kernel, std::uint64_t floats, std::uint64_t variant = 0)
{
    return fakeLaunch(kernel, variant, 4.0 * double(floats) / fakeGpu().streamBytesPerSecond);
}

bool lost()
{
    return fakeError() != cudaSuccess;
}

/// body(place) in every thread of so many blocks.
template <typename Body> void everyThread(unsigned blocks, const Body& body)
{
    const std::uint64_t all = std::uint64_t(blocks) * batchThreads;
    for (std::uint64_t first = 0; first < all; ++first)
        body(BatchPlace{first, all});
}

/// body(cell) in every thread of a grid over rows.
template <typename Body> void everyCell(std::uint64_t rows, std::uint64_t width, const Body& body)
{
    const BatchGrid grid = batchGrid(rows, width);
    for (std::uint64_t row = 0; row < std::uint64_t(grid.rows) * batchRows; ++row) {
        for (std::uint64_t column = 0; column < std::uint64_t(grid.columns) * batchColumns; ++column)
            body(BatchCell{column, row, std::uint64_t(grid.rows) * batchRows});
    }
}

/// partial[block] from body(block), as the kernels keep their sums.
template <typename Body> void everyBlock(unsigned blocks, bool isFirst, double* partial, const Body& body)
{
    for (unsigned block = 0; block < blocks; ++block)
        partial[block] = (isFirst ? 0.0 : partial[block]) + body(block);
}

template <BatchPass pass> void runPass(const BatchElements& w)
{
    everyThread(batchBlocks(w.count), [&](const BatchPlace& place) { batchElementsThread<pass>(place, w); });
}

/// |values|² as the lanes of a warp add it.
double squaresOf(const float* values, std::uint64_t count)
{
    float sum = 0;
    for (std::uint64_t lane = 0; lane < 32; ++lane)
        sum += squaresLane({lane, 32}, values, count);
    return double(sum);
}

} // namespace

cudaError_t launchBatchElements(const BatchElements& w, cudaStream_t)
{
    switch (w.pass) {
    case BatchPass::Relu:
        runPass<BatchPass::Relu>(w);
        return passOver("batch elements", 2 * w.count, fakeVariant(w.pass));
    case BatchPass::ReluGradient: runPass<BatchPass::ReluGradient>(w); break;
    case BatchPass::LossGradient: runPass<BatchPass::LossGradient>(w); break;
    case BatchPass::Add: runPass<BatchPass::Add>(w); break;
    case BatchPass::Update: runPass<BatchPass::Update>(w); break;
    }
    return passOver("batch elements", 3 * w.count, fakeVariant(w.pass));
}

cudaError_t launchBias(float* y, const float* bias, std::uint64_t rows, std::uint64_t width, cudaStream_t)
{
    everyCell(rows, width, [&](const BatchCell& cell) { biasThread(cell, y, bias, rows, width); });
    return passOver("batch bias", 2 * rows * width);
}

cudaError_t launchBatchLoss(const float* y, const float* t, std::uint64_t count, bool isFirst, double* partial,
                            cudaStream_t)
{
    const unsigned blocks = batchLossPartials(count);
    everyBlock(blocks, isFirst, partial, [&](unsigned block) {
        double sum = 0;
        for (unsigned thread = 0; thread < batchThreads; ++thread)
            sum += batchLossThread({std::uint64_t(block) * batchThreads + thread, std::uint64_t(blocks) * batchThreads},
                                   y, t, count);
        return sum;
    });
    return passOver("batch loss", 2 * count);
}

cudaError_t launchExampleNorms(const float* x, std::uint64_t inputs, const float* delta, std::uint64_t outputs,
                               std::uint64_t rows, bool isFirst, double* partial, cudaStream_t)
{
    const unsigned blocks = batchNormPartials(rows);
    everyBlock(blocks, isFirst, partial, [&](unsigned block) {
        double sum = 0;
        for (std::uint64_t warp = block * batchWarps; warp < (block + 1) * batchWarps; ++warp) {
            for (std::uint64_t row = warp; row < rows; row += std::uint64_t(blocks) * batchWarps)
                sum += (squaresOf(x + row * inputs, inputs) + 1) * squaresOf(delta + row * outputs, outputs);
        }
        return sum;
    });
    return passOver("example norms", rows * (inputs + outputs));
}

cudaError_t launchBatchRisk(const float* weights, const float* bias, const float* scales, float magnitude,
                            std::uint64_t inputs, std::uint64_t outputs, double* partial, cudaStream_t)
{
    const unsigned blocks = batchRiskPartials(outputs);
    everyBlock(blocks, true, partial, [&](unsigned block) {
        double sum = 0;
        for (std::uint64_t k = block; k < outputs; k += blocks) {
            for (unsigned thread = 0; thread < batchThreads; ++thread)
                sum += batchRiskThread({thread, batchThreads}, weights, bias, scales, magnitude, inputs, k);
        }
        return sum;
    });
    return passOver("batch risk", inputs * outputs);
}

cudaError_t launchBatchInputs(float* x, const float* scales, std::uint64_t first, std::uint64_t rows,
                              std::uint64_t inputs, cudaStream_t)
{
    everyCell(rows, inputs, [&](const BatchCell& cell) { batchInputsThread(cell, x, scales, first, rows, inputs); });
    return passOver("batch inputs", rows * inputs);
}

cudaError_t launchBatchTruth(float* truth, std::uint64_t count, float magnitude, cudaStream_t)
{
    everyThread(batchBlocks(count), [&](const BatchPlace& place) { batchTruthThread(place, truth, count, magnitude); });
    return passOver("batch truth", count);
}

cudaError_t launchBatchTargets(float* t, std::uint64_t first, std::uint64_t count, bool isLinear, float noise,
                               cudaStream_t)
{
    everyThread(batchBlocks(count),
                [&](const BatchPlace& place) { batchTargetsThread(place, t, first, count, isLinear, noise); });
    return passOver("batch targets", 2 * count);
}

KernelCheck checkBatchElements()
{
    KernelCheck check;
    check.error = fakeError();
    check.passed = !lost() && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "training step");
    std::snprintf(check.detail, sizeof check.detail, "%s", check.passed ? "equal" : "3 of 9 differ");
    return check;
}

} // namespace memscape::cuda

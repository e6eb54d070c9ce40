// SPDX-License-Identifier: Apache-2.0
// What a training step of linear layers needs of a GPU beside its products: the passes over single elements, the
// loss, the squared norms of single examples' gradients, and the examples themselves, made from their numbers.
//
//   passes   a thread per element in turn, neighbours read neighbours: bound by memory, as they should be
//   bias     a thread keeps its column's bias and goes down the rows: no division to find the column
//   sums     float terms added in double: within a thread in steps of the grid, then over the warp, then over
//            the block in order. One partial sum a block, no atomics, so the same sizes give the same bits
//
// Left out: fusing (bias into the product, relu into the bias): a step is what eager PyTorch runs, array by array.
#include "kernels/cuda/batch-size/batch_threads.h"
#include "kernels/cuda/common/check.cuh"

#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 3. Kernels: what a thread does is in batch_threads.h --------------------------------------

__device__ __forceinline__ BatchPlace ofGrid()
{
    return {blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x, std::uint64_t(gridDim.x) * blockDim.x};
}
/// In blocks of 32 columns × 8 rows.
__device__ __forceinline__ BatchCell cellOfGrid()
{
    return {blockIdx.x * std::uint64_t(batchColumns) + threadIdx.x, blockIdx.y * std::uint64_t(batchRows) + threadIdx.y,
            std::uint64_t(gridDim.y) * batchRows};
}

template <typename Number> __device__ __forceinline__ Number warpSum(Number value)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffU, value, distance);
    return value;
}

/// The sum over the block, kept by its first thread.
__device__ __forceinline__ void keep(double value, bool isFirst, double* partial)
{
    __shared__ double ofWarp[batchWarps];
    value = warpSum(value);
    if (threadIdx.x % 32 == 0)
        ofWarp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    double sum = 0;
    for (unsigned warp = 0; warp < batchWarps; ++warp)
        sum += ofWarp[warp];
    partial[blockIdx.x] = isFirst ? sum : partial[blockIdx.x] + sum;
}

template <BatchPass pass> __global__ void batchElements_v1(BatchElements w)
{
    batchElementsThread<pass>(ofGrid(), w);
}

__global__ void bias_v1(float* y, const float* bias, std::uint64_t rows, std::uint64_t width)
{
    biasThread(cellOfGrid(), y, bias, rows, width);
}

__global__ void batchLoss_v1(const float* y, const float* t, std::uint64_t count, bool isFirst, double* partial)
{
    keep(batchLossThread(ofGrid(), y, t, count), isFirst, partial);
}

/// A warp takes an example.
__global__ void exampleNorms_v1(const float* x, std::uint64_t inputs, const float* delta, std::uint64_t outputs,
                                std::uint64_t rows, bool isFirst, double* partial)
{
    const BatchPlace place = ofGrid(), lane{threadIdx.x % 32, 32};
    double sum = 0;
    for (std::uint64_t row = place.first / 32; row < rows; row += place.all / 32) {
        const float ofInput = warpSum(squaresLane(lane, x + row * inputs, inputs));
        const float ofDelta = warpSum(squaresLane(lane, delta + row * outputs, outputs));
        if (lane.first == 0)
            sum += (double(ofInput) + 1) * double(ofDelta);
    }
    keep(sum, isFirst, partial);
}

/// A block takes an output.
__global__ void batchRisk_v1(const float* weights, const float* bias, const float* scales, float magnitude,
                             std::uint64_t inputs, std::uint64_t outputs, double* partial)
{
    double sum = 0;
    for (std::uint64_t k = blockIdx.x; k < outputs; k += gridDim.x)
        sum += batchRiskThread({threadIdx.x, batchThreads}, weights, bias, scales, magnitude, inputs, k);
    keep(sum, true, partial);
}

__global__ void batchInputs_v1(float* x, const float* scales, std::uint64_t first, std::uint64_t rows,
                               std::uint64_t inputs)
{
    batchInputsThread(cellOfGrid(), x, scales, first, rows, inputs);
}

__global__ void batchTruth_v1(float* truth, std::uint64_t count, float magnitude)
{
    batchTruthThread(ofGrid(), truth, count, magnitude);
}

__global__ void batchTargets_v1(float* t, std::uint64_t first, std::uint64_t count, bool isLinear, float noise)
{
    batchTargetsThread(ofGrid(), t, first, count, isLinear, noise);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

static dim3 gridOf(std::uint64_t rows, std::uint64_t width)
{
    const BatchGrid grid = batchGrid(rows, width);
    return dim3(grid.columns, grid.rows);
}

template <BatchPass pass> static cudaError_t launchPass(const BatchElements& w, cudaStream_t stream)
{
    batchElements_v1<pass><<<batchBlocks(w.count), batchThreads, 0, stream>>>(w);
    return cudaGetLastError();
}

cudaError_t launchBatchElements(const BatchElements& w, cudaStream_t stream)
{
    switch (w.pass) {
    case BatchPass::Relu: return launchPass<BatchPass::Relu>(w, stream);
    case BatchPass::ReluGradient: return launchPass<BatchPass::ReluGradient>(w, stream);
    case BatchPass::LossGradient: return launchPass<BatchPass::LossGradient>(w, stream);
    case BatchPass::Add: return launchPass<BatchPass::Add>(w, stream);
    case BatchPass::Update: return launchPass<BatchPass::Update>(w, stream);
    }
    return cudaErrorInvalidValue;
}

cudaError_t launchBias(float* y, const float* bias, std::uint64_t rows, std::uint64_t width, cudaStream_t stream)
{
    bias_v1<<<gridOf(rows, width), dim3(batchColumns, batchRows), 0, stream>>>(y, bias, rows, width);
    return cudaGetLastError();
}

cudaError_t launchBatchLoss(const float* y, const float* t, std::uint64_t count, bool isFirst, double* partial,
                            cudaStream_t stream)
{
    batchLoss_v1<<<batchLossPartials(count), batchThreads, 0, stream>>>(y, t, count, isFirst, partial);
    return cudaGetLastError();
}

cudaError_t launchExampleNorms(const float* x, std::uint64_t inputs, const float* delta, std::uint64_t outputs,
                               std::uint64_t rows, bool isFirst, double* partial, cudaStream_t stream)
{
    exampleNorms_v1<<<batchNormPartials(rows), batchThreads, 0, stream>>>(x, inputs, delta, outputs, rows, isFirst,
                                                                          partial);
    return cudaGetLastError();
}

cudaError_t launchBatchRisk(const float* weights, const float* bias, const float* scales, float magnitude,
                            std::uint64_t inputs, std::uint64_t outputs, double* partial, cudaStream_t stream)
{
    batchRisk_v1<<<batchRiskPartials(outputs), batchThreads, 0, stream>>>(weights, bias, scales, magnitude, inputs,
                                                                          outputs, partial);
    return cudaGetLastError();
}

cudaError_t launchBatchInputs(float* x, const float* scales, std::uint64_t first, std::uint64_t rows,
                              std::uint64_t inputs, cudaStream_t stream)
{
    batchInputs_v1<<<gridOf(rows, inputs), dim3(batchColumns, batchRows), 0, stream>>>(x, scales, first, rows, inputs);
    return cudaGetLastError();
}

cudaError_t launchBatchTruth(float* truth, std::uint64_t count, float magnitude, cudaStream_t stream)
{
    batchTruth_v1<<<batchBlocks(count), batchThreads, 0, stream>>>(truth, count, magnitude);
    return cudaGetLastError();
}

cudaError_t launchBatchTargets(float* t, std::uint64_t first, std::uint64_t count, bool isLinear, float noise,
                               cudaStream_t stream)
{
    batchTargets_v1<<<batchBlocks(count), batchThreads, 0, stream>>>(t, first, count, isLinear, noise);
    return cudaGetLastError();
}

// ---- 5. Checks --------------------------------------------------------------------------------

/// What the passes are tried on: 41 examples of 71 inputs, 37 outputs. No size is a whole number of warps.
namespace {
constexpr std::uint64_t rows = 41, inputs = 71, outputs = 37, count = rows * outputs;

std::vector<float> uniform(std::uint64_t seed, std::uint64_t size)
{
    std::vector<float> values(size);
    for (std::uint64_t i = 0; i < size; ++i)
        values[i] = mlpUniform(seed, i);
    return values;
}

float expectedOf(const BatchElements& w, float a, float b, float result)
{
    switch (w.pass) {
    case BatchPass::Relu: return a > 0 ? a : 0;
    case BatchPass::ReluGradient: return b > 0 ? a : 0;
    case BatchPass::LossGradient: return w.factor * (a - b);
    case BatchPass::Add: return result + a;
    case BatchPass::Update: break;
    }
    return result - w.factor * a;
}

void checkPasses(Scratch& scratch, Mismatches& seen)
{
    const std::vector<float> a = uniform(61, count), b = uniform(62, count), start = uniform(63, count);
    BatchElements w;
    w.a = scratch.upload(a);
    w.b = scratch.upload(b);
    w.count = count;
    w.factor = 0.37F;
    std::vector<float> found(count);
    for (const BatchPass pass :
         {BatchPass::Relu, BatchPass::ReluGradient, BatchPass::LossGradient, BatchPass::Add, BatchPass::Update}) {
        w.pass = pass;
        w.result = scratch.upload(start);
        if (scratch.ok())
            scratch.note(launchBatchElements(w, nullptr));
        scratch.download(found, w.result);
        for (std::uint64_t i = 0; i < count && scratch.ok(); ++i)
            seen.compare(double(found[i]), double(expectedOf(w, a[i], b[i], start[i])), 2e-7);
    }
    float* const y = scratch.upload(start);
    if (scratch.ok())
        scratch.note(launchBias(y, w.b, rows, outputs, nullptr));
    scratch.download(found, y);
    for (std::uint64_t i = 0; i < count && scratch.ok(); ++i)
        seen.compare(double(found[i]), double(start[i] + b[i % outputs]), 0);
}

double sumOf(Scratch& scratch, const double* device, unsigned partials)
{
    std::vector<double> partial(mostBatchPartials);
    scratch.download(partial, device);
    double sum = 0;
    for (unsigned i = 0; i < partials; ++i)
        sum += partial[i];
    return sum;
}

/// Each twice, the second time onto the first.
void checkSums(Scratch& scratch, Mismatches& seen)
{
    const std::vector<float> x = uniform(64, rows * inputs), y = uniform(65, count), t = uniform(66, count);
    const float *deviceX = scratch.upload(x), *deviceY = scratch.upload(y), *deviceT = scratch.upload(t);
    const std::vector<double> wrong(mostBatchPartials, 1e30);
    double *loss = scratch.upload(wrong), *norms = scratch.upload(wrong);
    for (const bool isFirst : {true, false}) {
        if (!scratch.ok())
            return;
        scratch.note(launchBatchLoss(deviceY, deviceT, count, isFirst, loss, nullptr));
        scratch.note(launchExampleNorms(deviceX, inputs, deviceY, outputs, rows, isFirst, norms, nullptr));
    }
    double expectedLoss = 0, expectedNorms = 0;
    for (std::uint64_t row = 0; row < rows; ++row) {
        double ofInput = 1, ofDelta = 0;
        for (std::uint64_t j = 0; j < inputs; ++j)
            ofInput += double(x[row * inputs + j]) * double(x[row * inputs + j]);
        for (std::uint64_t i = row * outputs; i < (row + 1) * outputs; ++i) {
            ofDelta += double(y[i]) * double(y[i]);
            expectedLoss += 2 * (double(y[i]) - double(t[i])) * (double(y[i]) - double(t[i]));
        }
        expectedNorms += 2 * ofInput * ofDelta;
    }
    const double foundLoss = sumOf(scratch, loss, batchLossPartials(count));
    const double foundNorms = sumOf(scratch, norms, batchNormPartials(rows));
    if (!scratch.ok())
        return;
    seen.compare(foundLoss, expectedLoss, 1e-6 * expectedLoss);
    seen.compare(foundNorms, expectedNorms, 1e-5 * expectedNorms);
}

/// Examples from number 2^32 on, as training takes them, and the risk of weights.
void checkData(Scratch& scratch, Mismatches& seen)
{
    constexpr std::uint64_t first = 1ULL << 32;
    constexpr float magnitude = 0.25F, noise = 0.5F;
    const std::vector<float> scales = uniform(67, inputs), weights = uniform(68, inputs * outputs),
                             products = uniform(69, count), bias = uniform(70, outputs);
    const float* deviceScales = scratch.upload(scales);
    float *x = scratch.upload(uniform(71, rows * inputs)), *truth = scratch.upload(weights);
    float *linear = scratch.upload(products), *deep = scratch.upload(products);
    const float *deviceWeights = scratch.upload(weights), *deviceBias = scratch.upload(bias);
    double* risk = scratch.upload(std::vector<double>(mostBatchPartials, 1e30));
    if (scratch.ok()) {
        scratch.note(launchBatchInputs(x, deviceScales, first, rows, inputs, nullptr));
        scratch.note(launchBatchTruth(truth, inputs * outputs, magnitude, nullptr));
        scratch.note(launchBatchTargets(linear, first * outputs, count, true, noise, nullptr));
        scratch.note(launchBatchTargets(deep, first * outputs, count, false, noise, nullptr));
        scratch.note(
            launchBatchRisk(deviceWeights, deviceBias, deviceScales, magnitude, inputs, outputs, risk, nullptr));
    }
    std::vector<float> foundX(rows * inputs), foundTruth(inputs * outputs), foundLinear(count), foundDeep(count);
    scratch.download(foundX, x);
    scratch.download(foundTruth, truth);
    scratch.download(foundLinear, linear);
    scratch.download(foundDeep, deep);
    const double foundRisk = sumOf(scratch, risk, batchRiskPartials(outputs));
    if (!scratch.ok())
        return;
    for (std::uint64_t i = 0; i < rows * inputs; ++i)
        seen.compare(double(foundX[i]), double(batchInput(first * inputs + i, scales[i % inputs])), 0);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t index = first * outputs + i;
        seen.compare(double(foundLinear[i]), double(batchTarget(index, products[i], true, noise)), 1e-6);
        seen.compare(double(foundDeep[i]), double(batchTarget(index, products[i], false, noise)), 1e-6);
    }
    double expected = 0;
    for (std::uint64_t i = 0; i < inputs * outputs; ++i) {
        seen.compare(double(foundTruth[i]), double(batchTruth(i, magnitude)), 0);
        const double off = (double(weights[i]) - double(foundTruth[i])) * double(scales[i % inputs]);
        expected += off * off;
    }
    for (const float b : bias)
        expected += double(b) * double(b);
    seen.compare(foundRisk, expected, 1e-5 * expected);
}
} // namespace

KernelCheck checkBatchElements()
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "training step: passes, sums, examples");
    Scratch scratch;
    Mismatches seen;
    checkPasses(scratch, seen);
    checkSums(scratch, seen);
    checkData(scratch, seen);
    verdict(check, scratch.error(), seen.wrong, seen.first, seen.compared);
    return check;
}

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// The kernels of batch.cu as plain calls: what a training step of linear layers does beside its products
// (product.cu, cublas_lt.h) and the sums over columns (mlp.cu). C++17: nvcc reads this file too.
#pragma once

#include "kernels/cuda/kernels.h"

namespace memscape::cuda {

enum class BatchPass {
    Relu,         ///< result = max(a, 0)
    ReluGradient, ///< result = b > 0 ? a : 0
    LossGradient, ///< result = factor × (a − b)
    Add,          ///< result += a
    Update,       ///< result −= factor × a
};
struct BatchElements
{
    BatchPass pass = BatchPass::Relu;
    const float *a = nullptr, *b = nullptr;
    float* result = nullptr; ///< may be a
    std::uint64_t count = 0;
    float factor = 0;
};
cudaError_t launchBatchElements(const BatchElements& launch, cudaStream_t stream);
/// y += bias in every one of `rows` rows of `width`.
cudaError_t launchBias(float* y, const float* bias, std::uint64_t rows, std::uint64_t width, cudaStream_t stream);

/// A sum is partial sums of blocks, in double, always of the same elements in the same order; the reader
/// adds the first batchPartials(…) of them in order.
constexpr unsigned mostBatchPartials = 1024;
constexpr unsigned batchPartials(std::uint64_t items, std::uint64_t perBlock)
{
    const std::uint64_t blocks = (items + perBlock - 1) / perBlock;
    return blocks < 1 ? 1 : blocks < mostBatchPartials ? unsigned(blocks) : mostBatchPartials;
}
constexpr unsigned batchLossPartials(std::uint64_t count)
{
    return batchPartials(count, 1024);
}
constexpr unsigned batchNormPartials(std::uint64_t rows)
{
    return batchPartials(rows, 8);
}
constexpr unsigned batchRiskPartials(std::uint64_t outputs)
{
    return batchPartials(outputs, 1);
}
/// Σ (y − t)² over `count` elements; added to what `partial` holds, unless it is the first.
cudaError_t launchBatchLoss(const float* y, const float* t, std::uint64_t count, bool isFirst, double* partial,
                            cudaStream_t stream);
/// Σ over rows of (|x|² + 1) |δ|²: squared norms of the gradients of single examples.
cudaError_t launchExampleNorms(const float* x, std::uint64_t inputs, const float* delta, std::uint64_t outputs,
                               std::uint64_t rows, bool isFirst, double* partial, cudaStream_t stream);
/// Σ_k (Σ_j (scale_j (w_kj − w*_kj))² + b_k²).
cudaError_t launchBatchRisk(const float* weights, const float* bias, const float* scales, float magnitude,
                            std::uint64_t inputs, std::uint64_t outputs, double* partial, cudaStream_t stream);

/// Examples from their numbers (kernels/programs/batch-size/batch_numbers.h): inputs of `rows` examples from `first`
/// on; W*; targets in place of W*x, elements `first`, first + 1, ….
cudaError_t launchBatchInputs(float* x, const float* scales, std::uint64_t first, std::uint64_t rows,
                              std::uint64_t inputs, cudaStream_t stream);
cudaError_t launchBatchTruth(float* truth, std::uint64_t count, float magnitude, cudaStream_t stream);
cudaError_t launchBatchTargets(float* t, std::uint64_t first, std::uint64_t count, bool isLinear, float noise,
                               cudaStream_t stream);

KernelCheck checkBatchElements();

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// The launches that one pass of attention consists of, on arrays that are there already.
#pragma once

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_device.h"
#include "kernels/cuda/common/cublas_lt.h"

namespace memscape::cuda {

/// In CublasLt's place when its products are wanted.
using Products = std::function<Result<void>(const TensorProductLaunch&)>;

/// Arrays of standard attention; flash attention's are in AttentionArrays.
struct ScoreArrays
{
    void *scores = nullptr, *weights = nullptr;                 ///< S and P, or both P
    void *weightsGradient = nullptr, *scoresGradient = nullptr; ///< dP and dS, or both dP
};

/// Standard attention by cuBLASLt.
bool usesLibrary(const AttentionTask& task);
/// Errors: attention.unsupported for a GPU that is too old and for a missing library.
Result<void> checkMachine(const AttentionTask& task, bool hasLibrary);

ElementFormat elementFormat(DType dtype);
/// Errors: attention.range when a number does not fit the kernels' 31 bits.
Result<AttentionSizes> attentionSizes(const AttentionShape& shape);

/// Our own product of one format: product.cu's for floats, tensor_product.h's for halves.
Products ownProducts(cudaStream_t stream);

Result<void> standardForward(const AttentionSizes& sizes, ElementFormat format, const AttentionArrays& arrays,
                             const ScoreArrays& scores, const Products& multiply, cudaStream_t stream);
Result<void> standardBackward(const AttentionSizes& sizes, ElementFormat format, const AttentionArrays& arrays,
                              const ScoreArrays& scores, const Products& multiply, cudaStream_t stream);

} // namespace memscape::cuda

// SPDX-License-Identifier: Apache-2.0
// The chain that is predicted and also run for real: D equal stages of a multilayer perceptron, in
// float. The buffers are described here once, for both sides, so that the predicted peak and the
// one that the pool of a live run counts are the same number.
//
//     stage i:   z = x_i W_i + b_i,   x_{i+1} = gelu(z) (tanh form)         x, z, y: batch × width
//     loss:      mean of (x_L − target)²,   y_L = 2 (x_L − target) / (batch · width)
//     backward:  dz = y_{i+1} ∘ gelu'(z),   dW_i = x_iᵀ dz,   db_i = Σ dz,   y_i = dz W_iᵀ
//
// What is held (one array A = batch × width floats, rounded up as the pool rounds):
//   forward, nothing saved   z is written where x_{i+1} will be, gelu is taken in place: no overhead
//   saved "all"              x̄_{i+1} = {z, x_{i+1}}: 2 A
//   saved "result"           x̄_{i+1} = {x_{i+1}}: A; its backward computes z again: overhead A
//   loss                     the target is made again from its seed, element by element: no overhead
//   backward                 dz is written over y_{i+1}, which goes anyway: no overhead
// Left out, as in every chain: W, b, their gradients, and the workspace of a library's products.
#pragma once

#include "core/base/rounding.h"
#include "core/checkpoint/chain.h"

#include <string_view>

namespace memscape {

struct MlpShape
{
    std::int64_t length = 48, width = 4096, batch = 512;
    bool operator==(const MlpShape&) const = default;
};

/// The largest of each; no product of them passes 2^63.
inline constexpr std::int64_t mlpLengthLimit = 10'000, mlpWidthLimit = 65'536;
inline constexpr std::int64_t mlpBatchLimit = 1 << 20;

/// The pool gives whole multiples of this (PyTorch's caching allocator's rounding, and more than
/// any vector unit or tensor core asks for).
inline constexpr std::int64_t poolGranularity = 512;
constexpr std::int64_t pooledBytes(std::int64_t bytes)
{
    return roundedUp(bytes, poolGranularity);
}

/// The ways to save a stage, in the order of Stage::options.
enum class MlpSave { All, Result };

/// "mlp:48x4096" and a batch. Errors: chain.syntax, chain.range.
Result<MlpShape> parseMlpShape(std::string_view text, std::int64_t batch);
bool isMlpText(std::string_view text);      ///< starts with "mlp:"
std::string mlpText(const MlpShape& shape); ///< "mlp:48x4096"

/// One array x, z or y as the pool counts it, B.
std::int64_t mlpArrayBytes(const MlpShape& shape);

/// The chain in bytes; all times are 0 until a model of the machine fills them in.
/// Errors: chain.range.
Result<Chain> mlpChain(const MlpShape& shape);

/// What an operation does: floating-point operations of its products, and bytes that the
/// element-wise passes and the products read and write when every array is touched once per use.
struct MlpWork
{
    double flops = 0;
    double bytes = 0;
};
/// Of one stage; z is written beside x when it is saved.
MlpWork mlpForwardWork(const MlpShape& shape, bool isSaved);
MlpWork mlpBackwardWork(const MlpShape& shape, MlpSave save);
MlpWork mlpLossWork(const MlpShape& shape);

} // namespace memscape

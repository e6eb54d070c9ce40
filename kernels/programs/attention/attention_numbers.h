// SPDX-License-Identifier: Apache-2.0
// The numbers that attention starts from, which keys a query sees, where an element lies, and how a
// softmax is taken in pieces: arithmetic that the host, a GPU and the reference share. C++17, no
// library of ours but mlp_numbers.h: nvcc reads this file too.
//
// Softmax in pieces (Milakov and Gimelshein 2018, arXiv:1805.02867). Of the scores seen so far a
// row keeps its maximum m and the sum l of e^(s − m); more scores with maximum m' > m multiply l and
// the row's part of O by e^(m − m'). At the end O is divided by l, and L = m + log l is all that a
// backward needs: P = e^(s − L).
#pragma once

#include "kernels/programs/common/mlp_numbers.h"

#include <cstdint>

namespace memscape {

/// In the order in which a check reads them back.
enum class AttentionTensor {
    Query,
    Key,
    Value,
    OutputGradient,
    Output,
    LogSumExp,
    QueryGradient,
    KeyGradient,
    ValueGradient
};

/// Normal: every element bell-shaped around 0 with variance 1, so that the scores of a row are, too.
/// Extreme: the same with rows that overflow e^s without a running maximum, rows of equal scores,
/// tiny ones, and values and gradients of very different size.
enum class AttentionInputs { Normal, Extreme };

/// What a row of an input is multiplied by: powers of two and zero, exact in every format.
MEMSCAPE_EVERYWHERE float attentionRowScale(AttentionTensor tensor, std::uint64_t row)
{
    switch (tensor) {
    case AttentionTensor::Query: return row % 4 == 1 ? 64.0F : row % 4 == 2 ? 0.0F : row % 4 == 3 ? 0x1p-14F : 1.0F;
    case AttentionTensor::Key: return row % 7 == 3 ? 4.0F : 1.0F;
    case AttentionTensor::Value: return row % 5 == 1 ? 64.0F : 1.0F;
    case AttentionTensor::OutputGradient: return row % 3 == 1 ? 0x1p-10F : 1.0F;
    default: return 1.0F;
    }
}

/// Element `index` of Q, K, V or dO before it is rounded to the format of the run: the sum of three
/// uniform numbers (Irwin and Hall), by the row's factor. The same bits on every machine.
MEMSCAPE_EVERYWHERE float attentionInput(AttentionTensor tensor, std::uint64_t index, std::uint64_t headDim,
                                         AttentionInputs inputs)
{
    const std::uint64_t seed = 101 + static_cast<std::uint64_t>(tensor);
    const float sum = mlpUniform(seed, 3 * index) + mlpUniform(seed, 3 * index + 1) + mlpUniform(seed, 3 * index + 2);
    return inputs == AttentionInputs::Normal ? sum : sum * attentionRowScale(tensor, index / headDim);
}

/// How many of the keys, from the first, query `query` sees.
MEMSCAPE_EVERYWHERE std::int64_t attentionVisibleKeys(std::int64_t query, std::int64_t queries, std::int64_t keys,
                                                      bool causal)
{
    return causal ? query + 1 + keys - queries : keys;
}

/// The first query that sees key `key`.
MEMSCAPE_EVERYWHERE std::int64_t attentionFirstQuery(std::int64_t key, std::int64_t queries, std::int64_t keys,
                                                     bool causal)
{
    const std::int64_t first = key - (keys - queries);
    return causal && first > 0 ? first : 0;
}

/// batch · heads counted through: the plane of K and V that the plane `head` of Q reads.
MEMSCAPE_EVERYWHERE std::int64_t attentionKeyPlane(std::int64_t plane, std::int64_t heads, std::int64_t kvHeads)
{
    return plane / heads * kvHeads + plane % heads / (heads / kvHeads);
}

/// The running maximum and sum of a row, in float.
struct RunningSoftmax
{
    float maximum = -3.4028235e38F; ///< below every score; not −∞, whose differences are no numbers
    float sum = 0;
};

/// What l and the row's part of O are multiplied by when the maximum becomes `maximum`; `exponential`
/// is the machine's own e^x (or 2^x, with maxima in that unit).
template <typename Exponential>
#ifdef __CUDACC__
__host__ __device__
#endif
    inline float
    raisedTo(RunningSoftmax& row, float maximum, Exponential exponential)
{
    if (!(maximum > row.maximum))
        return 1.0F;
    const float factor = exponential(row.maximum - maximum);
    row.maximum = maximum;
    row.sum *= factor;
    return factor;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// BERT (Devlin et al. 2018): post-norm encoder layers with separate q, k and v, an additive padding
// mask, and optionally the pooler over the first token.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct BertShape
{
    std::int64_t hidden = 768;
    std::int64_t heads = 12;
    std::int64_t layers = 12;
    std::int64_t feedForward = 0; ///< 0: four times hidden
    std::int64_t vocabulary = 30522;
    std::int64_t positions = 512;
    std::int64_t types = 2;
    bool hasPooler = true;
};

/// `padding` is added to the scores, (B, 1, 1, S).
Variable bertLayer(NetworkBuilder& b, const BertShape& shape, const Variable& x, const Variable& padding);

/// Without a pooler the result is the last hidden state; with one, the loss is a sum over the pooled
/// features (and zero times the rest, so that every parameter gets a gradient).
Result<Graph> bert(const BertShape& shape, const BuildOptions& options);

} // namespace memscape

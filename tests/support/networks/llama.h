// SPDX-License-Identifier: Apache-2.0
// LLaMA (Touvron et al. 2023) as Hugging Face writes it: RMSNorm in float operator by operator,
// rotary positions on half-pairs, grouped-query attention with repeated key and value heads, SwiGLU.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct LlamaShape
{
    std::int64_t hidden = 4096;
    std::int64_t heads = 32;
    std::int64_t keyValueHeads = 32;
    std::int64_t headWidth = 0; ///< 0: hidden / heads
    std::int64_t feedForward = 11008;
    std::int64_t layers = 32;
    std::int64_t vocabulary = 32000;
    std::int64_t positions = 2048;
    bool isTied = false;
    bool hasQkvBias = false;
    bool isAttentionInline = false; ///< a block without an attention module: its locals live longer
    bool repeatsHeads = true;       ///< before the attention kernel too; false: enable_gqa
};

/// Rotary tables and the additive causal mask, buffers of the model.
struct LlamaTables
{
    Variable cosine, sine; ///< (1, 1, positions, head width)
    Variable mask;         ///< (1, 1, positions, positions)
};

Variable llamaBlock(NetworkBuilder& b, const LlamaShape& shape, const LlamaTables& tables, const Variable& x);

/// A language model on `options.batch` sequences. Errors: network.shape when heads do not divide.
Result<Graph> llama(const LlamaShape& shape, const BuildOptions& options);

} // namespace memscape

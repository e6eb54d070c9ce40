// SPDX-License-Identifier: Apache-2.0
// How each decoder architecture calls its modules: one table for the list of parameters and for the
// recorded network, so that the two cannot disagree.
#pragma once

#include "core/network/model.h"

namespace memscape {

/// Names within a checkpoint; an empty fused name means separate matrices.
struct DecoderNames
{
    const char* root = "model";
    const char* embedding = "embed_tokens";
    const char* positions = "embed_positions";
    const char* layers = "layers";
    const char* firstNorm = "input_layernorm";
    const char* secondNorm = "post_attention_layernorm";
    const char* attention = "self_attn";
    const char* fusedQkv = "";
    const char* output = "o_proj";
    const char* feedForward = "mlp"; ///< empty: directly in the layer
    const char* fusedGateUp = "";
    const char* gate = "gate_proj";
    const char* up = "up_proj";
    const char* down = "down_proj";
    const char* finalNorm = "norm";
    const char* head = "lm_head";
    bool transposed = false; ///< weights are stored (inputs, outputs)
    const char* embeddingNorm = "word_embeddings_layernorm";
};

DecoderNames decoderNames(const ModelDescription& model);

} // namespace memscape

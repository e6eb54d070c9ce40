// SPDX-License-Identifier: Apache-2.0
// Virtual tokens before a text, learned by prompt and prefix tuning as PEFT has them (peft/peft_model.py, get_prompt):
// one table, looked up in every forward pass. A prompt is repeated for each sequence, cast, and put before the
// embeddings. A prefix holds keys and values of all layers in a row of the table; the cache copies those of each layer,
// and joins them with the layer's own.
//
// Left out: prefixes through a projection (prefix_projection), encoders, models whose keys and values are one latent
// vector.
#pragma once

#include "core/network/builder.h"

namespace memscape {

/// x (B, S, H) after the prompt's embeddings, or as it is without one.
Variable withPrompt(NetworkBuilder& b, Variable x);

/// Keys and values (B, heads, V, D) before those of a layer's text; nothing without a prefix.
struct LayerPrefix
{
    Variable keys, values;
    void join(NetworkBuilder& b, Variable& k, Variable& v) const;
};

/// One for each layer; none without prefix tuning.
std::vector<LayerPrefix> learnedPrefix(NetworkBuilder& b, std::int64_t layers, std::int64_t heads, std::int64_t width);

} // namespace memscape

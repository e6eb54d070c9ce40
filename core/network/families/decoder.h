// SPDX-License-Identifier: Apache-2.0
// Decoders from their description, as Hugging Face transformers runs them operator by operator:
// LLaMA, Mistral, Qwen 2 and 3, Gemma 1 to 3, Phi, GPT-NeoX, OPT, Mixtral and other mixtures,
// DeepSeek's latent attention. What differs is an option of the description: norms, biases, gated
// feed-forward, parallel residuals, softcaps, experts.
//
// Experts run as eager loops over them, each on an equal share of the tokens: what routing really
// does is decided by the data.
//
// Left out: dropout outside attention where the published configuration has none, but for Megatron's; attention sinks
// in the fused kernels; the bias-only router correction of DeepSeek-V3.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// Whether its loss came to be that of LLaMA and those after it with transformers 4.49 alone (language_head.h).
bool isOlderThanLlama(const ModelDescription& model);

/// Whether each of its layers had tables of its own for all positions before transformers 4.45 (Mistral's until 4.41).
bool hadTablesInLayers(const ModelDescription& model);

/// GPT-NeoX before transformers 4.48: its tables are float whatever the weights are, and so are turned queries and
/// keys; each layer has a mask of all positions (modeling_gpt_neox.py of 4.43).
bool rotatesInFloat(const ModelDescription& model, Transformers version);

/// A language model on `options.batch` sequences of `options.sequence` tokens. Errors: those of
/// checkModel(), network.shape.
Result<Graph> decoder(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

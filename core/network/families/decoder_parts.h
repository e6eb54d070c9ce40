// SPDX-License-Identifier: Apache-2.0
// The parts of a decoder layer, shared by decoder.cpp and the files that hold its larger options.
#pragma once

#include "core/network/builder.h"
#include "core/network/decoder_names.h"
#include "core/network/families/virtual_tokens.h"
#include "core/network/model.h"

namespace memscape {

/// What all layers of one forward pass share: rotary tables (1, 1, S, rotated width) and the masks
/// that are added to the scores (B, 1, S, S), or (B, 1, S, V + S) after a learned prefix; nothing where a model has
/// none.
struct DecoderTables
{
    Variable cosine, sine;
    Variable slidingCosine, slidingSine; ///< Gemma 3 rotates its sliding layers on another base
    Variable mask, slidingMask;
    LayerPrefix prefix;                ///< of the layer that runs
    Variable slopes;                   ///< ALiBi: what is added to the scores (B, H, 1, S)
    Variable* probabilities = nullptr; ///< of a layer that names them until it returns (AttentionStyle)
};

/// The activation of x: one kernel, or GeluNew's eight.
Variable activated(NetworkBuilder& b, ActivationKind kind, Variable x);

/// The norm of the model's kind, a module of that name.
Variable decoderNorm(NetworkBuilder& b, const ModelDescription& model, std::string_view name, Variable x);

/// down(act(gate(x)) · up(x)), or down(act(up(x))); `width` is the inner one.
Variable decoderFeedForward(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                            const Variable& x, std::int64_t width, bool hasBias);

/// Router, the loop over experts and the shared part.
Variable decoderExperts(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names, const Variable& x);

/// Whether a network is built with experts that are one parameter: GPT-OSS' in training (stacked_experts.cpp). Left out
/// beside a base in fewer bits, and where ranks share experts.
bool hasStackedExperts(const ModelDescription& model, const BuildOptions& options);
/// Router and experts of such a layer.
Variable stackedExperts(NetworkBuilder& b, const ModelDescription& model, const Variable& x);

/// Attention on the normed x (B, S, hidden); `isSliding` picks the mask.
Variable decoderAttention(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                          const DecoderTables& tables, bool isSliding, const Variable& x);
Variable latentAttention(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                         const DecoderTables& tables, const Variable& x);

} // namespace memscape

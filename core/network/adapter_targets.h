// SPDX-License-Identifier: Apache-2.0
// Which layers get an adapter where none are named: what peft takes for each architecture of transformers
// (peft/utils/constants.py, TRANSFORMERS_MODELS_TO_…_TARGET_MODULES_MAPPING, 0.21): for LoRA and VeRA queries and
// values in most; for IA3 those, or keys, and the last matrix of the feed-forward part; of norms those of each layer
// and the last. peft refuses an architecture that it does not know; here every linear layer of its blocks gets one, or
// every norm of a decoder is trained.
//
// The network of gpt2 has the names of its own code (core/network/families/gpt2.h): those of transformers stand for
// them.
#pragma once

#include "core/network/build_options.h"
#include "core/network/model.h"

namespace memscape {

/// What "default" stands for; "all-linear" where peft has no default. Nothing for a prompt or a prefix.
std::vector<std::string> peftTargets(const ModelDescription& model, AdapterKind kind = AdapterKind::LowRank);
/// Of IA3's targets those of which the input is scaled.
std::vector<std::string> peftFeedForward(const ModelDescription& model);

/// The same options with the names of this network: "default" is resolved, and a prompt's tokens are in `sequence`.
BuildOptions withNamedAdapters(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Which linear layers get an adapter where none are named: what peft takes for each architecture of transformers
// (peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING, 0.21), queries and values in most.
// peft refuses an architecture that it does not know; here every linear layer of its blocks gets one.
//
// The network of gpt2 has the names of its own code (core/network/families/gpt2.h): those of transformers stand for
// them.
#pragma once

#include "core/network/build_options.h"
#include "core/network/model.h"

namespace memscape {

/// What "default" stands for; "all-linear" where peft has no default.
std::vector<std::string> peftTargets(const ModelDescription& model);

/// The same options with the names of this network: "default" is resolved.
BuildOptions withNamedAdapters(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

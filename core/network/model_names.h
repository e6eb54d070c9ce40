// SPDX-License-Identifier: Apache-2.0
// The text of a `model` parameter to a model:
//
//   gpt2-medium                          a name in resources/models/*.json (case does not matter)
//   meta-llama/Llama-3.1-8B-Instruct     the same with its publisher and variants of the same sizes
//   params:7.5e9                         a decoder like LLaMA with that many parameters
//   from-scratch:hidden=512,layers=4,heads=8,ffn=1344,vocab=10000   the decoder that students write
//   mlp:784,512,512,10                   a chain of linear layers
//   …/config.json                        a Hugging Face configuration (or the folder that holds it)
//   …/model.safetensors, …/model.safetensors.index.json             with the config.json beside it
//   …/net.json                           a network that memscape_probe.export wrote (network_file.h)
//
// A description always says where its sizes are from (source) and what was assumed.
#pragma once

#include "core/network/model_config.h"

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// Errors: model.unknown (with near names), model.architecture, model.recipe, model.range, model.contradiction,
/// config.missing, safetensors.*, network_file.*, json.*, file.*; the place is the path and the key, or the key.
Result<ModelDescription> readModel(std::string_view text, UnknownArchitecture unknown = UnknownArchitecture::Refused);

struct KnownModel
{
    std::string name;  ///< what readModel() takes: "gpt2-medium"
    std::string title; ///< "GPT-2 medium (355M)"
};

/// Every model of resourcesFolder()/models, family by family. Reads all files: keep the answer.
std::vector<KnownModel> knownModels(std::vector<Error>* problems = nullptr);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// What a library does where its user says nothing: parameters of `training-memory` (and of `inference-memory`) that
// `library=` implies for those that are not given, such as torchtune's bf16, chunked loss and adapters of rank 8. Each
// is read in the library's own default configuration, which `source` names; what a configuration must be told anyway
// (the batch, its length) is left to the user. Left out: defaults of a single model's recipe that the library's other
// recipes do not share.
#pragma once

#include "core/experiment/parameter.h"

#include <string>
#include <string_view>

namespace memscape {

/// Networks of transformers under that library, its Trainer or another loop.
bool runsTransformers(std::string_view library);
/// Its loop lets go of the logits before backward ends: compute_loss() or forward() returns the loss alone.
bool freesLogits(std::string_view library);

/// What the parameter `library` implies for others, by these parameters (adapters, shards); for Experiment::implied().
/// Nothing for library=auto.
ParameterTexts libraryDefaults(const Parameters& parameters);
/// "library=torchtune implies, where nothing else is said, precision=bf16, … (recipes/configs)" of those that hold;
/// empty where none does.
std::string libraryNote(const Parameters& parameters);

/// The same of `inference-memory`: vLLM's pages of 16 tokens and logits of sampled tokens alone, llama.cpp's cache in
/// F16.
ParameterTexts servingDefaults(const Parameters& parameters);
std::string servingNote(const Parameters& parameters);

} // namespace memscape

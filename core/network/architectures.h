// SPDX-License-Identifier: Apache-2.0
// What an architecture implies before any key of its configuration is read: which norms and biases
// it has, and the sizes that transformers takes when a key is missing (the defaults of its Config
// class; real files leave out what equals them). A size of 0 has no default: the file must say it.
#pragma once

#include "core/network/model.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// Every model_type that is known, for messages.
std::vector<std::string> knownArchitectures();

/// A description with the structure and the defaults of `modelType`; nothing when it is not known.
std::optional<ModelDescription> architectureStandard(std::string_view modelType);

/// What is taken for an architecture that is not known: a decoder like LLaMA without defaults.
ModelDescription decoderLikeLlama();

} // namespace memscape

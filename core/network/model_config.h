// SPDX-License-Identifier: Apache-2.0
// A model from a Hugging Face config.json. Read are the keys that decide a shape, under every name
// that vendors give them; a nested text_config is followed; what is missing takes transformers'
// default for that architecture, and the description says so (assumptions). An architecture that is
// not known is refused; taken for a decoder like LLaMA only where that is asked for, and said then: Falcon was a third
// off, StarCoder 40 %.
//
// Left out: vision and audio towers beside a language model, adapters, and layers other than
// attention with a feed-forward network (state-space, convolution, linear attention).
#pragma once

#include "core/base/json.h"
#include "core/network/model.h"

namespace memscape {

enum class UnknownArchitecture { Refused, LikeLlama };

/// `reader` is at the document. Errors name the key as place: json.type, config.missing, model.architecture,
/// model.range, model.contradiction.
Result<ModelDescription> modelFromConfig(const JsonReader& reader, const std::string& name,
                                         UnknownArchitecture unknown = UnknownArchitecture::Refused);

} // namespace memscape

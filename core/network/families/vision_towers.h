// SPDX-License-Identifier: Apache-2.0
// The vision towers in front of a decoder as Hugging Face transformers runs them, with what makes tokens of their
// features.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// CLIP's vision transformer and LLaVA's two linear layers: (B, tokens of a picture, hidden of the decoder).
Variable clipTokens(NetworkBuilder& b, const ModelDescription& model);

/// Qwen2-VL's and Qwen2.5-VL's: patches of all pictures are one sequence, (B · tokens of a picture, hidden).
Variable qwenTokens(NetworkBuilder& b, const ModelDescription& model);

} // namespace memscape

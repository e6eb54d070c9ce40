// SPDX-License-Identifier: Apache-2.0
// Pictures among the words of a decoder, as LLaVA (Liu et al. 2023) and Qwen2-VL (Wang et al. 2024) have them: a vision
// tower makes tokens of each picture, and these take their places in the sequence. Every sequence has one picture.
//
// Left out: several pictures a sequence, pictures cut into tiles (LLaVA 1.6), videos, a tower that is frozen.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// `words` (B, S, hidden) of `tokens` (B, S), with the pictures in their places.
Variable withPictures(NetworkBuilder& b, const ModelDescription& model, const Variable& tokens, Variable words);

} // namespace memscape

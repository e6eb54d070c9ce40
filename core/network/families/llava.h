// SPDX-License-Identifier: Apache-2.0
// LLaVA (Liu et al. 2023) as Hugging Face transformers runs it: CLIP's vision transformer makes features of the patches
// of a picture, two linear layers make tokens of them, and these take their places among the words of a decoder. Every
// sequence has one picture; its tokens count in the sequence.
//
// Left out: several pictures a sequence, pictures cut into tiles (LLaVA 1.6), a tower that is frozen.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// `words` (B, S, hidden) of `tokens` (B, S), with the pictures in their places.
Variable withPictures(NetworkBuilder& b, const ModelDescription& model, const Variable& tokens, Variable words);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Whisper (Radford et al. 2022) as Hugging Face transformers runs it: two convolutions halve a spectrogram into the
// positions of an encoder, always all of them (30 s); a decoder with cross-attention writes the text.
//
// Left out: SpecAugment, dropping whole layers.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// On `options.batch` recordings; `options.sequence` counts the tokens of each text.
Result<Graph> whisper(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

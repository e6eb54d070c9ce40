// SPDX-License-Identifier: Apache-2.0
// T5 (Raffel et al. 2020) as Hugging Face transformers runs it: RMSNorm before each part, scores
// without scaling plus a learned bias of the relative position that the first layer makes and all
// share, cross-attention to the encoder's output. Version 1.1 gates the feed-forward layer and
// unties the head.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// On `options.batch` pairs of sequences, both of `options.sequence` tokens.
Result<Graph> t5(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

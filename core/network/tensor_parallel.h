// SPDX-License-Identifier: Apache-2.0
// The part of a transformer that one of t devices holds (Megatron-LM: Shoeybi et al. 2019): heads,
// the width of feed-forward layers (and of each expert) and the vocabulary are divided; the hidden
// size, norms, positions and routers are whole on each. A vocabulary that t does not divide is
// padded; with fewer key/value heads than devices, each of them is repeated.
//
// Ranks that share experts: decoder_feed_forward.cpp; layers: pipeline_part.h.
#pragma once

#include "core/network/model.h"

namespace memscape {

/// `dividesExperts`: else experts stay whole (Megatron's expert tensor parallelism of 1). Errors: network.parallel,
/// whose place is the parameter or field that does not divide.
Result<ModelDescription> tensorParallelPart(const ModelDescription& model, int devices, bool dividesExperts = true);

} // namespace memscape

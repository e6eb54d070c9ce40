// SPDX-License-Identifier: Apache-2.0
// From a model's description to the program that eager PyTorch runs for it.
#pragma once

#include "core/network/build_options.h"
#include "core/network/graph.h"
#include "core/network/model.h"

namespace memscape {

/// Whether the code of a model's library computes attention by F.scaled_dot_product_attention. The from-scratch decoder
/// and models that do more with scores than scale and mask them write it out, before transformers 4.45 some others, too
/// (`_supports_sdpa` in 5.24 and 4.43).
bool callsFusedAttention(const ModelDescription& model, Transformers version);

/// The network of model.family. Errors: those of checkModel(), network.*.
Result<Graph> buildNetwork(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// DiT (Peebles & Xie 2023), as its authors' code runs it: a vision transformer on patches of a latent picture, whose
// norms are scaled and shifted, and whose parts are weighted, by what a small layer makes of time and class
// (adaLN-Zero).
//
// Left out: the autoencoder around it; the variational bound of the training loss (the channels of variance are
// compared as those of noise are); diffusers' copy, which makes time and class anew in each layer.
#pragma once

#include "core/network/build_options.h"
#include "core/network/graph.h"
#include "core/network/model.h"

namespace memscape {

/// Input "latents" (B, C, size, size), "times" (B), "labels" (B); result (B, outputs, size, size). Errors: model.*,
/// network.*.
Result<Graph> dit(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

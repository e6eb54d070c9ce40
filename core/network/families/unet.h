// SPDX-License-Identifier: Apache-2.0
// The UNet of Stable Diffusion 1 and 2 (Rombach et al. 2022), as diffusers' UNet2DConditionModel runs it: residual
// blocks of GroupNorm and SiLU that halve a latent picture's side and double it again, joined with what had the same
// size on the way down; transformer layers on its pixels, which also read the tokens of a text.
//
// Left out: the text encoder and the autoencoder around it, whose results are inputs; SDXL's second conditioning;
// ControlNet, LoRA layers of diffusers' own.
#pragma once

#include "core/network/build_options.h"
#include "core/network/graph.h"
#include "core/network/model.h"

namespace memscape {

/// Input "latents" (B, C, size, size), "times" (B), "texts" (B, tokens, width); result the noise, as large as the
/// latents. Errors: model.*, network.*.
Result<Graph> unet(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

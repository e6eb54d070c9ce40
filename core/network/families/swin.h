// SPDX-License-Identifier: Apache-2.0
// Swin (Liu et al. 2021) as Hugging Face transformers runs it: attention within windows of patches, which every second
// layer shifts; between stages four neighbours become one patch of twice the width.
//
// Left out: pictures that windows do not divide (they are padded), absolute positions, stochastic depth, the position
// bias that a fused attention kernel keeps.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// On `options.batch` pictures; the sequence is ignored.
Result<Graph> swin(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Convolutional networks from the list of their layers (cnn.h), as torchvision runs them:
// activations in place, a residual sum in place after the last norm of a block.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// On `options.batch` pictures; the sequence is ignored. Errors: those of cnnLayers(), network.*.
Result<Graph> cnnNetwork(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

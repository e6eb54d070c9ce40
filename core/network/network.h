// SPDX-License-Identifier: Apache-2.0
// From a model's description to the program that eager PyTorch runs for it.
#pragma once

#include "core/network/build_options.h"
#include "core/network/graph.h"
#include "core/network/model.h"

namespace memscape {

/// The network of model.family. Errors: those of checkModel(), network.*.
Result<Graph> buildNetwork(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

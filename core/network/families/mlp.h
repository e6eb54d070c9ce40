// SPDX-License-Identifier: Apache-2.0
// A chain of linear layers with an activation between them and the mean squared error as the loss.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// On `options.batch` rows of model.mlpSizes.front() numbers; the sequence is ignored.
Result<Graph> mlpChain(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape

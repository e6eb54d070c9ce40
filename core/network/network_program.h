// SPDX-License-Identifier: Apache-2.0
// Runs the program of a network file through a NetworkBuilder: one call of the builder for each operator, in the file's
// order, with the file's moments of death. So precision, autocast, adapters, checkpointing and the rules of devices act
// on it as on our own families.
//
// What differs from them, and is told as an assumption: dropout is the model's own; sizes that the model computed from
// values stay as they were; "other" operators make one gradient for each input.
#pragma once

#include "core/network/build_options.h"
#include "core/network/graph.h"
#include "core/network/network_file.h"

namespace memscape {

/// Errors: network_file.scale when the file holds for another batch or sequence alone, network_file.shape when an
/// operator's result has other sizes than the file says (the place is its module), those of the builder.
Result<Graph> runNetworkFile(const NetworkFile& file, const BuildOptions& options);

} // namespace memscape

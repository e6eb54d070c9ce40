// SPDX-License-Identifier: Apache-2.0
// What every step of one recorded network needs and no plan changes: its parameters as optimizers see them, the paths
// of its modules. Made once for a network, shared by the hundreds of steps that advice asks of it.
#pragma once

#include "core/network/recorded_networks.h"
#include "core/training/parameter_tensor.h"

#include <memory>
#include <vector>

namespace memscape {

struct PreparedNetwork
{
    std::vector<ParameterTensor> parameters; ///< in the graph's order
    std::shared_ptr<NameTable> modules;      ///< of traces; never changed behind this
    std::vector<ModuleId> moduleIds;         ///< beside Graph::modules
};

std::shared_ptr<const PreparedNetwork> preparedNetwork(const Graph& graph);
/// The same, kept beside the recorded network as long as that is.
std::shared_ptr<const PreparedNetwork> preparedNetwork(RecordedNetworks& networks, const Graph& graph);

} // namespace memscape

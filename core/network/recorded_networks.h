// SPDX-License-Identifier: Apache-2.0
// The networks of one model that were recorded already, for whoever asks the same model many things
// that do not change what it computes (optimizers, checkpointing, sharding).
#pragma once

#include "core/network/network.h"

#include <deque>
#include <memory>
#include <utility>

namespace memscape {

class RecordedNetworks
{
public:
    explicit RecordedNetworks(ModelDescription model);

    const ModelDescription& model() const { return m_model; }
    /// Recorded now, or earlier with the same options. Errors: those of buildNetwork().
    Result<std::shared_ptr<const Graph>> network(const BuildOptions& options);

private:
    ModelDescription m_model;
    std::deque<std::pair<BuildOptions, std::shared_ptr<const Graph>>> m_kept; ///< newest use first
};

} // namespace memscape

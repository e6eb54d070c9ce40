// SPDX-License-Identifier: Apache-2.0
// The networks of one model that were recorded already, for whoever asks the same model many things
// that do not change what it computes (optimizers, checkpointing, sharding).
#pragma once

#include "core/network/network.h"

#include <any>
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
    /// What a caller keeps with a recorded network until that is forgotten; null when it is.
    std::any* beside(const Graph& graph);

private:
    ModelDescription m_model;
    struct Kept
    {
        BuildOptions options;
        std::shared_ptr<const Graph> graph;
        std::any beside = {};
    };
    std::deque<Kept> m_kept; ///< newest use first
};

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// The networks of one model that were recorded already: many questions about a model (optimizers, checkpointing,
// sharding) do not change what it computes. Several threads may ask at once; one records while the others wait.
#pragma once

#include "core/network/network.h"

#include <any>
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace memscape {

class RecordedNetworks
{
public:
    explicit RecordedNetworks(ModelDescription model);

    const ModelDescription& model() const { return m_model; }
    /// Recorded now, or earlier with the same options. Errors: those of buildNetwork().
    Result<std::shared_ptr<const Graph>> network(const BuildOptions& options);
    /// What is made once of a recorded network and kept with it until that is forgotten.
    std::any beside(const Graph& graph, const std::function<std::any()>& make);

    /// What all answers about the model have taken, for tests that count instead of timing.
    struct Effort
    {
        std::size_t operators = 0; ///< recorded one by one, not copied
        std::size_t events = 0;    ///< of steps, simulated one by one
    };
    Effort effort() const { return {m_operators, m_events}; }
    void countEvents(std::size_t events) { m_events += events; }

private:
    Result<std::shared_ptr<const Graph>> found(const BuildOptions& options); ///< the mutex is held
    Result<Graph> made(const BuildOptions& options);

    std::atomic<std::size_t> m_operators = 0, m_events = 0;
    ModelDescription m_model;
    std::mutex m_mutex;
    struct Kept
    {
        BuildOptions options;
        std::shared_ptr<const Graph> graph;
        std::any beside = {};
    };
    std::deque<Kept> m_kept; ///< newest use first
};

} // namespace memscape

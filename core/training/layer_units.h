// SPDX-License-Identifier: Apache-2.0
// Layers whose weights are gathered at the moment, under ZeRO stage 3 (FSDP's full shard, a unit per layer):
// before an operator of a layer runs, forward or backward, all weights of the layer are gathered
// into one block, which is freed when an operator outside of the layer is next. Weights outside of
// layers are gathered around each operator that uses them. What a layer's backward recomputes uses
// the weights that its backward gathers.
//
// Source: Zhao et al. 2023 (PyTorch FSDP), reshard_after_forward; torch/distributed/fsdp. Left out:
// prefetching of the next unit (two units at once), FSDP's root unit, which keeps its weights from
// forward to backward.
#pragma once

#include "core/network/graph.h"
#include "core/trace/trace.h"

#include <span>
#include <vector>

namespace memscape {

class LayerUnits
{
public:
    /// `gathered`, beside Graph::parameters, are bytes of whole weights; empty: they are never
    /// gathered, and only the borders of layers count. `modules` translates the graph's modules.
    LayerUnits(const Graph& graph, std::span<const std::int64_t> gathered, Trace& trace,
               std::span<const ModuleId> modules);

    /// Whether an operator belongs to another unit than the last one did.
    bool isBorder(std::uint32_t op) const { return m_unitOf[op] != m_current; }
    /// An operator is about to run: its weights are there after this.
    void enter(std::uint32_t op);
    /// It has run.
    void ran();
    /// The pass ends: nothing is whole any more.
    void leave();

private:
    struct Unit
    {
        std::int64_t bytes = 0;
        ModuleId module = 0;
    };
    void addUnit(const Block& block, std::span<const ModuleId> modules);
    std::int64_t weightsOf(std::uint32_t first, std::uint32_t last);

    const Graph& m_graph;
    Trace& m_trace;
    NameId m_name;
    std::vector<std::int64_t> m_bytes; ///< by storage: of the whole parameter, else 0
    std::vector<std::uint32_t> m_seen; ///< by storage: the last sum that counted it
    std::uint32_t m_sum = 0;
    std::vector<Unit> m_units;           ///< 0 is outside of layers
    std::vector<std::uint32_t> m_unitOf; ///< by operator
    std::uint32_t m_current = 0;
    BlockId m_whole = noBlock; ///< of the current unit
    BlockId m_own = noBlock;   ///< of one operator outside of layers
};

} // namespace memscape

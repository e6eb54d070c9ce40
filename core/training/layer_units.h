// SPDX-License-Identifier: Apache-2.0
// Layers whose weights are gathered at the moment, as ZeRO's paper has it for stage 3: before an operator of a layer
// runs, forward or backward, all weights of the layer are gathered into one block, which is freed when an operator
// outside of the layer is next. Weights outside of layers are gathered around each operator that uses them. What a
// layer's backward recomputes uses the weights that its backward gathers.
//
// Source: Rajbhandari et al. 2020, section 5.3. Left out: what implementations gather ahead and keep (fsdp_units.h,
// deepspeed_weights.h).
#pragma once

#include "core/training/gathered_weights.h"

namespace memscape {

class LayerUnits final : public GatheredWeights
{
public:
    /// `gathered`, beside Graph::parameters, are bytes of whole weights; empty: they are never
    /// gathered, and only the borders of layers count. `modules` translates the graph's modules.
    LayerUnits(const Graph& graph, std::span<const std::int64_t> gathered, Trace& trace,
               std::span<const ModuleId> modules);

    bool isBorder(std::uint32_t op) const override { return m_layers.unitOf[op] != m_current; }
    void enter(std::uint32_t op, bool isReplay) override;
    void ran() override;
    void leave() override;

private:
    std::int64_t weightsOf(std::uint32_t first, std::uint32_t last);

    const Graph& m_graph;
    Trace& m_trace;
    NameId m_name;
    std::vector<std::int64_t> m_bytes; ///< by storage: of the whole parameter, else 0
    std::vector<std::uint32_t> m_seen; ///< by storage: the last sum that counted it
    std::uint32_t m_sum = 0;
    LayerMap m_layers;
    std::vector<std::int64_t> m_unitBytes; ///< of each layer's weights; 0 outside
    std::uint32_t m_current = 0;
    BlockId m_whole = noBlock; ///< of the current unit
    BlockId m_own = noBlock;   ///< of one operator outside of layers
};

} // namespace memscape

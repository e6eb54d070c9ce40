// SPDX-License-Identifier: Apache-2.0
// PyTorch's FSDP: which units are whole, and the buffers that they are gathered through. Every layer is a unit; what
// lies outside of layers (embeddings, last norm, head) is the root, which is gathered first and stays whole from
// forward to the end of backward.
//
//   forward    FSDP 2 gathers a unit into one buffer and copies that out to the parameters; the buffer stays
//              until the next unit is copied out. The parameters are given back behind the unit, unless
//              reshard_after_forward=False.
//   backward   when the gradient of a unit's output is there, the unit before it is gathered, too: two units
//              at once. FSDP 2's prefetched unit is its buffer alone, which ends when it is copied out.
//   FSDP 1     gathers into one flat parameter, of which the parameters are views: nothing is copied out.
//
// Mixed precision: a half copy of the own shard exists while it is gathered. What becomes of gradients:
// parameter_gradients.cpp. What backward recomputes finds its unit whole and leaves it so.
//
// Sources: PyTorch 2.15, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (unshard, wait_for_unshard,
// pre_backward, post_backward) and _runtime_utils.py (_post_forward_reshard, _prefetch_handle,
// backward_prefetch=BACKWARD_PRE). FSDP 1's limit_all_gathers makes the host wait, so that gathers which are given back
// can be used again: it changes what is reserved, not what is allocated. Left out: explicit forward prefetching, the
// reuse of blocks between streams.
#pragma once

#include "core/training/gathered_weights.h"
#include "core/training/placement.h"

namespace memscape {

class FsdpUnits final : public GatheredWeights
{
public:
    /// `gathered`, beside Graph::parameters, are bytes of whole weights. `rules` must outlive this.
    FsdpUnits(const Graph& graph, const FsdpRules& rules, std::span<const std::int64_t> gathered, Trace& trace,
              std::span<const ModuleId> modules);

    std::uint32_t current() const { return m_current; } ///< the unit of the last operator, 0 is the root
    /// The unit that a parameter belongs to, by its index in Graph::parameters.
    std::uint32_t unitOf(std::size_t parameter) const { return m_owner[parameter]; }

    void beginForward() override;
    void beginBackward() override;
    bool isBorder(std::uint32_t op) const override { return m_layers.unitOf[op] != m_current; }
    void enter(std::uint32_t op, bool isReplay) override;
    void leave() override;
    void endForward() override;
    void endBackward() override;

private:
    struct Unit
    {
        std::vector<std::int64_t> parameters = {}; ///< B of each, whole
        std::int64_t bytes = 0;                    ///< of all
        std::int64_t copied = 0;                   ///< B of the own shard's half copy
        BlockId buffer = noBlock;                  ///< gathered, not copied out
        std::vector<BlockId> whole = {};
        bool isWhole() const { return !whole.empty(); }
    };
    void gather(std::uint32_t unit);
    void makeWhole(std::uint32_t unit);
    void giveBack(std::uint32_t unit);
    void prepareBackward(std::uint32_t unit);

    const FsdpRules& m_rules;
    Trace& m_trace;
    NameId m_name, m_bufferName, m_copyName;
    LayerMap m_layers;
    std::vector<std::uint32_t> m_owner; ///< by parameter
    std::vector<Unit> m_units;
    std::uint32_t m_current = 0;
    std::uint32_t m_begun = 0; ///< units from here on have begun backward
    bool m_isForward = true;
    bool m_isReplaying = false;
    BlockId m_held = noBlock; ///< the buffer of the unit that was copied out last in forward
};

} // namespace memscape

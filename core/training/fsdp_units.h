// SPDX-License-Identifier: Apache-2.0
// PyTorch's FSDP: which units are whole, and the buffers that they are gathered through. Which modules are units:
// fsdp_wrapping.h; what lies outside of them (of layers: embeddings, last norm, head) is the root, which is gathered
// first and stays whole from forward to the end of backward.
//
//   forward    FSDP 2 gathers a unit into one buffer and copies that out to the parameters; the buffer stays
//              until the next unit is copied out. The parameters are given back behind the unit, unless
//              reshard_after_forward=False.
//   backward   when the gradient of a unit's output is there, the unit whose forward ended before it is gathered, too:
//              two units at once. FSDP 2's prefetched unit is its buffer alone, which ends when it is copied out. A
//              unit ends with the last gradient of its own parameters.
//   FSDP 1     gathers into one flat parameter, of which the parameters are views: nothing is copied out.
//
// Mixed precision: a half copy of the own shard exists while it is gathered. What becomes of gradients:
// parameter_gradients.cpp. What backward recomputes finds its unit whole and leaves it so where that has begun
// backward; other units of a segment are gathered for it and given back as in forward.
//
// Sources: PyTorch 2.15, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (unshard, wait_for_unshard,
// pre_backward, post_backward) and _runtime_utils.py (_post_forward_reshard, _prefetch_handle,
// backward_prefetch=BACKWARD_PRE), _limiter_utils.py.
//
// FSDP 1 hooks the inputs of a unit that is frozen (adapters beside it are units of their own), to give it back behind
// its backward (_register_post_backward_reshard_only_hook). The inputs of a reentrant checkpoint are leaves, which such
// a hook ties to itself: they stay, and their gradients with them, until all of backward has ended.
//
// What is reserved: gathers and reductions have streams of their own, and a block serves its own stream alone. FSDP 1
// frees with record_stream, and limit_all_gathers makes the host wait for the last but two of these frees
// (Trace::freeBehind). While FSDP 1 wraps the units it moves each to the device and joins it to a flat
// parameter; the blocks of that stay reserved (Trace::beginPassing). Left out: explicit forward prefetching; flat
// gradients, which FSDP 1 frees behind the reduction, too; a model that was whole on the device before; that stage 2
// keeps weights whole from one micro-batch to the next under no_sync().
#pragma once

#include "core/training/fsdp_wrapping.h"
#include "core/training/gathered_weights.h"
#include "core/training/placement.h"

namespace memscape {

/// Streams in which blocks are allocated: the caching allocator gives a block to none but its own. 0 is that of the
/// computation.
namespace FsdpStreams {
constexpr std::uint16_t gather = 1, reduce = 2, halfCopy = 3;
}

class FsdpUnits final : public GatheredWeights
{
public:
    /// `gathered`, beside Graph::parameters, are bytes of whole weights. `rules` must outlive this.
    FsdpUnits(const Graph& graph, const FsdpRules& rules, std::span<const std::int64_t> gathered, Trace& trace,
              std::span<const ModuleId> modules);

    std::uint32_t current() const { return m_current; } ///< the unit of the last operator, 0 is the root
    /// The unit that a parameter belongs to, by its index in Graph::parameters.
    std::uint32_t unitOf(std::size_t parameter) const { return m_wrapping.ownerOf[parameter]; }

    /// B of each block that FSDP 1 leaves free behind it when it has made flat parameters of the units, one after the
    /// other: those of the largest unit and of the root, as they were loaded and joined.
    std::vector<std::int64_t> wrappingBytes() const;

    void beginForward() override;
    void beginBackward() override;
    bool isBorder(std::uint32_t op) const override { return !runs(m_current, op); }
    /// What comes next is run again, for the operator that was entered last.
    void beginReplay() { m_isReplaying = true; }
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
        bool hasBegun = false;                     ///< backward: the gradient of its output is there
        BlockId buffer = noBlock;                  ///< gathered, not copied out
        std::vector<BlockId> whole = {};
        bool isWhole() const { return !whole.empty(); }
    };
    bool runs(std::uint32_t unit, std::uint32_t op) const;
    void enterUnit(std::uint32_t unit, std::uint32_t op);
    void gather(std::uint32_t unit);
    void makeWhole(std::uint32_t unit);
    void giveBack(std::uint32_t unit);
    void prepareBackward(std::uint32_t unit);

    const FsdpRules& m_rules;
    Trace& m_trace;
    NameId m_name, m_bufferName, m_copyName;
    FsdpWrapping m_wrapping;
    std::vector<Unit> m_units;
    std::uint32_t m_current = 0;
    std::size_t m_waiting = 0; ///< blocks freed behind the computation that has not come past them
    bool m_isForward = true;
    bool m_isReplaying = false;
    BlockId m_held = noBlock; ///< the buffer of the unit that was copied out last in forward
};

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Weights under DeepSpeed's ZeRO stage 3. The order in which modules use parameters was recorded in the first step; a
// module here is an operator with its parameters. Before a module runs, what it lacks is gathered, and the queue of
// coming uses is worked off for another stage3_prefetch_bucket_size elements, as long as fewer than
// stage3_max_live_parameters are whole: small modules let it run far ahead. Behind a module its parameters are given
// back, unless they are used again within stage3_max_reuse_distance elements (those around the turn from forward to
// backward are), or the queue has passed a later use of them.
//
// Source: DeepSpeed 0.19.8, runtime/zero/partitioned_param_coordinator.py (fetch_sub_module, __params_to_release). What
// backward recomputes is not in the queue here: its parameters are there for the backward pass that follows. Where
// products keep gathered weights (DeepSpeedRules::keepsGathered), what forward gives back ends with the product's
// backward; a checkpointed segment's forward keeps nothing, and its replay is followed by backward.
//
// A parameter that is gathered alone is a view of what the ranks have sent. Several are gathered at once into one
// buffer, and copied out of it when the first of them is used; the buffer stays until the last one is
// (partition_parameters.py, AllGatherCoalescedHandle). Gathers have a stream of their own, which waits for no
// computation, and what is given back was used in another one (free_param, record_stream): it stays until the device
// has come past its use, as far behind the host as host_lead.h says. The same holds for gradients that the reductions'
// stream copies into the bucket. In backward the host waits for the reduction before the last two, at its end for all
// (stage3.py, max_param_reduce_events, independent_gradient_partition_epilogue). A command is counted for each operator
// (two for a product's backward), for the event that a module with weights waits for and for that of each parameter
// given back. Left out: gathers that are slower than the computation, which then is not behind (few tokens, slow
// links); NVMe.
#pragma once

#include "core/training/gathered_weights.h"
#include "core/training/host_lead.h"
#include "core/training/placement.h"
#include "core/training/segments.h"

namespace memscape {

class DeepSpeedWeights final : public GatheredWeights
{
public:
    /// `gathered`, beside Graph::parameters, are bytes of whole weights; 0: the parameter is never given back.
    /// `segments` are those that are checkpointed.
    DeepSpeedWeights(const Graph& graph, const DeepSpeedRules& rules, std::span<const std::int64_t> gathered,
                     Trace& trace, std::span<const ModuleId> modules, std::span<const Segment> segments);

    void beginForward() override;
    void beginBackward() override { m_isForward = false; }
    bool isBorder(std::uint32_t) const override { return false; }
    void enter(std::uint32_t op, bool isReplay) override;
    void ran() override;
    void leave() override { }
    void endBackward() override;
    void freeGradient(BlockId block) override { m_lead.freeBehind(block); }
    void reduce() override { m_lead.record(reductionsUnderWay); }

private:
    static constexpr std::size_t reductionsUnderWay = 2; ///< max_param_reduce_events
    static constexpr std::uint32_t noStep = UINT32_MAX;
    struct Parameter
    {
        std::int64_t bytes = 0, elements = 0;
        ModuleId module = 0;
        BlockId block = noBlock;
        std::uint32_t queued = 0;      ///< steps up to its last use that the queue has passed
        std::uint32_t gather = noStep; ///< that it is on its way in, with others
        bool isHere() const { return block != noBlock || gather != noStep; }
    };
    struct Gather ///< of several
    {
        std::vector<std::uint32_t> parameters = {};
        BlockId buffer = noBlock;
        std::uint32_t waiting = 0; ///< of them, those that have not been used
        bool isCopied = false;
    };
    struct Use
    {
        std::uint32_t parameter = 0, step = 0, next = noStep; ///< the step of the next use
    };
    struct Step ///< an operator that uses weights, forward or backward
    {
        std::uint32_t first = 0, last = 0;
        std::int64_t before = 0; ///< elements that earlier steps use
    };
    std::uint32_t addStep(std::span<const std::uint32_t> used);
    void gather(const std::vector<std::uint32_t>& parameters);
    void await(std::uint32_t parameter);
    void allocate(std::uint32_t parameter, std::int64_t bytes);
    std::int64_t paddedBytes(const Parameter& parameter) const;
    void prefetch();
    void giveBack(std::uint32_t parameter);
    void give(BlockId block);
    void endSaved(std::uint32_t op);

    Trace& m_trace;
    HostLead m_lead;
    NameId m_name, m_bufferName;
    DeepSpeedSizes m_sizes;
    std::int64_t m_devices;
    std::vector<Gather> m_gathers;
    std::vector<Parameter> m_parameters;
    std::vector<std::vector<std::uint32_t>> m_usedBy; ///< by operator: indices of parameters
    std::vector<Step> m_steps;
    std::vector<Use> m_uses;
    std::vector<std::uint32_t> m_forward, m_backward; ///< by operator: its step
    std::vector<std::uint8_t> m_isProduct, m_waits;   ///< by operator
    std::vector<std::uint8_t> m_saves;                ///< by operator: its node keeps the weight
    std::vector<std::vector<BlockId>> m_saved;        ///< by operator: given back, and kept
    std::uint32_t m_step = noStep, m_op = 0;          ///< that run
    std::size_t m_queue = 0;                          ///< into m_uses
    std::int64_t m_live = 0;                          ///< elements
    std::int64_t m_traversed = 0;                     ///< elements of all steps
    bool m_isForward = true, m_isReplay = false;
};

} // namespace memscape

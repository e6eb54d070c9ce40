// SPDX-License-Identifier: Apache-2.0
// Weights of which a device keeps pieces, and which are whole only while they are used: what the autograd engine tells
// the code that gathers them. Who gathers what, and when it is given back: layer_units.h (ZeRO's paper), fsdp_units.h,
// deepspeed_weights.h.
#pragma once

#include "core/network/graph.h"
#include "core/trace/trace.h"

#include <cstdint>
#include <span>
#include <vector>

namespace memscape {

/// Layers of a graph as units: 0 is what lies outside of them, layer i of Graph::blocks is unit i + 1.
struct LayerMap
{
    LayerMap(const Graph& graph, std::span<const ModuleId> modules);

    std::vector<std::uint32_t> unitOf; ///< by operator
    std::vector<ModuleId> moduleOf;    ///< by unit: the innermost that all its operators lie in
    std::size_t units() const { return moduleOf.size(); }
};

class GatheredWeights
{
public:
    virtual ~GatheredWeights() = default;

    virtual void beginForward() { }
    virtual void beginBackward() { }
    /// Whether an operator belongs to another unit than the last one did: `leave` comes before it.
    virtual bool isBorder(std::uint32_t op) const = 0;
    /// An operator is about to run, in the pass that has begun: its weights are there after this. What backward
    /// recomputes runs forward, `isReplay`.
    virtual void enter(std::uint32_t op, bool isReplay) = 0;
    /// It has run.
    virtual void ran() { }
    /// The unit of the last operator ends, or the pass does.
    virtual void leave() = 0;
    virtual void endForward() { }
    virtual void endBackward() { }

    /// A gradient that was copied away in the reductions' own stream.
    virtual void freeGradient(BlockId) { }
    /// The host is about to have gradients reduced behind what has run.
    virtual void reduce() { }
};

} // namespace memscape

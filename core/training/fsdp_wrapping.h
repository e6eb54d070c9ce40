// SPDX-License-Identifier: Apache-2.0
// Which modules FSDP makes units of, each of which it gathers at once.
//
//   block   every layer of the model (transformer_auto_wrap_policy, fully_shard of each block)
//   size    size_based_auto_wrap_policy: a module of fewer than `least` parameters is left to what encloses it; of a
//           larger one the children come first, and it is a unit if as many remain beside their units. Lists of modules
//           and the model itself are none. So units enclose each other: with the usual 10^8, Llama 3.1 8B has a unit
//           for its embedding, its head and each MLP, and one around all layers for attention and norms.
//   whole   none but the root (auto_wrap_policy=None, Accelerate's NO_WRAP, fully_shard(model))
//
// What lies outside of all units is the root. A unit runs from its first operator to its last, with what is between.
// Sources: PyTorch 2.15, torch/distributed/fsdp/wrap.py (_recursive_wrap, size_based_auto_wrap_policy);
// Accelerate 1.15, utils/dataclasses.py (FullyShardedDataParallelPlugin).
//
// Left out: force_leaf_modules (nn.MultiheadAttention) and nn.Sequential, which is taken for a list; that FSDP unties a
// weight which two units share: here it belongs to the root; that frozen units of one input all wait for its gradient.
#pragma once

#include "core/network/graph.h"
#include "core/trace/trace.h"
#include "core/training/plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace memscape {

struct FsdpUnit
{
    std::uint32_t parent = 0; ///< the unit around it
    std::uint32_t first = 0;  ///< of the operators [first, last) that run inside
    std::uint32_t last = 0;
    std::uint32_t end = 0;    ///< the operator whose backward gives the last of its own gradients
    std::uint32_t before = 0; ///< whose forward ended before its own: backward gathers that one next; 0: none
    ModuleId module = 0;
};

struct FsdpWrapping
{
    /// `modules` are the trace's, beside Graph::modules; `least` is of FsdpWrap::Size alone.
    FsdpWrapping(const Graph& graph, std::span<const ModuleId> modules, FsdpWrap wrap, std::int64_t least);

    std::vector<FsdpUnit> units;        ///< 0 is the root; each comes before what it encloses
    std::vector<std::uint32_t> unitOf;  ///< by operator: the innermost
    std::vector<std::uint32_t> ownerOf; ///< by Graph::parameters; the root has what several units use

private:
    void wrapBySize(const Graph& graph, std::span<const ModuleId> modules, std::int64_t least);
    void findOrder();
};

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Which operators of a recorded network torch.compile compiles together: a region is one compiled function, with
// inputs and results in memory; what is in none runs eagerly.
//
//   Network   all of it: torch.compile(model), the loss too
//   Layers    regional compilation: each layer alone and the loss alone, what is between them eagerly (torchtune's and
//             torchtitan's compile option, accelerate's compile_regions)
//
// A float copy of all logits (`logits.float()`) is the model's, as torchtune and transformers have it; that of a chunk
// is the loss's. torchtitan casts within its loss: as if there were no such copy.
//
// Collectives among a layer's operators (tensor parallelism) are kernels of their own there, never run twice.
//
// Left out: graph breaks, which would make more regions.
#pragma once

#include "core/network/build_options.h"
#include "core/network/graph.h"

namespace memscape {

struct CompiledRegions
{
    static constexpr std::uint32_t none = UINT32_MAX;

    std::vector<CompiledRegion> regions;   ///< of the recorded network, in program order, disjoint
    std::vector<std::uint32_t> ofOperator; ///< its region, or none
    std::vector<std::uint32_t> makerOf;    ///< by tensor: the operator; none: it exists before the step
    /// By tensor made in a region: something outside of it reads it, or the training loop.
    std::vector<std::uint8_t> isResult;
    /// By tensor made in a region: its name is the region's own and ends with its last reader.
    std::vector<std::uint8_t> isInner;

    CompiledRegions(const Graph& graph, CompileScope scope);
    std::uint32_t ofMaker(TensorId tensor) const;
};

/// Views share the storage of what they look at.
constexpr bool isViewOfInput(OperatorKind kind)
{
    return kind >= OperatorKind::View && kind <= OperatorKind::Detach;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// A network as AOTAutograd sees it before it is divided into forward and backward: each operator taken apart into
// Inductor's primitive ones (torch/_decomp/decompositions.py, torch/_inductor/decomposition.py, PyTorch 2.15), and of
// backward what it reads of the forward pass. A layer norm is a mean, a deviation, a difference, a product; its
// backward reads the normalized rows, the deviation divided by the width, and the weight.
//
// Regions that are compiled alone are parts without edges between them: what one makes is an input of the next. What
// runs eagerly is in none.
//
// Copies of layers (Graph::copies) are left out: they are divided as what they were copied from.
// Left out: the arithmetic of backward itself, which is recomputed nowhere; primitives without an effect on what is
// kept (chains of elementwise ones in between are one node).
#pragma once

#include "core/network/compile/compiled_regions.h"

#include <vector>

namespace memscape {

using JointId = std::uint32_t;
constexpr JointId noJoint = UINT32_MAX;

/// One primitive of the forward pass, or one that only backward needs of it (`isForward` is off).
struct JointNode
{
    std::int64_t bytes = 0;
    DType dtype = DType::Float32;
    std::uint32_t op = 0;       ///< of the graph; what exists before the step has the last index
    TensorId tensor = noTensor; ///< of the graph, where it has one
    bool isInput = false;       ///< exists before its region runs
    bool isStatic = false;      ///< a parameter or buffer: costs nothing to keep
    bool isForward = true;
    bool isView = false;
    bool isFusible = true;
    bool isConcatenation = false; ///< takes producers into its kernel, joins no other
    bool isRecomputable = true;
    bool isOutput = false;    ///< of its region
    bool isReadFused = false; ///< by backward, in a fused kernel
    bool isReadWhole = false; ///< by backward, in a product or another kernel that wants it in memory
    std::vector<JointId> inputs;
    std::vector<JointId> users;
};

struct JointGraph
{
    std::vector<JointNode> nodes;            ///< in program order
    std::vector<std::vector<JointId>> reads; ///< by operator: what its backward reads
    std::vector<JointId> ofTensor;           ///< by tensor of the graph
};

JointGraph jointGraph(const Graph& graph, const CompiledRegions& regions);

/// Loops whose copies are left out: the outermost, three iterations of which were recorded.
std::vector<CopiedOperators> outerLoops(const Graph& graph);
/// By operator: the one of the third iteration that it is a copy of, or itself.
std::vector<std::uint32_t> originals(const Graph& graph, const std::vector<CopiedOperators>& loops);

} // namespace memscape

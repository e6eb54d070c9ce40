// SPDX-License-Identifier: Apache-2.0
// A recorded network as torch.compile runs it (AOTAutograd and Inductor, PyTorch 2.15): chains of elementwise
// operators, reductions and norms become one kernel each, whose intermediate results are never in memory; backward
// keeps what the minimum cut chose (partition.h) and runs cheap operators again inside its own kernels.
//
//   * Products, convolutions, attention, lookups, pooling and kernels of others stay what they are.
//   * A fused kernel runs when something that is not fused needs it: a gate is not written before it is multiplied.
//   * Its results in memory are what others read and what is kept for backward.
//   * A variable's name ends with its last reader, not where Python drops it.
//   * Regional compilation makes a function of each layer (compiled_regions.h): its input and its result are in memory,
//     and what a layer is given is kept for its backward.
//
// Left out: reuse of buffers between kernels (it changes who owns bytes, not how many live), what Inductor computes
// twice instead of writing it, reductions that it splits in two kernels, CUDA graphs and their private pools,
// autotuning, graph breaks.
#pragma once

#include "core/base/result.h"
#include "core/network/build_options.h"
#include "core/network/graph.h"

namespace memscape {

/// Errors: network.compile where one kernel would take more tensors than an operator has room for.
Result<Graph> compiledGraph(const Graph& graph, CompileScope scope);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// What a compiled network keeps for backward: a minimum cut of the joint graph, by the rules and weights of PyTorch
// 2.15 (torch/_functorch/partitioners.py, solve_min_cut with its default configuration):
//   * what is kept costs its bytes, twice if all that read it would be in its kernel, times 1.1 for each step towards
//     backward (at most 100);
//   * never run again: what is not on the list of cheap operators; what backward needs in memory for a product;
//     reductions to less than a quarter; what would join kernels that lie far apart; the end of fusible chains of over
//     100 operators.
// Left out: activation_memory_budget below 1, collectives that are always kept, symbolic shapes.
#pragma once

#include "core/network/compile/joint_graph.h"

namespace memscape {

/// By node of the joint graph: whether it is kept from forward to backward.
std::vector<std::uint8_t> keptNodes(const JointGraph& joint);

/// By operator: the kept nodes (or inputs of the network) that its backward reads, through what it runs again.
std::vector<std::vector<JointId>> neededNodes(const JointGraph& joint, const std::vector<std::uint8_t>& kept);

} // namespace memscape

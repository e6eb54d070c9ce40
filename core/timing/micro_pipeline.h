// SPDX-License-Identifier: Apache-2.0
// Asynchronous tensor parallelism: what sequence parallelism gathers and scatters goes in as many pieces as there are
// ranks, each beside the product of another piece (PyTorch: torch/_inductor/fx_passes/micro_pipeline_tp.py and
// _pipelined_multi_all_gather_and_consume, _pipelined_produce_and_all2all of torch/distributed/_symmetric_memory). A
// rank begins with the piece that it has, and ends with one: of t ranks
//
//     waited = max(0, collective − (t − 1) / t × its products)
//
// Of a layer, and again where a replay runs it forward:
//     forward    what a product reads is gathered beside all products that read it; what a product wrote is scattered
//                beside it
//     backward   a gathered gradient goes beside the product that makes the input's gradient from it. The gradient of
//                what several products read is their sum, which is no product: its scattering is waited for, unless
//                there is one alone
//
// Left out: pieces that fill the multiprocessors worse than the whole, and bandwidth of the memory that copies take.
#pragma once

#include "core/timing/operator_runs.h"
#include "core/training/communication.h"

#include <functional>
#include <span>

namespace memscape {

/// s of a step's collectives of tensor parallelism that it does not wait for, launch latency included. `seconds`: of
/// one collective, as it is waited for otherwise. 0 where the plan is not asynchronous.
double hiddenByPieces(const Graph& graph, const Plan& plan, const OperatorRuns& runs,
                      std::span<const RecomputedRange> recomputed,
                      const std::function<double(const Collective&)>& seconds);

} // namespace memscape

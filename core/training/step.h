// SPDX-License-Identifier: Apache-2.0
// One training step (or a forward pass, or inference) of a recorded network under a plan, as a trace: a step behind the
// first, which finds the optimizer's state and, where zero_grad keeps them, the gradients;
// what exists before the step, forward and backward of each micro-batch (autograd.h), clipping, the
// optimizer, zero_grad (optimizer_step.h).
//
// The network must have been recorded for the plan: its batch, precision, attention, tensor
// parallelism; without gradients for inference (BuildOptions). Under ZeRO the weights and gradients
// of one device are kept as pieces (sharding.h), whole weights exist while they are used (gathered_weights.h), whole
// gradients until they are reduced (parameter_gradients.cpp).
//
// A rank of a pipeline runs the passes of its chunks in the order of the schedule (pipeline_schedule.h), as many
// micro-batches as differ from each other.
//
// Left out: the step on the host under offload (its time: core/timing/offload_time.h).
#pragma once

#include "core/network/graph.h"
#include "core/trace/allocator.h"
#include "core/training/autograd.h"
#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"
#include "core/training/prepared_network.h"

namespace memscape {

struct StepSettings
{
    Plan plan;
    CheckpointPlan checkpointing;
    EagerRules rules;               ///< those that the network was recorded with
    int pipelineRank = 0;           ///< whose part of the network it is
    std::int64_t blasWorkspace = 0; ///< B for products (blas_workspace.h); 0 without a GPU
    /// Micro-batches that are alike are stored once, as a repetition of the trace. The second finds the gradients of
    /// the first, and every later one finds what the second found.
    bool repeatsMicroBatches = false;
};

/// B at the peak of the first step, whose passes find no optimizer's state and no loss of a step before; `trace` is
/// that of a later one, whose gradients zero_grad frees.
std::int64_t firstStepPeak(const Trace& trace);

/// Errors: those of checkPlan, trace.overflow.
Result<Trace> simulateStep(const Graph& graph, const StepSettings& settings);
Result<Trace> simulateStep(const Graph& graph, const PreparedNetwork& network, const StepSettings& settings);

/// What a step takes of an allocator.
struct StepTotals
{
    std::int64_t peak = 0; ///< B that the program holds
    AllocatorStatistics allocator;
    bool isRefused = false; ///< memory ran out: the others are of that moment
    std::size_t events = 0; ///< that were simulated one by one
};
/// The same step straight into an allocator, without a trace of it: what advice asks a hundred times. Micro-batches
/// behind which the allocator is where it was after an earlier one are counted, not run. Errors: the same.
Result<StepTotals> stepTotals(const Graph& graph, const PreparedNetwork& network, const StepSettings& settings,
                              const AllocatorOptions& allocator);
/// The same as one of several steps, one after the other in one allocator, which `memory` connects. Totals are those of
/// all steps so far. Errors: the same.
Result<StepTotals> nextStepTotals(const Graph& graph, const PreparedNetwork& network, const StepSettings& settings,
                                  CachingAllocator& allocator, StepMemory& memory);
/// The same of one micro-batch, which may differ from the others of its step; the update comes behind the last of
/// plan.accumulation. Not for pipelines, nor for micro-batches of FSDP that do not reduce. Errors: the same.
Result<StepTotals> nextMicroBatchTotals(const Graph& graph, const PreparedNetwork& network,
                                        const StepSettings& settings, CachingAllocator& allocator, StepMemory& memory);
/// Forward and backward without the optimizer's state and its update: a trace that only counts. Every micro-batch
/// is run. Errors: the same.
Result<Trace> countPasses(const Graph& graph, const PreparedNetwork& network, StepSettings settings);

} // namespace memscape

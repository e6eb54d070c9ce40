// SPDX-License-Identifier: Apache-2.0
// How long a training step takes, operator by operator:
//     t(operator) = max(FLOPs / rate, bytes / bandwidth) + kernels × launch period
//     step = accumulation × (forward + backward + recomputation) + optimizer + exposed transfers
// rate is the device's dense rate of the operands' type for products (times an efficiency that the
// caller sets; 1 makes the result a floor) and its fp32 rate for the rest; bandwidth is what a copy
// reaches in DRAM. Williams, Waterman, Patterson 2009 (roofline).
//
// Communication: gradients are reduced while backward runs and stage-3 weights are gathered while
// forward and backward run (Plan::hidesReductions), so only what does not fit behind them is exposed, and what is
// hidden takes multiprocessors from the passes (`slowed`); tensor parallelism's collectives, and tokens on their way to
// experts, wait for their operands and are all exposed; keys and values that ranks pass round hide behind attention. An
// optimizer on the host takes its time there, and its copies hide behind it and behind the passes as far as they can
// (offload_time.h). Which bucket or layer hides behind what, latencies included, is the timeline of `sharding`.
//
// On a processor, when the caller gives its `HostOperations`, products and passes take what those say
// instead (host_operations.h): a call for each operation, and what small products lose. A device that stands for
// PyTorch on a processor takes what PyTorch's operators do (pytorch_operations.h).
//
// Gradients are copied, converted and divided for their reduction, and weights copied out of what gathers them
// (shard_copies.h).
//
// A replay runs the collectives among its operators again.
//
// With `kernels` and `dispatch` (reached_step.h sets them) operators of a GPU take what their shapes reach
// (device_kernels.h), gradients that meet are added up (read twice, written once), and a pass takes as long as the host
// needs to call its operators (eager_calls.h) and to launch their kernels where that is longer: the difference is
// `dispatch`.
//
// Left out: overlap of kernels; products that add into gradients themselves
// (Megatron's gradient_accumulation_fusion), whose sums are counted as passes over memory here.
#pragma once

#include "core/device/device.h"
#include "core/timing/collectives.h"
#include "core/timing/host_operations.h"
#include "core/timing/operator_cost.h"
#include "core/training/optimizer_state.h"
#include "core/training/step.h"

#include <span>

namespace memscape {

/// What the model needs of a device, looked up once.
struct DeviceRates
{
    double bandwidth = 0; ///< B/s of DRAM, reads and writes together
    double launch = 0;    ///< s per kernel
    double peer = 0;      ///< B/s between devices, 0 when unknown
    double pair = 0;      ///< B/s between two of them, where fewer links join those; else `peer`
    double four = 0;      ///< the same within four
    double host = 0;      ///< B/s to the host, 0 when unknown
    double float32 = 0, float16 = 0, bfloat16 = 0, float8 = 0, tensorFloat32 = 0; ///< FLOP/s
    double rate(const OperatorCost& cost) const;
    double between(int ranks) const { return ranks <= 2 ? pair : ranks <= 4 ? four : peer; } ///< B/s, of so many
};
/// Errors: predict.device with a hint when DRAM bandwidth or the fp32 rate is not known.
Result<DeviceRates> deviceRates(const Device& device);

/// What an operator costs under a plan's recipe: products in FP8 (fp8_casts.h) run on FP8 units, everything that is no
/// product at the fp32 rate.
OperatorCost inRecipe(OperatorCost cost, bool isInFp8);

double operatorSeconds(const DeviceRates& rates, const OperatorCost& cost, double efficiency = 1);

/// Operators [first, last) that backward runs again.
struct RecomputedRange
{
    std::size_t first = 0;
    std::size_t last = 0;
};
/// Of a step, those whose results checkpointing keeps left out: a replay stops at the last tensor that backward needs,
/// but where checkpoints are reentrant, layers compiled or PyTorch is older.
std::vector<RecomputedRange> recomputedRanges(const Graph& graph, const StepSettings& step);

/// What takes an operator's time.
struct TimeParts
{
    double calls = 0, memory = 0, arithmetic = 0; ///< s, added up
    double turned = 0;                            ///< s of `memory` that copies between NCHW and NHWC take
    double total() const { return calls + memory + arithmetic; }
};

class DeviceKernels;
struct Dispatch;
struct NcclLink;
struct PytorchOperations;

struct StepTimeOptions
{
    double efficiency = 1; ///< share of the dense rate that products reach
    std::span<const RecomputedRange> recomputed = {};
    double bandwidth = 0;                 ///< B/s of what holds the step when it is not DRAM; 0: DRAM's copy
    const HostOperations* host = nullptr; ///< of a processor
    const PytorchOperations* pytorch =
        nullptr;                            ///< of PyTorch on a processor, in place of what `host` says of operators
    double held = 0;                        ///< B of the whole step: what of it stays in a processor's caches
    const DeviceKernels* kernels = nullptr; ///< of a GPU: what shapes reach; null: the floor above
    const Dispatch* dispatch = nullptr;     ///< of a framework that runs operators one by one; null: a graph
    double collectiveUnits = 0;             ///< share of the multiprocessors that run a collective meanwhile
    double productsBeside = 0;              ///< of their rate, what products lose to one
    const NcclLink* nccl = nullptr;         ///< of GPUs that NCCL joins; null: the links' bandwidth alone
    double ownReduce = 0;                   ///< s of an engine's own all-reduce beside its bytes; 0: by NCCL
    Machines machines = {};                 ///< of the ranks
};

struct StepTime
{
    double forward = 0; ///< s, over all micro-batches
    double backward = 0;
    double recomputation = 0;
    double optimizer = 0;
    double communication = 0; ///< all of it
    double exposed = 0;       ///< what the step waits for
    double slowed = 0;        ///< what the passes take longer beside the collectives that they hide
    double dispatch = 0;      ///< what the device waits for the host, which has not dispatched the next kernel yet
    double copied = 0;        ///< of forward and backward: copies into and out of collectives (shard_copies.h)
    double pageFaults = 0; ///< of a processor: pages that malloc gave back and gets again; added from the step's trace
    double inPasses = 0;   ///< of exposed, what forward and backward wait for: tensor, context, expert parallelism
    double bubble = 0;     ///< of a pipeline: what its busiest rank waits for others (pipeline_time.h)
    double total = 0;
    double modelFlops = 0; ///< of products, forward and backward, without recomputation
    double executedFlops = 0;
    /// Of forward, backward and recomputation: s in operators that arithmetic, memory or launches
    /// hold.
    double arithmeticBound = 0, memoryBound = 0, launchBound = 0;
    double attention = 0; ///< s of them in fused kernels of attention
    double turned = 0;    ///< s of them in copies between NCHW and NHWC
};

/// What one operator takes, forward and backward (0 where the plan does not train), s.
struct OperatorTime
{
    double forward = 0, backward = 0;
};
/// Of every operator of a recorded micro-batch, in program order. Errors: those of deviceRates().
Result<std::vector<OperatorTime>> operatorTimes(const Graph& graph, const Plan& plan, const Device& device,
                                                const StepTimeOptions& options = {});
/// The optimizer's update of what one device keeps, s. Errors: those of deviceRates().
Result<double> updateSeconds(const std::vector<ParameterTensor>& parameters, const Plan& plan, const Device& device,
                             const StepTimeOptions& options = {});

/// Everything that one step moves between devices and over the host's link: of data parallelism, of
/// tensor parallelism (the network's own collectives, those of replays again) and of offload.
std::vector<Collective> stepCollectives(const Graph& graph, const std::vector<ParameterTensor>& parameters,
                                        const Plan& plan, std::span<const RecomputedRange> recomputed = {});

/// s of a collective, all its calls, by NCCL or an engine's own kernels where the options say so.
double collectiveSeconds(const Collective& one, const DeviceRates& rates, const StepTimeOptions& options);
/// Who does that: "NCCL's ring, LL", "the engine's own kernel", "a ring".
std::string collectiveWay(const Collective& one, const DeviceRates& rates, const StepTimeOptions& options);

/// One step of a recorded micro-batch under a plan. Forward alone when the plan does not train.
/// Errors: predict.device also when the plan needs a link whose bandwidth is not known.
Result<StepTime> stepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                          const Device& device, const StepTimeOptions& options = {});

/// The optimizer's cost: bytes per updated element by its rule and style, and its launches.
OperatorCost updateCost(const std::vector<ParameterTensor>& parameters, const Plan& plan);
/// The bytes that an update on the host reads and writes in one pass: of Adam 28 an element; its gradient arrives and
/// its weight leaves in the format of the device, which together are 4 B as well.
double hostUpdateBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// The time of a step as it is to be expected, not its floor: products run at the rate that large ones of their format
// sustain on the device (product_rates.h); on a processor an operation takes what its calls and loops take
// (host_operations.h; PyTorch's: pytorch_operations.h), and memory is the caches that hold the step. One rule for every
// page that times a step.
//
// On a GPU kernels take what their shapes reach, and PyTorch dispatches them (device_kernels.h); without autograd, in
// the loops of others, each kernel takes their host what a token's kernels do (decodeDispatchOfGpu()). Collectives take
// what NCCL's own choice of algorithm and protocol does (nccl.h); a link that was measured is taken as it is. NCCL runs
// a collective in a block for each of its channels, each of which keeps a multiprocessor from the passes beside it. A
// Hopper's products start as many blocks as there are multiprocessors, each of which has its tiles: those that find
// theirs taken run behind all others, so that products beside a collective take twice as long (measured with FSDP on
// H100s: pytorch/pytorch, issue 143988 and pull request 147966). A Blackwell's share their tiles out as they go
// (NVIDIA/cutlass, issue 2471), as blocks of one tile each did.
//
// Ranks that wait for each other are as quick as the slowest: GPUs of one kind differ by 8 % on the average of programs
// and five computing centres (Sinha et al. 2022, arXiv:2208.11035, abstract). Assumed: these are the whiskers of a
// normal distribution, which are 5.4 deviations apart. Of eight the slowest multiplies 2.1 % longer than the mean, of
// 64 3.5 %. What differs is the clock that power leaves: passes over memory take the same on all.
//
// Left out: see operator_time.h and device_kernels.h.
#pragma once

#include "core/timing/device_kernels.h"
#include "core/timing/nccl.h"
#include "core/timing/operator_time.h"
#include "core/timing/product_rates.h"
#include "core/timing/pytorch_operations.h"

#include <optional>

namespace memscape {

/// The options of stepTime() and of what is like it.
class ReachedTiming
{
public:
    /// `held`: B of the step's memory, which say what serves a processor.
    ReachedTiming(const Device& device, const Plan& plan, double held,
                  std::span<const RecomputedRange> recomputed = {});
    ReachedTiming(const ReachedTiming&) = delete; // the options point into it
    ReachedTiming& operator=(const ReachedTiming&) = delete;

    const StepTimeOptions& options() const { return m_options; }

private:
    HostOperations m_host;
    std::optional<PytorchOperations> m_pytorch;
    std::optional<DeviceKernels> m_kernels;
    Dispatch m_dispatch;
    NcclLink m_nccl;
    StepTimeOptions m_options;
};

/// stepTime() with these. Errors: those of stepTime().
Result<StepTime> reachedStepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                                 const Device& device, double held, std::span<const RecomputedRange> recomputed = {});

} // namespace memscape

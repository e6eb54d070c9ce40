// SPDX-License-Identifier: Apache-2.0
// What offloading puts into the host's memory, and what ZeRO-Infinity (Rajbhandari et al. 2021) puts on an NVMe
// instead.
//
// DeepSpeed swaps a sub-group of parameters at a time, 1e9 elements: fp32 weights, state and gradients are read, the
// update runs, weights and state are written again. That goes through buffers of pinned memory, buffer_count of them
// (4), each an fp32 sub-group. The gradients are written while backward runs. The update waits for what its own time
// does not hide, reads and writes at one rate together.
//
// Source: DeepSpeed 0.16.4, runtime/swap_tensor/optimizer_utils.py (OptimizerSwapper), runtime/zero/stage3.py
// (_configure_tensor_swapping), offload_config.py. Left out: weights on an NVMe (offload_param), buffers that are
// written while the next ones are read (pipeline_write), what small tensors are not swapped.
#include "core/experiments/training-memory/training_memory.h"

#include "core/training/sharding.h"

#include <algorithm>

namespace memscape {

HostShare hostShare(const std::vector<ParameterTensor>& parameters, const TrainingSetup& setup)
{
    constexpr std::int64_t bufferCount = 4;
    Plan plan = setup.step.plan;
    plan.update = UpdateStyle::Loop; // the host's optimizer is one of its own
    HostShare share;
    share.memory = keptBytes(parameters, plan).host + offloadBufferBytes(parameters, plan);
    if (setup.nvmeBandwidth == 0)
        return share;
    Plan onDevice = plan;
    onDevice.offload = Offload::None;
    const KeptBytes kept = keptBytes(parameters, onDevice);
    std::int64_t elements = 0;
    for (const ParameterTensor& parameter : parameters)
        if (parameter.isTrained)
            elements += plan.shards() > 1 ? shareElements(parameter, plan) : parameter.elements;
    const std::int64_t gradients = 4 * elements;
    share.nvme = kept.master + kept.state + gradients;
    share.buffers = bufferCount * 4 * std::min(elements, plan.deepspeed.subGroup);
    const std::int64_t swapped = kept.master + kept.state + (plan.streamsGradients() ? kept.gradients : 0);
    share.memory = std::max<std::int64_t>(0, share.memory - swapped) + share.buffers;
    share.swapping = double(2 * (kept.master + kept.state) + gradients) / setup.nvmeBandwidth;
    return share;
}

} // namespace memscape

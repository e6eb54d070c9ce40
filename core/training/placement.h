// SPDX-License-Identifier: Apache-2.0
// What a device keeps of each parameter and of its gradient during a step, where that is not the
// tensor itself: pieces under ZeRO (sharding.h), nothing when the host has it, NF4 under QLoRA,
// fp32 sums of half gradients. The autograd engine reads it; the plan decides it.
#pragma once

#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

namespace memscape {

/// Lists lie beside Graph::parameters; an empty one means that every tensor is as it is.
struct ParameterPlacement
{
    std::vector<std::int64_t> weights;   ///< B that stay on the device
    std::vector<std::int64_t> gathered;  ///< B of the whole weight, there only while it is used
    std::vector<std::int64_t> gradients; ///< B of what stays of a gradient after its reduction
    bool reducesLayers = false;          ///< gradients are whole until backward leaves their layer
};

ParameterPlacement placementOf(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape

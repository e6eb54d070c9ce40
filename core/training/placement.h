// SPDX-License-Identifier: Apache-2.0
// What a device keeps of each parameter and of its gradient during a step, where that is not the
// tensor itself: pieces under ZeRO (sharding.h), nothing when the host has it, NF4 under QLoRA,
// fp32 sums of half gradients. The autograd engine reads it; the plan decides it.
#pragma once

#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

#include <optional>

namespace memscape {

/// How FSDP gathers and reduces (fsdp_units.h).
struct FsdpRules
{
    bool isFlat = false; ///< FSDP 1: a unit's parameters are views of one
    FsdpWrap wrap = FsdpWrap::Block;
    std::int64_t wrappedElements = 0; ///< of FsdpWrap::Size: the least of a unit
    bool reshardsAfterForward = true;
    bool hooksInputs = false; ///< frozen flat parameters: inputs of a reentrant checkpoint stay until backward ends
    std::int64_t devices = 1;
    std::vector<std::int64_t> shares = {}; ///< elements of each parameter that one device keeps
    std::int64_t copiedBytes = 0;   ///< B per element of the shard's half copy; 0: shards are gathered themselves
    std::int64_t computedBytes = 4; ///< B per element of a gradient as backward makes it,
    std::int64_t reducedBytes = 4;  ///< while it is reduced,
    std::int64_t keptBytes = 4;     ///< and as a device keeps its piece
};

/// How DeepSpeed gathers and reduces (deepspeed_weights.h, parameter_gradients.cpp).
struct DeepSpeedRules
{
    int stage = 1;
    std::int64_t devices = 1;
    std::vector<std::int64_t> elements = {}; ///< of each parameter, whole
    std::vector<std::uint8_t> isTrained = {};
    std::int64_t partition = 0;      ///< elements of the trained parameters that one device updates
    std::int64_t partitionBytes = 0; ///< what that keeps of its gradients in stages 1 and 2 (partitionGradientBytes)
    bool addsIntoPartition = false;  ///< the next micro-batch's need no block of their own
    bool sumsBeforeReducing = false; ///< stage 1,
    bool reducesInBackward = true;   ///< of which the last micro-batch's gradients may be reduced as they come
    bool hasReduceStream = false;    ///< stage 3, overlapped: it copies gradients into the bucket, too
    std::int64_t bucketBytes = 0;    ///< of the reduce buckets that live through backward; 0: through the step
    std::int64_t reducedBytes = 2;   ///< B per element
    DeepSpeedSizes sizes = {};
    /// Stage 3 was given a model that was made whole, outside of zero.Init: F.linear is PyTorch's own, whose node keeps
    /// a view of the gathered weight through backward, whatever becomes of the parameter. Within zero.Init DeepSpeed
    /// replaces it (runtime/zero/linear.py, LinearFunctionForZeroStage3).
    bool keepsGathered = false;
    bool waitsInAttention = false; ///< Plan's
};

/// Lists lie beside Graph::parameters; an empty one means that every tensor is as it is.
struct ParameterPlacement
{
    std::vector<std::int64_t> weights;   ///< B that stay on the device
    std::vector<std::int64_t> gathered;  ///< B of the whole weight, there only while it is used
    std::vector<std::int64_t> gradients; ///< B of what stays of a gradient after its reduction
    bool reducesLayers = false;          ///< gradients are whole until backward leaves their layer
    std::optional<FsdpRules> fsdp = {};
    std::optional<DeepSpeedRules> deepspeed = {};
};

ParameterPlacement placementOf(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// The parameters that training-memory and inference-memory share, and what they mean: which network
// is built and how it is run. The keys are a contract (resources/help/command-line.md).
#pragma once

#include "core/device/device.h"
#include "core/experiment/parameter.h"
#include "core/training/simulation.h"

namespace memscape {

/// The schema of `training-memory`; the first parameter is the model.
Schema trainingSchema();
/// The schema of `inference-memory`.
Schema inferenceSchema();

/// B/s between devices; 0: what the device says.
ParameterSpec linkBandwidthSpec();
/// The device with that rate between it and others of its kind, where one is given.
Device withLink(Device device, double bandwidth);

/// The model that a page opens with: one that a processor's memory holds, else one that needs a large GPU.
ParameterTexts standardModelOn(const Device& device);

/// What becomes of an architecture that is not known.
ParameterSpec assumeSpec();
ParameterSpec transformersSpec();
ParameterSpec pytorchSpec();
ParameterSpec keepsLogitsSpec();
/// LitGPT's network is chosen.
bool isLitGptAsked(const Parameters& parameters);
/// The network of that name; assume=llama takes an architecture that is not known for one. Errors: see readModel().
Result<ModelDescription> askedModel(const Parameters& parameters, std::string_view name);
/// The same of the parameter `model`, as the chosen library makes it. Errors: model.library, too.
Result<ModelDescription> askedModel(const Parameters& parameters);

/// What is implied already, and those of these parameters that count more tokens than the model has positions, with as
/// many: Experiment::implied().
ParameterTexts tokensWithinPositions(const Parameters& parameters, std::initializer_list<std::string_view> keys,
                                     ParameterTexts implied = {});

/// What the parameters of `training-memory` ask for on that device, except the model. Errors: plan.* with a hint
/// when values can't be combined.
Result<TrainingSetup> trainingSetup(const Device& device, const Parameters& parameters);

/// The types that a network is recorded with under a recipe.
struct Numerics
{
    DType weights = DType::Float32;
    std::optional<DType> autocast;
};
Numerics numericsOf(Precision precision);

// What each choice of the schemas is.
StepPhase phaseOf(const Parameters& parameters);
Offload offloadOf(const Parameters& parameters);
/// Whose code shards: FSDP 2 for stage 3, DeepSpeed for the others and for partial offload, unless one is named.
Result<ShardedBy> shardedByOf(const Parameters& parameters);
AttentionKernel attentionOf(const Parameters& parameters); ///< cuDNN's keeps what FlashAttention keeps
bool isCudnnAsked(const Parameters& parameters);
/// Whether keys and values are copied for the query heads that share them, before a kernel that could share them
/// itself.
bool repeatsHeadsOf(const Parameters& parameters);
Transformers transformersOf(const Parameters& parameters);
/// The version that is asked for on a GPU; a processor has the one that runs there.
PyTorch pytorchOf(const Device& device, const Parameters& parameters);
/// zero_grad() sets gradients to none: PyTorch's default since 2.0.
bool freesGradientsOf(const Device& device, const Parameters& parameters);
/// A variable of the loop holds the logits until the next forward pass: as its library does, where nothing is said.
bool keepsLogitsOf(const Parameters& parameters);
DType computedInOf(const Parameters& parameters); ///< of `inference-memory`
/// This device as a measurement with our own kernels uses it: they place arrays as CUDA's PyTorch does, on a CPU too.
Device withOwnKernels(Device device);
/// A CPU's allocator caches nothing.
AllocatorOptions allocatorOf(const Device& device, const Parameters& parameters);
/// Its kernel there: a CPU has FlashAttention for all types and no memory-efficient kernel, PyTorch 1 has neither.
AttentionKernel attentionOn(const Device& device, const Parameters& parameters);
/// How PyTorch runs there: on a CPU as the version of its framework says, or the newest; on a GPU the one that is
/// asked.
EagerRules rulesOn(const Device& device, const Parameters& parameters);

} // namespace memscape

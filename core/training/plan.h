// SPDX-License-Identifier: Apache-2.0
// How a network is trained (or run): precision, optimizer, accumulation, parallelism, offload,
// adapters. A plan is a value; the step simulator, the optimizer and the advice read it.
//
// Precision recipes and the bytes per parameter that they keep (weights + gradients + master + two
// Adam moments):
//   fp32            4 + 4 + 0 + 8     everything in fp32
//   bf16-autocast   4 + 4 + 0 + 8     PyTorch AMP: fp32 weights, half copies made in forward
//   bf16-under-autocast
//                   2 + 2 + 0 + 4     half weights, and autocast around them: norms, softmax and loss in fp32
//   bf16-mixed      2 + 2 + 4 + 8     Megatron, DeepSpeed, Apex O2: half weights, fp32 copy
//   bf16            2 + 2 + 0 + 4     pure half: everything in half, moments too
//   fp8             2 + 2 + 4 + 8     as bf16-mixed, and each matrix keeps an FP8 copy and its
//                                     transpose (1 + 1) for the step, as Transformer Engine
//                                     does; FP8 tensor cores read both operands row-major. With
//                                     scales of its own (torchao) each product casts it anew
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

enum class Precision {
    Fp32,
    Bf16Autocast,
    Fp16Autocast,
    Bf16UnderAutocast,
    Fp16UnderAutocast,
    Bf16Mixed,
    Fp16Mixed,
    Bf16,
    Fp16,
    Fp8
};
std::string_view precisionText(Precision precision); ///< "bf16-mixed", …
/// Errors: plan.precision with the nearest names.
Result<Precision> precisionFromText(std::string_view text);

/// Bytes of one element of what a recipe keeps per parameter.
struct PrecisionRule
{
    std::int64_t weight = 4;
    std::int64_t gradient = 4;
    std::int64_t master = 0;    ///< 0: the optimizer updates the weights themselves
    std::int64_t fp8Copies = 0; ///< per element of every matrix: cast and transposed cast
    std::int64_t updated() const { return master ? master : weight; } ///< what the optimizer sees
};
PrecisionRule precisionRule(Precision precision);
bool isAutocast(Precision precision); ///< over fp32 or half weights
bool isHalf(Precision precision);     ///< any recipe whose activations are half precision

enum class OptimizerKind {
    None,
    Sgd,
    Momentum,
    Adam,
    AdamW,
    Adam8bit,
    Adam4bit,
    AdamFp8,
    PagedAdamW,
    PagedAdam8bit,
    Adafactor,
    Lion,
    Muon,
    GaLore,
    GaLore8bit,
    Apollo,
    Lomo,
    AdaLomo
};
std::string_view optimizerText(OptimizerKind kind); ///< "adamw", "adam-8bit", …
Result<OptimizerKind> optimizerFromText(std::string_view text);

/// How the update is written: one tensor after the other, all tensors at once (PyTorch's default on
/// CUDA), in one kernel, or as a textbook would write it, every expression out of place.
enum class UpdateStyle { Loop, Foreach, Fused, WrittenOut };
Result<UpdateStyle> updateStyleFromText(std::string_view text); ///< "loop", "foreach", "fused", "written-out"

/// Whose code shards: it decides what is whole at which moment, and which buffers there are (sharding.h).
enum class ShardedBy {
    Paper,    ///< ZeRO as Rajbhandari et al. describe it: pieces, and one layer whole at a time
    Fsdp2,    ///< torch.distributed.fsdp.fully_shard; stages 2 and 3
    Fsdp1,    ///< torch.distributed.fsdp.FullyShardedDataParallel, units are flat parameters
    DeepSpeed ///< deepspeed.runtime.zero with its default sizes
};
std::string_view shardedByText(ShardedBy implementation); ///< "ideal", "fsdp2", "fsdp1", "deepspeed"
Result<ShardedBy> shardedByFromText(std::string_view text);

/// Sizes of DeepSpeed's configuration, in elements, as they are by default (0.19.8, runtime/zero/config.py).
struct DeepSpeedSizes
{
    std::int64_t reduceBucket = 500'000'000;
    std::int64_t prefetchBucket = 50'000'000;   ///< stage3_prefetch_bucket_size
    std::int64_t persistent = 100'000;          ///< stage3_param_persistence_threshold
    std::int64_t mostLive = 1'000'000'000;      ///< stage3_max_live_parameters
    std::int64_t reuseDistance = 1'000'000'000; ///< stage3_max_reuse_distance
    std::int64_t subGroup = 1'000'000'000;      ///< sub_group_size, of one device's pieces

    /// "auto" in a configuration that transformers fills in (5.24, integrations/deepspeed.py, trainer_config_finalize).
    static DeepSpeedSizes ofWidth(std::int64_t hidden);
};

/// Which modules are units of FSDP (fsdp_wrapping.h).
enum class FsdpWrap { Block, Size, Whole };
Result<FsdpWrap> fsdpWrapFromText(std::string_view text); ///< "block", "size", "whole"

/// In which order ranks of a pipeline run micro-batches (pipeline_schedule.h).
enum class PipelineSchedule { GPipe, OneForwardOneBackward, Interleaved };
std::string_view pipelineScheduleText(PipelineSchedule schedule); ///< "gpipe", "1f1b", "interleaved"
Result<PipelineSchedule> pipelineScheduleFromText(std::string_view text);

/// How FP8 recipes find the scale of a tensor: from maxima of earlier steps (Transformer Engine), or its own, which is
/// read before it is cast (Transformer Engine's current scaling; torchao's tensorwise recipe).
enum class Fp8Scaling { Delayed, Current, Tensorwise };
Result<Fp8Scaling> fp8ScalingFromText(std::string_view text); ///< "delayed", "current", "tensorwise"

/// Which products of operands in fp32 tensor cores multiply in TF32: by PyTorch's default those of convolutions alone
/// (torch.backends.cudnn.allow_tf32), matrix products too where a program or a container says so
/// (torch.set_float32_matmul_precision("high")), or none.
enum class Tf32 { Convolutions, All, None };
Result<Tf32> tf32FromText(std::string_view text); ///< "convolutions", "all", "none"

enum class StepPhase { Training, Forward, Inference };
/// What is kept in the host's memory; each includes the one before it.
///   Optimizer    master copy and state; gradients stay on the device until the update (torchao's
///                CPUOffloadOptimizer as it comes)
///   Gradients    backward streams them away layer by layer: ZeRO-Offload (Ren et al. 2021), DeepSpeed's
///                offload_optimizer; the device keeps the weights, 2 Ψ bytes in mixed precision
///   Parameters   the weights too, fetched layer by layer (ZeRO-Infinity, Rajbhandari et al. 2021)
enum class Offload { None, Optimizer, Gradients, Parameters };

/// Low-rank adapters beside a frozen base: what they are is the network's (core/network/build_options.h).
struct LoraPlan
{
    std::int64_t rank = 16;
};

/// How a library that only answers runs what a plan has (core/timing/joined_operators.h).
struct ServedKernels
{
    double weights = 1;         ///< of what a weight's operand takes, what it is stored in and read as
    double expertWeights = 1;   ///< the same of experts
    bool isHeadStored = false;  ///< the output head, too
    double expertsHit = 0;      ///< experts of a layer that some token is sent to, in one kernel; 0: each runs alone
    bool joinsProducts = false; ///< those of the same rows are one, and activations are within them
    double vectorRows = 0;      ///< products of so many rows or fewer take quantized weights row by row, on lanes
    double expertTile = 0;      ///< rows of a tile of an expert's product, filled or not; 0: it is as low as its rows
    bool reducesItself = false; ///< small all-reduces by kernels of its own, not NCCL's
};

struct Plan
{
    StepPhase phase = StepPhase::Training;
    Precision precision = Precision::Fp32;
    Fp8Scaling fp8Scaling = Fp8Scaling::Delayed;
    Tf32 tf32 = Tf32::Convolutions;
    bool attendsByCudnn = false; ///< cuDNN's fused attention, in place of FlashAttention-2
    bool logitsInFp32 = true;    ///< the loss is computed on an fp32 copy of half logits
    OptimizerKind optimizer = OptimizerKind::AdamW;
    UpdateStyle update = UpdateStyle::Foreach;
    std::int64_t eightBitBlock = 256; ///< elements under one scale of adam-8bit
    std::int64_t optimizerRank = 128; ///< of GaLore's and APOLLO's projections
    bool fp32Gradients = false; ///< mixed recipes: half gradients are summed in fp32 (Megatron), reduced so by FSDP
    static constexpr int mostAccumulation = 65535;
    int accumulation = 1; ///< micro-batches per step
    bool clipsGradients = false;
    bool isChannelsLast = false;     ///< pictures lie in NHWC, as tensor cores read them
    bool setsGradientsToNone = true; ///< zero_grad(set_to_none=True): frees them
    bool zeroesLate = false;         ///< zero_grad() between forward and backward, as torchvision's references and timm
    bool updatesInBackward = false;  ///< each parameter as soon as it has its gradient, which then ends
    std::optional<LoraPlan> lora = {};

    int zeroStage = 0; ///< 1 optimizer, 2 and gradients, 3 and weights (FSDP full shard)
    ShardedBy shardedBy = ShardedBy::Paper;
    DeepSpeedSizes deepspeed = {};
    /// transformers' FlashAttention reads the lengths of texts back, or whether positions rise, in each layer
    /// (_upad_input, max().item(); since 4.44 _flash_attention_forward, all()): the host waits there for the device.
    bool waitsInAttention = false;
    bool keepsGathered = false; ///< DeepSpeed, stage 3: products keep gathered weights for backward (DeepSpeedRules)
    FsdpWrap fsdpWrap = FsdpWrap::Block;
    std::int64_t fsdpMinParams = 100'000'000; ///< of a unit that is wrapped by size
    int dataParallel = 1;                     ///< replicas, or shards of ZeRO
    int replicateParallel = 1;                ///< of these, groups that keep the same shards (HSDP)
    int contextParallel = 1;                  ///< ranks that share each sequence; parameters are sharded over them, too
    int expertParallel = 1;                   ///< of data × context parallel ranks, those that share the experts
    /// Tensor parallelism divides no expert (Megatron's --expert-tensor-parallel-size 1): its ranks are among those
    /// that share them.
    bool keepsExpertsWhole = false;
    int pipelineParallel = 1; ///< ranks that share the layers
    int virtualStages = 1;    ///< chunks of layers on each of them
    PipelineSchedule pipelineSchedule = PipelineSchedule::OneForwardOneBackward;
    int tensorParallel = 1;               ///< divides matrices, heads and vocabulary
    bool sequenceParallel = false;        ///< also what tensor parallelism leaves whole (Korthikanti 2022)
    bool asyncTensorParallel = false;     ///< its collectives in pieces beside pieces of their products
    int machineRanks = 0;                 ///< GPUs of one machine; 0: all ranks are in one
    double network = 0;                   ///< B/s of each GPU between machines, in one direction
    bool gradientsAreBucketViews = false; ///< DDP's gradient_as_bucket_view
    bool reducesLastOnly = false;         ///< no_sync(): FSDP's gradients of all micro-batches but the last stay whole
    std::optional<bool> overlapsReductions = {}; ///< none: as the implementation does by default
    Offload offload = Offload::None;

    bool addsEpsilonInPlace = true; ///< foreach Adam makes no list of denominators beside its roots (PyTorch 2.1)

    ServedKernels served = {};

    /// PyTorch on a CPU: the optimizer's numbers and step counts are tensors in the same memory.
    bool isOnCpu = false;
    bool isBefore2 = false; ///< PyTorch 1

    /// Each weight when its gradient is there, which then ends.
    bool updatesEarly() const
    {
        const bool isLomo = optimizer == OptimizerKind::Lomo || optimizer == OptimizerKind::AdaLomo;
        return hasOptimizer() && (updatesInBackward || isLomo);
    }
    bool hasOptimizer() const { return phase == StepPhase::Training && optimizer != OptimizerKind::None; }
    /// Backward sends each layer's gradients to the host, which sums them.
    bool streamsGradients() const { return offload >= Offload::Gradients && phase == StepPhase::Training; }
    /// Ranks that train the same parameter on other tokens: of experts, those of the same part of them.
    int copies(bool isExpert = false) const
    {
        const int ranks = dataParallel * contextParallel;
        return isExpert ? ranks * tensorParallel / (expertParts() * expertParallel) : ranks;
    }
    /// Devices that divide each expert.
    int expertParts() const { return keepsExpertsWhole ? 1 : tensorParallel; }
    /// Ranks over which ZeRO divides it.
    int shards(bool isExpert = false) const { return copies(isExpert) / replicateParallel; }
    bool isSharded() const { return zeroStage > 0 && shards() > 1; }
    bool isByFsdp() const { return isSharded() && (shardedBy == ShardedBy::Fsdp1 || shardedBy == ShardedBy::Fsdp2); }
    bool isByDeepSpeed() const { return zeroStage > 0 && shardedBy == ShardedBy::DeepSpeed; }
    /// Its stage 1 reduces what micro-batches have summed behind the last one.
    bool sumsBeforeReducing() const { return isByDeepSpeed() && zeroStage == 1 && pipelineParallel == 1; }
    /// Its buckets are reduced while backward makes them: of stage 1 where that is told to overlap.
    bool reducesInBackward() const { return isByDeepSpeed() && (zeroStage > 1 || hidesReductions()); }
    /// Its stages 1 and 2 reduce into a flat partition of fp32, which is what the update takes.
    bool hasFlatGradients() const
    {
        return isByDeepSpeed() && zeroStage < 3 && gradientBytes() != precisionRule(precision).gradient;
    }
    /// Between steps a device has pieces of the weights. FSDP's stage 2 (SHARD_GRAD_OP, reshard_after_forward=False)
    /// keeps them whole from forward to backward alone.
    bool shardsWeights() const { return zeroStage == 3 || isByFsdp(); }
    /// What data parallelism reduces and gathers runs beside the passes. DeepSpeed's stages 1 and 2 wait unless they
    /// are told otherwise (overlap_comm, runtime/zero/config.py).
    bool hidesReductions() const { return overlapsReductions.value_or(!isByDeepSpeed() || zeroStage == 3); }
    /// zero_grad gives them back: not what DeepSpeed's stage 3 lays out once and for all.
    bool freesGradients() const
    {
        return updatesEarly() || (setsGradientsToNone && !(isByDeepSpeed() && zeroStage == 3));
    }
    /// What the step before has left is there in the forward pass.
    bool findsGradients() const { return !freesGradients() || (zeroesLate && !updatesEarly()); }
    /// Micro-batches whose gradients are summed in whole ones, before the last reduces the sum.
    int wholeMicroBatches() const
    {
        return (reducesLastOnly && isByFsdp()) || sumsBeforeReducing() ? accumulation - 1 : 0;
    }
    /// Reductions over the ranks in a step where gradients are sharded.
    int reductions() const { return accumulation - wholeMicroBatches(); }
    /// What is kept per parameter between steps. Under FSDP's mixed precision that is the fp32 weights, of which half
    /// copies are gathered, and fp32 gradients: there is no master copy beside them. DeepSpeed updates a copy of its
    /// partition in every precision (stage_1_and_2.py, stage3.py: _create_fp32_partitions).
    PrecisionRule kept() const;
    /// Bytes of one element of a parameter's gradient between micro-batches.
    std::int64_t gradientBytes() const;
    /// Of one element while it is reduced over the devices (FSDP's reduce_dtype). Without one FSDP 2 reduces in the
    /// type of the sharded weights (PyTorch 2.15; before, as FSDP 1 still does, in that of the computation).
    std::int64_t reducedBytes() const;
};

/// What can't be combined or is out of range: plan.range, plan.combination.
Result<void> checkPlan(const Plan& plan);

} // namespace memscape

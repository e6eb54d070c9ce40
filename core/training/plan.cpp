// SPDX-License-Identifier: Apache-2.0
#include "core/training/plan.h"

#include "core/base/text.h"

#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

template <typename Enum, std::size_t count> struct Names
{
    std::string_view what; ///< "precision": also the last word of the error's code
    std::array<std::pair<Enum, std::string_view>, count> entries;

    std::string_view text(Enum value) const
    {
        for (const auto& [known, name] : entries)
            if (known == value)
                return name;
        return {};
    }
    std::vector<std::string> all() const
    {
        std::vector<std::string> names;
        for (const auto& entry : entries)
            names.emplace_back(entry.second);
        return names;
    }
    Result<Enum> value(std::string_view wanted) const
    {
        for (const auto& [known, name] : entries)
            if (name == wanted)
                return known;
        return fail(fmt::format("plan.{}", what), fmt::format("no {} is called \"{}\"", what, quotedForMessage(wanted)),
                    didYouMean(wanted, all()));
    }
};

constexpr Names<Precision, 10> precisions{"precision",
                                          {{{Precision::Fp32, "fp32"},
                                            {Precision::Bf16Autocast, "bf16-autocast"},
                                            {Precision::Fp16Autocast, "fp16-autocast"},
                                            {Precision::Bf16UnderAutocast, "bf16-under-autocast"},
                                            {Precision::Fp16UnderAutocast, "fp16-under-autocast"},
                                            {Precision::Bf16Mixed, "bf16-mixed"},
                                            {Precision::Fp16Mixed, "fp16-mixed"},
                                            {Precision::Bf16, "bf16"},
                                            {Precision::Fp16, "fp16"},
                                            {Precision::Fp8, "fp8"}}}};
constexpr Names<OptimizerKind, 18> optimizers{"optimizer",
                                              {{{OptimizerKind::None, "none"},
                                                {OptimizerKind::Sgd, "sgd"},
                                                {OptimizerKind::Momentum, "momentum"},
                                                {OptimizerKind::Adam, "adam"},
                                                {OptimizerKind::AdamW, "adamw"},
                                                {OptimizerKind::Adam8bit, "adam-8bit"},
                                                {OptimizerKind::Adam4bit, "adam-4bit"},
                                                {OptimizerKind::AdamFp8, "adam-fp8"},
                                                {OptimizerKind::PagedAdamW, "paged-adamw"},
                                                {OptimizerKind::PagedAdam8bit, "paged-adam-8bit"},
                                                {OptimizerKind::Adafactor, "adafactor"},
                                                {OptimizerKind::Lion, "lion"},
                                                {OptimizerKind::Muon, "muon"},
                                                {OptimizerKind::GaLore, "galore"},
                                                {OptimizerKind::GaLore8bit, "galore-8bit"},
                                                {OptimizerKind::Apollo, "apollo"},
                                                {OptimizerKind::Lomo, "lomo"},
                                                {OptimizerKind::AdaLomo, "adalomo"}}}};
constexpr Names<UpdateStyle, 4> styles{"update",
                                       {{{UpdateStyle::Loop, "loop"},
                                         {UpdateStyle::Foreach, "foreach"},
                                         {UpdateStyle::Fused, "fused"},
                                         {UpdateStyle::WrittenOut, "written-out"}}}};

constexpr Names<ShardedBy, 4> implementations{"sharding",
                                              {{{ShardedBy::Paper, "ideal"},
                                                {ShardedBy::Fsdp2, "fsdp2"},
                                                {ShardedBy::Fsdp1, "fsdp1"},
                                                {ShardedBy::DeepSpeed, "deepspeed"}}}};

constexpr Names<FsdpWrap, 3> wraps{
    "fsdp_wrap", {{{FsdpWrap::Block, "block"}, {FsdpWrap::Size, "size"}, {FsdpWrap::Whole, "whole"}}}};

constexpr Names<Fp8Scaling, 3> scalings{
    "fp8_scaling",
    {{{Fp8Scaling::Delayed, "delayed"}, {Fp8Scaling::Current, "current"}, {Fp8Scaling::Tensorwise, "tensorwise"}}}};

constexpr Names<Tf32, 3> tensorFloats{
    "tf32", {{{Tf32::Convolutions, "convolutions"}, {Tf32::All, "all"}, {Tf32::None, "none"}}}};

constexpr Names<PipelineSchedule, 3> schedules{"pipeline_schedule",
                                               {{{PipelineSchedule::GPipe, "gpipe"},
                                                 {PipelineSchedule::OneForwardOneBackward, "1f1b"},
                                                 {PipelineSchedule::Interleaved, "interleaved"}}}};

Result<void> checkRanges(const Plan& plan)
{
    const auto within = [](const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
        return value >= least && value <= most
            ? Result<void>()
            : Result<void>(fail("plan.range", fmt::format("{} is {}, expected {} to {}", what, value, least, most)));
    };
    MEMSCAPE_CHECK(within("accumulation", plan.accumulation, 1, Plan::mostAccumulation));
    MEMSCAPE_CHECK(within("the ZeRO stage", plan.zeroStage, 0, 3));
    MEMSCAPE_CHECK(within("the data-parallel degree", plan.dataParallel, 1, 1 << 20));
    MEMSCAPE_CHECK(within("the tensor-parallel degree", plan.tensorParallel, 1, 1 << 20));
    MEMSCAPE_CHECK(within("the degree of replication", plan.replicateParallel, 1, 1 << 20));
    MEMSCAPE_CHECK(within("the context-parallel degree", plan.contextParallel, 1, 1 << 10));
    MEMSCAPE_CHECK(within("the expert-parallel degree", plan.expertParallel, 1, 1 << 10));
    MEMSCAPE_CHECK(within("the pipeline-parallel degree", plan.pipelineParallel, 1, 1 << 10));
    MEMSCAPE_CHECK(within("the number of virtual stages", plan.virtualStages, 1, 1 << 10));
    if (plan.lora)
        MEMSCAPE_CHECK(within("the rank of the adapters", plan.lora->rank, 1, 1 << 20));
    return {};
}

} // namespace

std::string_view precisionText(Precision precision)
{
    return precisions.text(precision);
}
Result<Precision> precisionFromText(std::string_view text)
{
    return precisions.value(text);
}
std::string_view optimizerText(OptimizerKind kind)
{
    return optimizers.text(kind);
}
Result<OptimizerKind> optimizerFromText(std::string_view text)
{
    return optimizers.value(text);
}
Result<UpdateStyle> updateStyleFromText(std::string_view text)
{
    return styles.value(text);
}

Result<FsdpWrap> fsdpWrapFromText(std::string_view text)
{
    return wraps.value(text);
}

DeepSpeedSizes DeepSpeedSizes::ofWidth(std::int64_t hidden)
{
    DeepSpeedSizes sizes;
    sizes.reduceBucket = hidden * hidden;
    sizes.prefetchBucket = 9 * hidden * hidden / 10;
    sizes.persistent = 10 * hidden;
    return sizes;
}

std::string_view shardedByText(ShardedBy implementation)
{
    return implementations.text(implementation);
}
Result<ShardedBy> shardedByFromText(std::string_view text)
{
    return implementations.value(text);
}

std::string_view pipelineScheduleText(PipelineSchedule schedule)
{
    return schedules.text(schedule);
}
Result<PipelineSchedule> pipelineScheduleFromText(std::string_view text)
{
    return schedules.value(text);
}

Result<Fp8Scaling> fp8ScalingFromText(std::string_view text)
{
    return scalings.value(text);
}

Result<Tf32> tf32FromText(std::string_view text)
{
    return tensorFloats.value(text);
}

PrecisionRule precisionRule(Precision precision)
{
    switch (precision) {
    case Precision::Fp32:
    case Precision::Bf16Autocast:
    case Precision::Fp16Autocast: return {4, 4, 0, 0};
    case Precision::Bf16Mixed:
    case Precision::Fp16Mixed: return {2, 2, 4, 0};
    case Precision::Bf16UnderAutocast:
    case Precision::Fp16UnderAutocast:
    case Precision::Bf16:
    case Precision::Fp16: return {2, 2, 0, 0};
    case Precision::Fp8: return {2, 2, 4, 2};
    }
    return {};
}

bool isAutocast(Precision precision)
{
    return precision == Precision::Bf16Autocast || precision == Precision::Fp16Autocast
        || precision == Precision::Bf16UnderAutocast || precision == Precision::Fp16UnderAutocast;
}

bool isHalf(Precision precision)
{
    return precision != Precision::Fp32;
}

PrecisionRule Plan::kept() const
{
    PrecisionRule rule = precisionRule(precision);
    if (fp8Scaling == Fp8Scaling::Tensorwise)
        rule.fp8Copies = 0;
    if (isByDeepSpeed() && rule.master == 0)
        rule.master = rule.weight;
    if (isByFsdp() && rule.master)
        rule = {rule.master, rule.master, 0, rule.fp8Copies};
    return rule;
}

std::int64_t Plan::gradientBytes() const
{
    const PrecisionRule rule = kept();
    return rule.master && fp32Gradients ? 4 : rule.gradient;
}

std::int64_t Plan::reducedBytes() const
{
    if (fp32Gradients)
        return 4;
    return isByFsdp() && shardedBy == ShardedBy::Fsdp2 ? kept().gradient : precisionRule(precision).gradient;
}

namespace {

/// Experts that tensor parallelism leaves whole.
Result<void> checkWholeExperts(const Plan& plan)
{
    if (!plan.keepsExpertsWhole || plan.tensorParallel == 1)
        return {};
    if (plan.expertParallel == 1)
        return fail("plan.combination", "whole experts under tensor parallelism are modelled where ranks share them",
                    "choose expert_parallel above 1, or whole_experts=false", "whole_experts");
    if (!plan.sequenceParallel)
        return fail("plan.combination",
                    "whole experts take the tokens that a rank has: without sequence parallelism it has all of them",
                    "choose sequence_parallel=true, or whole_experts=false", "whole_experts");
    return {};
}

/// Of data, context and expert parallelism, whose ranks are the same ones; those of tensor parallelism join them where
/// experts stay whole.
Result<void> checkCopies(const Plan& plan)
{
    MEMSCAPE_CHECK(checkWholeExperts(plan));
    const int joined = plan.tensorParallel / plan.expertParts();
    const int ranks = plan.dataParallel * plan.contextParallel * joined;
    if (plan.dataParallel % plan.replicateParallel != 0)
        return fail("plan.combination",
                    fmt::format("{} data-parallel ranks cannot form {} groups of the same size", plan.dataParallel,
                                plan.replicateParallel),
                    "choose data_parallel_replicate so that it divides data_parallel", "data_parallel_replicate");
    if (plan.expertParallel == 1)
        return {};
    if (ranks % (plan.expertParallel * plan.replicateParallel) != 0)
        return fail("plan.combination",
                    fmt::format("experts are shared among the ranks of data and context parallelism{}: {} × {}{} "
                                "ranks, in groups of {}, cannot be divided by {}",
                                joined > 1 ? " and of tensor parallelism" : "", plan.dataParallel, plan.contextParallel,
                                joined > 1 ? fmt::format(" × {}", joined) : std::string(),
                                ranks / plan.replicateParallel, plan.expertParallel),
                    fmt::format("choose data_parallel {}, or an expert_parallel that divides the group",
                                (plan.expertParallel * plan.replicateParallel + joined - 1) / joined),
                    "expert_parallel");
    if (plan.zeroStage >= 2)
        return fail("plan.combination", "expert parallelism is modelled with whole gradients and weights only",
                    "choose ZeRO stage 0 or 1", "zero");
    return {};
}

/// What needs all gradients at once.
Result<void> checkUpdateInBackward(const Plan& plan)
{
    const auto refused = [](const char* what, const char* remedy, const char* place) {
        return fail("plan.combination",
                    fmt::format("an update in backward has one gradient at a time: it cannot have {}", what),
                    fmt::format("choose {}, or another optimizer and optimizer_in_backward=false", remedy), place);
    };
    if (!plan.updatesEarly())
        return {};
    if (plan.accumulation > 1)
        return refused("gradients of several micro-batches", "accumulation=1", "accumulation");
    if (plan.clipsGradients)
        return refused("a norm of all gradients", "clipping=false", "clipping");
    if (plan.precision == Precision::Fp16Autocast || plan.precision == Precision::Fp16Mixed)
        return refused("a loss that is scaled by what all gradients are", "precision=bf16-mixed", "precision");
    if (plan.offload != Offload::None)
        return refused("an optimizer on the host", "offload=none", "offload");
    if (plan.copies() > 1 && !(plan.isByFsdp() && plan.shardedBy == ShardedBy::Fsdp2))
        return refused("replicas but those of FSDP 2, whose hooks see reduced gradients", "zero=3", "data_parallel");
    if (plan.pipelineParallel > 1)
        return refused("a pipeline's micro-batches", "pipeline_parallel=1", "pipeline_parallel");
    return {};
}

Result<void> checkPipeline(const Plan& plan)
{
    const bool isInterleaved = plan.pipelineSchedule == PipelineSchedule::Interleaved;
    const int ranks = plan.pipelineParallel;
    if (plan.virtualStages > 1 && (ranks == 1 || !isInterleaved))
        return fail("plan.combination", "virtual stages are those of an interleaved pipeline",
                    "choose pipeline_schedule=interleaved with pipeline_parallel above 1, or virtual_stages=1",
                    "virtual_stages");
    if (ranks == 1)
        return {};
    if (plan.phase != StepPhase::Training)
        return fail("plan.combination", "a pipeline is modelled for a training step only",
                    "choose phase=training, or pipeline_parallel=1", "pipeline_parallel");
    if (isInterleaved && plan.virtualStages == 1)
        return fail("plan.combination", "an interleaved pipeline has several chunks of layers on each rank",
                    "choose virtual_stages=2 or more, or pipeline_schedule=1f1b", "virtual_stages");
    if (isInterleaved && plan.accumulation % ranks != 0)
        return fail(
            "plan.combination",
            fmt::format("an interleaved pipeline of {} ranks takes its micro-batches in groups of {}: {} cannot be "
                        "divided so",
                        ranks, ranks, plan.accumulation),
            fmt::format("choose accumulation={}, or pipeline_schedule=1f1b",
                        std::max<std::int64_t>(1, (plan.accumulation + ranks - 1) / ranks) * ranks),
            "accumulation");
    if (plan.zeroStage >= 2 && !plan.isByFsdp())
        return fail("plan.combination",
                    "micro-batches in flight need whole gradients and weights: DeepSpeed refuses a pipeline with ZeRO "
                    "stage 2 or 3",
                    "choose stage 1, or sharding_implementation=fsdp2", "zero");
    if (plan.offload != Offload::None)
        return fail("plan.combination", "offloading is not modelled in a pipeline",
                    "choose offload=none, or pipeline_parallel=1", "offload");
    return {};
}

} // namespace

Result<void> checkPlan(const Plan& plan)
{
    MEMSCAPE_CHECK(checkRanges(plan));
    if (plan.zeroesLate && (plan.accumulation > 1 || plan.pipelineParallel > 1))
        return fail("plan.combination", "zero_grad() between forward and backward would lose what micro-batches sum",
                    "choose zero_grad_frees=true, or accumulation=1", "zero_grad_frees");
    const bool isAdam = plan.optimizer == OptimizerKind::Adam || plan.optimizer == OptimizerKind::AdamW;
    const bool needsMatrices = plan.optimizer == OptimizerKind::Adafactor || plan.optimizer == OptimizerKind::Muon
        || plan.optimizer == OptimizerKind::GaLore || plan.optimizer == OptimizerKind::GaLore8bit
        || plan.optimizer == OptimizerKind::Apollo;
    if (plan.update == UpdateStyle::WrittenOut && plan.hasOptimizer() && !isAdam)
        return fail("plan.combination", "the written-out update is that of Adam and AdamW",
                    "choose the loop for other optimizers");
    if (plan.update == UpdateStyle::Fused && plan.optimizer == OptimizerKind::Adafactor && plan.hasOptimizer())
        return fail("plan.combination", "PyTorch has no fused Adafactor", "choose foreach or loop");
    if (plan.zeroStage > 0 && plan.hasOptimizer() && needsMatrices)
        return fail(
            "plan.combination",
            fmt::format("{} needs whole matrices, ZeRO cuts them into flat pieces", optimizerText(plan.optimizer)),
            "choose ZeRO stage 0 or another optimizer");
    if (plan.offload == Offload::Parameters && plan.zeroStage != 3)
        return fail("plan.combination", "weights are offloaded with ZeRO stage 3 only",
                    "choose stage 3, or offload the optimizer alone");
    const bool isFsdp = plan.shardedBy == ShardedBy::Fsdp1 || plan.shardedBy == ShardedBy::Fsdp2;
    if (isFsdp && plan.zeroStage == 1)
        return fail("plan.combination", "FSDP shards gradients with the optimizer's state: it has no stage 1",
                    "choose ZeRO stage 2 or 3, or DeepSpeed");
    if (isFsdp && plan.zeroStage > 1 && (plan.offload == Offload::Optimizer || plan.offload == Offload::Gradients))
        return fail("plan.combination", "FSDP offloads weights, gradients and the optimizer together or not at all",
                    "choose offload=parameters with ZeRO stage 3, or DeepSpeed");
    if (plan.isByFsdp() && plan.fsdpWrap == FsdpWrap::Size && plan.shardedBy == ShardedBy::Fsdp2)
        return fail("plan.combination", "modules are wrapped by their size under FSDP 1 alone",
                    "choose sharding_implementation=fsdp1, or fsdp_wrap=block", "fsdp_wrap");
    if (plan.wholeMicroBatches() > 0 && plan.offload == Offload::Parameters)
        return fail("plan.combination",
                    "FSDP leaves whole gradients on the device, its offloaded optimizer is on the host",
                    "choose no_sync=false, or offload=none", "no_sync");
    if (plan.asyncTensorParallel && plan.tensorParallel > 1 && !plan.sequenceParallel)
        return fail("plan.combination",
                    "asynchronous tensor parallelism cuts what is gathered and scattered along "
                    "sequences: an all-reduce has no pieces that a product could wait for",
                    "choose sequence_parallel=true, or async_tensor_parallel=false", "async_tensor_parallel");
    if (plan.sequenceParallel && plan.tensorParallel == 1)
        return fail("plan.combination", "sequence parallelism needs tensor parallelism",
                    "choose a tensor-parallel degree above 1");
    MEMSCAPE_CHECK(checkUpdateInBackward(plan));
    MEMSCAPE_CHECK(checkCopies(plan));
    return checkPipeline(plan);
}

} // namespace memscape

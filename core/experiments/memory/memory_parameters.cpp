// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/memory_parameters.h"

#include "core/base/number.h"
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/training/blas_workspace.h"

#include <fmt/format.h>

namespace memscape {

Numerics numericsOf(Precision precision)
{
    switch (precision) {
    case Precision::Fp32: return {DType::Float32, {}};
    case Precision::Bf16Autocast: return {DType::Float32, DType::BFloat16};
    case Precision::Fp16Autocast: return {DType::Float32, DType::Float16};
    case Precision::Bf16UnderAutocast: return {DType::BFloat16, DType::BFloat16};
    case Precision::Fp16UnderAutocast: return {DType::Float16, DType::Float16};
    case Precision::Fp16Mixed:
    case Precision::Fp16: return {DType::Float16, {}};
    case Precision::Bf16Mixed:
    case Precision::Bf16:
    case Precision::Fp8: break; // the casts to FP8 are the plan's
    }
    return {DType::BFloat16, {}};
}

namespace {

constexpr std::string_view ownKernels = "memscape";
constexpr std::string_view convertedLate = "deepspeed-late"; ///< Plan::keepsGathered
constexpr double oldestWithFp8 = 8.9;                        ///< Transformer Engine and torchao refuse what is older
constexpr double oldestWithFlash = 8; ///< compute capability (PyTorch, sdp_utils.cpp: check_sm_version)

/// PyTorch on a CPU.
bool followsCpuRules(const Device& device)
{
    return !device.isGpu() && !(device.framework && device.framework->name == ownKernels);
}

CheckpointPlan checkpointingOf(const std::string& text)
{
    if (text == "block")
        return {Checkpointing::Layers, 1, false};
    if (text == "block-reentrant")
        return {Checkpointing::Layers, 1, true};
    if (text == "sqrt")
        return {Checkpointing::SquareRoot, 1, false};
    if (text == "selective")
        return {Checkpointing::AttentionCore, 1, false};
    if (text == "second")
        return {Checkpointing::SecondLayers, 1, false};
    if (text == "operators")
        return {Checkpointing::Operators, 1, false};
    if (text.starts_with("every:")) {
        const auto every = parseNumber(std::string_view(text).substr(6));
        return {Checkpointing::Layers, static_cast<std::int64_t>(every.value_or(1)), false};
    }
    return {};
}

/// What torch.optim chooses by itself: all tensors at once on a GPU, one after the other on a CPU. DeepSpeed makes Adam
/// its FusedAdam.
Result<UpdateStyle> updateOf(const Device& device, const Parameters& parameters, const Plan& plan)
{
    if (plan.optimizer >= OptimizerKind::GaLore) // their libraries have one way
        return UpdateStyle::Loop;
    const std::string& text = parameters.choice("optimizer_implementation");
    if (text != "auto")
        return updateStyleFromText(text);
    if (parameters.choice("operators") == "written-out")
        return UpdateStyle::WrittenOut;
    const bool isAdam = plan.optimizer == OptimizerKind::Adam || plan.optimizer == OptimizerKind::AdamW;
    if (plan.zeroStage > 0 && plan.shardedBy == ShardedBy::DeepSpeed && isAdam && !followsCpuRules(device))
        return UpdateStyle::Fused;
    const bool goesOneByOne = followsCpuRules(device) || pytorchOf(device, parameters) <= PyTorch::Before20;
    return goesOneByOne ? UpdateStyle::Loop : UpdateStyle::Foreach;
}

Result<Plan> planOf(const Device& device, const Parameters& parameters)
{
    Plan plan;
    MEMSCAPE_TRY(precision, precisionFromText(parameters.choice("precision")));
    MEMSCAPE_TRY(optimizer, optimizerFromText(parameters.choice("optimizer")));
    MEMSCAPE_TRY(sharded, shardedByOf(parameters));
    plan.phase = phaseOf(parameters);
    plan.precision = precision;
    plan.logitsInFp32 = parameters.flag("logits_fp32");
    plan.optimizer = optimizer;
    plan.eightBitBlock = isOldBitsandbytes(parameters) ? 2048 : 256;
    plan.optimizerRank = parameters.integer("optimizer_rank");
    plan.accumulation = static_cast<int>(parameters.integer("accumulation"));
    plan.clipsGradients = parameters.flag("clipping");
    plan.updatesInBackward = plan.phase == StepPhase::Training && parameters.flag("optimizer_in_backward");
    plan.isChannelsLast = parameters.flag("channels_last");
    plan.setsGradientsToNone = freesGradientsOf(device, parameters);
    plan.zeroesLate =
        plan.phase == StepPhase::Training && !plan.updatesEarly() && parameters.choice("zero_grad_frees") == "late";
    plan.fp32Gradients = parameters.flag("fp32_gradients");
    if (parameters.choice("adapter") != "none")
        plan.lora = LoraPlan{parameters.integer("adapter_rank")};
    plan.zeroStage = static_cast<int>(parameters.integer("zero"));
    plan.shardedBy = sharded;
    MEMSCAPE_TRY(wrap, fsdpWrapFromText(parameters.choice("fsdp_wrap")));
    plan.fsdpWrap = wrap;
    plan.fsdpMinParams = parameters.integer("fsdp_min_params");
    plan.dataParallel = static_cast<int>(parameters.integer("data_parallel"));
    plan.replicateParallel = static_cast<int>(parameters.integer("data_parallel_replicate"));
    plan.contextParallel = static_cast<int>(parameters.integer("context_parallel"));
    plan.expertParallel = static_cast<int>(parameters.integer("expert_parallel"));
    plan.keepsExpertsWhole = parameters.flag("whole_experts");
    plan.pipelineParallel = static_cast<int>(parameters.integer("pipeline_parallel"));
    plan.virtualStages = static_cast<int>(parameters.integer("virtual_stages"));
    MEMSCAPE_TRY(schedule, pipelineScheduleFromText(parameters.choice("pipeline_schedule")));
    plan.pipelineSchedule = schedule;
    plan.network = parameters.number("network_bandwidth");
    plan.machineRanks = plan.network > 0 ? static_cast<int>(parameters.integer("machine_gpus")) : 0;
    plan.waitsInAttention = parameters.choice("attention") == "flash" && parameters.has("library")
        && runsTransformers(parameters.choice("library"));
    plan.keepsGathered = parameters.choice("sharding_implementation") == convertedLate;
    plan.gradientsAreBucketViews = parameters.flag("gradient_as_bucket_view");
    plan.reducesLastOnly = parameters.flag("no_sync");
    if (const std::string& overlap = parameters.choice("reductions"); overlap != "auto")
        plan.overlapsReductions = overlap == "overlapped";
    plan.tensorParallel = static_cast<int>(parameters.integer("tensor_parallel"));
    plan.sequenceParallel = parameters.flag("sequence_parallel");
    plan.asyncTensorParallel = parameters.flag("async_tensor_parallel");
    MEMSCAPE_TRY(scaling, fp8ScalingFromText(parameters.choice("fp8_scaling")));
    plan.fp8Scaling = scaling;
    MEMSCAPE_TRY(tf32, tf32FromText(parameters.choice("tf32")));
    plan.tf32 = tf32;
    plan.attendsByCudnn = isCudnnAsked(parameters)
        || (parameters.choice("attention") == "auto" && precision == Precision::Fp8
            && scaling != Fp8Scaling::Tensorwise);
    plan.offload = offloadOf(parameters);
    plan.isOnCpu = followsCpuRules(device);
    plan.isBefore2 = rulesOn(device, parameters).isBefore2;
    plan.addsEpsilonInPlace = plan.isOnCpu ? !plan.isBefore2 : pytorchOf(device, parameters) >= PyTorch::Before214;
    MEMSCAPE_TRY(update, updateOf(device, parameters, plan));
    plan.update = update;
    MEMSCAPE_CHECK(checkPlan(plan));
    return plan;
}

/// What is not LitGPT's, or is not modelled of it.
Result<void> checkLitGpt(const Plan& plan, const Parameters& parameters)
{
    if (!isLitGptAsked(parameters))
        return {};
    const auto refused = [](std::string what, std::string remedy, const char* key) {
        return fail("plan.library", std::move(what), std::move(remedy), key);
    };
    if (parameters.choice("loss") != "library")
        return refused("LitGPT has a loss of its own", "choose loss=library, or library=transformers", "loss");
    for (const auto& [key, degree] :
         {std::pair("tensor_parallel", plan.tensorParallel), std::pair("pipeline_parallel", plan.pipelineParallel),
          std::pair("context_parallel", plan.contextParallel)})
        if (degree > 1)
            return refused("LitGPT's finetuning shards with FSDP alone", fmt::format("choose {}=1", key), key);
    return {};
}

Result<void> setLoss(BuildOptions& build, const Device& device, const Parameters& parameters)
{
    const std::string& text = parameters.choice("loss");
    if (text.starts_with("chunked:")) {
        build.lossForm = LossForm::Chunked;
        build.lossChunks = static_cast<std::int64_t>(parseNumber(std::string_view(text).substr(8)).value_or(8));
    }
    if (text == "sum")
        build.lossForm = LossForm::Sum;
    if (text != "liger" && text != "cut" && text != "in-place")
        return {};
    build.lossForm = text == "liger" ? LossForm::Liger : text == "cut" ? LossForm::Cut : LossForm::InPlace;
    if (followsCpuRules(device))
        return fail("plan.loss", fmt::format("loss={} is a kernel for GPUs", text), "choose loss=chunked:8", "loss");
    if (build.tensorParallel > 1 && build.lossForm != LossForm::InPlace)
        return fail("plan.combination", fmt::format("loss={} is not modelled with a vocabulary that GPUs share", text),
                    "choose loss=library or tensor_parallel=1", "loss");
    return {};
}

/// Ranks that share a sequence: a causal mask lets them share the work evenly where each has one piece of its first
/// half and one of its second (Megatron-LM, Transformer Engine).
Result<std::int64_t> sequenceOfRank(const Plan& plan, std::int64_t sequence)
{
    const std::int64_t pieces = plan.contextParallel > 1 ? 2 * std::int64_t(plan.contextParallel) : 1;
    if (sequence % pieces != 0)
        return fail("plan.context",
                    fmt::format("a sequence of {} tokens cannot be divided among {} ranks, two pieces each", sequence,
                                plan.contextParallel),
                    fmt::format("choose a sequence that is a multiple of {}, or context_parallel=1", pieces),
                    "context_parallel");
    return sequence / plan.contextParallel;
}

Result<double> nvmeOf(const Parameters& parameters, const Plan& plan)
{
    const double bandwidth = parameters.has("nvme_bandwidth") ? parameters.number("nvme_bandwidth") : 0;
    if (bandwidth == 0 || plan.offload == Offload::None || !plan.hasOptimizer())
        return 0;
    if (plan.zeroStage != 3 || plan.shardedBy != ShardedBy::DeepSpeed)
        return fail("plan.combination", "state is swapped to an NVMe by DeepSpeed's ZeRO stage 3 alone",
                    "choose zero=3 and sharding_implementation=deepspeed, or nvme_bandwidth=0", "nvme_bandwidth");
    return bandwidth;
}

Result<std::int64_t> shortestOf(const Parameters& parameters, const Plan& plan)
{
    const std::int64_t shortest = parameters.has("shortest_sequence") ? parameters.integer("shortest_sequence") : 0;
    if (shortest > parameters.integer("sequence"))
        return fail("plan.combination",
                    fmt::format("the shortest sequence, {} tokens, is longer than the longest, {}", shortest,
                                parameters.integer("sequence")),
                    "choose shortest_sequence below sequence, or 0", "shortest_sequence");
    if (shortest > 0 && plan.contextParallel > 1)
        return fail("plan.combination", "batches of several lengths are not modelled where ranks share sequences",
                    "choose shortest_sequence=0, or context_parallel=1", "shortest_sequence");
    return shortest;
}

/// What of a plan the compiled program would have to know, and does not here.
std::string withoutCompile(const Plan& plan, const CheckpointPlan& checkpointing, const BuildOptions& build)
{
    const bool isWhole = build.compiled == CompileScope::Network || build.compiled == CompileScope::Logits;
    if (isWhole && checkpointing.kind != Checkpointing::None)
        return "checkpointing";
    if (checkpointing.kind == Checkpointing::AttentionCore)
        return "checkpointing=selective, which divides a layer";
    if (isWhole && plan.isSharded() && (plan.zeroStage > 1 || plan.isByFsdp()))
        return "sharded gradients or weights";
    if (plan.isByFsdp() && plan.fsdpWrap == FsdpWrap::Size)
        return "units of FSDP within a layer";
    if (plan.offload >= Offload::Gradients)
        return "gradients on the host";
    if (isWhole && plan.tensorParallel > 1)
        return "tensor parallelism";
    if (plan.pipelineParallel > 1 || plan.contextParallel > 1 || plan.expertParallel > 1)
        return "ranks that share layers, sequences or experts";
    if (build.isProductInFp8 && build.keepsFp8)
        return "Transformer Engine's FP8 (fp8_scaling=delayed, current), which casts by kernels of its own";
    if (build.adapters && build.adapters->base == BaseForm::Int8)
        return "a base in int8, whose kernels are not the compiler's";
    if (build.adapters && build.adapters->base == BaseForm::Gptq)
        return "a base in GPTQ, whose layers are not what a compiler was seen to make";
    return {};
}

Result<void> setActivationOffload(TrainingSetup& setup, const Device& device, const Parameters& parameters)
{
    setup.step.checkpointing.sendsToHost =
        parameters.flag("activation_offload") && setup.step.plan.phase != StepPhase::Inference;
    if (!setup.step.checkpointing.sendsToHost)
        return {};
    const auto refused = [](std::string message) {
        return fail("plan.offload", std::move(message), "choose activation_offload=false", "activation_offload");
    };
    if (!device.isGpu() || device.sharesHostMemory)
        return refused(fmt::format("{} computes in its host's memory: activations are there already", device.name));
    if (setup.step.plan.pipelineParallel > 1)
        return refused("activations on the host are not modelled with pipeline parallelism");
    if (setup.step.checkpointing.kind == Checkpointing::AttentionCore
        || setup.step.checkpointing.kind == Checkpointing::Operators)
        return refused(fmt::format("activations on the host are not modelled with checkpointing={}",
                                   parameters.choice("checkpointing")));
    if (const std::string& compile = parameters.choice("compile"); compile != "none" && compile != "layers")
        return refused("a network that is compiled whole takes back at once all that it has sent to the host: "
                       "compile=layers takes it layer by layer");
    return {};
}

/// A nested backward ends a flat parameter that has gradients in it: the weights of the next segment are gone then.
Result<void> checkWrap(const TrainingSetup& setup)
{
    const Plan& plan = setup.step.plan;
    const bool isNested = plan.isByFsdp() && plan.shardedBy == ShardedBy::Fsdp1 && plan.fsdpWrap != FsdpWrap::Block;
    if (!isNested || !setup.step.checkpointing.isReentrant)
        return {};
    return fail("plan.combination",
                "behind the first reentrant checkpoint within a unit FSDP 1 gives back the weights of all (PyTorch "
                "crashes)",
                "choose checkpointing=block, or fsdp_wrap=block", "fsdp_wrap");
}

Result<void> setCompile(BuildOptions& build, const TrainingSetup& setup, const Device& device,
                        const Parameters& parameters)
{
    const std::string& text = parameters.choice("compile");
    if (text == "none")
        return {};
    if (!device.isGpu())
        return fail("plan.compile", "torch.compile is modelled as Inductor compiles for a GPU",
                    "choose compile=none, or a GPU", "compile");
    const Plan& plan = setup.step.plan;
    const auto refusedWith = [&](CompileScope scope) {
        build.compiled = scope;
        return withoutCompile(plan, setup.step.checkpointing, build);
    };
    build.padsProducts = text != "inductor-2.0";
    const CompileScope scope = text == "layers" ? CompileScope::Layers
        : text == "logits"                      ? CompileScope::Logits
                                                : CompileScope::Network;
    const bool allowsLayers = refusedWith(CompileScope::Layers).empty();
    if (const std::string other = refusedWith(scope); !other.empty())
        return fail("plan.combination", fmt::format("compile={} is not modelled with {}", text, other),
                    allowsLayers ? "choose compile=layers"
                                 : "choose compile=none, or leave the other as it is by default",
                    "compile");
    return {};
}

} // namespace

Result<ShardedBy> shardedByOf(const Parameters& parameters)
{
    const std::string& text = parameters.choice("sharding_implementation");
    if (text == convertedLate)
        return ShardedBy::DeepSpeed;
    if (text != "auto")
        return shardedByFromText(text);
    const Offload offload = offloadOf(parameters);
    const bool isPartlyOffloaded = offload == Offload::Optimizer || offload == Offload::Gradients;
    const bool isAlone = parameters.integer("data_parallel") * parameters.integer("context_parallel") == 1;
    if (isAlone && offload == Offload::None && parameters.integer("zero") < 3)
        return ShardedBy::Paper; // nothing is sharded
    return parameters.integer("zero") == 3 && !isPartlyOffloaded ? ShardedBy::Fsdp2 : ShardedBy::DeepSpeed;
}

Device withOwnKernels(Device device)
{
    device.framework = Framework{std::string(ownKernels), {}};
    return device;
}

AllocatorOptions allocatorOf(const Device& device, const Parameters& parameters)
{
    AllocatorOptions options;
    options.caches = !followsCpuRules(device);
    options.expandableSegments = options.caches && parameters.choice("allocator") == "expandable";
    return options;
}

AttentionKernel attentionOn(const Device& device, const Parameters& parameters)
{
    const AttentionKernel asked = attentionOf(parameters);
    const bool isOnCpu = followsCpuRules(device), isBefore2 = rulesOn(device, parameters).isBefore2;
    if (isBefore2 && (isOnCpu || asked == AttentionKernel::Library))
        return AttentionKernel::Eager;
    return isOnCpu && asked == AttentionKernel::Efficient ? AttentionKernel::Flash : asked; // a CPU has one kernel
}

EagerRules rulesOn(const Device& device, const Parameters& parameters)
{
    if (!followsCpuRules(device)) {
        EagerRules rules = EagerRules::onGpu(pytorchOf(device, parameters));
        const double capability = parseNumber(device.computeCapability).value_or(oldestWithFlash);
        rules.hasFlash = capability >= oldestWithFlash;
        rules.prefersCudnn = pytorchOf(device, parameters) == PyTorch::From214 && capability >= 9 && capability < 11;
        return rules;
    }
    const bool isBefore2 = device.framework && device.framework->version.starts_with("1.");
    return EagerRules::onCpu(isBefore2, std::max(device.units, 1)); // PyTorch takes a thread for each core
}

Result<TrainingSetup> trainingSetup(const Device& device, const Parameters& parameters)
{
    TrainingSetup setup;
    MEMSCAPE_TRY(plan, planOf(device, parameters));
    if (plan.isByDeepSpeed() && parameters.has("deepspeed_sizes") && parameters.choice("deepspeed_sizes") == "auto") {
        MEMSCAPE_TRY(model, askedModel(parameters));
        plan.deepspeed = DeepSpeedSizes::ofWidth(model.hidden);
    }
    if (plan.offload != Offload::None && device.sharesHostMemory)
        return fail("plan.offload",
                    fmt::format("{} shares one memory with its host: what is offloaded stays in it", device.name),
                    "choose offload=none", "offload");
    if (plan.precision == Precision::Fp8
        && parseNumber(device.computeCapability).value_or(oldestWithFp8) < oldestWithFp8)
        return fail("plan.precision", fmt::format("{} has no products in FP8", device.name),
                    "choose precision=bf16-mixed, or a GPU of compute capability 8.9 or later", "precision");
    MEMSCAPE_CHECK(checkLitGpt(plan, parameters));
    Numerics numerics = numericsOf(plan.precision);
    MEMSCAPE_TRY(adapters, adaptersOf(parameters, plan.precision, numerics));
    BuildOptions& build = setup.build;
    build.adapters = std::move(adapters);
    build.batch = parameters.integer("batch");
    MEMSCAPE_TRY(sequence, sequenceOfRank(plan, parameters.integer("sequence")));
    build.sequence = sequence;
    build.contextParallel = plan.contextParallel;
    build.expertParallel = plan.expertParallel;
    build.dividesExperts = plan.expertParts() == plan.tensorParallel;
    build.pipeline = {plan.pipelineParallel, plan.virtualStages, 0};
    build.weights = numerics.weights;
    build.autocast = numerics.autocast;
    build.attention = attentionOn(device, parameters);
    build.repeatsHeads = repeatsHeadsOf(parameters);
    if (parameters.choice("operators") == "written-out")
        build.writtenOut = WrittenOut::all();
    build.isAllFused =
        parameters.choice("operators") == "all-fused" && !followsCpuRules(device) && !isLitGptAsked(parameters);
    build.isTransformers =
        parameters.has("library") && runsTransformers(parameters.choice("library")) && !build.isAllFused;
    build.dropout = parameters.number("dropout");
    build.dropsBranches = parameters.has("library") && parameters.choice("library") == "megatron";
    build.hasPadding = parameters.has("padding") && parameters.flag("padding");
    if (build.hasPadding && build.contextParallel > 1)
        return fail("plan.combination", "a mask of padding is not modelled where ranks share sequences",
                    "choose padding=false, or context_parallel=1", "padding");
    build.gradient = plan.phase != StepPhase::Inference;
    build.loss = plan.phase == StepPhase::Training;
    build.logitsInFloat = plan.logitsInFp32;
    build.maskedShare = parameters.has("masked_share") ? parameters.number("masked_share") : 0;
    build.keepsLogits = keepsLogitsOf(parameters);
    build.transformers = transformersOf(parameters);
    build.tensorParallel = plan.tensorParallel;
    MEMSCAPE_CHECK(setLoss(build, device, parameters));
    build.sequenceParallel = plan.sequenceParallel;
    build.isProductInFp8 = plan.precision == Precision::Fp8;
    build.keepsFp8 = plan.fp8Scaling != Fp8Scaling::Tensorwise;
    build.rules = rulesOn(device, parameters);
    setup.linkBandwidth = parameters.number("link_bandwidth");
    MEMSCAPE_TRY(nvme, nvmeOf(parameters, plan));
    setup.nvmeBandwidth = nvme;
    MEMSCAPE_TRY(shortest, shortestOf(parameters, plan));
    setup.shortestSequence = shortest;
    setup.step.plan = std::move(plan);
    setup.step.checkpointing = checkpointingOf(parameters.choice("checkpointing"));
    setup.step.rules = build.rules;
    MEMSCAPE_CHECK(checkWrap(setup));
    MEMSCAPE_CHECK(setActivationOffload(setup, device, parameters));
    MEMSCAPE_CHECK(setCompile(build, setup, device, parameters));
    setup.step.blasWorkspace = blasWorkspaceBytes(device);
    setup.allocator = allocatorOf(device, parameters);
    setup.context = device.isGpu() ? parameters.integer("device_context") : 0; // a processor has none
    return setup;
}

} // namespace memscape

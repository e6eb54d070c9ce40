// SPDX-License-Identifier: Apache-2.0
// The plan of a training step as PyTorch: the model, what is wrapped around it, its optimizer, and one
// update as a function.
#include "core/experiments/training-memory/training_lines.h"

#include "core/base/text.h"
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/training-memory/adapter_lines.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

TrainingLines::TrainingLines(const Device& device, const Parameters& parameters)
    : m_parameters(parameters)
    , m_device(device.isGpu() ? "\"cuda\"" : "\"cpu\"")
    , m_freesGradients(freesGradientsOf(device, parameters))
    , m_precision(parameters.choice("precision"))
    , m_offload(parameters.choice("offload"))
    , m_phase(parameters.choice("phase"))
    , m_zero(parameters.integer("zero"))
    , m_sharded(shardedByOf(parameters).value_or(ShardedBy::Paper))
{
    for (std::string& key : idleTrainingParameters(device, parameters))
        m_idle.insert(std::move(key));
}

std::string TrainingLines::text()
{
    m_lines.import("import torch");
    writeSizes();
    writeModel();
    writeCheckpointing();
    writeCompile();
    writeDistribution();
    if (m_phase == "training") {
        writeOptimizer();
        writeStep();
    } else {
        writePass();
    }
    return m_lines.text();
}

void TrainingLines::writeSizes()
{
    for (std::string& line : commentLines(fmt::format("As chosen in Memscape: {}.", m_parameters.text("model"))))
        m_lines.preamble(std::move(line));
    if (is("allocator", "expandable") && m_device == "\"cuda\"") {
        m_lines.preamble("import os");
        m_lines.preamble("os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"expandable_segments:True\"  # before torch");
    }
    m_lines.add(fmt::format("micro_batch = {}", integer("batch")));
    if (means("sequence"))
        m_lines.add(fmt::format("sequence = {}", integer("sequence")));
    if (means("accumulation"))
        m_lines.add(fmt::format("accumulation = {}", integer("accumulation")));
    m_lines.blank();
}

void TrainingLines::writeModel()
{
    if (means("transformers") && !is("transformers", "5.24")) {
        const char* next = is("transformers", "4.38") ? "4.45"
            : is("transformers", "4.45")              ? "4.46"
            : is("transformers", "4.46")              ? "4.48"
            : is("transformers", "4.48")              ? "4.50"
            : is("transformers", "4.50")              ? "4.54"
                                                      : "5.24";
        m_lines.comment(
            fmt::format("python3 -m pip install \"transformers>={},<{}\"", m_parameters.choice("transformers"), next));
    }
    m_lines.comment(isLitGptAsked(m_parameters)
                        ? "build_model is yours: it makes litgpt.GPT, or litgpt.lora.GPT, on the device."
                        : "build_model is yours: it makes the network on the device.");
    m_lines.add(fmt::format("model = build_model({})", pythonText(m_parameters.text("model"))));
    const auto precision = precisionFromText(m_precision);
    if ((precision && precisionRule(*precision).weight == 4) || isMixedByFsdp()) {
        m_lines.add(fmt::format("model = model.to({}, dtype=torch.float32)", m_device));
    } else {
        m_lines.add(fmt::format("model = model.to({}, dtype={})", m_device, halfType()));
        if (m_precision.ends_with("-mixed") || m_precision == "fp8")
            m_lines.comment(
                "PyTorch's optimizers keep no fp32 master copy of half weights: DeepSpeed and Megatron do.");
    }
    if (m_precision == "fp8")
        m_lines.comment(
            "PyTorch has no FP8 layers of its own: Transformer Engine's te.Linear under te.fp8_autocast().");
    if (means("dropout") && m_parameters.number("dropout") > 0)
        m_lines.comment(
            fmt::format("Dropout of {} is a setting of the model.", numberText(m_parameters.number("dropout"))));
    if (means("operators") && is("operators", "written-out"))
        m_lines.comment("Operators are written out in the model's own code, one expression after the other.");
    if (means("operators") && is("operators", "all-fused"))
        m_lines.comment("Norms, activations and gates are one kernel each: liger_kernel.transformers has an "
                        "apply_liger_kernel_to_… for each kind of model.");
    writeAdapterLines(m_lines, m_parameters);
    m_lines.blank();
}

void TrainingLines::writeCheckpointing()
{
    const std::string& kind = m_parameters.choice("checkpointing");
    if (kind == "none" || m_phase == "inference")
        return;
    m_lines.import("from torch.utils.checkpoint import checkpoint");
    if (kind == "selective") {
        m_lines.comment("In each attention layer, in place of attention_core(query, key, value):");
        m_lines.comment("checkpoint(attention_core, query, key, value, use_reentrant=False)");
        m_lines.blank();
        return;
    }
    if (kind == "operators")
        return writeOperatorCheckpoints();
    const bool isEachBlock = kind.starts_with("block");
    if (kind == "sqrt")
        m_lines.import("import math");
    m_lines.blank();
    m_lines.add("def run_blocks(blocks, hidden):  # in forward(), in place of the loop over blocks");
    if (kind == "second") {
        m_lines.add("    for index, block in enumerate(blocks):");
        m_lines.add("        hidden = checkpoint(block, hidden, use_reentrant=False) if index % 2 else "
                    "block(hidden)");
        m_lines.add("    return hidden");
        m_lines.blank();
        m_lines.blank();
        return;
    }
    m_lines.add("    every = "
                + (kind == "sqrt"    ? std::string("max(1, round(math.sqrt(len(blocks))))")
                       : isEachBlock ? "1"
                                     : kind.substr(kind.find(':') + 1)));
    m_lines.add("    for first in range(0, len(blocks), every):");
    m_lines.add("        segment = torch.nn.Sequential(*blocks[first:first + every])");
    m_lines.add(fmt::format("        hidden = checkpoint(segment, hidden, use_reentrant={})",
                            kind == "block-reentrant" ? "True" : "False"));
    m_lines.add("    return hidden");
    m_lines.blank();
    m_lines.blank();
}

void TrainingLines::writeOperatorCheckpoints()
{
    m_lines.import("from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts");
    m_lines.blank();
    for (const char* line :
         {"aten = torch.ops.aten",
          "kept = {aten.mm.default, aten._scaled_dot_product_flash_attention.default,",
          "        aten._scaled_dot_product_efficient_attention.default}",
          "",
          "",
          "def keep_results():  # of attention and of every second product",
          "    products = {False: 0, True: 0}",
          "",
          "    def choose(context, function, *arguments, **options):",
          "        if function == aten.mm.default:",
          "            products[context.is_recompute] += 1",
          "            if products[context.is_recompute] % 2 == 0:",
          "                return CheckpointPolicy.PREFER_RECOMPUTE",
          "        return CheckpointPolicy.MUST_SAVE if function in kept else CheckpointPolicy.PREFER_RECOMPUTE",
          "",
          "    return create_selective_checkpoint_contexts(choose)",
          "",
          "",
          "def run_blocks(blocks, hidden):  # in forward(), in place of the loop over blocks",
          "    for block in blocks:",
          "        hidden = checkpoint(block, hidden, use_reentrant=False, context_fn=keep_results)",
          "    return hidden",
          "",
          ""})
        m_lines.add(line);
}

void TrainingLines::writeCompile()
{
    if (means("tf32") && is("tf32", "all"))
        m_lines.add("torch.set_float32_matmul_precision(\"high\")");
    if (means("tf32") && is("tf32", "none"))
        m_lines.add("torch.backends.cudnn.allow_tf32 = False");
    if (means("channels_last") && m_parameters.flag("channels_last"))
        m_lines.add("model = model.to(memory_format=torch.channels_last)  # and each input");
    if (means("compile") && !is("compile", "none") && !compilesLayers())
        m_lines.add("model = torch.compile(model)");
    if (!compilesLayers())
        return;
    m_lines.add("for block in model.layers:  # yours: each block of the model is compiled alone");
    m_lines.add("    block.compile()");
    if (m_phase != "training" || (!isChunked() && !is("loss", "library")))
        return;
    if (!isChunked() || !m_parameters.flag("logits_fp32"))
        return m_lines.add("cross_entropy = torch.compile(torch.nn.functional.cross_entropy)");
    m_lines.blank();
    m_lines.blank();
    m_lines.add("@torch.compile  # with the cast in it: no chunk is in memory in fp32");
    m_lines.add("def cross_entropy(logits, targets, reduction):");
    m_lines.add("    return torch.nn.functional.cross_entropy(logits.float(), targets, reduction=reduction)");
    m_lines.blank();
    m_lines.blank();
}

std::string TrainingLines::crossEntropy() const
{
    return compilesLayers() ? "cross_entropy" : "torch.nn.functional.cross_entropy";
}

void TrainingLines::writeDistribution()
{
    const std::int64_t replicas = integer("data_parallel");
    if (means("tensor_parallel") && integer("tensor_parallel") > 1) {
        m_lines.comment(
            fmt::format("Tensor parallelism over {} devices{} is a plan for each kind of layer: "
                        "torch.distributed.tensor.parallel.parallelize_module with ColwiseParallel, RowwiseParallel{}.",
                        integer("tensor_parallel"), m_parameters.flag("sequence_parallel") ? ", sequences too," : "",
                        m_parameters.flag("sequence_parallel") ? " and SequenceParallel" : ""));
    }
    if (means("async_tensor_parallel") && m_parameters.flag("async_tensor_parallel"))
        m_lines.comment("In pieces: torch._inductor.config._micro_pipeline_tp = True, and "
                        "torch.distributed._symmetric_memory.enable_symm_mem_for_group of its group.");
    writeSharedWork();
    if (replicas > 1)
        m_lines.comment(fmt::format(
            "{} replicas: torchrun --nproc-per-node=…, after torch.distributed.init_process_group().", replicas));
    const bool isDeepSpeed = m_zero > 0 && m_sharded == ShardedBy::DeepSpeed && replicas > 1;
    if (isDeepSpeed)
        m_lines.comment("Predicted is DeepSpeed, whose configuration is another export. With PyTorch alone:");
    if (isByFsdp2()) {
        writeFullyShard();
    } else if (m_zero >= 2) {
        m_lines.import("from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, ShardingStrategy");
        m_lines.add(fmt::format(
            "model = FullyShardedDataParallel(model, {}sharding_strategy=ShardingStrategy.{}{})", wrapPolicy(),
            integer("data_parallel_replicate") > 1 ? m_zero == 3 ? "HYBRID_SHARD" : "_HYBRID_SHARD_ZERO2"
                : m_zero == 3                      ? "FULL_SHARD"
                                                   : "SHARD_GRAD_OP",
            m_offload == "parameters" ? ", cpu_offload=CPUOffload(offload_params=True)" : ""));
    } else if (replicas > 1) {
        m_lines.add(fmt::format(
            "model = torch.nn.parallel.DistributedDataParallel(model{})",
            m_zero == 0 && m_parameters.flag("gradient_as_bucket_view") ? ", gradient_as_bucket_view=True" : ""));
    }
}

/// The argument that says which modules are units; nothing where none is but the model.
std::string TrainingLines::wrapPolicy()
{
    if (is("fsdp_wrap", "whole"))
        return "";
    m_lines.import("import functools");
    const bool isBySize = is("fsdp_wrap", "size");
    const std::string policy = isBySize ? "size_based_auto_wrap_policy" : "transformer_auto_wrap_policy";
    m_lines.import("from torch.distributed.fsdp.wrap import " + policy);
    return fmt::format("auto_wrap_policy=functools.partial({}, {}), ", policy,
                       isBySize ? fmt::format("min_num_params={}", integer("fsdp_min_params"))
                                : "transformer_layer_cls={type(model.layers[0])}");
}

void TrainingLines::writeSharedWork()
{
    if (integer("pipeline_parallel") > 1) {
        const char* schedule = is("pipeline_schedule", "gpipe") ? "ScheduleGPipe"
            : is("pipeline_schedule", "interleaved")            ? "ScheduleInterleaved1F1B"
                                                                : "Schedule1F1B";
        m_lines.comment(fmt::format(
            "A pipeline of {} ranks, {} stages on each: torch.distributed.pipelining, a PipelineStage for each "
            "part of "
            "the layers and {}(stages, n_microbatches=accumulation); its step() replaces the loop below.",
            integer("pipeline_parallel"), integer("virtual_stages"), schedule));
    }
    if (integer("context_parallel") > 1)
        m_lines.comment(
            fmt::format("Each sequence is shared by {} ranks: "
                        "torch.distributed.tensor.experimental.context_parallel around forward and backward.",
                        integer("context_parallel")));
    if (integer("expert_parallel") > 1)
        m_lines.comment(fmt::format("{} ranks share the experts: the model sends tokens to them "
                                    "(all_to_all_single), as Megatron and torchtitan do.",
                                    integer("expert_parallel")));
    if (means("whole_experts") && m_parameters.flag("whole_experts"))
        m_lines.comment("Tensor parallelism leaves experts whole: Megatron's --expert-tensor-parallel-size 1.");
}

void TrainingLines::writeFullyShard()
{
    std::vector<std::string> names{"fully_shard"};
    std::string arguments = m_zero == 3 ? "" : ", reshard_after_forward=False";
    const bool reducesFloat = means("fp32_gradients") && m_parameters.flag("fp32_gradients");
    if (isMixedByFsdp() || reducesFloat) {
        names.emplace_back("MixedPrecisionPolicy");
        arguments +=
            fmt::format(", mp_policy=MixedPrecisionPolicy(param_dtype={}, reduce_dtype=torch.float32)", halfType());
    }
    if (m_offload == "parameters") {
        names.emplace_back("CPUOffloadPolicy");
        arguments += ", offload_policy=CPUOffloadPolicy()";
    }
    if (const std::int64_t groups = integer("data_parallel_replicate");
        groups > 1 && means("data_parallel_replicate")) {
        m_lines.import("from torch.distributed.device_mesh import init_device_mesh");
        m_lines.add(fmt::format("mesh = init_device_mesh({}, ({}, {}), mesh_dim_names=(\"replicate\", \"shard\"))",
                                m_device, groups, integer("data_parallel") / groups));
        arguments += ", mesh=mesh";
    }
    std::sort(names.begin(), names.end());
    m_lines.import("from torch.distributed.fsdp import " + join(names, ", "));
    if (!is("fsdp_wrap", "whole")) {
        m_lines.add("for block in model.layers:  # yours: each block of the model is a unit, the rest the root");
        m_lines.add(fmt::format("    fully_shard(block{})", arguments));
    }
    m_lines.add(fmt::format("fully_shard(model{})", arguments));
}

std::string TrainingLines::contexts(bool noGradient)
{
    std::vector<std::string> all;
    if (noGradient)
        all.emplace_back("torch.no_grad()");
    if (m_precision.ends_with("-autocast"))
        all.push_back(fmt::format("torch.autocast({}, dtype={})", m_device, halfType()));
    if (means("attention") && !is("attention", "auto") && !is("attention", "eager")) {
        m_lines.import("from torch.nn.attention import SDPBackend, sdpa_kernel");
        all.push_back(fmt::format("sdpa_kernel(SDPBackend.{})",
                                  is("attention", "flash")       ? "FLASH_ATTENTION"
                                      : is("attention", "cudnn") ? "CUDNN_ATTENTION"
                                                                 : "EFFICIENT_ATTENTION"));
    }
    if (!noGradient && means("activation_offload") && m_parameters.flag("activation_offload")) {
        m_lines.import("from torchtune.training import OffloadActivations");
        all.emplace_back("OffloadActivations()");
    }
    std::string line;
    for (const std::string& one : all)
        line += (line.empty() ? "" : ", ") + one;
    return line;
}

void TrainingLines::noteAttention(int indent)
{
    if (!means("attention"))
        return;
    m_lines.comment(is("attention", "eager")
                        ? "Attention is eager: the model writes scores and probabilities out itself "
                          "(attn_implementation=\"eager\" in transformers)."
                        : is("attention", "auto")
                        ? "Attention is the library's own (attn_implementation of transformers left at its default)."
                        : "For a model that calls F.scaled_dot_product_attention (attn_implementation=\"sdpa\" in "
                          "transformers).",
                    indent);
    if (means("repeats_heads") && repeatsHeadsOf(m_parameters))
        m_lines.comment("Keys and values are repeated for each query head before it (repeat_kv).", indent);
}

void TrainingLines::writeForward(int indent)
{
    std::string start(std::size_t(indent), ' ');
    noteAttention(indent);
    if (const std::string around = contexts(false); !around.empty()) {
        m_lines.add(start + "with " + around + ":");
        start += "    ";
    }
    if (means("loss") && !is("loss", "library"))
        return writeOtherLoss(start);
    const bool inFloat = means("logits_fp32") && m_parameters.flag("logits_fp32");
    const char* logits = inFloat ? "logits.float()" : "logits";
    const std::string loss = fmt::format("{}({}.flatten(0, -2), targets.flatten())", crossEntropy(), logits);
    if (keepsLogitsOf(m_parameters)) {
        m_lines.add(start + "logits = model(inputs)");
        m_lines.add(start + "loss = " + loss + " / accumulation");
    } else {
        m_lines.comment(fmt::format("The model computes the loss{}, so that no variable keeps the logits.",
                                    compilesLayers() ? " with cross_entropy" : ""),
                        int(start.size()));
        m_lines.add(start + "loss = model(inputs, targets) / accumulation");
    }
}

void TrainingLines::writeOtherLoss(const std::string& start)
{
    const std::string& form = m_parameters.choice("loss");
    const int indent = int(start.size());
    if (isChunked()) {
        const std::string count = form.substr(form.find(':') + 1);
        m_lines.comment(
            fmt::format("The model returns a list: [head(piece) for piece in hidden.chunk({}, dim=1)].", count),
            indent);
        m_lines.add(start + "logits = model(inputs)");
        m_lines.add(fmt::format("{}loss = sum({}(", start, crossEntropy()));
        m_lines.add(fmt::format("{}    piece{}.flatten(0, -2), wanted.flatten(), reduction=\"sum\")", start,
                                m_parameters.flag("logits_fp32") && !compilesLayers() ? ".float()" : ""));
        m_lines.add(fmt::format("{}    for piece, wanted in zip(logits, targets.chunk({}, dim=1)))", start, count));
        if (!keepsLogitsOf(m_parameters))
            m_lines.add(start + "del logits");
        m_lines.add(start + "loss = loss / targets.numel() / accumulation");
        return;
    }
    if (form == "in-place") {
        m_lines.import("from unsloth.kernels.cross_entropy_loss import fast_cross_entropy_loss");
        m_lines.add(start + "logits = model(inputs)");
        m_lines.add(start + "loss = fast_cross_entropy_loss(logits, targets) / accumulation");
        return;
    }
    if (form == "sum") {
        m_lines.add(start + "logits = model(inputs)");
        return m_lines.add(start + "loss = logits.sum() / accumulation");
    }
    m_lines.comment("The model returns its last hidden states.", indent);
    m_lines.add(start + "hidden = model(inputs)");
    m_lines.add(start + "head = model.get_output_embeddings().weight");
    if (form == "liger") {
        m_lines.import("from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss");
        m_lines.add(start
                    + "loss = LigerFusedLinearCrossEntropyLoss()(head, hidden.flatten(0, -2), targets.flatten()) "
                      "/ accumulation");
    } else {
        m_lines.import("from cut_cross_entropy import linear_cross_entropy");
        m_lines.add(start + "loss = linear_cross_entropy(hidden, head, targets) / accumulation");
    }
}

int TrainingLines::writeMicroBatches()
{
    if (!means("no_sync") || !m_parameters.flag("no_sync")) {
        m_lines.add("    for inputs, targets in batches:");
        return 8;
    }
    m_lines.add("    for index, (inputs, targets) in enumerate(batches):");
    m_lines.add("        is_last = index + 1 == accumulation  # it reduces the sum of all gradients");
    if (isByFsdp2()) {
        m_lines.add("        model.set_requires_gradient_sync(is_last)");
        return 8;
    }
    m_lines.import("import contextlib");
    m_lines.add("        with contextlib.nullcontext() if is_last else model.no_sync():");
    return 12;
}

void TrainingLines::writeStep()
{
    m_lines.blank();
    m_lines.add("def update(batches):  # `accumulation` pairs of inputs and targets, micro_batch of each");
    const int indent = writeMicroBatches();
    const std::string start(std::size_t(indent), ' ');
    writeForward(indent);
    const bool updates = !is("optimizer", "none");
    if (is("zero_grad_frees", "late") && updates)
        m_lines.add(start + zeroGrad());
    if (isLomo())
        m_lines.add(start + "optimizer.fused_backward(loss, learning_rate)");
    else
        m_lines.add(start + (isScaled() && updates ? "scaler.scale(loss).backward()" : "loss.backward()"));
    if (updates && !isLomo() && !m_parameters.flag("optimizer_in_backward"))
        writeUpdate();
}

std::string TrainingLines::zeroGrad() const
{
    return fmt::format("optimizer.zero_grad(set_to_none={})", pythonFlag(m_freesGradients));
}

void TrainingLines::writeUpdate()
{
    const bool isMuon = is("optimizer", "muon") && m_zero == 0 && m_offload == "none";
    const std::string start = isMuon ? "        " : "    ";
    if (m_parameters.flag("clipping") && means("clipping")) {
        if (isScaled())
            m_lines.add(isMuon ? "    for optimizer in optimizers:\n        scaler.unscale_(optimizer)"
                               : "    scaler.unscale_(optimizer)");
        m_lines.add(m_zero >= 2 && !isByFsdp2() ? "    model.clip_grad_norm_(1.0)"
                                                : "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)");
    }
    if (isMuon)
        m_lines.add("    for optimizer in optimizers:");
    m_lines.add(start + (isScaled() ? "scaler.step(optimizer)" : "optimizer.step()"));
    if (!is("zero_grad_frees", "late"))
        m_lines.add(start + zeroGrad());
    if (isScaled())
        m_lines.add("    scaler.update()");
}

void TrainingLines::writePass()
{
    noteAttention(0);
    const std::string around = contexts(m_phase == "inference");
    if (!around.empty())
        m_lines.add("with " + around + ":");
    m_lines.add(std::string(around.empty() ? "" : "    ") + "outputs = model(inputs)");
}

std::vector<Snippet> trainingSnippets(const Device& device, const Parameters& parameters)
{
    std::vector<Snippet> snippets{{"pytorch", "PyTorch lines", TrainingLines(device, parameters).text()}};
    if (device.isGpu() && parameters.choice("phase") == "training")
        for (const auto make : {deepspeedConfig, accelerateConfig, torchrunLine})
            snippets.push_back(make(parameters));
    return snippets;
}

} // namespace memscape

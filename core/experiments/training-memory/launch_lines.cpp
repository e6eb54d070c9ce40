// SPDX-License-Identifier: Apache-2.0
// The plan as a configuration of Accelerate (accelerate launch --config_file) and as torchrun's command line with
// transformers' TrainingArguments. Keys are those of Accelerate 1.15 (commands/config/cluster.py, config_args.py) and
// transformers 5 (training_args.py). What they have no words for is in the notes.
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/common/python_lines.h"
#include "core/experiments/memory/memory_parameters.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Launch
{
    explicit Launch(const Parameters& parameters)
        : replicas(parameters.integer("data_parallel"))
        , processes(replicas * parameters.integer("tensor_parallel") * parameters.integer("context_parallel")
                    * parameters.integer("pipeline_parallel"))
        , machineGpus(parameters.integer("machine_gpus"))
        , stage(parameters.integer("zero"))
        , precision(parameters.choice("precision"))
        , sharded(shardedByOf(parameters).value_or(ShardedBy::Paper))
        , accumulates(parameters.integer("accumulation") > 1)
        , sums(parameters.flag("no_sync"))
    { }

    bool isSharded() const { return stage > 0 && replicas > 1; }
    bool isFsdp() const { return isSharded() && (sharded == ShardedBy::Fsdp1 || sharded == ShardedBy::Fsdp2); }
    bool isDeepSpeed() const { return isSharded() && !isFsdp(); }
    /// Accelerate enters no_sync() under FSDP unless it is told to reduce each micro-batch.
    bool reducesEach() const { return isFsdp() && accumulates && !sums; }
    std::int64_t machines() const { return (processes + machineGpus - 1) / machineGpus; }
    /// "bf16" where products are half and the weights that are updated are fp32.
    std::string mixed() const
    {
        if (precision == "fp8")
            return "fp8";
        const bool isMixed = precision.ends_with("-autocast") || precision.ends_with("-mixed");
        return isMixed ? precision.substr(0, 4) : "no";
    }

    std::int64_t replicas, processes, machineGpus, stage;
    std::string precision;
    ShardedBy sharded;
    bool accumulates, sums;
};

const char* yesOrNo(bool value)
{
    return value ? "true" : "false";
}

std::vector<std::string> notesOf(const Parameters& parameters, const Launch& launch)
{
    std::vector<std::string> notes;
    if (launch.machines() > 1)
        notes.push_back(fmt::format("{} processes are taken for {} machines of {} GPUs: each starts with its own rank.",
                                    launch.processes, launch.machines(), launch.machineGpus));
    if (launch.precision == "bf16" || launch.precision == "fp16")
        notes.push_back(fmt::format("Load the model in {} (dtype=torch.{}): nothing is mixed.", launch.precision,
                                    launch.precision == "bf16" ? "bfloat16" : "float16"));
    if (launch.precision.ends_with("-under-autocast"))
        notes.push_back(fmt::format("Load the model in {} (dtype=torch.{}): autocast casts norms and the loss to fp32.",
                                    launch.mixed(), launch.mixed() == "bf16" ? "bfloat16" : "float16"));
    if (launch.precision.ends_with("-mixed") && !launch.isSharded())
        notes.push_back("Without DeepSpeed or FSDP this is autocast: fp32 weights, half copies beside them.");
    if (launch.isSharded() && launch.sharded == ShardedBy::Paper)
        notes.push_back("Predicted is ZeRO as its paper has it; DeepSpeed keeps larger buffers.");
    if (isLitGptAsked(parameters))
        notes.push_back("Predicted is LitGPT's network, which its own commands train (litgpt finetune).");
    if (parameters.integer("tensor_parallel") > 1)
        notes.push_back("Tensor parallelism is the model's: its plan is not written here.");
    if (parameters.integer("pipeline_parallel") > 1)
        notes.push_back(fmt::format("The pipeline of {} ranks is the model's (torch.distributed.pipelining, Megatron).",
                                    parameters.integer("pipeline_parallel")));
    if (parameters.integer("context_parallel") > 1 || parameters.integer("expert_parallel") > 1)
        notes.push_back("Shared sequences and experts are the model's: see the PyTorch lines.");
    if (launch.isSharded() && parameters.integer("data_parallel_replicate") > 1)
        notes.push_back(fmt::format("Shards are kept by {} groups: give a device mesh of replicate and shard.",
                                    parameters.integer("data_parallel_replicate")));
    if (parameters.choice("adapter") != "none")
        notes.push_back("Adapters are the model's (PEFT), as in the PyTorch lines.");
    return notes;
}

} // namespace

Snippet accelerateConfig(const Parameters& parameters)
{
    const Launch launch(parameters);
    const std::string& offload = parameters.choice("offload");
    const bool isRecomputed = parameters.choice("checkpointing").starts_with("block");
    std::string text = "compute_environment: LOCAL_MACHINE\n";
    const auto line = [&](std::string_view key, auto value) { text += fmt::format("{}: {}\n", key, value); };
    line("distributed_type",
         launch.isFsdp()            ? "FSDP"
             : launch.isDeepSpeed() ? "DEEPSPEED"
             : launch.processes > 1 ? "MULTI_GPU"
                                    : "'NO'");
    line("mixed_precision", launch.mixed() == "no" ? "'no'" : launch.mixed());
    line("num_machines", launch.machines());
    line("machine_rank", 0);
    line("num_processes", launch.processes);
    std::vector<std::string> notes = notesOf(parameters, launch);
    if (launch.isFsdp()) {
        const bool isFirst = launch.sharded == ShardedBy::Fsdp1;
        text += "fsdp_config:\n";
        line("  fsdp_version", isFirst ? 1 : 2);
        if (isFirst) {
            line("  fsdp_reshard_after_forward", launch.stage == 3 ? "FULL_SHARD" : "SHARD_GRAD_OP");
            line("  fsdp_backward_prefetch", "BACKWARD_PRE");
            line("  fsdp_forward_prefetch", "false");
            line("  fsdp_use_orig_params", "true");
        } else {
            line("  fsdp_reshard_after_forward", yesOrNo(launch.stage == 3));
        }
        const std::string& wrap = parameters.choice("fsdp_wrap");
        line("  fsdp_auto_wrap_policy",
             wrap == "size"        ? "SIZE_BASED_WRAP"
                 : wrap == "whole" ? "NO_WRAP"
                                   : "TRANSFORMER_BASED_WRAP");
        if (wrap == "size")
            line("  fsdp_min_num_params", parameters.integer("fsdp_min_params"));
        line("  fsdp_offload_params", yesOrNo(offload == "parameters"));
        line("  fsdp_state_dict_type", "SHARDED_STATE_DICT");
        line("  fsdp_cpu_ram_efficient_loading", "true");
        line("  fsdp_activation_checkpointing", yesOrNo(isRecomputed));
    } else if (launch.isDeepSpeed()) {
        text += "deepspeed_config:\n";
        line("  zero_stage", launch.stage);
        line("  gradient_accumulation_steps", parameters.integer("accumulation"));
        line("  gradient_clipping", parameters.flag("clipping") ? "1.0" : "0.0");
        line("  offload_optimizer_device", offload == "none" ? "none" : "cpu");
        line("  offload_param_device", offload == "parameters" ? "cpu" : "none");
        line("  zero3_init_flag", yesOrNo(launch.stage == 3));
        line("  zero3_save_16bit_model", yesOrNo(launch.stage == 3));
    } else if (offload != "none") {
        notes.emplace_back("Offloading needs a sharded plan here: see the PyTorch lines or DeepSpeed's configuration.");
    }
    if (!launch.isDeepSpeed() && parameters.integer("accumulation") > 1)
        notes.push_back(
            "Accumulation is the script's: Accelerator("
            + fmt::format(fmt::runtime(launch.reducesEach() ? "gradient_accumulation_plugin=GradientAccumulationPlugin("
                                                              "num_steps={}, sync_each_batch=True)"
                                                            : "gradient_accumulation_steps={}"),
                          parameters.integer("accumulation"))
            + ").");
    if (parameters.choice("checkpointing") != "none" && !(launch.isFsdp() && isRecomputed))
        notes.emplace_back("Checkpointing is the model's: model.gradient_checkpointing_enable() for every block.");
    return {"accelerate", "Accelerate configuration", std::move(text), std::move(notes)};
}

Snippet torchrunLine(const Parameters& parameters)
{
    const Launch launch(parameters);
    std::string text = "torchrun";
    if (launch.machines() > 1)
        text +=
            fmt::format(" --nnodes={} --rdzv-backend=c10d --rdzv-endpoint=\"$MASTER_ADDR:29500\"", launch.machines());
    text += fmt::format(" --nproc-per-node={} train.py", std::min(launch.processes, launch.machineGpus));
    std::vector<std::string> notes = notesOf(parameters, launch);
    notes.emplace_back("train.py is yours: it reads transformers' TrainingArguments.");
    const auto add = [&](std::string_view key, auto value) { text += fmt::format(" \\\n    --{} {}", key, value); };
    add("per_device_train_batch_size", parameters.integer("batch"));
    add("gradient_accumulation_steps", parameters.integer("accumulation"));
    if (launch.mixed() == "bf16" || launch.mixed() == "fp16")
        add(launch.mixed(), "True");
    else if (launch.mixed() == "fp8")
        notes.emplace_back("FP8 products are made by the model's layers (Transformer Engine).");
    const std::string& checkpointing = parameters.choice("checkpointing");
    if (checkpointing == "block" || checkpointing == "block-reentrant") {
        add("gradient_checkpointing", "True");
        if (checkpointing == "block-reentrant")
            add("gradient_checkpointing_kwargs", "'{\"use_reentrant\": true}'");
    } else if (checkpointing != "none")
        notes.emplace_back("TrainingArguments know checkpointing of every block alone: see the PyTorch lines.");
    const std::string& optimizer = parameters.choice("optimizer");
    const std::string& style = parameters.choice("optimizer_implementation");
    if (optimizer == "adamw")
        add("optim", style == "fused" ? "adamw_torch_fused" : "adamw_torch");
    else if (optimizer == "sgd" || optimizer == "adafactor")
        add("optim", optimizer);
    else if (optimizer == "adam-8bit")
        add("optim", "adamw_bnb_8bit");
    else if (optimizer == "paged-adam-8bit")
        add("optim", "paged_adamw_8bit");
    else if (optimizer == "paged-adamw")
        add("optim", "paged_adamw_32bit");
    else if (optimizer == "adam-4bit")
        add("optim", "adamw_torch_4bit");
    else
        notes.push_back(
            fmt::format("Give the optimizer ({}) to the Trainer: --optim has no word for it here.", optimizer));
    add("max_grad_norm", parameters.flag("clipping") ? "1.0" : "0.0");
    if (launch.isFsdp()) {
        text += " \\\n    --fsdp";
        const std::string& wrap = parameters.choice("fsdp_wrap");
        add("fsdp_config",
            fmt::format("'{{\"version\": {}, \"reshard_after_forward\": {}, \"cpu_offload\": {}{}}}'",
                        launch.sharded == ShardedBy::Fsdp1 ? 1 : 2, yesOrNo(launch.stage == 3),
                        yesOrNo(parameters.choice("offload") == "parameters"),
                        wrap == "whole" ? ", \"auto_wrap_policy\": \"NO_WRAP\""
                            : wrap == "size"
                            ? fmt::format(", \"auto_wrap_policy\": \"SIZE_BASED_WRAP\", \"min_num_params\": {}",
                                          parameters.integer("fsdp_min_params"))
                            : ""));
        if (launch.reducesEach())
            add("accelerator_config", "'{\"gradient_accumulation_kwargs\": {\"sync_each_batch\": true}}'");
    } else if (launch.isDeepSpeed()) {
        add("deepspeed", "deepspeed.json");
        notes.emplace_back("deepspeed.json is the export DeepSpeed configuration.");
    }
    return {"torchrun", "torchrun line", text + "\n", std::move(notes)};
}

} // namespace memscape

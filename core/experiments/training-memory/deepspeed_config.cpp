// SPDX-License-Identifier: Apache-2.0
// The plan as DeepSpeed's configuration, with keys of its documentation alone
// (https://www.deepspeed.ai/docs/config-json/). JSON has no comments: what it does not say is in the notes.
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/memory/memory_parameters.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

std::string optimizerLabel(std::string_view kind)
{
    const Schema schema = trainingSchema();
    for (const ChoiceValue& one : findParameter(schema, "optimizer")->choices)
        if (one.key == kind)
            return one.label;
    return std::string(kind);
}

class ConfigWriter
{
public:
    explicit ConfigWriter(const Parameters& parameters)
        : m_parameters(parameters)
    {
        const std::int64_t micro = parameters.integer("batch"), accumulation = parameters.integer("accumulation");
        m_json["train_micro_batch_size_per_gpu"] = micro;
        m_json["gradient_accumulation_steps"] = accumulation;
        m_json["train_batch_size"] = micro * accumulation * parameters.integer("data_parallel");
        writeOptimizer();
        writePrecision();
        if (parameters.flag("fp32_gradients") && parameters.choice("precision").ends_with("-mixed"))
            m_json["data_types"] = {{"grad_accum_dtype", "fp32"}};
        writeSharding();
        m_json["gradient_clipping"] =
            parameters.flag("clipping") ? 1.0 : 0.0; // newer versions clip at 1 unless they are told
        noteTheRest();
    }

    Snippet snippet() { return {"deepspeed", "DeepSpeed configuration", jsonText(m_json), std::move(m_notes)}; }

private:
    bool is(const char* key, std::string_view value) const { return m_parameters.choice(key) == value; }
    void note(std::string text) { m_notes.push_back(std::move(text)); }

    void writeOptimizer()
    {
        const std::string& kind = m_parameters.choice("optimizer");
        Json parameters = Json::object();
        if (kind == "adamw")
            m_json["optimizer"] = {{"type", "AdamW"}, {"params", parameters}};
        else if (kind == "adam") // its adam_w_mode is on by default
            m_json["optimizer"] = {{"type", "Adam"}, {"params", {{"adam_w_mode", false}}}};
        else if (kind == "sgd")
            m_json["optimizer"] = {{"type", "SGD"}, {"params", parameters}};
        else if (kind == "momentum")
            m_json["optimizer"] = {{"type", "SGD"}, {"params", {{"momentum", 0.9}}}};
        else if (kind == "adafactor")
            m_json["optimizer"] = {{"type", "Adafactor"}, {"params", parameters}};
        else if (kind == "muon")
            m_json["optimizer"] = {{"type", "Muon"}, {"params", parameters}};
        else if (kind != "none")
            note(fmt::format(
                "{} cannot be named in a configuration: make it and give it to deepspeed.initialize(optimizer=…).",
                optimizerLabel(kind)));
        if (m_json.contains("optimizer"))
            note("The learning rate is the optimizer's own default; memory does not depend on it.");
    }

    void writePrecision()
    {
        const std::string& precision = m_parameters.choice("precision");
        if (precision == "bf16-mixed" || precision == "bf16" || precision == "fp8")
            m_json["bf16"] = {{"enabled", true}};
        if (precision == "fp16-mixed" || precision == "fp16")
            m_json["fp16"] = {{"enabled", true}, {"loss_scale", 0}}; // 0: dynamic
        if (precision.ends_with("-autocast"))
            m_json["torch_autocast"] = {{"enabled", true},
                                        {"dtype", precision.starts_with("fp16") ? "float16" : "bfloat16"}};
        if (precision == "bf16" && stage() > 0) {
            m_json["bf16"]["bf16_master_weights_and_grads"] = true;
            m_json["bf16"]["bf16_optimizer_states"] = true;
        } else if (precision == "bf16" || precision == "fp16") {
            note("DeepSpeed keeps an fp32 master copy there: pure half precision needs ZeRO and bf16.");
        }
        if (precision == "fp8")
            note("FP8 products are made by the model's layers (Transformer Engine); the rest is as bf16.");
    }

    /// DeepSpeed offloads what ZeRO has sharded.
    std::int64_t stage() const
    {
        const std::int64_t chosen = m_parameters.integer("zero");
        const std::int64_t least = is("offload", "parameters") ? 3
            : is("offload", "gradients")                       ? 2
            : is("offload", "optimizer")                       ? 1
                                                               : 0;
        return std::max(chosen, least);
    }

    void writeSharding()
    {
        Json zero{{"stage", stage()}};
        const Json host{{"device", "cpu"}, {"pin_memory", true}};
        if (!is("offload", "none"))
            zero["offload_optimizer"] = m_parameters.number("nvme_bandwidth") > 0
                ? Json{{"device", "nvme"}, {"nvme_path", "/local_nvme"}, {"pin_memory", true}, {"buffer_count", 4}}
                : host;
        if (is("offload", "parameters"))
            zero["offload_param"] = host;
        if (m_parameters.has("reductions") && !is("reductions", "auto"))
            zero["overlap_comm"] = is("reductions", "overlapped");
        if (m_parameters.has("deepspeed_sizes") && is("deepspeed_sizes", "auto")) {
            zero["reduce_bucket_size"] = "auto";
            zero["stage3_prefetch_bucket_size"] = "auto";
            zero["stage3_param_persistence_threshold"] = "auto";
            note(
                "\"auto\" is filled in by transformers' Trainer or Accelerate; deepspeed.initialize alone refuses it.");
        }
        m_json["zero_optimization"] = std::move(zero);
        if (stage() != m_parameters.integer("zero"))
            note(fmt::format("Offloading that needs ZeRO: stage {} in place of {}.", stage(),
                             m_parameters.integer("zero")));
    }

    void noteTheRest()
    {
        if (!is("checkpointing", "none"))
            note("Checkpointing is the model's: torch.utils.checkpoint, as in the PyTorch lines.");
        if (m_parameters.integer("tensor_parallel") > 1)
            note(fmt::format("Tensor parallelism over {} devices is the model's (Megatron).",
                             m_parameters.integer("tensor_parallel")));
        if (m_parameters.integer("pipeline_parallel") > 1)
            note(fmt::format("The pipeline is the model's: deepspeed.pipe.PipelineModule(layers, num_stages={}).",
                             m_parameters.integer("pipeline_parallel")));
        if (m_parameters.integer("context_parallel") > 1 || m_parameters.integer("expert_parallel") > 1)
            note("Shared sequences and experts are the model's: see the PyTorch lines.");
        if (!is("adapter", "none"))
            note("Adapters are the model's (PEFT), as in the PyTorch lines.");
        if (!is("attention", "auto") && !is("attention", "eager"))
            note("The kernel of attention is the model's: see the PyTorch lines.");
    }

    const Parameters& m_parameters;
    Json m_json = Json::object();
    std::vector<std::string> m_notes;
};

} // namespace

Snippet deepspeedConfig(const Parameters& parameters)
{
    return ConfigWriter(parameters).snippet();
}

} // namespace memscape

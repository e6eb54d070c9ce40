// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/training-memory/adapter_lines.h"

#include "core/base/text.h"
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/adapter_targets.h"
#include "core/network/inventory.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

class AdapterLines
{
public:
    AdapterLines(PythonLines& lines, const Parameters& parameters)
        : m_lines(lines)
        , m_parameters(parameters)
        , m_precision(parameters.choice("precision"))
        , m_kind(adapterKindOf(parameters))
    { }

    void write()
    {
        if (is("adapter", "none"))
            return;
        if (isLitGptAsked(m_parameters))
            return m_lines.comment(fmt::format("Its adapters: lora_r={}, lora_dropout={}, lora_query=True … for {}.",
                                               integer("adapter_rank"), m_parameters.number("adapter_dropout"),
                                               m_parameters.text("adapter_targets")));
        writeQuantizedBase();
        m_lines.import(fmt::format("from peft import {}, get_peft_model", configName()));
        if (isPreparedForKbit(m_parameters)) {
            m_lines.import("from peft import prepare_model_for_kbit_training");
            m_lines.add(fmt::format("model = prepare_model_for_kbit_training(model, use_gradient_checkpointing={})",
                                    pythonFlag(!is("checkpointing", "none"))));
        }
        const bool isWide =
            !is("adapter_precision", "base") && (is("adapter_precision", "fp32") || !m_precision.ends_with("-mixed"));
        m_lines.add(fmt::format("adapters = {}({})", configName(), arguments()));
        m_lines.add(
            fmt::format("model = get_peft_model(model, adapters{})", isWide ? "" : ", autocast_adapter_dtype=False"));
        if (!is("adapter_variant", "lora-fa") || m_kind != AdapterKind::LowRank)
            return;
        m_lines.comment("As PEFT's create_lorafa_optimizer does, whose AdamW also corrects the gradient of B by A.");
        m_lines.add("for name, parameter in model.named_parameters():");
        m_lines.add("    if \"lora_A\" in name:");
        m_lines.add("        parameter.requires_grad_(False)");
    }

private:
    bool is(const char* key, std::string_view value) const { return m_parameters.choice(key) == value; }
    std::int64_t integer(const char* key) const { return m_parameters.integer(key); }
    std::string_view halfType() const { return m_precision.starts_with("fp16") ? "torch.float16" : "torch.bfloat16"; }

    /// How transformers loads the base in fewer bits.
    void writeQuantizedBase()
    {
        const BaseForm base = baseFormOf(m_parameters);
        if (!isQuantizedForm(base)) {
            if (!is("base_precision", "auto"))
                m_lines.add(fmt::format("model = model.to(dtype={})  # the frozen base", typeName("base_precision")));
            return;
        }
        if (base == BaseForm::Gptq) {
            m_lines.import("from transformers import GPTQConfig");
            m_lines.add("quantization = GPTQConfig(bits=4, use_exllama=False)");
            m_lines.comment("build_model loads a base that was quantized before with it: from_pretrained(…, "
                            "quantization_config=quantization).");
            return;
        }
        m_lines.import("from transformers import BitsAndBytesConfig");
        const std::string_view skipped = m_parameters.flag("quantized_head") ? ", llm_int8_skip_modules=[]" : "";
        if (base == BaseForm::Int8) {
            m_lines.add(fmt::format("quantization = BitsAndBytesConfig(load_in_8bit=True{})", skipped));
        } else {
            m_lines.add(fmt::format("quantization = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "
                                    "bnb_4bit_use_double_quant={}, bnb_4bit_compute_dtype={}{})",
                                    pythonFlag(base == BaseForm::NormalFloat4Double), typeName("compute_precision"),
                                    skipped));
            if (isOldBitsandbytes(m_parameters))
                m_lines.comment(
                    fmt::format("python3 -m pip install bitsandbytes=={}.0", m_parameters.choice("bitsandbytes")));
        }
        m_lines.comment("build_model loads the base with it: from_pretrained(…, quantization_config=quantization).");
    }

    /// "torch.bfloat16"; auto is the half type of the recipe.
    std::string_view typeName(const char* key) const
    {
        const std::string& type = m_parameters.choice(key);
        if (type == "fp32" || (type == "auto" && m_precision == "fp32"))
            return "torch.float32";
        return type == "auto" ? halfType() : type == "fp16" ? "torch.float16" : "torch.bfloat16";
    }

    const char* configName() const
    {
        switch (m_kind) {
        case AdapterKind::Ia3: return "IA3Config";
        case AdapterKind::Vera: return "VeraConfig";
        case AdapterKind::Norms: return "LNTuningConfig";
        case AdapterKind::Prompt: return "PromptTuningConfig";
        case AdapterKind::Prefix: return "PrefixTuningConfig";
        case AdapterKind::LowRank: break;
        }
        return "LoraConfig";
    }

    std::string arguments() const
    {
        if (m_kind == AdapterKind::Prompt || m_kind == AdapterKind::Prefix)
            return fmt::format("task_type=\"CAUSAL_LM\", num_virtual_tokens={}", integer("virtual_tokens"));
        if (m_kind == AdapterKind::LowRank)
            return loraArguments();
        std::vector<std::string> parts;
        if (m_kind == AdapterKind::Vera)
            parts.push_back(fmt::format("r={}", integer("adapter_rank")));
        if (const std::string targets = targetModules(); !targets.empty())
            parts.push_back("target_modules=" + targets + (m_kind == AdapterKind::Ia3 ? feedForward() : ""));
        if (const double dropout = m_parameters.number("adapter_dropout"); dropout > 0 && m_kind == AdapterKind::Vera)
            parts.push_back(fmt::format("vera_dropout={}", numberText(dropout)));
        if (const auto saved = moduleNamesOf(m_parameters, "modules_to_save"); saved && !saved->empty())
            parts.push_back("modules_to_save=" + pythonList(*saved));
        return join(parts, ", ");
    }

    /// PEFT wants those of the named targets that are feed-forward.
    std::string feedForward() const
    {
        const auto asked = moduleNamesOf(m_parameters, "adapter_targets");
        const auto model = askedModel(m_parameters);
        std::vector<std::string> names;
        if (asked && model)
            for (const std::string& name : peftFeedForward(*model))
                if (std::find(asked->begin(), asked->end(), name) != asked->end())
                    names.push_back(name);
        return ", feedforward_modules=" + pythonList(names);
    }

    std::string loraArguments() const
    {
        std::string text = fmt::format("r={}", integer("adapter_rank"));
        if (const std::string targets = targetModules(); !targets.empty())
            text += ", target_modules=" + targets;
        if (const double dropout = m_parameters.number("adapter_dropout"); dropout > 0)
            text += fmt::format(", lora_dropout={}", numberText(dropout));
        if (const auto saved = moduleNamesOf(m_parameters, "modules_to_save"); saved && !saved->empty())
            text += ", modules_to_save=" + pythonList(*saved);
        if (is("adapter_variant", "rslora"))
            text += ", use_rslora=True";
        if (is("adapter_variant", "dora"))
            text += ", use_dora=True";
        return text;
    }

    /// Nothing where PEFT has a default of its own, which is meant.
    std::string targetModules() const
    {
        const auto asked = moduleNamesOf(m_parameters, "adapter_targets");
        const auto model = askedModel(m_parameters);
        if (!asked || !model)
            return {};
        const bool isStandard = *asked == std::vector<std::string>{"default"};
        if (isStandard && !is("adapter", "qlora")
            && peftTargets(*model, m_kind) != std::vector<std::string>{"all-linear"})
            return {};
        if (isStandard || std::find(asked->begin(), asked->end(), "all-linear") != asked->end())
            return "\"all-linear\"";
        std::vector<std::string> names;
        for (const std::string& name : *asked) {
            if (name == "attention")
                addAttentionLayers(names, *model);
            else
                names.push_back(name);
        }
        return pythonList(names);
    }

    /// "self_attn.q_proj": PEFT takes what a module's path ends with.
    static void addAttentionLayers(std::vector<std::string>& names, const ModelDescription& model)
    {
        const auto tensors = inventory(model);
        if (!tensors)
            return;
        for (const ModelTensor& tensor : tensors->tensors) {
            const std::string path = tensor.name.substr(0, tensor.name.rfind('.'));
            const std::size_t last = path.rfind('.');
            const std::size_t before = last == path.npos || last == 0 ? path.npos : path.rfind('.', last - 1);
            if (tensor.role != TensorRole::Matrix || tensor.layer < 0 || before == path.npos)
                continue;
            std::string name = path.substr(before + 1);
            const bool isAttention = name.find("attn") < name.find('.') || name.find("ttention") < name.find('.');
            if (isAttention && std::find(names.begin(), names.end(), name) == names.end())
                names.push_back(std::move(name));
        }
    }

    static std::string pythonList(const std::vector<std::string>& texts)
    {
        std::string list;
        for (const std::string& text : texts)
            list += (list.empty() ? "" : ", ") + pythonText(text);
        return "[" + list + "]";
    }

    PythonLines& m_lines;
    const Parameters& m_parameters;
    const std::string& m_precision;
    AdapterKind m_kind;
};

} // namespace

void writeAdapterLines(PythonLines& lines, const Parameters& parameters)
{
    AdapterLines(lines, parameters).write();
}

} // namespace memscape

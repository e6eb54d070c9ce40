// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/memory_parameters.h"

#include "core/base/text.h"
#include "core/experiment/schema.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t mostNames = 64, longestName = 120;

bool isNameCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'
        || c == '-';
}

bool isHalfType(std::string_view text)
{
    return text == "bf16" || text == "fp16";
}

std::optional<DType> typeOf(std::string_view text)
{
    if (text == "fp32")
        return DType::Float32;
    return text == "fp16" ? std::optional(DType::Float16)
        : text == "bf16"  ? std::optional(DType::BFloat16)
                          : std::nullopt;
}

DType halfOf(Precision precision)
{
    return precisionText(precision).starts_with("fp16") ? DType::Float16 : DType::BFloat16;
}

} // namespace

ParameterSpec quantizedHeadSpec()
{
    return flagSpec("quantized_head", "head quantized",
                    "Linear layers outside of the blocks, the output head above all, in as few bits as those of the "
                    "blocks: LitGPT. "
                    "transformers leaves the head as it is, and one that shares the embedding's weight stays so.");
}

ParameterSpec bitsandbytesSpec()
{
    return choiceSpec(
        "bitsandbytes", "bitsandbytes",
        "Which version. Before 0.44 the input of each 4-bit layer is kept for as long as the loss is named, through "
        "checkpointing that isn't reentrant and into the next micro-batch's forward pass, and 8-bit Adam has a scale "
        "per block of 2048; weights in 8 bits are made with a transposed copy beside them. Before 0.43 weights in 4 "
        "bits are quantized from fp16, and made fp16 again on the way to bf16.",
        {{"0.44", "0.44 or newer", "a frozen layer's input is not kept"},
         {"0.43", "0.43", "ctx.tensors = (A, B)"},
         {"0.41", "0.41 or 0.42", "and weights pass through fp16"}},
        "0.44");
}

ParameterSpec computePrecisionSpec()
{
    return choiceSpec("compute_precision", "4-bit compute type",
                      "bnb_4bit_compute_dtype: what 4-bit weights are dequantized to, and their input is cast to.",
                      {{"auto", "as usual", "the half type of the precision; fp32 in fp32"},
                       {"bf16", "bf16", "2 bytes"},
                       {"fp16", "fp16", "2 bytes"},
                       {"fp32", "fp32", "4 bytes: what transformers takes where it is not told otherwise"}},
                      "auto");
}

std::optional<DType> computePrecisionOf(const Parameters& parameters)
{
    return typeOf(parameters.choice("compute_precision"));
}

std::vector<ParameterSpec> adapterSpecs()
{
    return {
        integerSpec("adapter_rank", "adapter rank",
                    "Columns of the thin matrices; of VeRA those of the shared ones, 256 by PEFT's default.",
                    {.least = 1, .most = 65536, .standard = "16", .scale = Scale::Log2}),
        integerSpec("virtual_tokens", "virtual tokens",
                    "Learned tokens of a prompt or prefix (PEFT's num_virtual_tokens). A prompt makes each sequence so "
                    "much longer, a prefix its keys and values.",
                    {.least = 1, .most = 65536, .standard = "20", .scale = Scale::Log2, .suffix = "tokens"}),
        textSpec("adapter_targets", "target modules",
                 "Which linear layers get an adapter: default, all-linear, attention, or names such as q_proj,v_proj "
                 "(PEFT's target_modules). The default is PEFT's: queries and values for LoRA and VeRA in most "
                 "architectures, all-linear where PEFT has none; for QLoRA it is all-linear, as its paper has it. "
                 "Where norms alone are trained these are norms.",
                 "default", 1),
        realSpec("adapter_dropout", "adapter dropout",
                 "Probability of nn.Dropout in front of each adapter: its mask and its output are kept.",
                 {.most = 0.99}),
        choiceSpec(
            "adapter_variant", "LoRA variant", "What is made of the two thin matrices.",
            {{"lora", "LoRA", "W x + alpha / r · B A x"},
             {"rslora", "rsLoRA", "alpha / √r instead: the same bytes"},
             {"dora", "DoRA", "a trained magnitude for each output; the norm of W + B A is computed in every pass"},
             {"lora-fa", "LoRA-FA", "A stays as it is drawn: its input, as wide as the layer's, is not kept"}},
            "lora"),
        choiceSpec(
            "adapter_precision", "adapter precision",
            "What adapters are kept in. PEFT makes them fp32 beside half weights (autocast_adapter_dtype), and casts "
            "their input; torchtune and LitGPT keep them as the weights.",
            {{"auto", "as usual", "fp32; in the mixed recipes as the weights, which DeepSpeed casts all alike"},
             {"fp32", "fp32", "4 bytes, and fp32 copies of what goes in"},
             {"base", "as the weights", "the type of the weights that are not quantized"}},
            "auto"),
        textSpec(
            "modules_to_save", "modules to save",
            "Modules that are trained in full beside the adapters, such as embed_tokens,lm_head; none by default. PEFT "
            "keeps the frozen original, too.",
            "none", 1),
        choiceSpec(
            "base_precision", "base precision", "What the frozen base is kept in.",
            {{"auto", "as usual", "for LoRA the precision of the weights; for QLoRA NF4 with double quantization"},
             {"fp32", "fp32", "4 bytes"},
             {"bf16", "bf16", "2 bytes; with autocast and fp32 adapters what transformers' Trainer runs"},
             {"fp16", "fp16", "2 bytes"},
             {"int8", "int8", "matrices of layers in a byte, a scale per row (LLM.int8 of bitsandbytes)"},
             {"nf4", "NF4", "matrices of layers in 4 bits, an fp32 scale per 64"},
             {"nf4-double", "NF4, double", "the scales in 8 bits, too: 4.127 bits an element"},
             {"gptq", "GPTQ", "4 bits, groups of 128; the matrix is kept whole, in half, for backward (AutoGPTQ)"}},
            "auto"),
        computePrecisionSpec(),
        choiceSpec(
            "kbit_preparation", "k-bit preparation",
            "What becomes of norms, embeddings and head beside a base in 4 or 8 bits. PEFT's "
            "prepare_model_for_kbit_training casts them to fp32; the mixed recipes then compute under autocast, as "
            "transformers' Trainer does. Checkpointing, which it turns on, is a parameter of its own.",
            {{"peft", "by PEFT", "all that is not quantized in fp32"},
             {"none", "none", "as it was loaded: in half precision wherever that is computed in"}},
            "peft"),
        quantizedHeadSpec(),
        bitsandbytesSpec()};
}

std::vector<std::string> adapterKeys()
{
    std::vector<std::string> keys{"adapter"};
    for (const ParameterSpec& spec : adapterSpecs())
        keys.push_back(spec.key);
    return keys;
}

BaseForm baseFormOf(const Parameters& parameters)
{
    const std::string &adapter = parameters.choice("adapter"), &base = parameters.choice("base_precision");
    if (adapter == "none")
        return BaseForm::AsWeights;
    if (base == "int8")
        return BaseForm::Int8;
    if (base == "nf4")
        return BaseForm::NormalFloat4;
    if (base == "gptq")
        return BaseForm::Gptq;
    return base == "nf4-double" || adapter == "qlora" ? BaseForm::NormalFloat4Double : BaseForm::AsWeights;
}

AdapterKind adapterKindOf(const Parameters& parameters)
{
    const std::string& adapter = parameters.choice("adapter");
    return adapter == "ia3"   ? AdapterKind::Ia3
        : adapter == "vera"   ? AdapterKind::Vera
        : adapter == "norms"  ? AdapterKind::Norms
        : adapter == "prompt" ? AdapterKind::Prompt
        : adapter == "prefix" ? AdapterKind::Prefix
                              : AdapterKind::LowRank;
}

bool isOldBitsandbytes(const Parameters& parameters)
{
    return parameters.choice("bitsandbytes") != "0.44";
}

bool isPreparedForKbit(const Parameters& parameters)
{
    const BaseForm base = baseFormOf(parameters); // PEFT leaves a base in GPTQ as it is
    return isQuantizedForm(base) && base != BaseForm::Gptq && parameters.choice("kbit_preparation") == "peft"
        && !isLitGptAsked(parameters);
}

Result<std::vector<std::string>> moduleNamesOf(const Parameters& parameters, const std::string& key)
{
    const std::string& text = parameters.text(key);
    std::vector<std::string> names;
    if (trimmed(text) == "none")
        return names;
    for (const std::string& part : split(text, ',')) {
        const std::string name(trimmed(part));
        if (name.empty() || name.size() > longestName || !std::all_of(name.begin(), name.end(), isNameCharacter))
            return fail("plan.lora", fmt::format("\"{}\" is no name of a module", quotedForMessage(name)),
                        "names of modules with commas between them, for example q_proj,v_proj", key);
        names.push_back(name);
    }
    if (names.size() > mostNames)
        return fail("plan.lora", fmt::format("{} modules are named", names.size()),
                    fmt::format("name at most {}, or all-linear", mostNames), key);
    return names;
}

namespace {

/// What PEFT has no kind for, or is not modelled beside one.
Result<void> checkKind(const Parameters& parameters, AdapterKind kind)
{
    const auto refused = [](std::string message, std::string hint, const char* key) {
        return fail("plan.combination", std::move(message), std::move(hint), key);
    };
    const std::string &adapter = parameters.choice("adapter"), &base = parameters.choice("base_precision");
    if (isLitGptAsked(parameters)) {
        if (kind != AdapterKind::LowRank)
            return refused(fmt::format("adapter={} is not modelled in LitGPT's network", adapter),
                           "choose adapter=lora, or library=transformers", "adapter");
        const std::string& variant = parameters.choice("adapter_variant");
        if (variant == "dora" || variant == "lora-fa")
            return refused(fmt::format("LitGPT has no {}", variant == "dora" ? "DoRA" : "LoRA-FA"),
                           "choose adapter_variant=lora, or library=transformers", "adapter_variant");
        if (trimmed(parameters.text("modules_to_save")) != "none")
            return refused("LitGPT saves no modules beside adapters",
                           "choose modules_to_save=none, or library=transformers", "modules_to_save");
    }
    if (kind != AdapterKind::LowRank && isQuantizedForm(baseFormOf(parameters)))
        return refused(fmt::format("adapter={} is not modelled beside a base in {}", adapter, base),
                       "choose base_precision=auto, or adapter=lora", "base_precision");
    if (baseFormOf(parameters) == BaseForm::Gptq && parameters.has("zero") && parameters.integer("zero") == 3)
        return refused("AutoGPTQ's layers keep their matrices in buffers, which nothing shards",
                       "choose zero=2, or base_precision=nf4", "base_precision");
    if (kind == AdapterKind::Prefix && parameters.choice("checkpointing") != "none")
        return refused("prefix tuning fills a cache, which checkpointing has no use for: PEFT refuses both together",
                       "choose checkpointing=none, or adapter=prompt", "checkpointing");
    return {};
}

} // namespace

Result<std::optional<AdapterOptions>> adaptersOf(const Parameters& parameters, Precision precision, Numerics& numerics)
{
    const std::string &adapter = parameters.choice("adapter"), &base = parameters.choice("base_precision");
    if (adapter == "none")
        return std::optional<AdapterOptions>();
    AdapterOptions options;
    options.kind = adapterKindOf(parameters);
    MEMSCAPE_CHECK(checkKind(parameters, options.kind));
    options.rank = parameters.integer("adapter_rank");
    options.virtualTokens = parameters.integer("virtual_tokens");
    MEMSCAPE_TRY(targets, moduleNamesOf(parameters, "adapter_targets"));
    MEMSCAPE_TRY(saved, moduleNamesOf(parameters, "modules_to_save"));
    const bool isVirtual = options.kind == AdapterKind::Prompt || options.kind == AdapterKind::Prefix;
    if (isVirtual)
        targets = saved = {};
    else if (targets.empty())
        return fail("plan.lora", "adapters need layers to stand beside",
                    "name some, for example q_proj,v_proj, or choose adapter=none", "adapter_targets");
    if (adapter == "qlora" && targets == std::vector<std::string>{"default"} && !isLitGptAsked(parameters))
        targets = {"all-linear"};
    options.targets = std::move(targets);
    options.saved = std::move(saved);
    options.dropout = parameters.number("adapter_dropout");
    options.isDecomposed = parameters.choice("adapter_variant") == "dora";
    options.isDownFrozen = parameters.choice("adapter_variant") == "lora-fa";
    options.base = baseFormOf(parameters);
    if (adapter == "qlora" && (base == "fp32" || base == "int8" || isHalfType(base)))
        return fail("plan.combination", fmt::format("QLoRA keeps its base in 4 bits, not in {}", base),
                    fmt::format("choose adapter=lora with base_precision={}, or base_precision=nf4-double", base),
                    "base_precision");
    if (const auto type = typeOf(base))
        numerics.weights = *type;
    const bool isMixed = precisionRule(precision).master > 0;
    if (isPreparedForKbit(parameters)) {
        numerics.weights = DType::Float32;
        if (isMixed)
            numerics.autocast = halfOf(precision);
    } else if (options.isQuantized() && isAutocast(precision)) {
        numerics.weights = halfOf(precision); // as transformers loads it (quantizer_bnb_4bit.py, update_torch_dtype)
    }
    if (isNormalFloat(options.base)) {
        const DType standard = precision == Precision::Fp32 ? DType::Float32 : halfOf(precision);
        options.compute = computePrecisionOf(parameters).value_or(standard);
    }
    options.keepsInputs = isOldBitsandbytes(parameters);
    options.dequantizesInHalf = parameters.choice("bitsandbytes") == "0.41";
    const bool isLitGpt = isLitGptAsked(parameters); // Lightning's plugin replaces every linear layer
    options.quantizesHead = (parameters.flag("quantized_head") || isLitGpt) && options.isQuantized();
    const std::string& loss = parameters.choice("loss");
    if (options.quantizesHead && (loss == "liger" || loss == "cut"))
        return fail("plan.combination", "a loss that takes the head's matrix itself needs it unquantized",
                    "choose quantized_head=false, or loss=library", "quantized_head");
    const std::string& kept = parameters.choice("adapter_precision");
    if (isLitGpt)
        return std::optional(std::move(options));
    if (kept == "fp32" || (kept == "auto" && !isMixed))
        options.weights = DType::Float32;
    return std::optional(std::move(options));
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/library_defaults.h"

#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/memory_parameters.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace memscape {

namespace {

/// When a default holds.
enum class DefaultWhen {
    Always,
    WholeHere, ///< every weight is trained, on one GPU, one micro-batch a step
    Adapters,  ///< LoRA or QLoRA
    AdaptersAlone,
    AdaptersSharded,
    HalfBase,  ///< LoRA beside a base that is not quantized
    Quantized, ///< adapters beside one that is
    Alone,     ///< nothing is sharded
    Fsdp,      ///< FSDP shards weights or gradients
    FsdpHere,  ///< and nothing is on the host
    NotFp16,   ///< precision: Megatron sums gradients in fp32 where they are bf16, and fp16 ones as they are
    Before21   ///< PyTorch: transformers takes its attention from 2.1.1 on
};

struct LibraryDefault
{
    const char* key;
    const char* value;
    DefaultWhen when = DefaultWhen::Always;
};

/// A base is loaded in the type that the precision computes in.
constexpr const char* computedType = "computed";

struct TrainingLibrary
{
    std::string_view name;
    const char* source;
    bool runsTransformers;
    bool freesLogits;
    std::vector<LibraryDefault> defaults;
};

// transformers' Trainer: fp32 unless told otherwise, max_grad_norm=1, accumulation under no_sync().
// Its examples load the base of adapters in 16 bits and train with --bf16; sharded bases stay in 16 bits, and whole
// models are sharded in fp32 and gathered in bf16 (accelerate, DeepSpeed), which is the schema's bf16-mixed.
// accelerate's and Lightning's FSDP is the first (fsdp_version=1, FSDPStrategy); the Trainer's is the second since
// April 2026 (transformers, pull request 45640), which sharding_implementation=fsdp2 says.
const std::vector<TrainingLibrary>& libraries()
{
    static const std::vector<TrainingLibrary> all{
        {"transformers",
         "transformers: training_args.py, modeling_utils.py; peft: tuners/lora/config.py",
         true,
         true,
         {{"precision", "fp32", DefaultWhen::Alone},
          {"precision", "bf16-autocast", DefaultWhen::AdaptersAlone},
          {"precision", "bf16", DefaultWhen::AdaptersSharded},
          {"base_precision", computedType, DefaultWhen::HalfBase},
          {"attention", "eager", DefaultWhen::Before21},
          {"kbit_preparation", "none", DefaultWhen::AdaptersSharded},
          {"clipping", "true"},
          {"adapter_rank", "8", DefaultWhen::Adapters},
          {"sharding_implementation", "fsdp1", DefaultWhen::Fsdp},
          {"no_sync", "true", DefaultWhen::FsdpHere}}},
        {"trl",
         "trl: trainer/sft_config.py, trainer/model_config.py; transformers: training_args.py",
         true,
         true,
         {{"precision", "bf16-autocast", DefaultWhen::Alone},
          {"precision", "bf16", DefaultWhen::AdaptersSharded},
          {"base_precision", computedType, DefaultWhen::HalfBase},
          {"attention", "eager", DefaultWhen::Before21},
          {"checkpointing", "block"},
          {"kbit_preparation", "none", DefaultWhen::AdaptersSharded},
          {"clipping", "true"},
          {"adapter_dropout", "0.05", DefaultWhen::Adapters},
          {"sharding_implementation", "fsdp1", DefaultWhen::Fsdp},
          {"no_sync", "true", DefaultWhen::FsdpHere}}},
        {"llama-factory",
         "LLaMA-Factory: hparams/finetuning_args.py, model/model_utils/checkpointing.py, model/adapter.py, examples",
         true,
         true,
         {{"precision", "bf16-autocast", DefaultWhen::Alone},
          {"precision", "bf16", DefaultWhen::AdaptersSharded},
          {"base_precision", computedType, DefaultWhen::HalfBase},
          {"attention", "eager", DefaultWhen::Before21},
          {"checkpointing", "block-reentrant"},
          {"clipping", "true"},
          {"adapter_rank", "8", DefaultWhen::Adapters},
          {"adapter_targets", "all-linear", DefaultWhen::Adapters},
          {"kbit_preparation", "none", DefaultWhen::Quantized},
          {"sharding_implementation", "fsdp1", DefaultWhen::Fsdp},
          {"no_sync", "true", DefaultWhen::FsdpHere}}},
        {"axolotl",
         "axolotl: loaders/model.py (what PEFT casts to fp32 is cast back), bf16: auto",
         true,
         true,
         {{"precision", "bf16", DefaultWhen::Alone},
          {"precision", "bf16", DefaultWhen::AdaptersSharded},
          {"clipping", "true"},
          {"kbit_preparation", "none", DefaultWhen::Quantized},
          {"sharding_implementation", "fsdp1", DefaultWhen::Fsdp},
          {"no_sync", "true", DefaultWhen::FsdpHere}}},
        {"unsloth",
         "unsloth: FastLanguageModel.from_pretrained, get_peft_model, README.md (Apple's cut cross-entropy)",
         true,
         true,
         {{"precision", "bf16"},
          {"precision", "bf16-autocast", DefaultWhen::Adapters},
          {"base_precision", computedType, DefaultWhen::HalfBase},
          {"operators", "all-fused"},
          {"loss", "cut"},
          {"checkpointing", "block"},
          {"activation_offload", "true"},
          {"clipping", "true"},
          {"adapter_targets", "all-linear", DefaultWhen::Adapters},
          {"kbit_preparation", "none", DefaultWhen::Quantized}}},
        {"llama-recipes",
         "llama-recipes: configs/training.py, configs/fsdp.py, configs/peft.py, finetuning.py",
         true,
         true,
         {{"precision", "bf16", DefaultWhen::Alone},
          {"sharding_implementation", "fsdp1", DefaultWhen::Fsdp},
          {"checkpointing", "block", DefaultWhen::Fsdp},
          {"adapter_rank", "8", DefaultWhen::Adapters},
          {"adapter_dropout", "0.05", DefaultWhen::Adapters}}},
        {"torchtune",
         "torchtune: recipes/configs/llama3",
         false,
         true,
         {{"precision", "bf16"},
          {"repeats_heads", "true"},
          {"loss", "chunked:8"},
          {"checkpointing", "block"},
          {"optimizer", "adam-8bit", DefaultWhen::WholeHere},
          {"optimizer_in_backward", "true", DefaultWhen::WholeHere},
          {"optimizer_implementation", "fused"},
          {"adapter_rank", "8", DefaultWhen::Adapters},
          {"adapter_targets", "q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj", DefaultWhen::Adapters},
          {"adapter_precision", "base", DefaultWhen::Adapters},
          {"kbit_preparation", "none", DefaultWhen::Quantized}}},
        {"litgpt",
         "LitGPT: litgpt/finetune/lora.py, litgpt/finetune/full.py",
         false,
         false,
         {{"precision", "bf16"},
          {"sharding_implementation", "fsdp1", DefaultWhen::Fsdp},
          {"checkpointing", "block", DefaultWhen::Fsdp},
          {"no_sync", "true", DefaultWhen::FsdpHere},
          {"adapter_rank", "8", DefaultWhen::Adapters},
          {"adapter_dropout", "0.05", DefaultWhen::Adapters}}},
        {"nanogpt",
         "nanoGPT: train.py",
         false,
         false,
         {{"precision", "bf16-autocast"},
          {"compile", "inductor"},
          {"optimizer_implementation", "fused"},
          {"clipping", "true"}}},
        {"megatron",
         "Megatron-LM: megatron/training/arguments.py, core/distributed/param_and_grad_buffer.py, core/optimizer",
         false,
         true,
         {{"precision", "bf16-mixed"},
          {"operators", "all-fused"},
          {"loss", "in-place"},
          {"fp32_gradients", "true", DefaultWhen::NotFp16},
          {"dropout", "0.1"},
          {"optimizer_implementation", "fused"},
          {"sharding_implementation", "ideal"},
          {"gradient_as_bucket_view", "true"},
          {"zero_grad_frees", "false"},
          {"clipping", "true"}}},
        {"lightning",
         "Lightning: Trainer(precision=\"32-true\"), loops/optimization/automatic.py",
         true,
         true,
         {{"precision", "fp32", DefaultWhen::Alone},
          {"attention", "eager", DefaultWhen::Before21},
          {"sharding_implementation", "fsdp1", DefaultWhen::Fsdp},
          {"zero_grad_frees", "late"}}},
    };
    return all;
}

const TrainingLibrary* libraryNamed(std::string_view name)
{
    const auto& all = libraries();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const TrainingLibrary& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

const TrainingLibrary* trainingLibraryOf(const Parameters& parameters)
{
    return parameters.has("library") ? libraryNamed(parameters.choice("library")) : nullptr;
}

/// transformers' configurations that have dropout by default, where it is modelled as they have it (GPT-BigCode's and
/// OPT's between layers is not).
constexpr std::string_view withDropout[] = {"bert", "roberta", "gpt2", "t5", "mt5"};

/// What is wrong with a model, the prediction says.
template <std::size_t n> bool isModelOf(const std::string_view (&names)[n], const Parameters& parameters)
{
    const auto model = askedModel(parameters);
    return model && std::find(std::begin(names), std::end(names), model->architecture) != std::end(names);
}

/// What is older than transformers 4.46 (October 2024) ran with what was there: bitsandbytes 0.44 is of 30 September
/// 2024.
bool runsBitsandbytes(const Parameters& parameters)
{
    const std::string& optimizer = parameters.choice("optimizer");
    return isQuantizedForm(baseFormOf(parameters)) || optimizer.ends_with("-8bit");
}

std::string impliedValue(const LibraryDefault& one, const Parameters& parameters)
{
    const std::string& precision = parameters.choice("precision");
    if (one.value == std::string_view(computedType))
        return precision == "fp32" ? "fp32" : precision.starts_with("fp16") ? "fp16" : "bf16";
    return one.value;
}

/// A loss is a choice for language models alone.
bool hasLossToChoose(const Parameters& parameters)
{
    const auto model = askedModel(parameters);
    if (!model || model->head != HeadKind::LanguageModel || model->architecture == "from-scratch")
        return false;
    return model->family == Family::Decoder || model->family == Family::EncoderDecoder
        || model->family == Family::StateSpace;
}

bool isWhen(DefaultWhen when, const Parameters& parameters)
{
    const std::string& adapter = parameters.choice("adapter");
    const bool hasAdapters = adapter == "lora" || adapter == "qlora";
    const bool isAlone = parameters.integer("zero") == 0;
    const auto sharded = shardedByOf(parameters);
    const bool isByFsdp =
        parameters.integer("zero") >= 2 && sharded && (*sharded == ShardedBy::Fsdp1 || *sharded == ShardedBy::Fsdp2);
    switch (when) {
    case DefaultWhen::Always: return true;
    case DefaultWhen::WholeHere:
        return adapter == "none" && isAlone && parameters.integer("data_parallel") == 1
            && parameters.integer("accumulation") == 1;
    case DefaultWhen::Adapters: return hasAdapters;
    case DefaultWhen::AdaptersAlone: return hasAdapters && isAlone;
    case DefaultWhen::AdaptersSharded: return hasAdapters && !isAlone;
    case DefaultWhen::HalfBase: return adapter == "lora" && !isQuantizedForm(baseFormOf(parameters));
    case DefaultWhen::Quantized: return isQuantizedForm(baseFormOf(parameters));
    case DefaultWhen::Alone: return isAlone;
    case DefaultWhen::Fsdp: return isByFsdp;
    case DefaultWhen::NotFp16: return !parameters.choice("precision").starts_with("fp16");
    case DefaultWhen::Before21: {
        const std::string& version = parameters.choice("pytorch");
        return version != "2.14" && version != "2.1";
    }
    case DefaultWhen::FsdpHere: return isByFsdp && offloadOf(parameters) == Offload::None;
    }
    return false;
}

/// Of those defaults that hold; empty where none does.
std::string noteOf(std::string_view library, std::string_view source, const ParameterTexts& defaults,
                   const Parameters& parameters)
{
    std::string held;
    for (const auto& one : defaults) {
        const auto& values = parameters.values();
        const auto own =
            std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == one.first; });
        if (own != values.end() && valueText(own->second) == one.second)
            held += fmt::format("{}{}={}", held.empty() ? "" : ", ", one.first, one.second);
    }
    return held.empty() ? held
                        : fmt::format("library={} implies, where nothing else is said, {} ({})", library, held, source);
}

} // namespace

bool runsTransformers(std::string_view library)
{
    const TrainingLibrary* const own = libraryNamed(library);
    return own && own->runsTransformers;
}

bool freesLogits(std::string_view library)
{
    const TrainingLibrary* const own = libraryNamed(library);
    return own && own->freesLogits;
}

ParameterTexts libraryDefaults(const Parameters& parameters)
{
    ParameterTexts texts;
    const TrainingLibrary* const library = trainingLibraryOf(parameters);
    if (!library)
        return texts;
    if (library->runsTransformers && isModelOf(withDropout, parameters))
        texts.emplace_back("dropout", "0.1");
    if (library->runsTransformers && transformersOf(parameters) == Transformers::Before445
        && runsBitsandbytes(parameters))
        texts.emplace_back("bitsandbytes", "0.43");
    for (const LibraryDefault& one : library->defaults) {
        if (!isWhen(one.when, parameters) || (one.key == std::string_view("loss") && !hasLossToChoose(parameters)))
            continue;
        std::string value = impliedValue(one, parameters);
        const auto before =
            std::find_if(texts.begin(), texts.end(), [&](const auto& text) { return text.first == one.key; });
        if (before != texts.end())
            before->second = std::move(value); // the more special one comes later
        else
            texts.emplace_back(one.key, std::move(value));
    }
    return texts;
}

ParameterTexts servingDefaults(const Parameters& parameters)
{
    const std::string& library = parameters.choice("library");
    if (library.starts_with("vllm"))
        return {{"logits", "last"}, {"cache_page", "16"}};
    if (library == "tensorrt")
        return {{"attention", "efficient"}};
    if (library == "llama.cpp-2023") // FlashAttention came with pull request 5021, on 30 April 2024
        return {{"kv_precision", "fp16"}, {"logits", "last"}, {"attention", "eager"}};
    if (library == "llama.cpp")
        return {{"kv_precision", "fp16"}, {"logits", "last"}};
    return {};
}

std::string libraryNote(const Parameters& parameters)
{
    const TrainingLibrary* const library = trainingLibraryOf(parameters);
    return library ? noteOf(library->name, library->source, libraryDefaults(parameters), parameters) : std::string();
}

std::string servingNote(const Parameters& parameters)
{
    const std::string& library = parameters.choice("library");
    const char* const source = library == "tensorrt"
        ? "TensorRT: plugin/bertQKVToContextPlugin, fused attention of the generation that FlashAttention began with"
        : library.starts_with("llama.cpp") ? "llama.cpp: common/common.h"
                                           : "vLLM: EngineArgs, block_size and sampled tokens";
    return noteOf(library, source, servingDefaults(parameters), parameters);
}

} // namespace memscape

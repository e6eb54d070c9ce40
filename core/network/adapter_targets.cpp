// SPDX-License-Identifier: Apache-2.0
#include "core/network/adapter_targets.h"

#include "core/network/decoder_names.h"
#include "core/network/litgpt.h"

#include <algorithm>
#include <string_view>

namespace memscape {

namespace {

constexpr std::string_view queriesAndValues[] = {"bart",   "opt",         "gptj",    "gpt_neo",  "llama",
                                                 "llama4", "mistral",     "mixtral", "stablelm", "gemma",
                                                 "gemma2", "gemma3_text", "qwen2",   "qwen3"};

/// Names of transformers' GPT-2 and of our network's, which is written as nanoGPT is.
constexpr std::pair<std::string_view, std::string_view> namesOfGpt2[] = {
    {"c_attn", "qkv"}, {"c_proj", "proj"}, {"c_proj", "pj"}, {"mlp.c_proj", "pj"}, {"c_fc", "fc"},
    {"ln_1", "ln1"},   {"ln_2", "ln2"},    {"ln_f", "lnf"},  {"lm_head", "head"}};

/// LitGPT's own words (lora_query, lora_mlp …) and PEFT's names, and what its modules are called.
constexpr std::pair<std::string_view, std::string_view> namesOfLitGpt[] = {{"q_proj", "query"},
                                                                           {"k_proj", "key"},
                                                                           {"v_proj", "value"},
                                                                           {"query_key_value", "query"},
                                                                           {"query_key_value", "key"},
                                                                           {"query_key_value", "value"},
                                                                           {"projection", "attn.proj"},
                                                                           {"o_proj", "attn.proj"},
                                                                           {"mlp", "fc_1"},
                                                                           {"mlp", "fc_2"},
                                                                           {"mlp", "fc"},
                                                                           {"mlp", "mlp.proj"},
                                                                           {"gate_proj", "fc_1"},
                                                                           {"up_proj", "fc_2"},
                                                                           {"down_proj", "mlp.proj"},
                                                                           {"head", "lm_head"}};

/// Whether the feed-forward part has a layer of that name.
bool isOfFeedForward(const ModelDescription& model, std::string_view name)
{
    return model.gated ? name != "fc" : name != "fc_1" && name != "fc_2";
}

std::vector<std::string> renamedForLitGpt(const ModelDescription& model, const std::vector<std::string>& names)
{
    std::vector<std::string> own;
    for (const std::string& name : names) {
        const std::size_t before = own.size();
        for (const auto& [theirs, ours] : namesOfLitGpt)
            if (name == theirs && isOfFeedForward(model, ours))
                own.emplace_back(ours);
        if (own.size() == before)
            own.push_back(name);
    }
    return own;
}

std::vector<std::string> renamed(const ModelDescription& model, const std::vector<std::string>& names)
{
    if (isLitGpt(model))
        return renamedForLitGpt(model, names);
    if (model.architecture != "gpt2" || model.family != Family::Decoder)
        return names;
    std::vector<std::string> own;
    for (const std::string& name : names) {
        const std::size_t before = own.size();
        for (const auto& [theirs, ours] : namesOfGpt2)
            if (name == theirs)
                own.emplace_back(ours);
        if (own.size() == before)
            own.push_back(name);
    }
    return own;
}

bool isArchitecture(const ModelDescription& model, std::initializer_list<std::string_view> names)
{
    return model.family != Family::Traced && std::find(names.begin(), names.end(), model.architecture) != names.end();
}

/// The last matrix of the feed-forward part, which IA3 scales the input of; nothing where peft has no default.
std::string ia3FeedForward(const ModelDescription& model)
{
    if (isArchitecture(model, {"llama", "llama4", "mistral", "gemma", "gemma2", "gemma3_text", "qwen2", "qwen3"}))
        return "down_proj";
    if (isArchitecture(model, {"bloom", "falcon", "gpt_neox"}))
        return "dense_4h_to_h";
    if (isArchitecture(model, {"opt", "bart", "phi"}))
        return "fc2";
    if (isArchitecture(model, {"gpt2", "gpt_bigcode"}))
        return "mlp.c_proj";
    if (isArchitecture(model, {"bert", "roberta"}))
        return "output.dense";
    return isArchitecture(model, {"gptj"})   ? "fc_out"
        : isArchitecture(model, {"t5"})      ? "wo"
        : isArchitecture(model, {"mixtral"}) ? "w2"
                                             : "";
}

std::vector<std::string> ia3Targets(const ModelDescription& model)
{
    if (isArchitecture(model, {"mt5"}))
        return {"k", "v", "wi_1"};
    const std::string last = ia3FeedForward(model);
    if (last.empty())
        return {"all-linear"};
    if (isArchitecture(model, {"llama", "mistral", "mixtral"}))
        return {"k_proj", "v_proj", last};
    if (isArchitecture(model, {"opt"}))
        return {"q_proj", "k_proj", last};
    if (isArchitecture(model, {"bloom", "falcon", "gpt_neox"}))
        return {"query_key_value", last};
    if (isArchitecture(model, {"gpt2", "gpt_bigcode"}))
        return {"c_attn", last};
    if (isArchitecture(model, {"bert", "roberta"}))
        return {"key", "value", last};
    if (isArchitecture(model, {"t5"}))
        return {"k", "v", last};
    return {"q_proj", "v_proj", last};
}

std::vector<std::string> normTargets(const ModelDescription& model)
{
    if (isArchitecture(model, {"qwen2", "qwen3"}))
        return {"post_attention_layernorm"};
    if (isArchitecture(model, {"gemma2", "gemma3_text"}))
        return {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                "post_feedforward_layernorm", "norm"};
    if (isArchitecture(model, {"t5", "mt5"}))
        return {"layer_norm", "final_layer_norm"};
    if (isArchitecture(model, {"gpt2"}))
        return {"ln1", "ln2", "lnf"};
    if (model.family != Family::Decoder)
        return {};
    const DecoderNames names = decoderNames(model);
    const bool hasSecond = *names.secondNorm && !(model.parallelResidual && model.sharedNorm);
    std::vector<std::string> targets{names.firstNorm};
    if (hasSecond)
        targets.emplace_back(names.secondNorm);
    if (model.finalNorm)
        targets.emplace_back(names.finalNorm);
    return targets;
}

} // namespace

std::vector<std::string> peftFeedForward(const ModelDescription& model)
{
    std::string last = ia3FeedForward(model);
    return last.empty() ? std::vector<std::string>() : std::vector{std::move(last)};
}

std::vector<std::string> peftTargets(const ModelDescription& model, AdapterKind kind)
{
    switch (kind) {
    case AdapterKind::Ia3: return ia3Targets(model);
    case AdapterKind::Norms: return normTargets(model);
    case AdapterKind::Prompt:
    case AdapterKind::Prefix: return {};
    case AdapterKind::Vera:
        if (isArchitecture(model, {"phi"}))
            return {"q_proj", "v_proj"};
        break;
    case AdapterKind::LowRank: break;
    }
    if (isLitGpt(model)) // litgpt/finetune/lora.py
        return {"query", "value"};
    const std::string& name = model.architecture;
    const auto isAmong = [&](std::initializer_list<std::string_view> names) { return isArchitecture(model, names); };
    if (model.family == Family::Traced)
        return {"all-linear"};
    if (std::find(std::begin(queriesAndValues), std::end(queriesAndValues), name) != std::end(queriesAndValues))
        return {"q_proj", "v_proj"};
    if (isAmong({"bloom", "gpt_neox", "falcon"}))
        return {"query_key_value"};
    if (isAmong({"t5", "mt5"}))
        return {"q", "v"};
    if (isAmong({"bert", "roberta"}))
        return {"query", "value"};
    if (isAmong({"gpt2", "gpt_bigcode"}))
        return {"c_attn"};
    if (name == "mpt")
        return {"Wqkv"};
    if (name == "phi")
        return {"q_proj", "v_proj", "fc1", "fc2"};
    return {"all-linear"};
}

BuildOptions withNamedAdapters(const ModelDescription& model, const BuildOptions& options)
{
    BuildOptions named = options;
    if (!named.adapters)
        return named;
    std::vector<std::string> targets;
    for (const std::string& target : named.adapters->targets) {
        if (target == "default")
            for (std::string& own : peftTargets(model, named.adapters->kind))
                targets.push_back(std::move(own));
        else
            targets.push_back(target);
    }
    named.adapters->targets = renamed(model, targets);
    named.adapters->feedForward = renamed(model, peftFeedForward(model));
    named.sequence += named.virtualTokens(AdapterKind::Prompt);
    named.adapters->saved = renamed(model, named.adapters->saved);
    return named;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/network/adapter_targets.h"

#include <algorithm>
#include <string_view>

namespace memscape {

namespace {

constexpr std::string_view queriesAndValues[] = {"bart",   "opt",         "gptj",    "gpt_neo",  "llama",
                                                 "llama4", "mistral",     "mixtral", "stablelm", "gemma",
                                                 "gemma2", "gemma3_text", "qwen2",   "qwen3"};

/// Names of transformers' GPT-2 and of our network's, which is written as nanoGPT is.
constexpr std::pair<std::string_view, std::string_view> namesOfGpt2[] = {
    {"c_attn", "qkv"}, {"c_proj", "proj"}, {"c_proj", "pj"}, {"c_fc", "fc"}, {"lm_head", "head"}};

std::vector<std::string> renamed(const ModelDescription& model, const std::vector<std::string>& names)
{
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

} // namespace

std::vector<std::string> peftTargets(const ModelDescription& model)
{
    const std::string& name = model.architecture;
    const auto isAmong = [&](std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
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
            for (std::string& own : peftTargets(model))
                targets.push_back(std::move(own));
        else
            targets.push_back(target);
    }
    named.adapters->targets = renamed(model, targets);
    named.adapters->saved = renamed(model, named.adapters->saved);
    return named;
}

} // namespace memscape

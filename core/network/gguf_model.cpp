// SPDX-License-Identifier: Apache-2.0
#include "core/network/gguf_model.h"

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/network/gguf.h"
#include "core/network/model_files.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

/// What llama.cpp calls differently.
std::string libraryName(const std::string& architecture, bool hasExperts)
{
    constexpr std::pair<std::string_view, std::string_view> names[] = {
        {"qwen2moe", "qwen2_moe"}, {"qwen3moe", "qwen3_moe"},    {"gemma3", "gemma3_text"},    {"phi2", "phi"},
        {"gptneox", "gpt_neox"},   {"starcoder", "gpt_bigcode"}, {"deepseek2", "deepseek_v2"}, {"gpt-oss", "gpt_oss"}};
    if (architecture == "llama" && hasExperts)
        return "mixtral";
    for (const auto& [own, library] : names)
        if (architecture == own)
            return std::string(library);
    return architecture;
}

/// Keys behind the architecture's name, and what a config.json calls them.
constexpr std::pair<const char*, const char*> sizes[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"feed_forward_length", "intermediate_size"},
    {"context_length", "max_position_embeddings"},
    {"attention.sliding_window", "sliding_window"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.kv_lora_rank", "kv_lora_rank"}};

Json configOf(const GgufFile& file, const std::string& architecture)
{
    const auto has = [&](const char* name) {
        return std::any_of(file.stored.tensors.begin(), file.stored.tensors.end(),
                           [&](const StoredTensor& tensor) { return tensor.name == name; });
    };
    Json config = Json::object();
    for (const auto& [own, library] : sizes) {
        const double value = file.number(architecture + "." + own, 0);
        if (value >= 1)
            config[library] = std::int64_t(std::min(value, 0x1p53));
    }
    config["model_type"] = libraryName(architecture, config.contains("num_local_experts"));
    for (const StoredTensor& tensor : file.stored.tensors)
        if (tensor.name == "token_embd.weight" && tensor.shape.size() == 2)
            config["vocab_size"] = tensor.shape[1]; // columns come first
    config["tie_word_embeddings"] = !has("output.weight");
    if (has("blk.0.attn_q.bias"))
        config["attention_bias"] = true;
    return config;
}

} // namespace

Result<ModelDescription> modelFromGguf(const std::filesystem::path& path, UnknownArchitecture unknown)
{
    MEMSCAPE_TRY(file, readGgufFile(path));
    const std::string architecture = file.text("general.architecture");
    if (architecture.empty() || file.number(architecture + ".block_count", 0) < 1)
        return fail("gguf.model", "the file does not say which architecture and how many layers it holds",
                    "name the model by its name or its config.json", path.string());
    if (file.number("split.count", 1) > 1)
        return fail("gguf.model", fmt::format("this is one of {:.0f} parts of a model", file.number("split.count", 1)),
                    "join them (llama-gguf-split --merge), or name the model and weight_precision=q4_k_m",
                    path.string());
    const Json config = configOf(file, architecture);
    auto model = modelFromConfig(JsonReader(config), path.string(), unknown);
    if (!model) {
        Error error = model.error();
        error.place = path.string() + (error.place.empty() ? "" : ", " + error.place);
        return fail(std::move(error));
    }
    model->title = file.text("general.name");
    compareWithStored(*model, file.stored, path);
    return model;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/network/gguf_mixture.h"

#include "core/network/gguf_types.h"

#include <algorithm>
#include <array>
#include <utility>

namespace memscape {

namespace {

using Mixture = GgufMixture;

struct MixtureName
{
    std::string_view name;
    Mixture mixture;
    std::string_view type; ///< of most matrices
};

constexpr MixtureName mixtureNames[] = {
    {"q8_0", Mixture::Q8_0, "Q8_0"},     {"q6_k", Mixture::Q6_K, "Q6_K"},       {"q5_k_m", Mixture::Q5_K_M, "Q5_K"},
    {"q5_k_s", Mixture::Q5_K_S, "Q5_K"}, {"q4_k_m", Mixture::Q4_K_M, "Q4_K"},   {"q4_k_s", Mixture::Q4_K_S, "Q4_K"},
    {"q4_0", Mixture::Q4_0, "Q4_0"},     {"iq4_xs", Mixture::IQ4_XS, "IQ4_XS"}, {"q3_k_l", Mixture::Q3_K_L, "Q3_K"},
    {"q3_k_m", Mixture::Q3_K_M, "Q3_K"}, {"q3_k_s", Mixture::Q3_K_S, "Q3_K"},   {"q2_k", Mixture::Q2_K, "Q2_K"}};

/// What a tensor is for, by the name that its library gives it.
enum class Part { Plain, Output, Embedding, Value, QueryKeyValue, Key, AttentionOutput, FeedDown, Other };

bool hasAny(std::string_view name, std::initializer_list<std::string_view> words)
{
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return name.find(word) != name.npos; });
}

Part partOf(const ModelTensor& tensor, const ModelDescription& model)
{
    const std::string_view name = tensor.name;
    const bool isTable = tensor.role == TensorRole::Embedding || tensor.role == TensorRole::Matrix;
    if (!isTable || tensor.shape.size() < 2)
        return Part::Plain;
    if (tensor.role == TensorRole::Embedding)
        return tensor.shape[0] != model.vocab ? Part::Plain : model.tied ? Part::Output : Part::Embedding;
    if (tensor.layer < 0)
        return tensor.shape[0] == model.vocab ? Part::Output : Part::Other;
    const bool isRouter = model.experts.count > 0 && tensor.copies == 1 && tensor.shape[0] == model.experts.count;
    if (isRouter)
        return Part::Plain;
    if (hasAny(name, {"qkv", "query_key_value", "c_attn", "kv_b_proj", "Wqkv"}))
        return Part::QueryKeyValue;
    if (hasAny(name, {"v_proj"}))
        return Part::Value;
    if (hasAny(name, {"k_proj"}))
        return Part::Key;
    if (hasAny(name, {"down_proj", "dense_4h_to_h", "mlp.c_proj", "fc2", "fc_out", ".w2."}))
        return Part::FeedDown;
    if (hasAny(name, {"o_proj", "out_proj", "attn.c_proj", "attention.dense", "self_attention.dense"}))
        return Part::AttentionOutput;
    return Part::Other;
}

/// The first and the last eighth of the layers, and every third of the others.
bool usesMoreBits(std::int64_t layer, std::int64_t layers)
{
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

std::string_view valueType(Mixture mixture, std::string_view type, std::int64_t layer, const ModelDescription& model)
{
    const bool sharesHeads = model.kvHeads > 0 && model.heads / model.kvHeads >= 4;
    if (mixture == Mixture::Q2_K)
        type = sharesHeads ? "Q4_K" : "Q3_K";
    else if (mixture == Mixture::Q3_K_M)
        type = layer < 2 ? "Q5_K" : "Q4_K";
    else if (mixture == Mixture::Q3_K_L || (mixture == Mixture::IQ4_XS && sharesHeads))
        type = "Q5_K";
    else if ((mixture == Mixture::Q4_K_M || mixture == Mixture::Q5_K_M) && usesMoreBits(layer, model.layers))
        type = "Q6_K";
    else if (mixture == Mixture::Q4_K_S && layer < 4)
        type = "Q5_K";
    const bool isLikeLlama70 = model.layers == 80 && model.heads != model.kvHeads;
    if (isLikeLlama70 && (type == "Q3_K" || type == "Q4_K"))
        type = "Q5_K";
    return model.experts.count == 8 ? "Q8_0" : type;
}

std::string_view downType(Mixture mixture, std::string_view type, std::int64_t layer, const ModelDescription& model)
{
    const std::int64_t layers = model.layers;
    const bool isFalcon = model.architecture == "falcon", isSensitive = usesMoreBits(layer, layers);
    switch (mixture) {
    case Mixture::Q2_K: return "Q3_K";
    case Mixture::Q3_K_M: return layer < layers / 16 ? "Q5_K" : !isFalcon || isSensitive ? "Q4_K" : "Q3_K";
    case Mixture::Q3_K_L: return isFalcon ? "Q4_K" : "Q5_K";
    case Mixture::Q4_K_M:
        if (isFalcon)
            return layer < layers / 16 ? "Q6_K" : isSensitive ? "Q5_K" : "Q4_K";
        return isSensitive ? "Q6_K" : type;
    case Mixture::Q5_K_M: return isSensitive ? "Q6_K" : type;
    case Mixture::IQ4_XS: return layer < layers / 8 ? "Q5_K" : type;
    case Mixture::Q4_K_S: return !isFalcon && layer < layers / 8 ? "Q5_K" : type;
    default: return type;
    }
}

std::string_view attentionOutputType(Mixture mixture, std::string_view type, const ModelDescription& model)
{
    if (model.architecture == "falcon")
        return mixture == Mixture::Q3_K_L ? "Q4_K" : type;
    if (model.experts.count == 8) {
        const bool isRaised = mixture == Mixture::Q2_K || mixture == Mixture::Q3_K_S || mixture == Mixture::Q3_K_M
            || mixture == Mixture::Q4_K_S || mixture == Mixture::Q4_K_M || mixture == Mixture::IQ4_XS;
        return isRaised ? "Q5_K" : type;
    }
    switch (mixture) {
    case Mixture::Q2_K: return "Q3_K";
    case Mixture::Q3_K_M: return "Q4_K";
    case Mixture::Q3_K_L: return "Q5_K";
    default: return type;
    }
}

/// A row that is no whole number of blocks gets a type with smaller ones.
const GgufType* fitting(std::string_view name, std::int64_t columns)
{
    constexpr std::pair<std::string_view, std::string_view> smaller[] = {
        {"IQ4_XS", "IQ4_NL"}, {"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}};
    const GgufType* type = ggufType(name);
    if (columns % type->elements == 0)
        return type;
    for (const auto& [large, small] : smaller)
        if (name == large)
            type = ggufType(small);
    return columns % type->elements == 0 ? type : ggufType("F16");
}

const GgufType* typeOf(const ModelTensor& tensor, const ModelDescription& model, Mixture mixture)
{
    const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    std::string_view type;
    for (const MixtureName& known : mixtureNames)
        if (known.mixture == mixture)
            type = known.type;
    switch (partOf(tensor, model)) {
    case Part::Plain: return ggufType("F32");
    case Part::Output:
        if (model.architecture == "falcon" || columns % ggufType(type)->elements != 0 || type == "Q8_0")
            return fitting("Q8_0", columns);
        return fitting("Q6_K", columns);
    case Part::Value:
    case Part::QueryKeyValue: type = valueType(mixture, type, tensor.layer, model); break;
    case Part::Key: type = model.experts.count == 8 ? "Q8_0" : type; break;
    case Part::FeedDown: type = downType(mixture, type, tensor.layer, model); break;
    case Part::AttentionOutput: type = attentionOutputType(mixture, type, model); break;
    case Part::Embedding:
    case Part::Other: break;
    }
    return fitting(type, columns);
}

} // namespace

std::optional<GgufMixture> ggufMixtureFromText(std::string_view text)
{
    for (const MixtureName& known : mixtureNames)
        if (known.name == text)
            return known.mixture;
    return {};
}

std::int64_t ggufTensorBytes(const ModelTensor& tensor, const ModelDescription& model, GgufMixture mixture,
                             std::int64_t parts)
{
    const GgufType* const type = typeOf(tensor, model, mixture);
    const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    const std::int64_t rows = columns > 0 ? tensor.elements() / columns : 0;
    const bool isWhole = partOf(tensor, model) == Part::Plain;
    const std::int64_t kept = isWhole ? rows : (rows + parts - 1) / std::max<std::int64_t>(parts, 1);
    if (isWhole)
        return kept * columns * type->bytes;
    return kept * (columns / type->elements) * type->bytes;
}

} // namespace memscape

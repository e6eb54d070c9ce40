// SPDX-License-Identifier: Apache-2.0
#include "core/network/model_config.h"

#include "core/base/text.h"
#include "core/network/architectures.h"
#include "core/network/config_fields.h"
#include "core/network/config_keys.h"
#include "core/network/config_parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* nestedParts[] = {"text_config", "llm_config", "language_config", "language_model_config"};

/// The object that describes the language model: the document, or an object inside it.
JsonReader languagePart(const JsonReader& document)
{
    if (document.has("thinker_config")) {
        const auto inner = document.at("thinker_config");
        if (inner && inner->node().is_object())
            return languagePart(*inner);
    }
    for (const char* part : nestedParts) {
        const auto inner = document.has(part) ? document.at(part) : Result<JsonReader>(document);
        if (document.has(part) && inner && inner->node().is_object())
            return *inner;
    }
    return document;
}

/// Architectures that differ from a known one in nothing that decides a shape.
std::string sameShapeAs(const std::string& type)
{
    static constexpr std::pair<const char*, const char*> same[] = {{"mt5", "t5"},
                                                                   {"umt5", "t5"},
                                                                   {"roberta", "bert"},
                                                                   {"xlm-roberta", "bert"},
                                                                   {"camembert", "bert"},
                                                                   {"deit", "vit"},
                                                                   {"gemma3", "gemma3_text"},
                                                                   {"qwen2_vl", "qwen2"},
                                                                   {"qwen2_vl_text", "qwen2"},
                                                                   {"qwen2_5_vl", "qwen2"},
                                                                   {"qwen2_5_vl_text", "qwen2"},
                                                                   {"qwen3_vl", "qwen3"},
                                                                   {"qwen3_vl_text", "qwen3"},
                                                                   {"ministral", "mistral"},
                                                                   {"kimi_k2", "deepseek_v3"},
                                                                   {"UNet2DConditionModel", "unet"}};
    for (const auto& [from, to] : same) {
        if (type == from)
            return to;
    }
    return type;
}

constexpr const char* likeLlama = "RMSNorm, rotary positions, a gated feed-forward layer, no biases";

Result<ModelDescription> startingPoint(ConfigFields& fields, const std::string& type, UnknownArchitecture unknown)
{
    if (auto known = architectureStandard(sameShapeAs(type)))
        return *known;
    const std::string said = fmt::format("the architecture \"{}\" is not known", quotedForMessage(type));
    if (unknown == UnknownArchitecture::Refused) {
        const std::string known = "known: " + join(knownArchitectures(), ", ");
        const std::string near = didYouMean(type, knownArchitectures());
        const std::string hint = fmt::format("{}{}. assume=llama takes it for a decoder like LLaMA: {}",
                                             near == known ? "" : near + " ", known, likeLlama);
        return fail(Error{"model.architecture", said, fields.within("model_type"), hint, Remedy{"assume", "llama"}});
    }
    fields.caution(fmt::format("{}; as asked, it is taken for a decoder like LLaMA: {}", said, likeLlama));
    return decoderLikeLlama();
}

/// The kind of a model whose vision tower is modelled; empty: another, or none.
std::string towerOf(const JsonReader& document)
{
    const std::string type = document.string("model_type", "").value_or("");
    const bool isKnown = type == "llava" || type == "qwen2_vl" || type == "qwen2_5_vl";
    return isKnown && document.has("vision_config") ? type : "";
}

/// GPT-OSS: transformers and vLLM keep its experts as they are published.
bool hasMxfp4Experts(const ConfigFields& fields)
{
    const auto quantization = fields.find({"quantization_config"});
    return quantization && quantization->node().is_object()
        && quantization->string("quant_method", "").value_or("") == "mxfp4";
}

void noteWhatIsLeftOut(ConfigFields& fields, const JsonReader& document)
{
    for (const char* part : {"vision_config", "audio_config"}) {
        if (document.has(part) && (part == std::string_view("audio_config") || towerOf(document).empty()))
            fields.assume(fmt::format("{} is not counted: this is the language model alone", part));
    }
    const auto quantization = fields.find({"quantization_config"});
    if (quantization && quantization->node().is_object() && !hasMxfp4Experts(fields))
        fields.assume(
            fmt::format("the stored weights are quantized ({}); the parameters are counted as they were before",
                        quotedForMessage(quantization->string("quant_method", "method not given").value_or("?"))));
}

} // namespace

Result<ModelDescription> modelFromConfig(const JsonReader& reader, const std::string& name, UnknownArchitecture unknown)
{
    if (!reader.node().is_object())
        return reader.expected("an object");
    const JsonReader part = languagePart(reader);
    const bool nested = &part.node() != &reader.node();
    ConfigFields fields(part, nested ? std::optional(reader) : std::nullopt);
    std::string type = fields.word({"model_type", "_class_name"}); // diffusers names a class
    if (type.empty() && !fields.failed()) {
        if (!fields.has(config_keys::hidden))
            return fail("config.missing", "is missing",
                        "this is not the configuration of a model, or not of "
                        "Hugging Face transformers; known: "
                            + join(knownArchitectures(), ", "),
                        part.path().empty() ? "model_type" : part.path() + ".model_type");
        type = "not given";
    }
    MEMSCAPE_TRY(model, startingPoint(fields, type, unknown));
    model.name = name;
    const std::string tower = towerOf(reader);
    if (tower == "llava" && model.architecture == "llama") { // LLaVA's files leave out LLaMA 7B's sizes
        model.hidden = 4096;
        model.layers = 32;
    }
    readConfig(fields, model);
    model.mxfp4Experts = model.experts.count > 0 && hasMxfp4Experts(fields);
    if (!tower.empty() && !fields.failed())
        readVisionTower(reader, fields, model);
    noteWhatIsLeftOut(fields, reader);
    if (fields.failed())
        return fail(fields.error());
    model.assumptions = fields.takeAssumptions();
    model.caution = fields.takeCaution();
    if (auto checked = checkModel(model); !checked) {
        Error error = checked.error();
        error.place = config_keys::placeOf(fields, error.place);
        return fail(std::move(error));
    }
    return model;
}

} // namespace memscape

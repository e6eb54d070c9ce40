// SPDX-License-Identifier: Apache-2.0
// A file of resources/models holds one family: {"format": "memscape-models", "version": 1,
// "source": …, "models": [{"name", "title", "aliases", "config": the keys of a config.json}]}.
#include "core/network/model_names.h"

#include "core/base/file.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"
#include "core/network/model_files.h"
#include "core/network/model_recipes.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t familyFileLimit = 4u << 20;

std::vector<fs::path> familyFiles()
{
    return entriesOf(resourcesFolder() / "models", ".json");
}

Result<Json> parsedFamily(const std::string& text, const fs::path& path)
{
    MEMSCAPE_TRY(json, parseJsonOf(path, text));
    if (JsonReader(json).string("format", "").value_or("") != "memscape-models")
        return fail("json.format", "not a file of models", "it begins with \"format\": \"memscape-models\"",
                    path.string());
    return json;
}

bool isCalled(const JsonReader& entry, const std::string& wanted)
{
    for (const char* key : {"name", "title"}) // "llama-3.1-70b", "Llama 3.1 70B"
        if (lowered(entry.string(key, "").value_or("")) == wanted)
            return true;
    const auto aliases = entry.at("aliases");
    const auto items = aliases ? aliases->items() : Result<std::vector<JsonReader>>(std::vector<JsonReader>());
    return items && std::any_of(items->begin(), items->end(), [&](const JsonReader& item) {
               return lowered(item.string().value_or("")) == wanted;
           });
}

Result<ModelDescription> modelOf(const JsonReader& entry, const std::string& source)
{
    MEMSCAPE_TRY(name, entry.string("name"));
    MEMSCAPE_TRY(config, entry.at("config"));
    MEMSCAPE_TRY(model, modelFromConfig(config, name));
    model.title = entry.string("title", name).value_or(name);
    model.source = entry.string("source", source).value_or(source);
    const std::string note = entry.string("note", "").value_or("");
    if (!note.empty())
        model.assumptions.insert(model.assumptions.begin(), note);
    return model;
}

/// The model called `wanted` (lower case); nothing when no file has it.
std::optional<Result<ModelDescription>> knownModel(const std::string& wanted)
{
    const std::string quoted = '"' + wanted + '"';
    for (const fs::path& path : familyFiles()) {
        const auto text = readFile(path, familyFileLimit);
        if (!text || lowered(*text).find(quoted) == std::string::npos)
            continue; // searching the text is far cheaper than parsing every file
        const auto json = parsedFamily(*text, path);
        if (!json)
            return tl::unexpected(json.error());
        const JsonReader root(*json, path.filename().string());
        const std::string source = root.string("source", "").value_or("");
        const auto models = root.at("models");
        const auto items = models ? models->items() : tl::unexpected(models.error());
        if (!items)
            return tl::unexpected(items.error());
        for (const JsonReader& entry : *items) {
            if (isCalled(entry, wanted))
                return modelOf(entry, source);
        }
    }
    return std::nullopt;
}

bool looksLikePath(std::string_view text)
{
    return text.find('/') != std::string_view::npos || text.ends_with(".json") || text.ends_with(".safetensors")
        || text.ends_with(".gguf");
}

/// What a publisher adds to the name of a model without changing its sizes or the form of its weights.
constexpr std::string_view variants[] = {"instruct", "chat", "it", "hf", "base", "pt", "sft", "dpo"};

/// "meta-llama/Llama-3.1-8B-Instruct" → "llama-3.1-8b".
std::string plainName(std::string_view text)
{
    std::vector<std::string> words = split(lowered(text.substr(text.find_last_of('/') + 1)), '-');
    std::erase_if(words, [](const std::string& word) {
        return std::find(std::begin(variants), std::end(variants), word) != std::end(variants);
    });
    return join(words, "-");
}

/// A name as it stands on the web: with a publisher before it, with a variant behind it, or both.
std::optional<Result<ModelDescription>> publishedModel(std::string_view text)
{
    const std::string last = lowered(text.substr(text.find_last_of('/') + 1));
    for (const std::string& name : {last, plainName(text)}) {
        auto model = name.empty() ? std::nullopt : knownModel(name);
        if (model && *model && name != lowered(text))
            (*model)->assumptions.insert(
                (*model)->assumptions.begin(),
                fmt::format("\"{}\" is read as {}: the same sizes", quotedForMessage(text), (*model)->name));
        if (model)
            return model;
    }
    return std::nullopt;
}

std::vector<std::string> everyName()
{
    std::vector<std::string> names;
    for (KnownModel& model : knownModels())
        names.push_back(std::move(model.name));
    for (const char* recipe : {"params:7e9", "from-scratch", "mlp:784,512,10"})
        names.emplace_back(recipe);
    return names;
}

} // namespace

std::vector<KnownModel> knownModels(std::vector<Error>* problems)
{
    std::vector<KnownModel> known;
    const auto complain = [&](const Error& error) {
        if (problems)
            problems->push_back(error);
    };
    for (const fs::path& path : familyFiles()) {
        const auto text = readFile(path, familyFileLimit);
        const auto json = text ? parsedFamily(*text, path) : tl::unexpected(text.error());
        if (!json) {
            complain(json.error());
            continue;
        }
        const auto models = JsonReader(*json, path.filename().string()).at("models");
        const auto items = models ? models->items() : tl::unexpected(models.error());
        if (!items) {
            complain(items.error());
            continue;
        }
        for (const JsonReader& entry : *items) {
            const auto name = entry.string("name");
            if (name)
                known.push_back({*name, entry.string("title", *name).value_or(*name)});
            else
                complain(name.error());
        }
    }
    return known;
}

Result<ModelDescription> readModel(std::string_view text, UnknownArchitecture unknown)
{
    text = trimmed(text);
    if (text.empty())
        return fail("model.unknown", "no model is named", "for example gpt2, params:7e9 or a path to config.json");
    if (isRecipe(text))
        return modelFromRecipe(text);
    if (auto model = knownModel(lowered(text)))
        return std::move(*model);
    std::error_code error;
    const fs::path path{std::string(text)};
    const bool exists = fs::exists(path, error);
    if (!exists) {
        if (auto model = publishedModel(text))
            return std::move(*model);
    }
    const bool isPublisherAndName = std::count(text.begin(), text.end(), '/') == 1 && !text.starts_with('/')
        && !text.starts_with('.') && !text.ends_with(".json") && !text.ends_with(".safetensors")
        && !text.ends_with(".gguf");
    if (exists || (looksLikePath(text) && !isPublisherAndName))
        return modelFromFile(path, unknown);
    return fail("model.unknown", fmt::format("there is no model \"{}\"", quotedForMessage(text)),
                didYouMean(plainName(text), everyName())
                    + " Any other model: the path of its config.json, of safetensors or GGUF weights, or params:7e9");
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/network/model_recipes.h"

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/network/architectures.h"
#include "core/network/inventory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view words[] = {"params", "from-scratch", "mlp"};

/// "params:7e9" into word and rest; the rest is empty without a colon.
std::pair<std::string_view, std::string_view> divided(std::string_view text)
{
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos)
        return {text, {}};
    return {text.substr(0, colon), trimmed(text.substr(colon + 1))};
}

/// "7 billion", "124 million".
std::string wordedCount(double count)
{
    constexpr std::pair<double, std::string_view> steps[] = {
        {1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1e3, " thousand"}};
    for (const auto& [size, word] : steps) {
        if (count >= size)
            return fmt::format("{:.4g}{}", count / size, word);
    }
    return numberText(count);
}

Result<std::int64_t> wholeNumber(std::string_view text, const std::string& key)
{
    const auto number = parseNumber(trimmed(text));
    if (!number || *number != std::floor(*number))
        return fail("model.recipe", fmt::format("expected a whole number, found \"{}\"", quotedForMessage(text)), {},
                    key);
    if (*number < 1 || *number > 0x1p31)
        return fail("model.range", fmt::format("{} is out of range", quotedForMessage(text)),
                    fmt::format("allowed: 1 to {}", std::int64_t(1) << 31), key);
    return static_cast<std::int64_t>(*number);
}

struct Key
{
    const char* name;
    std::int64_t* value;
};

Result<void> readKeys(std::string_view text, std::initializer_list<Key> keys)
{
    std::vector<std::string> names;
    for (const Key& key : keys)
        names.emplace_back(key.name);
    for (const std::string& part : split(text, ',')) {
        if (trimmed(part).empty() && trimmed(text).empty())
            break;
        const std::size_t equals = part.find('=');
        const std::string name(trimmed(std::string_view(part).substr(0, equals)));
        const Key* found = nullptr;
        for (const Key& key : keys)
            found = key.name == name ? &key : found;
        if (!found || equals == std::string::npos)
            return fail("model.recipe", fmt::format("expected KEY=NUMBER, found \"{}\"", quotedForMessage(part)),
                        found ? "the keys are " + join(names, ", ") : didYouMean(name, names), "from-scratch");
        if (*found->value != 0)
            return fail("model.recipe", "is given twice", "give it once", name);
        MEMSCAPE_TRY(value, wholeNumber(std::string_view(part).substr(equals + 1), name));
        *found->value = value;
    }
    return {};
}

/// `value`, or `standard` with a sentence.
void settle(ModelDescription& model, const char* name, std::int64_t& value, std::int64_t standard,
            std::string_view rule)
{
    if (value != 0)
        return;
    value = standard;
    model.assumptions.push_back(fmt::format("{} is not given: {} ({})", name, standard, rule));
}

Result<ModelDescription> fromScratch(std::string_view text, std::string_view rest)
{
    ModelDescription model = *architectureStandard("from-scratch");
    model.name = std::string(text);
    model.title = "decoder from scratch";
    model.source = "the parameter itself";
    std::int64_t kvHeads = 0, context = 0;
    MEMSCAPE_CHECK(readKeys(rest,
                            {{"hidden", &model.hidden},
                             {"layers", &model.layers},
                             {"heads", &model.heads},
                             {"ffn", &model.ffn},
                             {"vocab", &model.vocab},
                             {"kv_heads", &kvHeads},
                             {"context", &context}}));
    settle(model, "hidden", model.hidden, 512, "the size of a first exercise");
    settle(model, "layers", model.layers, 4, "the size of a first exercise");
    settle(model, "heads", model.heads, std::max<std::int64_t>(1, model.hidden / 64), "64 dimensions a head");
    settle(model, "ffn", model.ffn, std::max<std::int64_t>(64, model.hidden * 8 / 3 / 64 * 64),
           "8/3 of hidden, to a multiple of 64 below");
    settle(model, "vocab", model.vocab, 10000, "a small byte-pair vocabulary");
    if (model.hidden % model.heads != 0)
        return fail("model.contradiction",
                    fmt::format("hidden {} is not divisible by {} heads", model.hidden, model.heads),
                    "choose heads that divide hidden", "heads");
    model.kvHeads = kvHeads > 0 ? kvHeads : model.heads;
    model.headDim = model.hidden / model.heads;
    model.maxPositions = context;
    MEMSCAPE_CHECK(checkModel(model));
    return model;
}

Result<ModelDescription> mlp(std::string_view text, std::string_view rest)
{
    ModelDescription model;
    model.family = Family::Mlp;
    model.architecture = "mlp";
    model.name = std::string(text);
    model.title = "chain of linear layers";
    model.source = "the parameter itself";
    model.activation = ActivationKind::Relu;
    model.head = HeadKind::None;
    model.biases.feedForward = true;
    if (rest.empty()) {
        rest = "784,512,512,10";
        model.assumptions.push_back("no sizes are given: 784,512,512,10 (a digit's pixels to ten classes)");
    }
    for (const std::string& part : split(rest, ',')) {
        MEMSCAPE_TRY(size, wholeNumber(part, "mlp"));
        model.mlpSizes.push_back(size);
    }
    model.layers = static_cast<std::int64_t>(model.mlpSizes.size()) - 1;
    model.assumptions.push_back("ReLU between the layers, biases, mean squared error as the loss");
    MEMSCAPE_CHECK(checkModel(model));
    return model;
}

/// Of at most so many parameters, the rest as remainder; a negative remainder where even the thinnest has more.
ModelDescription decoderOfWidth(std::int64_t hidden, std::int64_t parameters)
{
    ModelDescription model = decoderLikeLlama();
    model.hidden = hidden;
    model.layers = std::max<std::int64_t>(1, (hidden + 64) / 128);
    model.headDim = hidden % 128 == 0 ? 128 : 64;
    model.heads = model.kvHeads = hidden / model.headDim;
    model.vocab = std::clamp<std::int64_t>(parameters / 8 / hidden, 16, 32000);
    const std::int64_t rest =
        parameters - 2 * model.vocab * hidden - model.layers * (4 * hidden * hidden + 2 * hidden) - hidden;
    const std::int64_t step = parameters > 1'000'000'000 ? 8 : 1; // a multiple of 8 where that is still near enough
    const std::int64_t row = 3 * model.layers * hidden;
    model.ffn = std::max<std::int64_t>(1, rest / (row * step) * step);
    model.remainder = rest - model.ffn * row;
    return model;
}

} // namespace

bool isRecipe(std::string_view text)
{
    const std::string_view word = divided(text).first;
    const bool named = std::find(std::begin(words), std::end(words), word) != std::end(words);
    return named && (word != "params" || text.find(':') != std::string_view::npos);
}

Result<ModelDescription> modelOfSize(double parameters)
{
    if (!(parameters >= 1e5 && parameters <= 1e15))
        return fail("model.range", fmt::format("{} parameters are out of range", numberText(parameters)),
                    "allowed: 1e5 to 1e15", "params");
    ModelDescription best;
    double nearest = 1e300;
    for (std::int64_t hidden = 64; hidden <= 1 << 19; hidden += 64) {
        ModelDescription model = decoderOfWidth(hidden, static_cast<std::int64_t>(parameters));
        const double shape = std::fabs(std::log(static_cast<double>(model.ffn) / static_cast<double>(hidden) * 3 / 8));
        if (shape < nearest && model.remainder >= 0) {
            nearest = shape;
            best = std::move(model);
        }
    }
    MEMSCAPE_TRY(list, inventory(best));
    best.source = "the number of parameters alone";
    best.assumptions.push_back(fmt::format("only the size is known: a decoder like LLaMA with {} "
                                           "layers, hidden size {}, {} heads, feed-forward {} and "
                                           "a vocabulary of {} is assumed, and a vector of {} for the rest; "
                                           "it has {} parameters",
                                           best.layers, best.hidden, best.heads, best.ffn, best.vocab, best.remainder,
                                           list.total));
    return best;
}

Result<ModelDescription> modelFromRecipe(std::string_view text)
{
    const auto [word, rest] = divided(text);
    if (word == "from-scratch")
        return fromScratch(text, rest);
    if (word == "mlp")
        return mlp(text, rest);
    const auto number = parseNumber(rest);
    if (!number)
        return fail("model.recipe", fmt::format("expected a number, found \"{}\"", quotedForMessage(rest)),
                    "for example params:7.5e9", "params");
    MEMSCAPE_TRY(model, modelOfSize(*number));
    model.name = std::string(text);
    model.title = fmt::format("{} parameters", wordedCount(*number));
    return model;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/checkpoint/checkpoint_chain.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/checkpoint/mlp_chain.h"
#include "core/network/model_names.h"
#include "core/timing/operator_time.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view uniformPrefix = "uniform:";

tl::unexpected<Error> syntax(std::string_view text, std::string_view part)
{
    return fail("chain.syntax",
                fmt::format("\"{}\": can't read \"{}\"", quotedForMessage(text), quotedForMessage(part)),
                "uniform:LENGTH, or uniform:64,value=1,saved=4,forward=1,backward=2", "chain");
}

/// A whole number from 1 (or 0) to `limit`.
Result<std::int64_t> wholeNumber(std::string_view text, std::string_view part, std::int64_t least, std::int64_t limit)
{
    const auto number = parseNumber(part);
    if (!number || *number != std::floor(*number))
        return syntax(text, part);
    if (*number < double(least) || *number > double(limit))
        return fail("chain.range", fmt::format("{} is out of range", quotedForMessage(part)),
                    fmt::format("allowed: {} to {}", least, limit), "chain");
    return std::int64_t(*number);
}

Result<ChainSource> fileSource(const std::string& text)
{
    const auto content = readFile(text);
    if (!content) {
        // What has no look of a path is rather a name with a slip in it: the names near to it are said.
        const bool isPath = text.find_first_of("./\\") != std::string::npos;
        Error error = isPath ? content.error() : readModel(text).error();
        error.place = "chain";
        error.hint = isPath ? "a chain is the path of a memscape-chain file, uniform:64, mlp:48x4096, or a model: gpt2"
                            : error.hint + ". Or a chain: the path of a memscape-chain file, uniform:64, mlp:48x4096";
        return fail(error);
    }
    const auto inFile = [&](Error error) {
        error.place = error.place.empty() ? text : fmt::format("{}: {}", text, error.place);
        return fail(std::move(error));
    };
    const auto json = parseJson(*content);
    if (!json)
        return inFile(json.error());
    auto chain = chainFromJson(JsonReader(*json));
    if (!chain)
        return inFile(chain.error());
    ChainSource source;
    source.chain = std::move(*chain);
    if (source.chain.name.empty())
        source.chain.name = text;
    source.sizes = source.times = text;
    return source;
}

double seconds(const DeviceRates& rates, const MlpWork& work, double kernels)
{
    OperatorCost cost;
    cost.flops = work.flops;
    cost.bytes = work.bytes;
    cost.kernels = kernels;
    cost.isProduct = true;
    return operatorSeconds(rates, cost);
}

/// The times are those of a roofline of the device; without its rates, they are counted in forwards (forward 1).
Result<ChainSource> mlpSource(const Device& device, std::string_view text, std::int64_t batch)
{
    MEMSCAPE_TRY(shape, parseMlpShape(text, batch));
    MEMSCAPE_TRY(chain, mlpChain(shape));
    ChainSource source;
    source.chain = std::move(chain);
    source.sizes = fmt::format("arrays of {} × {} floats, as the live run holds them", shape.batch, shape.width);
    const auto rates = deviceRates(device);
    source.chain.units.isSeconds = rates.has_value();
    const auto time = [&](const MlpWork& work, double kernels, double otherwise) {
        return rates ? seconds(*rates, work, kernels) : otherwise;
    };
    Stage stage = source.chain.stages.front();
    SaveOption &all = stage.options[std::size_t(MlpSave::All)], &result = stage.options[std::size_t(MlpSave::Result)];
    stage.forward = time(mlpForwardWork(shape, false), 2, 1);
    all.forward = time(mlpForwardWork(shape, true), 2, 1);
    result.forward = stage.forward;
    all.backward = time(mlpBackwardWork(shape, MlpSave::All), 4, 2);
    result.backward = time(mlpBackwardWork(shape, MlpSave::Result), 5, 3);
    for (Stage& each : source.chain.stages) {
        stage.name = each.name;
        each = stage;
    }
    source.chain.lossTime = time(mlpLossWork(shape), 1, 0);
    source.times = rates
        ? fmt::format("roofline of {}: max(FLOPs / fp32 rate, bytes / bandwidth) + launches", device.name)
        : fmt::format("counted in forwards: {}", rates.error().message);
    source.omits = {"how far a library's product stays below the rate", "caches between operations"};
    return source;
}

} // namespace

std::optional<std::string> modelOfChain(std::string_view text)
{
    constexpr std::string_view prefix = "model:";
    if (text.starts_with(prefix))
        return std::string(text.substr(prefix.size()));
    std::error_code error;
    const std::string name(text);
    const bool isOther = text.starts_with(uniformPrefix) || isMlpText(text) || std::filesystem::exists(name, error);
    return !isOther && readModel(name) ? std::optional(name) : std::nullopt;
}

Result<Chain> parseUniformChain(std::string_view text)
{
    if (!text.starts_with(uniformPrefix))
        return syntax(text, text);
    const auto parts = split(text.substr(uniformPrefix.size()), ',');
    MEMSCAPE_TRY(length, wholeNumber(text, parts.front(), 1, chainLengthLimit));
    std::int64_t value = 1;
    std::optional<std::int64_t> saved;
    double forward = 1, backward = 2;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const std::size_t equals = parts[i].find('=');
        if (equals == std::string::npos)
            return syntax(text, parts[i]);
        const std::string key = parts[i].substr(0, equals), given = parts[i].substr(equals + 1);
        if (key == "value" || key == "saved") {
            MEMSCAPE_TRY(number, wholeNumber(text, given, 0, chainSizeLimit));
            if (key == "value")
                value = number;
            else
                saved = number;
        } else if (key == "forward" || key == "backward") {
            const auto number = parseNumber(given);
            if (!number || *number < 0)
                return syntax(text, parts[i]);
            (key == "forward" ? forward : backward) = *number;
        } else {
            return syntax(text, parts[i]);
        }
    }
    Chain chain = uniformChain(int(length), value, saved.value_or(value), forward, backward);
    chain.name = std::string(text);
    if (saved && *saved < value)
        return fail("chain.range", fmt::format("saved={} is less than value={}", *saved, value),
                    "what a stage saves holds its result", "chain");
    MEMSCAPE_CHECK(checkChain(chain));
    return chain;
}

Result<ChainSource> chainSource(const Device& device, const Parameters& parameters)
{
    const std::string& text = parameters.text("chain");
    const std::int64_t batch = parameters.integer("batch");
    if (text.starts_with(uniformPrefix)) {
        MEMSCAPE_TRY(chain, parseUniformChain(text));
        ChainSource source;
        source.chain = std::move(chain);
        source.sizes = source.times = "equal stages, from the parameter";
        source.isUniform = true;
        return source;
    }
    if (isMlpText(text))
        return mlpSource(device, text, batch > 0 ? batch : standardRows);
    if (const auto model = modelOfChain(text))
        return modelSource(device, *model, parameters);
    return fileSource(text);
}

} // namespace memscape

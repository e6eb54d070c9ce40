// SPDX-License-Identifier: Apache-2.0
// Chain documents: {"format": "memscape-chain", "version": 1, …}, arrays as the header says.
#include "core/checkpoint/chain.h"

#include "core/base/text.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr int chainVersion = 1;

bool isOneOf(const std::string& text, std::initializer_list<std::string_view> words)
{
    for (const std::string_view word : words) {
        if (text == word)
            return true;
    }
    return false;
}

Result<ChainUnits> readUnits(const JsonReader& reader)
{
    ChainUnits abstract{false, false};
    if (!reader.has("units"))
        return abstract;
    MEMSCAPE_TRY(units, reader.at("units"));
    if (units.node().is_string()) {
        MEMSCAPE_TRY(text, units.string());
        const bool isBytes = isOneOf(text, {"B", "byte", "bytes"});
        return ChainUnits{isBytes, isBytes};
    }
    if (!units.node().is_object())
        return units.expected("a unit such as \"B\", or {\"memory\": \"B\", \"time\": \"s\"}");
    MEMSCAPE_TRY(memory, units.string("memory", ""));
    MEMSCAPE_TRY(time, units.string("time", ""));
    return ChainUnits{isOneOf(memory, {"B", "byte", "bytes"}), isOneOf(time, {"s", "second", "seconds"})};
}

/// An array of `length` numbers, or of one less when `mayLackLast` (then a 0 is put at its end). An
/// array that may be missing is all zeros.
template <typename Number>
Result<std::vector<Number>> readArray(const JsonReader& reader, std::string_view key, std::size_t length,
                                      bool mayLackLast, bool mayBeMissing)
{
    if (mayBeMissing && !reader.has(key))
        return std::vector<Number>(length);
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(items, node.items());
    if (items.size() != length && !(mayLackLast && items.size() + 1 == length))
        return fail("chain.length", fmt::format("{} elements, expected {}", items.size(), length),
                    "values, saved, backward and backward_overhead have one element more than forward", node.path());
    std::vector<Number> numbers;
    numbers.reserve(length);
    for (const JsonReader& item : items) {
        if constexpr (std::is_same_v<Number, double>) {
            MEMSCAPE_TRY(number, item.number());
            numbers.push_back(number);
        } else {
            MEMSCAPE_TRY(number, item.integer());
            numbers.push_back(number);
        }
    }
    numbers.resize(length);
    return numbers;
}

Result<SaveOption> readOption(const JsonReader& reader, const Stage& stage)
{
    const SaveOption& first = stage.options.front();
    SaveOption option;
    MEMSCAPE_TRY(name, reader.string("name", fmt::format("way {}", stage.options.size())));
    MEMSCAPE_TRY(forward, reader.number("forward", first.forward));
    MEMSCAPE_TRY(backward, reader.number("backward", first.backward));
    MEMSCAPE_TRY(savedNode, reader.at("saved"));
    MEMSCAPE_TRY(saved, savedNode.integer());
    MEMSCAPE_TRY(forwardOverhead, reader.integer("forward_overhead", first.forwardOverhead));
    MEMSCAPE_TRY(backwardOverhead, reader.integer("backward_overhead", first.backwardOverhead));
    return SaveOption{name, forward, backward, saved, forwardOverhead, backwardOverhead};
}

Result<void> readOptions(const JsonReader& reader, Chain& chain)
{
    if (!reader.has("options"))
        return {};
    MEMSCAPE_TRY(node, reader.at("options"));
    MEMSCAPE_TRY(stages, node.items());
    if (stages.size() != chain.stages.size())
        return fail("chain.length", fmt::format("{} lists for {} stages", stages.size(), chain.stages.size()),
                    "give a list per stage, empty where there is one way only", node.path());
    for (std::size_t i = 0; i < stages.size(); ++i) {
        MEMSCAPE_TRY(items, stages[i].items());
        for (const JsonReader& item : items) {
            if (chain.stages[i].options.size() > saveOptionLimit)
                return fail("chain.option", "too many ways to save a stage",
                            fmt::format("give at most {}", saveOptionLimit), stages[i].path());
            MEMSCAPE_TRY(option, readOption(item, chain.stages[i]));
            chain.stages[i].options.push_back(std::move(option));
        }
    }
    return {};
}

Result<void> readNames(const JsonReader& reader, Chain& chain)
{
    if (!reader.has("names"))
        return {};
    MEMSCAPE_TRY(node, reader.at("names"));
    MEMSCAPE_TRY(names, node.items());
    if (names.size() != chain.stages.size())
        return fail("chain.length", fmt::format("{} names for {} stages", names.size(), chain.stages.size()),
                    "give one per stage", node.path());
    for (std::size_t i = 0; i < names.size(); ++i)
        MEMSCAPE_SET(chain.stages[i].name, names[i].string());
    return {};
}

Result<void> checkVersion(const JsonReader& reader)
{
    MEMSCAPE_TRY(format, reader.string("format", "memscape-chain"));
    if (format != "memscape-chain")
        return fail("document.format", fmt::format("\"{}\" is not a chain", quotedForMessage(format)),
                    "expected memscape-chain", "format");
    MEMSCAPE_TRY(version, reader.integer("version", chainVersion));
    if (version > chainVersion)
        return fail("document.newer", "this chain was written by a newer Memscape", "update Memscape to read it",
                    "version");
    return {};
}

Json optionJson(const SaveOption& option)
{
    return {{"name", option.name},
            {"forward", option.forward},
            {"backward", option.backward},
            {"saved", option.saved},
            {"forward_overhead", option.forwardOverhead},
            {"backward_overhead", option.backwardOverhead}};
}

/// Arrays of the stages' first ways; the loss and x_0 are put in by the caller.
void writeStages(Json& json, const Chain& chain)
{
    bool hasNames = false, hasOptions = false, savesAlike = true;
    Json names = Json::array(), options = Json::array(), savingForward = Json::array(), savingOverhead = Json::array();
    for (const Stage& stage : chain.stages) {
        const SaveOption& first = stage.options.front();
        json["forward"].push_back(stage.forward);
        json["backward"].push_back(first.backward);
        json["saved"].push_back(first.saved);
        json["forward_overhead"].push_back(stage.forwardOverhead);
        json["backward_overhead"].push_back(first.backwardOverhead);
        savingForward.push_back(first.forward);
        savingOverhead.push_back(first.forwardOverhead);
        names.push_back(stage.name);
        Json further = Json::array();
        for (std::size_t k = 1; k < stage.options.size(); ++k)
            further.push_back(optionJson(stage.options[k]));
        hasNames |= !stage.name.empty();
        hasOptions |= !further.empty();
        savesAlike &= first.forward == stage.forward && first.forwardOverhead == stage.forwardOverhead;
        options.push_back(std::move(further));
    }
    if (!savesAlike) {
        json["saving_forward"] = std::move(savingForward);
        json["saving_forward_overhead"] = std::move(savingOverhead);
    }
    if (hasNames)
        json["names"] = std::move(names);
    if (hasOptions)
        json["options"] = std::move(options);
}

} // namespace

Result<Chain> chainFromJson(const JsonReader& reader)
{
    if (!reader.node().is_object())
        return reader.expected("a chain document, {\"format\": \"memscape-chain\", …}");
    MEMSCAPE_CHECK(checkVersion(reader));
    Chain chain;
    MEMSCAPE_TRY(name, reader.string("name", ""));
    MEMSCAPE_TRY(units, readUnits(reader));
    MEMSCAPE_TRY(forwardNode, reader.at("forward"));
    if (!forwardNode.node().is_array())
        return forwardNode.expected("an array of numbers");
    const std::size_t length = forwardNode.node().size();
    if (length < 1 || length > std::size_t(chainLengthLimit))
        return fail("chain.length", fmt::format("{} stages", length),
                    fmt::format("a chain has 1 to {}", chainLengthLimit), "forward");
    MEMSCAPE_TRY(forward, readArray<double>(reader, "forward", length, false, false));
    MEMSCAPE_TRY(backward, readArray<double>(reader, "backward", length + 1, true, false));
    MEMSCAPE_SET(chain.values, readArray<std::int64_t>(reader, "values", length + 1, false, false));
    MEMSCAPE_TRY(saved, readArray<std::int64_t>(reader, "saved", length + 1, false, false));
    MEMSCAPE_TRY(forwardOverhead, readArray<std::int64_t>(reader, "forward_overhead", length, false, true));
    MEMSCAPE_TRY(backwardOverhead, readArray<std::int64_t>(reader, "backward_overhead", length + 1, true, true));
    const bool savesAlike = !reader.has("saving_forward"), needsAlike = !reader.has("saving_forward_overhead");
    MEMSCAPE_TRY(savingForward, readArray<double>(reader, "saving_forward", length, false, savesAlike));
    MEMSCAPE_TRY(savingOverhead, readArray<std::int64_t>(reader, "saving_forward_overhead", length, false, needsAlike));
    chain.name = std::move(name);
    chain.units = units;
    chain.lossTime = backward.back();
    chain.lossOverhead = backwardOverhead.back();
    for (std::size_t i = 0; i < length; ++i) {
        SaveOption all{"all",        savesAlike ? forward[i] : savingForward[i],          backward[i],
                       saved[i + 1], needsAlike ? forwardOverhead[i] : savingOverhead[i], backwardOverhead[i]};
        chain.stages.push_back({{}, forward[i], forwardOverhead[i], {std::move(all)}});
    }
    MEMSCAPE_CHECK(readNames(reader, chain));
    MEMSCAPE_CHECK(readOptions(reader, chain));
    MEMSCAPE_CHECK(checkChain(chain));
    return chain;
}

Json chainToJson(const Chain& chain)
{
    Json json{{"format", "memscape-chain"}, {"version", chainVersion}, {"name", chain.name}};
    json["units"] = {{"memory", chain.units.isBytes ? "B" : "1"}, {"time", chain.units.isSeconds ? "s" : "1"}};
    json["forward"] = Json::array();
    json["backward"] = Json::array();
    json["values"] = chain.values;
    json["saved"] = Json::array({chain.values.front()}); // no stage saves x_0: its own size
    json["forward_overhead"] = Json::array();
    json["backward_overhead"] = Json::array();
    writeStages(json, chain);
    json["backward"].push_back(chain.lossTime);
    json["backward_overhead"].push_back(chain.lossOverhead);
    return json;
}

} // namespace memscape

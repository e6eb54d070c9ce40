// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_table.h"

#include "core/base/text.h"
#include "core/claims/claim_quotes.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array entryKeys{"id",      "line", "heading", "quote",   "topic", "experiment", "parameters", "cases",
                               "devices", "ours", "right",   "verdict", "judge", "on",         "as",         "cannot"};
/// What an entry says itself, whatever it stands for.
constexpr std::array ownKeys{"id", "line", "heading", "quote", "as"};
constexpr std::array verdictStarts{"holds", "does not hold", "cannot be tested here"};

Result<std::vector<ClaimCase>> casesOf(const JsonReader& reader, const Experiment& experiment)
{
    std::vector<std::string> common;
    if (reader.has("parameters")) {
        MEMSCAPE_TRY(given, reader.at("parameters"));
        MEMSCAPE_SET(common, textsOf(given));
    }
    std::vector<ClaimCase> cases;
    if (reader.has("cases")) {
        MEMSCAPE_TRY(given, reader.at("cases"));
        MEMSCAPE_TRY(members, given.members());
        for (const auto& [name, assignments] : members) {
            MEMSCAPE_TRY(texts, textsOf(assignments));
            cases.push_back({name, {}, common, {}});
            cases.back().assignments.insert(cases.back().assignments.end(), texts.begin(), texts.end());
        }
    }
    if (cases.empty())
        cases.push_back({"here", {}, common, {}});
    for (ClaimCase& one : cases)
        MEMSCAPE_SET(one.parameters, caseParameters(experiment, one.assignments, one.name));
    if (reader.has("devices")) {
        MEMSCAPE_TRY(given, reader.at("devices"));
        MEMSCAPE_TRY(members, given.members());
        for (const auto& [name, device] : members) {
            const auto found = std::ranges::find(cases, name, &ClaimCase::name);
            if (found == cases.end())
                return fail("claims.key", fmt::format("devices names the case \"{}\", which is none", name),
                            "name one of the cases");
            MEMSCAPE_SET(found->device, device.string());
        }
    }
    return cases;
}

Result<ClaimRule> ruleOf(const JsonReader& reader)
{
    MEMSCAPE_TRY(parts, textsOf(reader));
    if (parts.size() != 2)
        return fail("claims.verdict", "a rule is not a condition and a verdict", "write [\"condition\", \"verdict\"]",
                    reader.path());
    if (std::ranges::none_of(verdictStarts, [&](const char* start) { return parts[1].starts_with(start); }))
        return fail("claims.verdict", fmt::format("the verdict \"{}\" is none", quotedForMessage(parts[1])),
                    "begin it with \"holds\", \"does not hold\" or \"cannot be tested here\"", reader.path());
    ClaimRule rule;
    if (!parts[0].empty()) {
        MEMSCAPE_TRY(when, Expression::parse(parts[0]));
        rule.when.push_back(std::move(when));
    }
    MEMSCAPE_SET(rule.verdict, claimSentence(parts[1]));
    return rule;
}

/// How it is judged: by rules, by the experiment, or not at all.
Result<void> readVerdict(ClaimEntry& entry, const JsonReader& reader)
{
    MEMSCAPE_TRY(cannot, reader.string("cannot", ""));
    if (!cannot.empty()) {
        entry.cannot = cannot;
        return {};
    }
    MEMSCAPE_TRY(verdict, reader.at("verdict"));
    if (verdict.node().is_string()) {
        if (verdict.node() != "experiment" || !entry.experiment)
            return fail("claims.verdict", "the verdict is neither rules nor that of an experiment",
                        "write rules, or \"experiment\" beside the id of one", verdict.path());
        MEMSCAPE_SET(entry.judge, reader.string("judge", entry.id));
        return {};
    }
    MEMSCAPE_TRY(rules, verdict.items());
    for (const JsonReader& item : rules) {
        MEMSCAPE_TRY(rule, ruleOf(item));
        entry.rules.push_back(std::move(rule));
    }
    if (entry.rules.empty() || !entry.rules.back().when.empty())
        return fail("claims.verdict", "no rule is left when every condition is false",
                    "end with [\"\", \"does not hold: …\"]", verdict.path());
    return {};
}

Result<ClaimEntry> entryOf(const Json& json)
{
    const JsonReader reader(json);
    MEMSCAPE_CHECK(checkKeys(reader, {entryKeys.begin(), entryKeys.end()}));
    ClaimEntry entry;
    for (const auto& [key, text] :
         {std::pair{"id", &entry.id}, {"heading", &entry.heading}, {"quote", &entry.quote}, {"topic", &entry.topic}}) {
        MEMSCAPE_SET(*text, reader.string(key));
    }
    MEMSCAPE_TRY(line, reader.at("line"));
    MEMSCAPE_TRY(number, line.integer());
    entry.line = int(number);
    MEMSCAPE_TRY(on, reader.string("on", ""));
    if (!on.empty() && on != "gpu" && on != "host")
        return fail("claims.key", fmt::format("no device is a \"{}\"", quotedForMessage(on)), "write gpu or host",
                    "on");
    entry.on = on;
    MEMSCAPE_TRY(experiment, reader.string("experiment", ""));
    if (!experiment.empty()) {
        MEMSCAPE_TRY(found, findExperiment(experiment));
        entry.experiment = found;
        MEMSCAPE_SET(entry.cases, casesOf(reader, *found));
    }
    MEMSCAPE_CHECK(readVerdict(entry, reader));
    MEMSCAPE_TRY(ours, reader.string("ours", ""));
    MEMSCAPE_TRY(right, reader.string("right"));
    MEMSCAPE_SET(entry.ours, claimSentence(ours));
    MEMSCAPE_SET(entry.right, claimSentence(right));
    if (entry.cannot.empty() && entry.judge.empty() && !entry.ours.hasValues())
        return fail("claims.key", "ours has no number", "name a figure in it: {{peak_allocated}}", "ours");
    return entry;
}

/// An entry as it stands in its file.
struct RawEntry
{
    Json json;
    std::string source, title, where;
};

Result<std::vector<RawEntry>> rawEntries(const std::filesystem::path& folder)
{
    std::vector<RawEntry> entries;
    MEMSCAPE_TRY(files, claimFiles(folder));
    for (const auto& file : files) {
        MEMSCAPE_TRY(json, readClaimFile(file));
        const std::string name = file.filename().string();
        const JsonReader reader(json, name);
        MEMSCAPE_TRY(source, reader.string("source"));
        MEMSCAPE_TRY(title, reader.string("title"));
        MEMSCAPE_TRY(claims, reader.at("claims"));
        MEMSCAPE_TRY(items, claims.items());
        if (items.empty())
            return fail("claims.empty", "the table has no claims", "write at least one, or delete the file", name);
        for (const JsonReader& item : items) {
            MEMSCAPE_TRY(id, item.string("id"));
            entries.push_back({item.node(), source, title, fmt::format("{}, \"{}\"", name, quotedForMessage(id))});
        }
    }
    return entries;
}

} // namespace

Result<ExpressionTemplate> claimSentence(const std::string& text)
{
    MEMSCAPE_TRY(sentence, ExpressionTemplate::parse(text));
    for (const std::string& words : sentence.words()) {
        if (words.find_first_of("{}") != std::string::npos)
            return fail("claims.sentence", fmt::format("the sentence \"{}\" has a lone brace", quotedForMessage(text)),
                        "write numbers as {{expression}} or {{expression | style}}");
    }
    return sentence;
}

Result<std::vector<std::string>> textsOf(const JsonReader& reader)
{
    std::vector<std::string> texts;
    MEMSCAPE_TRY(items, reader.items());
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(text, item.string());
        texts.push_back(text);
    }
    return texts;
}

Result<void> checkKeys(const JsonReader& reader, const std::vector<std::string>& known)
{
    MEMSCAPE_TRY(members, reader.members());
    for (const auto& [key, value] : members) {
        if (std::ranges::find(known, key) == known.end())
            return fail("claims.key", fmt::format("\"{}\" is no key here", quotedForMessage(key)),
                        didYouMean(key, known));
    }
    return {};
}

Result<Parameters> caseParameters(const Experiment& experiment, const std::vector<std::string>& assignments,
                                  const std::string& name)
{
    MEMSCAPE_TRY(parameters, resolve(experiment.schema(), assignments));
    if (parameters.sweep())
        return fail("claims.key", fmt::format("the case \"{}\" sweeps a parameter", name),
                    "write a case for each value");
    return parameters;
}

std::string ClaimEntry::place() const
{
    return fmt::format("{}, line {}", heading, line);
}

Result<std::vector<ClaimEntry>> readClaimTable(const std::filesystem::path& folder)
{
    MEMSCAPE_TRY(raw, rawEntries(folder));
    std::map<std::string, const RawEntry*> byId;
    for (const RawEntry& one : raw) {
        if (!byId.emplace(one.json["id"].get<std::string>(), &one).second)
            return fail("claims.twice", "two claims have this id", "give each its own", one.where);
    }
    std::vector<ClaimEntry> entries;
    for (const RawEntry& one : raw) {
        Json json = one.json;
        const auto as = JsonReader(json, one.where).string("as", "");
        if (!as)
            return fail(as.error());
        if (!as->empty()) {
            const auto other = byId.find(*as);
            if (other == byId.end() || other->second->json.contains("as"))
                return fail("claims.key", fmt::format("\"as\" names \"{}\", which says nothing itself", *as),
                            "name an entry without \"as\"", one.where);
            for (const auto& [key, value] : other->second->json.items()) {
                if (!json.contains(key) && std::ranges::find(ownKeys, key) == ownKeys.end())
                    json[key] = value;
            }
            if (json.contains("verdict") && json["verdict"] == "experiment" && !json.contains("judge"))
                json["judge"] = *as;
        }
        auto entry = entryOf(json);
        if (!entry)
            return fail(placedIn(one.where, entry.error()));
        entry->source = one.source;
        entry->title = one.title;
        entries.push_back(std::move(*entry));
    }
    return entries;
}

Result<std::shared_ptr<const std::vector<ClaimEntry>>> sharedClaimTable()
{
    static std::mutex mutex;
    static std::map<std::filesystem::path, std::shared_ptr<const std::vector<ClaimEntry>>> tables;
    const std::lock_guard lock(mutex);
    auto& known = tables[claimsFolder()];
    if (!known) {
        MEMSCAPE_TRY(table, readClaimTable(claimsFolder()));
        known = std::make_shared<const std::vector<ClaimEntry>>(std::move(table));
    }
    return known;
}

} // namespace memscape

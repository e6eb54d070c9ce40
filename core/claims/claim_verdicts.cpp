// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_verdicts.h"

#include "core/base/cancellation.h"
#include "core/base/json_path.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/claims/claim_device.h"
#include "core/device/catalogue.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* untestable = "cannot be tested here: ";
const FillStyle claimStyle{ByteStyle::Decimal}; // as the notes write bytes

/// What is asked of an experiment, and its answer. The same question is asked once for all claims.
struct ClaimQuestion
{
    const Experiment* experiment = nullptr;
    const Device* device = nullptr;
    const Parameters* parameters = nullptr;
    bool wantsDetail = false, wantsJudgement = false;

    Result<Prediction> answer = fail(Error{"claims.unasked", "not asked"});
    std::vector<Claim> judgements = {};
};

void ask(ClaimQuestion& question)
{
    const Experiment& experiment = *question.experiment;
    if (question.wantsDetail) {
        question.answer = experiment.predict(*question.device, *question.parameters);
    } else {
        auto figures = experiment.predictPoint(*question.device, *question.parameters);
        if (figures)
            question.answer = Prediction{std::move(*figures), {}, Json::object()};
        else
            question.answer = fail(figures.error());
    }
    if (question.wantsJudgement)
        question.judgements = experiment.claims(*question.device, *question.parameters);
}

struct AskedCase
{
    const ClaimCase* given = nullptr;
    const Device* device = nullptr;
    ClaimQuestion* question = nullptr;
};

struct AskedEntry
{
    const ClaimEntry* entry = nullptr;
    std::vector<AskedCase> cases = {};
};

/// Devices that cases name, and the questions by what they ask.
struct Asking
{
    std::map<std::string, Device> devices = {};
    std::map<std::string, ClaimQuestion> questions = {};
};

bool wantsDetail(const ClaimEntry& entry)
{
    std::vector<std::string> names = entry.ours.names();
    const auto add = [&](const std::vector<std::string>& more) { names.insert(names.end(), more.begin(), more.end()); };
    add(entry.right.names());
    for (const ClaimRule& rule : entry.rules) {
        add(rule.verdict.names());
        for (const Expression& when : rule.when)
            add(when.names());
    }
    return std::any_of(names.begin(), names.end(),
                       [](const std::string& name) { return name.find("detail.") != std::string::npos; });
}

bool isElsewhere(const ClaimEntry& entry, const Device& asked)
{
    return (entry.on == "gpu" && !asked.isGpu()) || (entry.on == "host" && asked.isGpu());
}

/// Of the kind that the claim is about, so that what is right is said with numbers of some device all the same.
const char* standInFor(const ClaimEntry& entry)
{
    return entry.on == "gpu" ? "nvidia-h200" : "amd-epyc-9654";
}

Result<const Device*> deviceNamed(Asking& asking, const std::string& id)
{
    auto known = asking.devices.find(id);
    if (known == asking.devices.end()) {
        MEMSCAPE_TRY(found, findDevice(id));
        known = asking.devices.emplace(id, std::move(found)).first;
    }
    return &known->second;
}

Result<AskedEntry> prepared(Asking& asking, const ClaimEntry& entry, const Device& asked)
{
    AskedEntry made{&entry};
    for (const ClaimCase& one : entry.cases) {
        const Device* device = &asked;
        if (!one.device.empty() || isElsewhere(entry, asked)) {
            MEMSCAPE_TRY(found, deviceNamed(asking, one.device.empty() ? standInFor(entry) : one.device));
            device = found;
        }
        made.cases.push_back({&one, device, nullptr});
        const std::string key =
            fmt::format("{} {} {}", entry.experiment->id(), device->id, jsonLine(parametersToJson(one.parameters)));
        ClaimQuestion& question = asking.questions[key];
        question.experiment = entry.experiment;
        question.device = device;
        question.parameters = &one.parameters;
        question.wantsDetail |= wantsDetail(entry);
        question.wantsJudgement |= !entry.judge.empty() && made.cases.size() == 1;
        made.cases.back().question = &question;
    }
    return made;
}

ExpressionValue detailValue(const Json& detail, const std::string& path)
{
    const Json* const node = nodeAt(detail, path);
    if (node == nullptr)
        return numberValue(nan);
    if (node->is_string())
        return wordValue(node->get<std::string>());
    if (node->is_boolean())
        return numberValue(double(node->get<bool>()));
    return numberValue(node->is_number() ? node->get<double>() : nan);
}

/// A figure, a value of the detail, a parameter or a part of the device of one case.
Result<ExpressionValue> valueIn(const AskedCase& asked, const std::string& name)
{
    if (name.starts_with("device."))
        return claimDeviceValue(*asked.device, std::string_view(name).substr(7));
    const Prediction& prediction = *asked.question->answer;
    if (name.starts_with("detail."))
        return detailValue(prediction.detail, name.substr(7));
    if (const Figure* figure = findFigure(prediction.figures, name)) {
        if (figure->isNumber())
            return numberValue(figure->number(), figure->unit);
        return wordValue(figure->text());
    }
    for (const auto& [key, value] : asked.given->parameters.values()) {
        if (key == name)
            return std::holds_alternative<double>(value) ? numberValue(std::get<double>(value))
                                                         : wordValue(valueText(value));
    }
    std::vector<std::string> known;
    for (const Figure& figure : prediction.figures)
        known.push_back(figure.key);
    return fail("claims.figure", fmt::format("{} has no figure \"{}\"", asked.question->experiment->id(), name),
                didYouMean(name, known));
}

ExpressionScope scopeOf(const AskedEntry& asked)
{
    return {[&asked](const std::string& name) -> Result<ExpressionValue> {
        const std::size_t point = name.find('.');
        for (const AskedCase& one : asked.cases) {
            if (point != std::string::npos && name.compare(0, point, one.given->name) == 0
                && point == one.given->name.size())
                return valueIn(one, name.substr(point + 1));
        }
        if (asked.cases.empty())
            return fail("claims.figure", fmt::format("\"{}\" is named, and no experiment is", name),
                        "name an experiment and its parameters");
        return valueIn(asked.cases.front(), name);
    }};
}

/// A name whose number is not known on this device; empty where all are.
Result<std::string> unknownName(const std::vector<std::string>& names, const ExpressionScope& scope)
{
    for (const std::string& name : names) {
        MEMSCAPE_TRY(value, scope.name(name));
        if (!value.isWord() && !std::isfinite(value.number()))
            return name;
    }
    return std::string();
}

/// "device.L3.capacity" as a person says it: "the capacity of L3".
std::string nameInWords(std::string name)
{
    if (const std::size_t device = name.find("device."); device != std::string::npos)
        name = name.substr(device + 7);
    const std::size_t point = name.rfind('.');
    std::string words =
        point == std::string::npos ? name : fmt::format("{} of {}", name.substr(point + 1), name.substr(0, point));
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

Result<void> judgeByRules(JudgedClaim& judged, const ExpressionScope& scope, const std::string& device)
{
    const ClaimEntry& entry = *judged.entry;
    std::vector<std::string> names = entry.ours.names();
    for (const ClaimRule& rule : entry.rules) {
        for (const Expression& when : rule.when) {
            const auto more = when.names();
            names.insert(names.end(), more.begin(), more.end());
        }
    }
    MEMSCAPE_TRY(unknown, unknownName(names, scope));
    if (!unknown.empty()) {
        judged.verdict = fmt::format("{}the {} is not known for {}", untestable, nameInWords(unknown), device);
        return {};
    }
    MEMSCAPE_TRY(ours, entry.ours.filled(scope, claimStyle));
    judged.ours = ours;
    for (const ClaimRule& rule : entry.rules) {
        bool applies = true;
        for (const Expression& when : rule.when) {
            MEMSCAPE_TRY(value, when.evaluate(scope));
            applies = value.isTrue();
        }
        if (!applies)
            continue;
        MEMSCAPE_TRY(verdict, rule.verdict.filled(scope, claimStyle));
        judged.verdict = verdict;
        return {};
    }
    return {};
}

/// The experiment's own words; what it leaves open is not tested.
void judgeByExperiment(JudgedClaim& judged, const ClaimQuestion& question)
{
    for (const Claim& claim : question.judgements) {
        if (claim.id != judged.entry->judge)
            continue;
        const bool judges = claim.verdict.starts_with("holds") || claim.verdict.starts_with("does not hold");
        judged.verdict = judges ? claim.verdict : untestable + claim.verdict;
        judged.ours = claim.ours;
        return;
    }
    judged.verdict = fmt::format("{}{} has no answer at these parameters on {}", untestable, question.experiment->id(),
                                 question.device->name);
}

Result<JudgedClaim> judged(const AskedEntry& asked, const Device& device)
{
    const ClaimEntry& entry = *asked.entry;
    JudgedClaim made;
    made.entry = &entry;
    for (const AskedCase& one : asked.cases)
        made.devices.push_back(one.device->id);
    const ExpressionScope scope = scopeOf(asked);
    for (const AskedCase& one : asked.cases) {
        if (one.question->answer)
            continue;
        const Error& error = one.question->answer.error();
        if (error.code == "run.cancelled")
            return fail(error);
        // What was refused has no numbers: what is right is said where it needs none.
        made.verdict = untestable + error.message;
        made.right = entry.right.names().empty() ? entry.right.filled(scope, claimStyle).value_or("") : "";
        return made;
    }
    if (isElsewhere(entry, device)) {
        made.verdict = fmt::format("{}the claim is about {}, {} is none", untestable,
                                   entry.on == "gpu" ? "GPUs" : "processors", device.name);
        MEMSCAPE_TRY(right, entry.right.filled(scope, claimStyle));
        made.right = fmt::format("Of {}: {}", asked.cases.front().device->name, right);
        return made;
    }
    if (!entry.cannot.empty()) {
        made.verdict = untestable + entry.cannot;
        MEMSCAPE_TRY(ours, entry.ours.filled(scope, claimStyle));
        made.ours = ours;
    } else if (entry.judge.empty()) {
        MEMSCAPE_CHECK(judgeByRules(made, scope, device.name));
    } else {
        judgeByExperiment(made, *asked.cases.front().question);
    }
    MEMSCAPE_TRY(right, entry.right.filled(scope, claimStyle));
    made.right = right;
    return made;
}

} // namespace

Result<std::vector<JudgedClaim>> judgeClaims(const std::vector<const ClaimEntry*>& entries, const Device& asked)
{
    const auto placed = [](Error error, const ClaimEntry& entry) {
        error.place =
            fmt::format("{}.json, \"{}\"{}", entry.source, entry.id, error.place.empty() ? "" : ", " + error.place);
        return fail(std::move(error));
    };
    Asking asking;
    std::vector<AskedEntry> all;
    for (const ClaimEntry* entry : entries) {
        auto made = prepared(asking, *entry, asked);
        if (!made)
            return placed(made.error(), *entry);
        all.push_back(std::move(*made));
    }
    std::vector<ClaimQuestion*> questions;
    for (auto& [key, question] : asking.questions)
        questions.push_back(&question);
    inParallel(questions.size(), coreCount(), [&](std::size_t i) { ask(*questions[i]); });
    MEMSCAPE_CHECK(checkWanted());
    std::vector<JudgedClaim> claims;
    for (const AskedEntry& one : all) {
        auto made = judged(one, asked);
        if (!made)
            return placed(made.error(), *one.entry);
        claims.push_back(std::move(*made));
    }
    return claims;
}

Json judgedJson(const JudgedClaim& claim)
{
    const ClaimEntry& entry = *claim.entry;
    Json cases = Json::array();
    for (std::size_t i = 0; i < entry.cases.size(); ++i) {
        cases.push_back(
            {{"name", entry.cases[i].name}, {"device", claim.devices[i]}, {"parameters", entry.cases[i].assignments}});
    }
    const bool hasCases = !entry.cases.empty();
    return {{"id", entry.id},
            {"source", entry.source},
            {"title", entry.title},
            {"place", entry.place()},
            {"line", entry.line},
            {"quote", entry.quote},
            {"topic", entry.topic},
            {"ours", claim.ours},
            {"verdict", claim.verdict},
            {"right", claim.right},
            {"experiment", entry.experiment ? Json(entry.experiment->id()) : Json()},
            {"parameters", hasCases ? Json(entry.cases.front().assignments) : Json::array()},
            {"device", hasCases ? Json(claim.devices.front()) : Json()},
            {"cases", std::move(cases)}};
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_verdicts.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* untestable = "cannot be tested here: ";

struct AskedEntry
{
    const ClaimEntry* entry = nullptr;
    std::vector<AskedCase> cases = {};
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
    return std::ranges::any_of(names,
                               [](const std::string& name) { return name.find("detail.") != std::string::npos; });
}

Result<AskedEntry> prepared(CaseAsking& asking, const ClaimEntry& entry, const Device& asked)
{
    AskedEntry made{&entry};
    const std::string standIn = isElsewhere(entry.on, asked) ? standInFor(entry.on) : "";
    for (const ClaimCase& one : entry.cases) {
        MEMSCAPE_TRY(added, asking.add(*entry.experiment, one, standIn));
        added.question->wantsDetail |= wantsDetail(entry);
        added.question->wantsJudgement |= !entry.judge.empty() && made.cases.empty();
        made.cases.push_back(added);
    }
    return made;
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
    MEMSCAPE_SET(judged.ours, entry.ours.filled(scope, claimStyle));
    for (const ClaimRule& rule : entry.rules) {
        bool applies = true;
        for (const Expression& when : rule.when) {
            MEMSCAPE_TRY(value, when.evaluate(scope));
            applies = value.isTrue();
        }
        if (!applies)
            continue;
        MEMSCAPE_SET(judged.verdict, rule.verdict.filled(scope, claimStyle));
        return {};
    }
    return {};
}

/// The experiment's own words; what it leaves open is not tested.
void judgeByExperiment(JudgedClaim& judged, const CaseQuestion& question)
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
    const ExpressionScope scope = scopeOf(asked.cases);
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
    if (isElsewhere(entry.on, device)) {
        made.verdict = fmt::format("{}the claim is about {}, {} is none", untestable,
                                   entry.on == "gpu" ? "GPUs" : "processors", device.name);
        MEMSCAPE_TRY(right, entry.right.filled(scope, claimStyle));
        made.right = fmt::format("Of {}: {}", asked.cases.front().device->name, right);
        return made;
    }
    if (!entry.cannot.empty()) {
        made.verdict = untestable + entry.cannot;
        MEMSCAPE_SET(made.ours, entry.ours.filled(scope, claimStyle));
    } else if (entry.judge.empty()) {
        MEMSCAPE_CHECK(judgeByRules(made, scope, device.name));
    } else {
        judgeByExperiment(made, *asked.cases.front().question);
    }
    MEMSCAPE_SET(made.right, entry.right.filled(scope, claimStyle));
    return made;
}

} // namespace

Result<std::vector<JudgedClaim>> judgeClaims(const std::vector<const ClaimEntry*>& entries, const Device& asked,
                                             const ClaimProgress& progress)
{
    const auto placed = [](Error error, const ClaimEntry& entry) {
        return fail(placedIn(fmt::format("{}.json, \"{}\"", entry.source, entry.id), std::move(error)));
    };
    CaseAsking asking(asked);
    std::vector<AskedEntry> all;
    for (const ClaimEntry* entry : entries) {
        auto made = prepared(asking, *entry, asked);
        if (!made)
            return placed(made.error(), *entry);
        all.push_back(std::move(*made));
    }
    MEMSCAPE_CHECK(asking.askAll(progress));
    std::vector<JudgedClaim> claims;
    for (const AskedEntry& one : all) {
        auto made = judged(one, asked);
        if (!made)
            return placed(made.error(), *one.entry);
        claims.push_back(std::move(*made));
    }
    return claims;
}

ClaimVerdict verdictKind(std::string_view verdict)
{
    if (verdict == "holds" || verdict == "holds here")
        return ClaimVerdict::Holds;
    if (verdict.starts_with("holds"))
        return ClaimVerdict::HoldsWhen;
    return verdict.starts_with("does not hold") ? ClaimVerdict::Fails : ClaimVerdict::Untested;
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

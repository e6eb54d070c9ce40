// SPDX-License-Identifier: Apache-2.0
// The claims of the course notes with a verdict each, for one device: the table of resources/claims, judged by
// core/claims.
#include "app/cli/commands.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "core/base/text.h"
#include "core/claims/claim_quotes.h"
#include "core/claims/claim_verdicts.h"
#include "core/report/text_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

/// Those that the flags leave. Errors: claims.source and experiment.unknown with near names, claims.none.
Result<std::vector<const ClaimEntry*>> chosenClaims(const std::vector<ClaimEntry>& table, const Arguments& arguments)
{
    std::vector<std::string> sources;
    for (const ClaimEntry& entry : table) {
        if (sources.empty() || sources.back() != entry.source)
            sources.push_back(entry.source);
    }
    if (!arguments.source.empty() && std::find(sources.begin(), sources.end(), arguments.source) == sources.end())
        return fail("claims.source", fmt::format("no claims come from \"{}\"", quotedForMessage(arguments.source)),
                    didYouMean(arguments.source, sources));
    if (!arguments.experiment.empty())
        MEMSCAPE_CHECK(findExperiment(arguments.experiment));
    std::vector<const ClaimEntry*> chosen;
    for (const ClaimEntry& entry : table) {
        const bool isOf =
            arguments.experiment.empty() || (entry.experiment && entry.experiment->id() == arguments.experiment);
        if (isOf && (arguments.source.empty() || entry.source == arguments.source))
            chosen.push_back(&entry);
    }
    if (chosen.empty())
        return fail("claims.none", fmt::format("{} shows none of these claims", arguments.experiment),
                    "leave out --source or --experiment");
    return chosen;
}

std::string shownBy(const ClaimEntry& entry)
{
    std::string text = entry.experiment->id();
    for (const ClaimCase& one : entry.cases) {
        if (entry.cases.size() > 1)
            text += fmt::format("{} {}:", &one == &entry.cases.front() ? "" : ";", one.name);
        for (const std::string& assignment : one.assignments)
            text += " " + assignment;
        if (!one.device.empty())
            text += " --device " + one.device;
    }
    return text;
}

std::string claimText(const JudgedClaim& claim)
{
    const ClaimEntry& entry = *claim.entry;
    std::string out = wrappedText(fmt::format("{}: “{}”", entry.place(), printable(entry.quote)), 2);
    out += wrappedText(claim.verdict, 6);
    if (!claim.ours.empty())
        out += wrappedText("Here: " + claim.ours, 6);
    if (!claim.right.empty())
        out += wrappedText("Right: " + claim.right, 6);
    if (entry.experiment)
        out += wrappedText("Shown by: " + shownBy(entry), 6);
    return out;
}

std::string claimsText(const std::vector<JudgedClaim>& claims, const Device& device)
{
    std::string out = fmt::format("Claims of course notes, judged for {}\n", printable(device.name));
    std::size_t holds = 0, when = 0, fails = 0, untested = 0;
    const ClaimEntry* before = nullptr;
    for (const JudgedClaim& claim : claims) {
        if (!before || before->source != claim.entry->source)
            out += fmt::format("\n{} ({})\n", claim.entry->title, claim.entry->source);
        before = claim.entry;
        out += "\n" + claimText(claim);
        if (claim.verdict.starts_with("cannot"))
            ++untested;
        else if (claim.verdict.starts_with("does not hold"))
            ++fails;
        else
            ++(claim.verdict == "holds" || claim.verdict == "holds here" ? holds : when);
    }
    return out
        + fmt::format("\n{} claims: {} hold, {} hold with a condition, {} do not hold, {} cannot be tested here\n",
                      claims.size(), holds, when, fails, untested);
}

Result<void> printClaims(const Arguments& arguments)
{
    MEMSCAPE_TRY(device, findDeviceToPredict(arguments.device));
    MEMSCAPE_TRY(table, readClaimTable(claimsFolder()));
    MEMSCAPE_TRY(chosen, chosenClaims(table, arguments));
    MEMSCAPE_TRY(claims, judgeClaims(chosen, device));
    if (!arguments.json) {
        printOut(claimsText(claims, device));
        return {};
    }
    Json list = Json::array();
    for (const JudgedClaim& claim : claims)
        list.push_back(judgedJson(claim));
    printOut(jsonText(list));
    return {};
}

} // namespace

int runClaims(const Arguments& arguments)
{
    if (const auto printed = printClaims(arguments); !printed)
        return refused(printed.error());
    return 0;
}

} // namespace memscape::cli

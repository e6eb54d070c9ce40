// SPDX-License-Identifier: Apache-2.0
// The claims of the course notes with a verdict each, for one device: the table of resources/claims, judged by
// core/claims; and the deep questions of the notes (resources/questions.json).
#include "app/cli/commands.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "core/base/text.h"
#include "core/claims/claim_quotes.h"
#include "core/report/claims_report.h"

#include <algorithm>

#include <fmt/format.h>

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
    if (!arguments.source.empty() && std::ranges::find(sources, arguments.source) == sources.end())
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

Result<void> printClaims(const Arguments& arguments)
{
    MEMSCAPE_TRY(device, findDeviceToPredict(arguments.device));
    MEMSCAPE_TRY(table, readClaimTable(claimsFolder()));
    MEMSCAPE_TRY(chosen, chosenClaims(table, arguments));
    MEMSCAPE_TRY(claims, judgeClaims(chosen, device));
    printOut(arguments.json ? claimsDocument(claims) : claimsText(claims, device));
    return {};
}

/// The deep questions of the notes, each with the verdict of the table on its answer.
Result<void> printQuestions(const Arguments& arguments)
{
    MEMSCAPE_TRY(device, findDeviceToPredict(arguments.device));
    MEMSCAPE_TRY(questions, readQuestions(questionsFile()));
    MEMSCAPE_TRY(table, readClaimTable(claimsFolder()));
    std::vector<const DeepQuestion*> asked;
    for (const DeepQuestion& question : questions)
        asked.push_back(&question);
    std::vector<const ClaimEntry*> judging;
    for (const ClaimEntry& entry : table) {
        if (std::ranges::any_of(questions, [&](const DeepQuestion& one) { return one.claim == entry.id; }))
            judging.push_back(&entry);
    }
    MEMSCAPE_TRY(answers, answerQuestions(asked, device));
    MEMSCAPE_TRY(verdicts, judgeClaims(judging, device));
    printOut(arguments.json ? questionsDocument(answers, verdicts) : questionsText(answers, verdicts, device));
    return {};
}

} // namespace

int runClaims(const Arguments& arguments)
{
    if (const auto printed = arguments.questions ? printQuestions(arguments) : printClaims(arguments); !printed)
        return refused(printed.error());
    return 0;
}

} // namespace memscape::cli

// SPDX-License-Identifier: Apache-2.0
#include "core/report/claims_report.h"

#include "core/base/text.h"
#include "core/report/csv.h"
#include "core/report/text_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

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
        out += wrappedText("Shown by: " + shownByText(entry), 6);
    return out;
}

std::string verdictOn(const AnsweredQuestion& answer, const std::vector<JudgedClaim>& verdicts)
{
    const auto found =
        std::ranges::find_if(verdicts, [&](const JudgedClaim& one) { return one.entry->id == answer.question->claim; });
    return found == verdicts.end() ? std::string() : found->verdict;
}

std::string questionText(const AnsweredQuestion& answer, const std::string& verdict)
{
    const DeepQuestion& question = *answer.question;
    std::string out = wrappedText(printable(question.question), 0);
    out += wrappedText(fmt::format("The notes ({}): “{}”", question.place(), printable(question.answer)), 2);
    if (!verdict.empty())
        out += wrappedText("The table of claims: " + verdict, 2);
    if (!answer.instead.empty())
        out += wrappedText(fmt::format("Numbers of {}: {}", answer.device, answer.instead), 2);
    out += wrappedText("True: " + answer.isTrue, 2);
    out += wrappedText("Not: " + answer.isNot, 2);
    for (std::size_t i = 0; i < question.steps.size(); ++i) {
        const QuestionStep& step = question.steps[i];
        out += wrappedText(fmt::format("{}. {}", i + 1, answer.says[i]), 4);
        out += wrappedText(fmt::format("memscape-cli predict {} {} --device {}", step.experiment->id(),
                                       join(step.asked.assignments, " "), answer.devices[i]),
                           7);
    }
    return out;
}

} // namespace

VerdictCounts countVerdicts(const std::vector<JudgedClaim>& claims)
{
    VerdictCounts counts{};
    for (const JudgedClaim& claim : claims)
        ++counts[std::size_t(verdictKind(claim.verdict))];
    return counts;
}

std::string shownByText(const ClaimEntry& entry)
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

std::string claimsText(const std::vector<JudgedClaim>& claims, const Device& device)
{
    std::string out = fmt::format("Claims of course notes, judged for {}\n", printable(device.name));
    const ClaimEntry* before = nullptr;
    for (const JudgedClaim& claim : claims) {
        if (!before || before->source != claim.entry->source)
            out += fmt::format("\n{} ({})\n", claim.entry->title, claim.entry->source);
        before = claim.entry;
        out += "\n" + claimText(claim);
    }
    const auto [holds, when, fails, untested] = countVerdicts(claims);
    return out
        + fmt::format("\n{} claims: {} hold, {} hold with a condition, {} do not hold, {} cannot be tested here\n",
                      claims.size(), holds, when, fails, untested);
}

std::string claimsCsv(const std::vector<JudgedClaim>& claims)
{
    std::string out = "id,source,note,heading,line,quote,topic,verdict,ours,right,experiment,parameters\r\n";
    for (const JudgedClaim& claim : claims) {
        const ClaimEntry& entry = *claim.entry;
        const std::vector<std::string> fields{entry.id,
                                              entry.source,
                                              entry.title,
                                              entry.heading,
                                              fmt::format("{}", entry.line),
                                              entry.quote,
                                              entry.topic,
                                              claim.verdict,
                                              claim.ours,
                                              claim.right,
                                              entry.experiment ? entry.experiment->id() : "",
                                              entry.experiment ? shownByText(entry) : ""};
        for (const std::string& field : fields)
            out += (&field == &fields.front() ? "" : ",") + csvField(field);
        out += "\r\n";
    }
    return out;
}

std::string claimsDocument(const std::vector<JudgedClaim>& claims)
{
    Json list = Json::array();
    for (const JudgedClaim& claim : claims)
        list.push_back(judgedJson(claim));
    return jsonText(list);
}

std::string questionsText(const std::vector<AnsweredQuestion>& answers, const std::vector<JudgedClaim>& verdicts,
                          const Device& device)
{
    std::string out = fmt::format("Deep questions of the course notes, with numbers of {}\n", printable(device.name));
    for (const AnsweredQuestion& answer : answers)
        out += "\n" + questionText(answer, verdictOn(answer, verdicts));
    return out;
}

std::string questionsDocument(const std::vector<AnsweredQuestion>& answers, const std::vector<JudgedClaim>& verdicts)
{
    Json list = Json::array();
    for (const AnsweredQuestion& answer : answers) {
        Json json = answeredJson(answer);
        json["verdict"] = verdictOn(answer, verdicts);
        list.push_back(std::move(json));
    }
    return jsonText(list);
}

} // namespace memscape

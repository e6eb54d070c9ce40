// SPDX-License-Identifier: Apache-2.0
// For issues, READMEs and lab books: everything that fits into text. Charts are left to the HTML.
#include "core/experiment/probed_links.h"
#include "core/report/memory_tables.h"
#include "core/report/overview.h"
#include "core/report/report.h"
#include "core/report/summary.h"

#include <cctype>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

std::string pairsText(const TextPairs& pairs)
{
    std::string out;
    for (const auto& [key, value] : pairs)
        out += fmt::format("- {}: {}\n", escapedForMarkdown(key), escapedForMarkdown(value));
    return out.empty() ? out : out + "\n";
}

std::string whyText(const Figure& figure)
{
    const Why& why = *figure.why;
    std::string out =
        fmt::format("### Why {} is {}\n\n", escapedForMarkdown(figure.label), escapedForMarkdown(figure.text()));
    out += escapedForMarkdown(why.formula) + "  \n" + escapedForMarkdown(why.with) + "\n\n";
    if (!why.terms.empty())
        out += markdownTable(termsTable(why)) + "\n";
    if (!why.source.empty())
        out += "Source: " + escapedForMarkdown(why.source) + "\n\n";
    if (!why.omits.empty()) {
        out += "Left out:\n\n";
        for (const std::string& sentence : why.omits)
            out += "- " + escapedForMarkdown(sentence) + "\n";
        out += "\n";
    }
    return out;
}

std::string claimsText(const std::vector<Claim>& claims)
{
    std::string out;
    for (const Claim& claim : claims)
        out +=
            fmt::format("- “{}” ({}): **{}** {}\n", escapedForMarkdown(claim.quote), escapedForMarkdown(claim.source),
                        escapedForMarkdown(claim.verdict), escapedForMarkdown(claim.ours));
    return out.empty() ? out : "### What textbooks say\n\n" + out + "\n";
}

/// The anchor that GitHub gives a heading: small letters, digits and dashes for spaces. Letters beyond
/// ASCII stay, signs like "·" go.
std::string anchorOf(std::string_view heading)
{
    std::string anchor;
    for (std::size_t i = 0; i < heading.size(); ++i) {
        const auto c = static_cast<unsigned char>(heading[i]);
        if (c == 0xC2 || c == 0xE2) // Latin signs, punctuation and arrows: two or three bytes
            i += c == 0xC2 ? 1 : 2;
        else if (c >= 0x80 || std::isalnum(c) || c == '-' || c == '_')
            anchor += static_cast<char>(std::tolower(c));
        else if (c == ' ')
            anchor += '-';
    }
    return anchor;
}

std::string overviewText(const std::vector<Record>& records)
{
    std::string out = "| record | verdict | median error | measurement |\n| --- | --- | --- | --- |\n";
    std::map<std::string, int> used{{"summary", 1}};
    for (const Record& record : records) {
        const RecordOverview one = overviewOf(record);
        std::string anchor = anchorOf(one.title);
        if (const int before = used[anchor]++; before > 0)
            anchor += fmt::format("-{}", before);
        std::string asked;
        for (const std::string& line : {one.question, one.claims})
            asked += line.empty() ? "" : ". " + escapedForMarkdown(line);
        out += fmt::format("| [{}](#{}){} | {} | {} | {} |\n", escapedForMarkdown(one.title), anchor, asked,
                           escapedForMarkdown(one.verdict), escapedForMarkdown(one.medianError),
                           escapedForMarkdown(one.grade));
    }
    return "## Summary\n\n" + out + "\n";
}

std::string recordText(const Record& record, const std::vector<Record>& records)
{
    std::string out = "## " + escapedForMarkdown(recordTitle(record)) + "\n\n";
    if (const Experiment* experiment = experimentOf(record))
        out += escapedForMarkdown(experiment->question()) + "\n\n";
    if (const std::string answer = answerText(record); !answer.empty())
        out += "**" + escapedForMarkdown(answer) + "**\n\n";
    if (!record.note.empty())
        out += "> " + escapedForMarkdown(record.note) + "\n\n";
    out += pairsText(parameterRows(record));
    out += "Device: " + escapedForMarkdown(basisText(record.device)) + "\n\n";
    if (const std::string grade = gradeText(record); !grade.empty())
        out += "Measured: " + escapedForMarkdown(grade) + "\n\n";
    out += markdownTable(figuresTable(record, baselineFor(record, records))) + "\n";
    if (const TextTable errors = errorsTable(record); !errors.empty())
        out += markdownTable(errors) + "\n";
    for (const std::string& gap : gapSentences(record))
        out += escapedForMarkdown(gap) + "\n\n";
    if (const std::string probed = probedText(record.measured); !probed.empty())
        out += escapedForMarkdown(probed) + "\n\n";
    if (const std::string verdict = verdictText(record); !verdict.empty())
        out += escapedForMarkdown(verdict) + "\n\n";
    for (const NamedTable& one : memoryTables(record))
        out += "### " + one.title + "\n\n" + markdownTable(one.table) + "\n";
    if (const Figure* figure = headlineFigure(record))
        out += whyText(*figure);
    for (const TextTable& table : seriesTables(record))
        out += "### Points\n\n" + markdownTable(table) + "\n";
    out += claimsText(claimsOf(record));
    const std::string provenance = pairsText(provenanceRows(record));
    return provenance.empty() ? out : out + "### Where this comes from\n\n" + provenance;
}

} // namespace

std::string reportMarkdown(const std::vector<Record>& records, const std::string& title)
{
    std::string out = "# " + escapedForMarkdown(title) + "\n\n";
    if (!records.empty())
        out += overviewText(records);
    for (const Record& record : records)
        out += recordText(record, records);
    if (records.empty())
        out += "There are no records in this report.\n";
    return out;
}

} // namespace memscape

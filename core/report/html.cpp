// SPDX-License-Identifier: Apache-2.0
// The report of records as one page: a summary with links, then each record.
#include "core/experiment/by_key.h"
#include "core/experiment/probed_links.h"
#include "core/report/html_page.h"
#include "core/report/memory_tables.h"
#include "core/report/overview.h"
#include "core/report/report.h"
#include "core/report/summary.h"
#include "core/report/svg_chart.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

std::string whyHtml(const Figure& figure, bool open)
{
    const Why& why = *figure.why;
    std::string inner;
    for (const std::string& line : {why.formula, why.with})
        if (!line.empty())
            inner += "<p><code>" + escapedForXml(line) + "</code></p>\n";
    if (!why.terms.empty())
        inner += htmlTable(termsTable(why));
    if (!why.source.empty())
        inner += htmlElement("p", "Source: " + why.source);
    if (!why.omits.empty()) {
        inner += "<p>Left out:</p>\n<ul>\n";
        for (const std::string& sentence : why.omits)
            inner += htmlElement("li", sentence);
        inner += "</ul>\n";
    }
    return htmlDetails(fmt::format("Why is {} {}?", figure.label, figure.text()), inner, open);
}

std::string whysHtml(const Record& record)
{
    const Figure* headline = headlineFigure(record);
    if (!headline)
        return {};
    std::string out = whyHtml(*headline, true);
    for (const Figure& figure : record.predicted->figures)
        if (figure.why && &figure != headline)
            out += whyHtml(figure, false);
    return "<h3>Why these numbers</h3>\n" + out;
}

bool drawable(const Series* series)
{
    for (const double y : series ? series->y : std::vector<double>())
        if (std::isfinite(y))
            return true;
    return false;
}

std::string figureHtml(const Series* predicted, const Series* measured, std::string_view caption)
{
    return "<figure>\n" + svgChart(chartOf(predicted, measured)) + std::string(caption) + "</figure>\n";
}

/// Two abreast where the page is wide enough.
std::string sideBySide(const std::string& figures)
{
    return figures.empty() ? figures : "<div class=\"charts\">\n" + figures + "</div>\n";
}

std::string chartsHtml(const Record& record)
{
    std::string out;
    const auto add = [&out](const Series* one, const Series* other) {
        if (drawable(one) || drawable(other))
            out += figureHtml(one, other, {});
    };
    const auto predicted = curvesOf(record.predicted), measured = curvesOf(record.measured);
    if (record.predicted)
        for (const Series& series : record.predicted->series)
            add(&series, measured.find(series.key));
    if (record.measured)
        for (const Series& series : record.measured->series)
            if (!predicted.find(series.key))
                add(nullptr, &series);
    return sideBySide(out);
}

std::string claimsHtml(const std::vector<Claim>& claims)
{
    std::string out;
    for (const Claim& claim : claims)
        out +=
            fmt::format("<li>“{}” <span class=\"dim\">({})</span><br><b>{}</b>: {}</li>\n", escapedForXml(claim.quote),
                        escapedForXml(claim.source), escapedForXml(claim.verdict), escapedForXml(claim.ours));
    return out.empty() ? out : "<h3>What textbooks say</h3>\n<ul>\n" + out + "</ul>\n";
}

std::string linkHtml(std::size_t index, std::string_view text)
{
    return fmt::format("<a href=\"#record-{}\">{}</a>", index + 1, escapedForXml(text));
}

/// The first page: the summary, with links to the rest.
std::string overviewHtml(const std::vector<Record>& records)
{
    std::string rows, charts;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const RecordOverview one = overviewOf(records[i]);
        rows += "<tr><td>" + linkHtml(i, one.title);
        for (const std::string& line : {one.question, one.claims})
            if (!line.empty())
                rows += "<br><span class=\"dim\">" + escapedForXml(line) + "</span>";
        rows += "</td>";
        for (const std::string& cell : {one.verdict, one.medianError, one.grade})
            rows += "<td>" + escapedForXml(cell) + "</td>";
        rows += "</tr>\n";
        const auto [predicted, measured] = headlineCurve(records[i]);
        if (predicted || measured)
            charts += figureHtml(predicted, measured, "<figcaption>" + linkHtml(i, one.title) + "</figcaption>\n");
    }
    return "<nav id=\"summary\">\n<h2>Summary</h2>\n<div class=\"scroll\"><table><thead><tr><th "
           "scope=\"col\">record</th>"
           "<th scope=\"col\">verdict</th><th scope=\"col\">median error</th><th scope=\"col\">measurement</th></tr>"
           "</thead><tbody>\n"
        + rows + "</tbody></table></div>\n" + sideBySide(charts) + "</nav>\n";
}

std::string recordHtml(const std::vector<Record>& records, std::size_t index)
{
    const Record& record = records[index];
    std::string out = fmt::format("<section id=\"record-{}\">\n", index + 1) + htmlElement("h2", recordTitle(record));
    if (const Experiment* experiment = experimentOf(record))
        out += "<p class=\"dim\">" + escapedForXml(experiment->question()) + "</p>\n";
    if (const std::string answer = answerText(record); !answer.empty())
        out += "<p><b>" + escapedForXml(answer) + "</b></p>\n";
    if (!record.note.empty())
        out += htmlElement("blockquote", record.note);
    TextPairs facts = namedParameterRows(record);
    const TextPairs all = parameterRows(record);
    const std::string others =
        all.size() > facts.size() ? htmlDetails("All parameters", htmlPairs(all)) : std::string();
    facts.emplace_back("device", basisText(record.device));
    if (const std::string grade = gradeText(record); !grade.empty())
        facts.emplace_back("measured", grade);
    out +=
        htmlPairs(facts) + others + htmlTable(figuresTable(record, baselineFor(record, records))) + chartsHtml(record);
    if (const TextTable errors = errorsTable(record); !errors.empty())
        out += "<h3>Prediction against measurement</h3>\n" + htmlTable(errors);
    for (const std::string& gap : gapSentences(record))
        out += htmlElement("p", gap);
    if (const std::string probed = probedText(record.measured); !probed.empty())
        out += htmlElement("p", probed);
    if (const std::string verdict = verdictText(record); !verdict.empty())
        out += htmlElement("p", verdict);
    for (const NamedTable& one : memoryTables(record))
        out += htmlElement("h3", one.title) + htmlTable(one.table);
    out += whysHtml(record) + claimsHtml(claimsOf(record));
    for (const TextTable& table : seriesTables(record))
        out += htmlDetails("Points", htmlTable(table));
    if (const TextPairs rows = provenanceRows(record); !rows.empty())
        out += htmlDetails("Where this comes from", htmlPairs(rows));
    return out + "</section>\n";
}

} // namespace

std::string reportHtml(const std::vector<Record>& records, const std::string& title)
{
    std::string out = "<p class=\"dim\">Predicted is blue and dashed, measured is orange dots with their band. "
                      "Errors are (predicted − measured) / measured.</p>\n";
    if (!records.empty())
        out += overviewHtml(records);
    for (std::size_t i = 0; i < records.size(); ++i)
        out += recordHtml(records, i);
    if (records.empty())
        out += "<p>There are no records in this report.</p>\n";
    return htmlPage(title, out);
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// One file that can be mailed, printed or put on a server: styles and charts inside, no script, and a
// content security policy that forbids what a hostile record might smuggle past the escaping.
#include "core/experiment/by_key.h"
#include "core/report/memory_tables.h"
#include "core/report/overview.h"
#include "core/report/report.h"
#include "core/report/summary.h"
#include "core/report/svg_chart.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

// Presentation attributes of the charts are light; rules here win over them in a dark theme.
constexpr std::string_view styleSheet = R"css(
:root { color-scheme: light dark; --page: #ffffff; --card: #f6f7f9; --ink: #1f2328; --dim: #59636e;
  --line: #d5d9de; --predicted: #0072b2; --measured: #8f5700; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0f1216; --card: #1d2128; --ink: #e4e7eb; --dim: #a3acb8; --line: #373d47;
    --predicted: #56b4e9; --measured: #e69f00; }
  svg .grid { stroke: #2d333c; } svg .frame { stroke: #a3acb8; }
  svg .axis, svg .legend, svg .title { fill: #e4e7eb; }
  svg path.predicted { stroke: #56b4e9; } svg circle.measured { fill: #e69f00; }
  svg .band { fill: #e69f00; stroke: #e69f00; } }
@media print { details { break-inside: avoid; } section { break-before: page; } }
body { margin: 0 auto; max-width: 92rem; padding: 1.5rem; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin: 2.5rem 0 .2rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p, ul, blockquote { max-width: 62rem; } p { margin: .4rem 0; } a { color: var(--predicted); } .dim { color: var(--dim); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: bottom; } th { font-weight: 600; } .number { text-align: right; }
td { overflow-wrap: normal; } .scroll { overflow-x: auto; }
th.predicted, td.predicted { color: var(--predicted); }
th.measured, td.measured { color: var(--measured); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr)); gap: 0 1.5rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; max-width: 56rem; height: auto; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .5rem .9rem; margin: .5rem 0; } summary { cursor: pointer; font-weight: 600; }
code { font: .95em/1.5 "DejaVu Sans Mono", monospace; } ul { padding-left: 1.2rem; }
blockquote { border-left: 3px solid var(--line); margin: .8rem 0; padding-left: .8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0; }
dt { color: var(--dim); } dd { margin: 0; }
)css";

std::string element(std::string_view tag, std::string_view text)
{
    return fmt::format("<{0}>{1}</{0}>\n", tag, escapedForXml(text));
}

/// Columns named predicted and measured get those colours, here as everywhere.
std::string classesOf(const TextColumn& column)
{
    std::string classes = column.number ? "number" : "";
    for (const char* side : {"predicted", "measured"})
        if (column.title.ends_with(side))
            classes += classes.empty() ? side : std::string(" ") + side;
    return classes.empty() ? classes : " class=\"" + classes + "\"";
}

std::string tableHtml(const TextTable& table)
{
    std::string out = "<div class=\"scroll\"><table><thead><tr>";
    for (const TextColumn& column : table.columns)
        out += fmt::format("<th{} scope=\"col\">{}</th>", classesOf(column), escapedForXml(column.title));
    out += "</tr></thead><tbody>\n";
    for (const auto& row : table.rows) {
        out += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i)
            out += fmt::format("<td{}>{}</td>", classesOf(table.columns[i]), escapedForXml(row[i]));
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
}

std::string pairsHtml(const TextPairs& pairs)
{
    std::string out = "<dl>\n";
    for (const auto& [key, value] : pairs)
        out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escapedForXml(key), escapedForXml(value));
    return out + "</dl>\n";
}

std::string details(std::string_view summary, std::string_view inner, bool open = false)
{
    return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "", escapedForXml(summary),
                       inner);
}

std::string whyHtml(const Figure& figure, bool open)
{
    const Why& why = *figure.why;
    std::string inner;
    for (const std::string& line : {why.formula, why.with})
        if (!line.empty())
            inner += "<p><code>" + escapedForXml(line) + "</code></p>\n";
    if (!why.terms.empty())
        inner += tableHtml(termsTable(why));
    if (!why.source.empty())
        inner += element("p", "Source: " + why.source);
    if (!why.omits.empty()) {
        inner += "<p>Left out:</p>\n<ul>\n";
        for (const std::string& sentence : why.omits)
            inner += element("li", sentence);
        inner += "</ul>\n";
    }
    return details(fmt::format("Why is {} {}?", figure.label, figure.text()), inner, open);
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
    std::string out = fmt::format("<section id=\"record-{}\">\n", index + 1) + element("h2", recordTitle(record));
    if (const Experiment* experiment = experimentOf(record))
        out += "<p class=\"dim\">" + escapedForXml(experiment->question()) + "</p>\n";
    if (const std::string answer = answerText(record); !answer.empty())
        out += "<p><b>" + escapedForXml(answer) + "</b></p>\n";
    if (!record.note.empty())
        out += element("blockquote", record.note);
    TextPairs facts = parameterRows(record);
    facts.emplace_back("device", basisText(record.device));
    if (const std::string grade = gradeText(record); !grade.empty())
        facts.emplace_back("measured", grade);
    out += pairsHtml(facts) + tableHtml(figuresTable(record, baselineFor(record, records))) + chartsHtml(record);
    if (const TextTable errors = errorsTable(record); !errors.empty())
        out += "<h3>Prediction against measurement</h3>\n" + tableHtml(errors);
    if (const std::string verdict = verdictText(record); !verdict.empty())
        out += element("p", verdict);
    for (const NamedTable& one : memoryTables(record))
        out += element("h3", one.title) + tableHtml(one.table);
    out += whysHtml(record) + claimsHtml(claimsOf(record));
    for (const TextTable& table : seriesTables(record))
        out += details("Points", tableHtml(table));
    if (const TextPairs rows = provenanceRows(record); !rows.empty())
        out += details("Where this comes from", pairsHtml(rows));
    return out + "</section>\n";
}

} // namespace

std::string reportHtml(const std::vector<Record>& records, const std::string& title)
{
    std::string out =
        fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" "
                    "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta name=\"generator\" content=\"memscape {0}\">\n<title>{1}</title>\n"
                    "<style>{2}</style>\n</head>\n<body>\n<h1>{1}</h1>\n"
                    "<p class=\"dim\">Predicted is blue and dashed, measured is orange dots with their band. "
                    "Errors are (predicted − measured) / measured.</p>\n",
                    programVersion(), escapedForXml(title), styleSheet);
    if (!records.empty())
        out += overviewHtml(records);
    for (std::size_t i = 0; i < records.size(); ++i)
        out += recordHtml(records, i);
    if (records.empty())
        out += "<p>There are no records in this report.</p>\n";
    return out + "</body>\n</html>\n";
}

} // namespace memscape

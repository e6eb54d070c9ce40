// SPDX-License-Identifier: Apache-2.0
#include "core/report/html_page.h"

#include "core/experiment/record.h"
#include "core/report/svg_chart.h"

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

/// Columns named predicted and measured get those colours, here as everywhere.
std::string classesOf(const TextColumn& column)
{
    std::string classes = column.number ? "number" : "";
    for (const char* side : {"predicted", "measured"})
        if (column.title.ends_with(side))
            classes += classes.empty() ? side : std::string(" ") + side;
    return classes.empty() ? classes : " class=\"" + classes + "\"";
}

} // namespace

std::string htmlElement(std::string_view tag, std::string_view text)
{
    return fmt::format("<{0}>{1}</{0}>\n", tag, escapedForXml(text));
}

std::string htmlTable(const TextTable& table)
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

std::string htmlPairs(const TextPairs& pairs)
{
    std::string out = "<dl>\n";
    for (const auto& [key, value] : pairs)
        out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escapedForXml(key), escapedForXml(value));
    return out + "</dl>\n";
}

std::string htmlDetails(std::string_view summary, std::string_view inner, bool open)
{
    return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "", escapedForXml(summary),
                       inner);
}

std::string htmlPage(const std::string& title, std::string_view body)
{
    return fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" "
                       "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"generator\" content=\"memscape {0}\">\n<title>{1}</title>\n"
                       "<style>{2}</style>\n</head>\n<body>\n<h1>{1}</h1>\n{3}</body>\n</html>\n",
                       programVersion(), escapedForXml(title), styleSheet, body);
}

} // namespace memscape

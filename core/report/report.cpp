// SPDX-License-Identifier: Apache-2.0
#include "core/report/report.h"

#include "core/base/text.h"
#include "core/report/overview.h"
#include "core/report/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

Result<ReportFormat> reportFormatFromText(std::string_view text)
{
    const std::string word = lowered(text);
    if (word == "html")
        return ReportFormat::Html;
    if (word == "md" || word == "markdown")
        return ReportFormat::Markdown;
    if (word == "text" || word == "txt")
        return ReportFormat::Text;
    if (word == "csv")
        return ReportFormat::Csv;
    if (word == "json")
        return ReportFormat::JsonText;
    return fail("report.format", fmt::format("\"{}\" is not a report format", quotedForMessage(text)),
                didYouMean(text, {"html", "md", "text", "csv", "json"}));
}

std::string report(ReportFormat format, const std::vector<Record>& records, const std::string& title)
{
    switch (format) {
    case ReportFormat::Html: return reportHtml(records, title);
    case ReportFormat::Markdown: return reportMarkdown(records, title);
    case ReportFormat::Text: return reportText(records, title);
    case ReportFormat::Csv: return reportCsv(records);
    case ReportFormat::JsonText: return reportJson(records, title);
    }
    return {};
}

std::string reportText(const std::vector<Record>& records, const std::string& title)
{
    std::string out = printable(title) + "\n";
    for (const Record& record : records) {
        const RecordOverview one = overviewOf(record);
        out += "\n" + printable(one.title) + "\n";
        for (const auto& [name, text] : {std::pair("asked", one.question),
                                         {"verdict", one.verdict},
                                         {"error", one.medianError},
                                         {"grade", one.grade},
                                         {"claims", one.claims}}) {
            if (!text.empty())
                out += fmt::format("  {:8} {}\n", name, printable(text));
        }
    }
    return records.empty() ? out + "There are no records in this report.\n" : out;
}

std::string reportJson(const std::vector<Record>& records, const std::string& title)
{
    if (records.size() == 1)
        return jsonText(recordToJson(records.front()));
    Study study;
    study.title = title;
    study.records = records;
    return jsonText(studyToJson(study));
}

} // namespace memscape

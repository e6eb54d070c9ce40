// SPDX-License-Identifier: Apache-2.0
#include "core/report/report.h"

#include "core/base/text.h"

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
    if (word == "csv")
        return ReportFormat::Csv;
    if (word == "json")
        return ReportFormat::JsonText;
    return fail("report.format",
                fmt::format("\"{}\" is not a report format", quotedForMessage(text)),
                didYouMean(text, {"html", "md", "csv", "json"}));
}

std::string report(ReportFormat format, const std::vector<Record>& records, const std::string& title)
{
    switch (format) {
    case ReportFormat::Html: return reportHtml(records, title);
    case ReportFormat::Markdown: return reportMarkdown(records, title);
    case ReportFormat::Csv: return reportCsv(records);
    case ReportFormat::JsonText: return reportJson(records, title);
    }
    return {};
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

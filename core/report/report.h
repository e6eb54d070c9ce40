// SPDX-License-Identifier: Apache-2.0
// Reports: records in, one text out. The command line, the window's export and File → Export all call
// these, so a number is the same to the last digit wherever it is written. Nothing here reads a clock
// or a file; text from records is foreign text and is escaped for the format it goes into.
#pragma once

#include "core/experiment/record.h"

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

enum class ReportFormat { Html, Markdown, Text, Csv, JsonText };

/// "html", "md", "text", "csv", "json". Errors: report.format with near names.
Result<ReportFormat> reportFormatFromText(std::string_view text);

/// Any of the five below.
std::string report(ReportFormat format, const std::vector<Record>& records, const std::string& title);

/// One self-contained page: a summary with links (what was asked, the verdict, the median error, the
/// grade and the curve that each record is about), then of each record figures with their error, why, charts as inline
/// SVG, the points as a table, claims, provenance. Light and dark by the reader's preference; no script, nothing
/// fetched.
std::string reportHtml(const std::vector<Record>& records, const std::string& title);

/// The same as GitHub-flavoured Markdown, without the charts.
std::string reportMarkdown(const std::vector<Record>& records, const std::string& title);

/// The summary alone, for a terminal.
std::string reportText(const std::vector<Record>& records, const std::string& title);

struct CsvOptions
{
    bool comments = false; ///< "# …" lines on top with experiment, device and units
};

/// RFC 4180, shortest round-trip numbers in SI base units, an empty field where there is no value.
/// Columns: the swept parameter, then `KEY_predicted`, `KEY_measured`, `KEY_low`, `KEY_high` of every
/// series. Several records make one table with the record's name in the first column.
std::string reportCsv(const std::vector<Record>& records, const CsvOptions& options = {});

/// One record as its own document; several as a study of that title.
std::string reportJson(const std::vector<Record>& records, const std::string& title);

} // namespace memscape

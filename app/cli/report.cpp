// SPDX-License-Identifier: Apache-2.0
#include "core/report/report.h"
#include "core/experiment/document.h"
#include "core/experiment/study_size.h"

#include "app/cli/commands.h"
#include "app/cli/output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

std::string nameOf(const std::string& path)
{
    return path == "-" ? "standard input" : path;
}

Result<Study> studyOf(const std::string& path)
{
    MEMSCAPE_TRY(text, readText(path));
    MEMSCAPE_TRY(document, Document::parse(std::move(text)));
    MEMSCAPE_TRY(format, document.format());
    if (format == "memscape-study") {
        MEMSCAPE_TRY(study, document.study());
        if (const auto heavy = heavyStudyNote(document.text(), study))
            note(fmt::format("{}: {}", nameOf(path), heavy->text()));
        return study;
    }
    if (format != "memscape-record")
        return fail("document.format", fmt::format("this is a {}, not a record or a study", format),
                    "memscape-cli check prints the type of a file");
    MEMSCAPE_TRY(record, document.record());
    Study study;
    study.records.push_back(std::move(record));
    return study;
}

/// Errors of a document name the file, then the place in it.
Error inFile(Error error, const std::string& path)
{
    if (error.code.starts_with("file."))
        return error; // its message has the path
    error.place = error.place.empty() ? nameOf(path) : nameOf(path) + ": " + error.place;
    return error;
}

} // namespace

int runReport(const Arguments& arguments)
{
    const auto format = reportFormatFromText(arguments.format);
    if (!format)
        return refused(format.error());
    std::string title = arguments.title;
    std::vector<Record> records;
    for (const std::string& path : arguments.files) {
        auto study = studyOf(path);
        if (!study)
            return refused(inFile(study.error(), path));
        if (title.empty() && arguments.files.size() == 1)
            title = study->title;
        std::move(study->records.begin(), study->records.end(), std::back_inserter(records));
    }
    if (records.empty())
        return refused({"report.empty", "there is no record in these files", {}, "measure something first"});
    if (title.empty())
        title = "Memscape report";
    const std::string text = *format == ReportFormat::Csv ? reportCsv(records, {arguments.comments})
                                                          : memscape::report(*format, records, title);
    const std::string output = arguments.output.empty() ? "-" : arguments.output;
    return deliver(output, text, false, 0);
}

} // namespace memscape::cli

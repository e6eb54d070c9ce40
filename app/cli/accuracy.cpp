// SPDX-License-Identifier: Apache-2.0
// How far predictions are from what others published: the tables that ship with the program, or those of a user;
// and what other tools say of the same rows.
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/report/published_report.h"

namespace memscape::cli {

namespace {

Result<void> printAccuracy(const Arguments& arguments)
{
    std::vector<std::filesystem::path> files(arguments.files.begin(), arguments.files.end());
    if (files.empty())
        MEMSCAPE_SET(files, publishedFiles());
    std::vector<PublishedRow> rows;
    for (const auto& file : files) {
        MEMSCAPE_TRY(more, readPublished(file));
        rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    MEMSCAPE_TRY(outcomes, predictPublished(std::move(rows)));
    MEMSCAPE_TRY(tools, readToolEstimates());
    printOut(arguments.json ? publishedDocument(outcomes, tools) : publishedText(outcomes, tools, arguments.everyRow));
    return {};
}

} // namespace

int runAccuracy(const Arguments& arguments)
{
    if (const auto printed = printAccuracy(arguments); !printed)
        return refused(printed.error());
    return 0;
}

} // namespace memscape::cli

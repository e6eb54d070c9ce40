// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/documents.h"
#include "app/cli/output.h"
#include "app/cli/snapshot.h"
#include "core/report/text_table.h"
#include "core/snapshot/snapshot_reader.h"

namespace memscape::cli {

namespace {

/// A snapshot may be larger than any text: it is read from the file.
Result<std::string> describeFile(const std::string& path, bool& isNamed)
{
    if (isPickleFile(path)) {
        isNamed = false; // its errors name the file
        MEMSCAPE_TRY(snapshot, readSnapshot(path));
        return describeSnapshot(snapshot);
    }
    const auto text = readText(path);
    isNamed = text.has_value();
    return text ? describeDocument(*text) : tl::unexpected(text.error());
}

} // namespace

int runCheck(const Arguments& arguments)
{
    int code = 0;
    for (const std::string& path : arguments.files) {
        const std::string name = path == "-" ? "standard input" : path;
        bool isNamed = true;
        const auto what = describeFile(path, isNamed);
        if (what) {
            printOut(printable(name + ": " + *what + ": valid") + "\n");
            continue;
        }
        code = static_cast<int>(ExitCode::BadInput);
        if (isNamed) // else the message names the file itself
            note(name + ": " + what.error().text());
        else
            complain(what.error());
    }
    return code;
}

} // namespace memscape::cli

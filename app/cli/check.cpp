// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/documents.h"
#include "app/cli/output.h"
#include "core/report/text_table.h"

namespace memscape::cli {

int runCheck(const Arguments& arguments)
{
    int code = 0;
    for (const std::string& path : arguments.files) {
        const std::string name = path == "-" ? "standard input" : path;
        const auto text = readText(path);
        const auto what = text ? describeDocument(*text) : Result<std::string>(tl::unexpected(text.error()));
        if (what) {
            printOut(printable(name + ": " + *what + ": valid") + "\n");
            continue;
        }
        code = static_cast<int>(ExitCode::BadInput);
        if (text) // else the message names the file itself
            note(name + ": " + what.error().text());
        else
            complain(what.error());
    }
    return code;
}

} // namespace memscape::cli

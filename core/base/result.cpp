// SPDX-License-Identifier: Apache-2.0
#include "core/base/result.h"

namespace memscape {

std::string Error::text() const
{
    std::string all = place.empty() ? message : place + ": " + message;
    if (!hint.empty())
        all += " (" + hint + ")";
    return all;
}

ExitCode exitCodeFor(const Error& error)
{
    if (error.code == "run.cancelled")
        return ExitCode::Interrupted;
    if (error.code.starts_with("device.") || error.code == "run.skipped")
        return ExitCode::NoDevice;
    if (error.code.starts_with("run.") || error.code.starts_with("check."))
        return ExitCode::Failed;
    return ExitCode::BadInput;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Which Python measures, and which PyTorch it has. Nothing is imported to find out: `memscape_probe facts` looks for
// torch's files, in a child process with a time limit, so that a Python that hangs costs a few seconds and no more.
#pragma once

#include "kernels/worker/child_process.h"

#include <filesystem>
#include <string>

namespace memscape {

/// MEMSCAPE_PYTHON, else python3 of PATH. `--python` of the command line sets the variable.
std::string chosenPython();

/// The folder that holds the package memscape_probe: beside the resources when installed, else in the source tree.
std::filesystem::path probeFolder();

struct PythonTorch
{
    std::string python;  ///< as chosen: a path, or a name in PATH
    std::string version; ///< of Python: "3.11.2"
    std::string torch;   ///< "2.9.1+cpu"
    bool hasCuda = false;
};

/// Errors: run.skipped with the remedy: no such program, no Python, no torch, a torch that is too old, an answer that
/// does not come within `seconds`, a probe of another version.
Result<PythonTorch> findTorch(const std::string& python, double seconds);

/// `python -m memscape_probe COMMAND`, with our package before others.
ChildCommand probeCommand(const std::string& python, const std::string& command);

} // namespace memscape

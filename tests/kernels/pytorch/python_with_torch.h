// SPDX-License-Identifier: Apache-2.0
// The first Python of this machine that has PyTorch: the one that is chosen, that of packaging/run --with-pytorch,
// Debian's.
#pragma once

#include "kernels/pytorch/python_torch.h"

#include <QFileInfo>
#include <QString>

namespace memscape::test {

/// Empty where there is none.
inline const PythonTorch& pythonWithTorch()
{
    static const PythonTorch found = [] {
        for (const std::string& python : {qEnvironmentVariable("MEMSCAPE_PYTHON").toStdString(),
                                          std::string(SOURCE_FOLDER) + "/build/pytorch/bin/python",
                                          std::string("/usr/bin/python3"), std::string("python3")}) {
            if (python.empty())
                continue;
            if (const auto torch = findTorch(python, 20))
                return *torch;
        }
        return PythonTorch();
    }();
    return found;
}

/// Its path.
inline QString torchPython()
{
    return QString::fromStdString(pythonWithTorch().python);
}

constexpr const char* noTorchHere =
    "no Python here has PyTorch: apt install python3-torch, or name one in MEMSCAPE_PYTHON";

} // namespace memscape::test

// SPDX-License-Identifier: Apache-2.0
// A small lab on disk, made by `lab new`, whose files a test changes.
#pragma once

#include "core/base/file.h"
#include "core/lab/lab_authoring.h"

#include <QTemporaryDir>

namespace memscape::test {

class LabFolder
{
public:
    LabFolder()
    {
        const auto made = writeNewLab(path(), "A small lab");
        Q_ASSERT(made);
        json = *parseJson(*readFile(path() / "lab.json"));
    }

    std::filesystem::path path() const { return std::filesystem::path(m_folder.path().toStdString()) / "small-lab"; }
    /// Writes `json` and reads the lab.
    Result<std::shared_ptr<const Lab>> read() const
    {
        write("lab.json", jsonText(json));
        return readLab(path());
    }
    void write(const std::string& file, const std::string& text) const
    {
        std::filesystem::create_directories((path() / file).parent_path());
        const auto written = writeFileAtomically(path() / file, text);
        Q_ASSERT(written);
    }

    Json json;

private:
    QTemporaryDir m_folder;
};

} // namespace memscape::test

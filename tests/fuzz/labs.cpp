// SPDX-License-Identifier: Apache-2.0
// lab.json in the folder of a small lab. Predictions are not made: a lab may ask for ones that take long.
#include "core/lab/lab_authoring.h"
#include "tests/fuzz/target.h"

#include <fstream>

#include <unistd.h>

using namespace memscape;

namespace {

/// A lab on disk whose lab.json is replaced; removed at the end.
struct FuzzedLab
{
    FuzzedLab()
    {
        std::string name = (std::filesystem::temp_directory_path() / "memscape-fuzz-XXXXXX").string();
        fuzz::promise(::mkdtemp(name.data()) != nullptr, "there is a temporary folder");
        root = name;
        fuzz::promise(writeNewLab(root / "small", "A small lab").has_value(), "a new lab is written");
    }
    ~FuzzedLab()
    {
        std::error_code problem;
        std::filesystem::remove_all(root, problem);
    }
    std::filesystem::path root;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const FuzzedLab folder;
    std::ofstream(folder.root / "small/lab.json", std::ios::binary) << fuzz::text(data, size);
    const auto lab = readLab(folder.root / "small");
    fuzz::errorIsClear(lab);
    if (!lab)
        return 0;
    LabAttempt attempt(*lab, "Ada", "2026-01-02T03:04:05Z");
    for (const LabStep& step : (*lab)->steps) {
        for (const LabQuestion& question : step.questions)
            for (const char* given : {"1", "\"a\"", "[1, 2]", "{}"})
                fuzz::errorIsClear(attempt.answer(step.id, question.key, *parseJson(given)));
        fuzz::errorIsClear(attempt.hint(step.id));
        fuzz::errorIsClear(attempt.lock(step.id));
    }
    const std::string written = jsonText(attempt.toJson());
    const auto again = LabAttempt::parse(*lab, written);
    fuzz::promise(again && jsonText(again->toJson()) == written, "answers are read back");
    return 0;
}

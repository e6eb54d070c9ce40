// SPDX-License-Identifier: Apache-2.0
#include "app/cli/answers.h"

#include "app/cli/output.h"
#include "core/base/file.h"
#include "core/lab/lab_report_page.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace memscape::cli {

namespace {

namespace fs = std::filesystem;

/// Labs and their predictions, read and made once for a class.
struct LabShelf
{
    std::string folder; ///< of the lab; empty: the answers name it
    std::map<std::string, std::shared_ptr<const Lab>> labs;
    LabPredictions predictions;
};

/// A lab without checks (a pack for students) gives a page without points.
Result<std::string> pageOfAnswers(const std::string& file, LabShelf& shelf)
{
    MEMSCAPE_TRY(text, readText(file));
    MEMSCAPE_TRY(id, labIdOfAnswers(text));
    if (!shelf.labs.contains(id)) {
        auto lab = findLab(shelf.folder.empty() ? id : shelf.folder);
        if (!lab && lab.error().code != "lab.unknown" && lab.error().code != "lab.missing")
            return fail("lab.broken", lab.error().message, lab.error().hint, lab.error().place);
        if (!lab)
            return tl::unexpected(lab.error());
        shelf.labs.emplace(id, std::move(*lab));
    }
    MEMSCAPE_TRY(attempt, LabAttempt::parse(shelf.labs.at(id), text));
    auto grade = gradeLab(attempt, shelf.predictions);
    if (!grade && grade.error().code == "lab.empty")
        grade = LabGrade();
    if (!grade)
        return tl::unexpected(grade.error());
    return labAnswersHtml(attempt, *grade, shelf.predictions);
}

/// pages/group/ada.html of submissions/group/ada.mlab.
Result<std::string> pageFile(const std::string& folder, const std::string& from, const std::string& file)
{
    std::error_code problem;
    fs::path inside = fs::relative(file, from, problem);
    const fs::path page = fs::path(folder) / inside.replace_extension(".html");
    fs::create_directories(page.parent_path(), problem);
    if (problem)
        return fail("file.write",
                    fmt::format("cannot make the folder {}: {}", page.parent_path().string(), problem.message()),
                    "choose a place you may write to");
    return page.string();
}

} // namespace

Result<std::vector<std::string>> answerFiles(const std::vector<std::string>& names)
{
    std::vector<std::string> files;
    for (const std::string& name : names) {
        std::error_code problem;
        if (!fs::is_directory(name, problem)) {
            files.push_back(name);
            continue;
        }
        std::vector<std::string> inside;
        for (fs::recursive_directory_iterator at(name, problem), end; !problem && at != end; at.increment(problem))
            if (at->path().extension() == ".mlab" && at->is_regular_file(problem))
                inside.push_back(at->path().string());
        if (inside.empty())
            return fail("usage", fmt::format("there are no answers (*.mlab) in {}", name),
                        "name the folder that holds them");
        std::ranges::sort(inside);
        files.insert(files.end(), inside.begin(), inside.end());
    }
    return files;
}

Result<std::string> labIdOfAnswers(const std::string& text)
{
    MEMSCAPE_TRY(json, parseJson(text));
    return JsonReader(json).string("lab");
}

int reportAnswers(const Arguments& arguments)
{
    const std::string& name = arguments.files.front();
    std::error_code problem;
    LabShelf shelf{arguments.labFolder, {}, {}};
    if (!fs::is_directory(name, problem)) {
        if (const auto fits = writable(arguments.output); !fits)
            return refused(fits.error());
        const auto page = pageOfAnswers(name, shelf);
        if (!page && page.error().code == "lab.broken") {
            complain(page.error());
            return brokenLab;
        }
        if (!page)
            return refused(page.error());
        return deliver(arguments.output.empty() ? "-" : arguments.output, *page, false, 0);
    }
    const auto files = answerFiles({name});
    if (!files)
        return refused(files.error());
    if (arguments.output.empty() || arguments.output == "-")
        return refused(
            {"usage", "the pages of a folder need a folder", {}, "memscape-cli lab report submissions/ -o pages/"});
    int code = 0;
    for (const std::string& file : *files) {
        const auto page = pageOfAnswers(file, shelf);
        const auto path = page ? pageFile(arguments.output, name, file) : tl::unexpected(page.error());
        if (!path) {
            note(fmt::format("{}: {}", file, path.error().text()));
            code = static_cast<int>(ExitCode::Failed);
            continue;
        }
        if (const int written = deliver(*path, *page, false, 0); written != 0)
            return written;
    }
    return code;
}

} // namespace memscape::cli

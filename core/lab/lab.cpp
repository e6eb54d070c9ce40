// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"
#include "core/lab/lab_hash.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> stepKindWords{"read", "predict", "measure", "explain", "tune", "fix"};
constexpr std::array<std::string_view, 6> questionKindWords{"number", "choice", "ranking",
                                                            "curve",  "text",   "parameters"};
constexpr std::array<std::string_view, 7> checkKindWords{"equals",         "within",       "one_of",    "order",
                                                         "ratio_at_least", "model_agrees", "reproduces"};

/// The ids of order.json, in which the shipped labs are taught.
std::vector<std::string> taughtOrder(const fs::path& folder)
{
    std::vector<std::string> ids;
    const auto text = readFile(folder / "order.json", labFileLimit);
    const auto json = text ? parseJson(*text) : tl::unexpected(text.error());
    if (json && json->is_array())
        for (const Json& one : *json)
            if (one.is_string())
                ids.push_back(one.get<std::string>());
    return ids;
}

} // namespace

std::string_view labStepKindText(LabStepKind kind)
{
    return stepKindWords[std::size_t(kind)];
}
std::string_view labQuestionKindText(LabQuestionKind kind)
{
    return questionKindWords[std::size_t(kind)];
}
std::string_view labCheckKindText(LabCheckKind kind)
{
    return checkKindWords[std::size_t(kind)];
}

double LabStep::points() const
{
    double sum = 0;
    for (const LabCheck& check : checks)
        sum += check.points;
    for (const LabQuestion& question : questions)
        sum += question.points;
    return sum;
}

const LabStep* Lab::step(std::string_view wanted) const
{
    const auto found = std::ranges::find(steps, wanted, &LabStep::id);
    return found == steps.end() ? nullptr : &*found;
}

const LabQuestion* Lab::question(std::string_view key) const
{
    for (const LabStep& one : steps)
        for (const LabQuestion& question : one.questions)
            if (question.key == key)
                return &question;
    return nullptr;
}

const LabStep* Lab::stepOf(const LabQuestion& question) const
{
    for (const LabStep& one : steps)
        if (!one.questions.empty() && &question >= &one.questions.front() && &question <= &one.questions.back())
            return &one;
    return nullptr;
}

std::size_t Lab::checkCount() const
{
    std::size_t count = 0;
    for (const LabStep& one : steps)
        count += one.checks.size();
    return count;
}

double Lab::byPerson() const
{
    double sum = 0;
    for (const LabStep& one : steps)
        for (const LabQuestion& question : one.questions)
            sum += question.points;
    return sum;
}

std::size_t labVariant(const Lab& lab, std::string_view student)
{
    if (lab.variants.size() < 2)
        return 0;
    return std::size_t(labHash(lab.id + "\n" + lowered(trimmed(student))) % lab.variants.size());
}

std::vector<fs::path> labFolders()
{
    const fs::path root = resourcesFolder() / "labs";
    std::vector<fs::path> folders;
    std::error_code problem;
    for (const fs::path& entry : entriesOf(root))
        if (fs::exists(entry / "lab.json", problem))
            folders.push_back(entry);
    const auto order = taughtOrder(root);
    const auto place = [&](const fs::path& path) {
        return std::pair(std::ranges::find(order, path.filename().string()), path.filename().string());
    };
    std::ranges::sort(folders, [&](const fs::path& a, const fs::path& b) { return place(a) < place(b); });
    return folders;
}

Result<std::shared_ptr<const Lab>> findLab(const std::string& idOrFolder)
{
    std::error_code problem;
    const bool isPath =
        idOrFolder.find('/') != std::string::npos || fs::exists(fs::path(idOrFolder) / "lab.json", problem);
    if (isPath)
        return readLab(idOrFolder);
    std::vector<std::string> ids;
    for (const fs::path& folder : labFolders()) {
        ids.push_back(folder.filename().string());
        if (ids.back() == idOrFolder)
            return readLab(folder);
    }
    return fail("lab.unknown", fmt::format("there is no lab \"{}\"", quotedForMessage(idOrFolder)),
                ids.empty() ? "name a folder that holds a lab.json" : didYouMean(idOrFolder, ids));
}

Json labListJson(const std::vector<std::shared_ptr<const Lab>>& labs)
{
    Json list = Json::array();
    for (const auto& lab : labs)
        list.push_back(
            {{"id", lab->id},
             {"title", lab->title},
             {"minutes", lab->minutes},
             {"needs", {{"gpu", lab->needsGpu}}},
             {"points", lab->points == std::floor(lab->points) ? Json(std::int64_t(lab->points)) : Json(lab->points)}});
    return list;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// A lab's folder: lab.json, its steps' texts, the recorded runs and the solution.
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/lab/lab.h"
#include "core/lab/lab_hash.h"
#include "core/lab/lab_keys.h"
#include "core/lab/lab_rules.h"
#include "core/lab/lab_step_reader.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

Result<void> readVariants(const JsonReader& reader, Lab& lab)
{
    MEMSCAPE_TRY(rows, labItems(reader, "variants", 1000));
    for (const JsonReader& row : rows) {
        MEMSCAPE_TRY(members, row.members());
        lab.variants.emplace_back();
        for (const auto& [key, node] : members) {
            MEMSCAPE_TRY(text, labText(row, key));
            lab.variants.back().emplace_back(key, text);
        }
        const auto keys = [](const auto& texts) {
            std::vector<std::string> all;
            for (const auto& one : texts)
                all.push_back(one.first);
            std::ranges::sort(all);
            return all;
        };
        if (keys(lab.variants.back()) != keys(lab.variants.front()))
            return fail("lab.key", "every variant has the keys of the first", "students differ in values alone",
                        row.path());
    }
    return {};
}

Result<Lab> labFromJson(const Json& json, const fs::path& folder)
{
    const JsonReader reader(json);
    MEMSCAPE_TRY(format, reader.string("format"));
    if (format != "memscape-lab")
        return fail("lab.format", fmt::format("this is a {}, not a lab", quotedForMessage(format)),
                    "a lab.json begins with {\"format\": \"memscape-lab\", \"version\": 1}", "format");
    MEMSCAPE_TRY(version, reader.integer("version", 0));
    if (version > labVersion)
        return fail("document.newer",
                    fmt::format("version {} is newer than this program reads (version {})", version, labVersion),
                    "update Memscape to open it", "version");
    if (version < 1)
        return fail("lab.format", "a lab says its version", "add \"version\": 1", "version");
    MEMSCAPE_CHECK(onlyLabKeys(reader,
                               {"format", "version", "id", "title", "summary", "minutes", "level", "needs", "points",
                                "variants", "predictions", "values", "steps", "student_pack", "hash"}));
    Lab lab;
    lab.folder = folder;
    MEMSCAPE_SET(lab.id, reader.string("id"));
    MEMSCAPE_SET(lab.title, reader.string("title"));
    MEMSCAPE_SET(lab.summary, reader.string("summary", ""));
    MEMSCAPE_SET(lab.level, reader.string("level", "intro"));
    MEMSCAPE_TRY(minutes, labAmount(reader, "minutes", 45, 1));
    lab.minutes = int(minutes);
    MEMSCAPE_SET(lab.points, labAmount(reader, "points", 0));
    MEMSCAPE_SET(lab.isStudentPack, reader.boolean("student_pack", false));
    MEMSCAPE_TRY(hash, reader.string("hash", ""));
    lab.hash = lab.isStudentPack ? hash : std::string();
    const bool isPlain = std::ranges::all_of(
        lab.id, [](unsigned char one) { return std::islower(one) != 0 || std::isdigit(one) != 0 || one == '-'; });
    if (lab.id.empty() || lab.id.size() > 60 || !isPlain)
        return fail("lab.value", fmt::format("\"{}\" is no id of a lab", quotedForMessage(lab.id)),
                    "1 to 60 small letters, digits and -", "id");
    if (reader.has("needs")) {
        MEMSCAPE_TRY(needs, reader.at("needs"));
        MEMSCAPE_CHECK(onlyLabKeys(needs, {"gpu"}));
        MEMSCAPE_SET(lab.needsGpu, needs.boolean("gpu", false));
    }
    MEMSCAPE_CHECK(readVariants(reader, lab));
    MEMSCAPE_TRY(predictions, labItems(reader, "predictions", 200));
    for (const JsonReader& one : predictions) {
        MEMSCAPE_CHECK(onlyLabKeys(one, {"key", "experiment", "device", "parameters"}));
        MEMSCAPE_TRY(key, labName(one, "key"));
        MEMSCAPE_TRY(request, readLabRequest(one));
        if (request.device.empty())
            return fail("lab.key", "a prediction names its device", "add \"device\": \"nvidia-h100-sxm\"", one.path());
        lab.predictions.push_back({key, request});
    }
    MEMSCAPE_SET(lab.values, labTexts(reader, "values"));
    MEMSCAPE_TRY(steps, labItems(reader, "steps", 100));
    if (steps.empty())
        return fail("lab.key", "a lab has steps", "add \"steps\": […]", "steps");
    for (const JsonReader& one : steps) {
        MEMSCAPE_TRY(step, readLabStep(one, folder, lab.isStudentPack));
        if (step.after.empty() && !lab.steps.empty())
            step.after.push_back(lab.steps.back().id);
        lab.steps.push_back(std::move(step));
    }
    return lab;
}

/// What a student sees, without what the teacher keeps: equal for the lab and for its student pack.
std::string hashOfLab(const Lab& lab, Json json)
{
    json.erase("student_pack");
    json.erase("hash");
    for (Json& step : json["steps"])
        step.erase("checks");
    std::uint64_t hash = labHash(jsonLine(json));
    for (const LabStep& step : lab.steps)
        hash = labHash(step.text, hash);
    return fmt::format("{:016x}", hash);
}

Result<Json> labFile(const fs::path& path)
{
    MEMSCAPE_TRY(text, readFile(path, labFileLimit));
    JsonLimits limits;
    limits.bytes = labFileLimit;
    limits.depth = 24;
    return parseJson(text, limits);
}

Error inLabFile(Error error, const std::string& file)
{
    return error.code.starts_with("file.") ? error : placedIn(file, std::move(error));
}

Result<void> readReplays(Lab& lab)
{
    for (const LabStep& step : lab.steps) {
        if (!step.request || step.request->replay.empty() || lab.replays.contains(step.request->replay))
            continue;
        const std::string& file = step.request->replay;
        MEMSCAPE_TRY(text, readFile(lab.folder / file, labReplayLimit));
        auto json = parseJson(text);
        auto record = json ? recordFromJson(*json) : tl::unexpected(json.error());
        if (record && !record->measured)
            record = fail("lab.value", "the recorded run holds no measurement", "record one with memscape-cli measure");
        if (!record)
            return tl::unexpected(inLabFile(record.error(), file));
        lab.replays.emplace(file, std::move(*record));
    }
    return {};
}

} // namespace

Result<std::shared_ptr<const Lab>> readLab(const fs::path& folder)
{
    std::error_code problem;
    if (!fs::exists(folder / "lab.json", problem))
        return fail("lab.missing", fmt::format("there is no lab.json in {}", folder.string()),
                    "memscape-cli lab new makes one");
    const std::string file = (folder / "lab.json").string();
    auto json = labFile(folder / "lab.json");
    if (!json)
        return tl::unexpected(inLabFile(json.error(), file));
    auto lab = labFromJson(*json, folder);
    if (!lab)
        return tl::unexpected(inLabFile(lab.error(), file));
    if (const auto sound = checkLabRules(*lab); !sound)
        return tl::unexpected(inLabFile(sound.error(), file));
    if (lab->hash.empty())
        lab->hash = hashOfLab(*lab, *json);
    MEMSCAPE_CHECK(readReplays(*lab));
    if (fs::exists(folder / "solution.json", problem)) {
        auto solution = labFile(folder / "solution.json");
        if (solution && !solution->is_object())
            solution = JsonReader(*solution).expected("an object");
        if (!solution)
            return tl::unexpected(inLabFile(solution.error(), (folder / "solution.json").string()));
        lab->solution = std::move(*solution);
    }
    return std::make_shared<const Lab>(std::move(*lab));
}

} // namespace memscape

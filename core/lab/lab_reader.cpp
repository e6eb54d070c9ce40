// SPDX-License-Identifier: Apache-2.0
// lab.json and the files beside it. Every key is known or refused: a check whose key is misspelt would pass in silence.
#include "core/base/error_place.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/lab/lab.h"
#include "core/lab/lab_hash.h"
#include "core/lab/lab_rules.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

Result<void> onlyLabKeys(const JsonReader& reader, std::initializer_list<const char*> known)
{
    MEMSCAPE_TRY(members, reader.members());
    const std::vector<std::string> all(known.begin(), known.end());
    for (const auto& [key, node] : members)
        if (std::find(all.begin(), all.end(), key) == all.end())
            return fail("lab.key", fmt::format("there is no key \"{}\" here", quotedForMessage(key)),
                        didYouMean(key, all), node.path());
    return {};
}

template <typename Kind, std::size_t Count>
Result<Kind> labKind(const JsonReader& reader, std::string_view key, std::string_view (*word)(Kind))
{
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(text, node.string());
    std::vector<std::string> words;
    for (std::size_t i = 0; i < Count; ++i) {
        words.emplace_back(word(Kind(i)));
        if (words.back() == text)
            return Kind(i);
    }
    return fail("lab.value", fmt::format("there is no {} \"{}\"", key, quotedForMessage(text)), didYouMean(text, words),
                node.path());
}

Result<std::vector<JsonReader>> labItems(const JsonReader& reader, std::string_view key, std::size_t most)
{
    if (!reader.has(key))
        return std::vector<JsonReader>();
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(items, node.items());
    if (items.size() > most)
        return fail("lab.value", fmt::format("{} elements, at most {} are read", items.size(), most), {}, node.path());
    return items;
}

Result<std::vector<std::string>> labWords(const JsonReader& reader, std::string_view key, std::size_t most = 64)
{
    MEMSCAPE_TRY(items, labItems(reader, key, most));
    std::vector<std::string> words;
    for (const JsonReader& item : items) {
        if (item.node().is_number()) {
            words.push_back(numberText(item.node().get<double>()));
            continue;
        }
        MEMSCAPE_TRY(word, item.string());
        words.push_back(word);
    }
    return words;
}

Result<bool> labFlag(const JsonReader& reader, std::string_view key)
{
    if (!reader.has(key))
        return false;
    MEMSCAPE_TRY(node, reader.at(key));
    return node.boolean();
}

/// A number or a text under the key, as text.
Result<std::string> labText(const JsonReader& reader, std::string_view key)
{
    if (!reader.has(key))
        return std::string();
    MEMSCAPE_TRY(node, reader.at(key));
    if (node.node().is_number())
        return numberText(node.node().get<double>());
    return node.string();
}

Result<double> labAmount(const JsonReader& reader, std::string_view key, double fallback, double least = 0)
{
    MEMSCAPE_TRY(value, reader.number(key, fallback));
    if (value < least || value > 1e6)
        return fail("lab.value", fmt::format("{} is out of range", numberText(value)),
                    fmt::format("{} to 1000000", numberText(least)), (*reader.at(key)).path());
    return value;
}

/// A name that expressions can hold: letters, digits and _.
Result<std::string> labName(const JsonReader& reader, std::string_view key)
{
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(name, node.string());
    const bool fits = !name.empty() && name.size() <= 40
        && std::all_of(name.begin(), name.end(),
                       [](unsigned char one) { return std::islower(one) != 0 || std::isdigit(one) != 0 || one == '_'; })
        && std::isdigit(static_cast<unsigned char>(name.front())) == 0;
    if (!fits)
        return fail("lab.value", fmt::format("\"{}\" is no name", quotedForMessage(name)),
                    "a name has 1 to 40 small letters, digits and _, and begins with a letter", node.path());
    return name;
}

/// A file of the lab's folder: plain words joined by /, nothing that leads outside.
Result<fs::path> insideLab(const fs::path& folder, const std::string& name, const std::string& place)
{
    const fs::path path(name);
    std::error_code problem;
    bool inside = !name.empty() && path.is_relative() && name.find('\\') == std::string::npos
        && name.find('\0') == std::string::npos && name.size() <= 200;
    for (const fs::path& part : path)
        inside = inside && part != ".." && part != ".";
    if (inside && fs::exists(folder / path, problem)) { // a link may still lead away
        const std::string real = fs::weakly_canonical(folder / path, problem).string();
        inside = real.starts_with(fs::weakly_canonical(folder, problem).string() + "/");
    }
    if (!inside)
        return fail("lab.path", fmt::format("\"{}\" is not a file inside the lab's folder", quotedForMessage(name)),
                    "name a file beside lab.json, such as steps/1-start.md", place);
    return folder / path;
}

Result<std::vector<std::pair<std::string, std::string>>> labTexts(const JsonReader& reader, std::string_view key)
{
    std::vector<std::pair<std::string, std::string>> texts;
    if (!reader.has(key))
        return texts;
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(members, node.members());
    if (members.size() > 64)
        return node.expected("at most 64 members");
    for (const auto& [name, value] : members) {
        if (value.node().is_boolean()) {
            texts.emplace_back(name, value.node().get<bool>() ? "true" : "false");
            continue;
        }
        MEMSCAPE_TRY(text, labText(node, name));
        texts.emplace_back(name, text);
    }
    return texts;
}

Result<LabRequest> readLabRequest(const JsonReader& reader)
{
    LabRequest request;
    MEMSCAPE_TRY(experiment, reader.string("experiment"));
    if (const auto known = findExperiment(experiment); !known) {
        Error error = known.error();
        error.place = (*reader.at("experiment")).path();
        return fail(std::move(error));
    }
    MEMSCAPE_TRY(device, reader.string("device", ""));
    MEMSCAPE_TRY(parameters, labTexts(reader, "parameters"));
    MEMSCAPE_TRY(free, labWords(reader, "free"));
    MEMSCAPE_TRY(start, labTexts(reader, "start"));
    MEMSCAPE_TRY(replay, reader.string("replay", ""));
    const Schema& schema = (*findExperiment(experiment))->schema();
    for (const auto* list : {&parameters, &start})
        for (const auto& [key, text] : *list)
            if (!findParameter(schema, key))
                return fail("lab.key", fmt::format("{} has no parameter \"{}\"", experiment, key),
                            didYouMean(key, keysOf(schema)), reader.path());
    for (const std::string& key : free)
        if (!findParameter(schema, key))
            return fail("lab.key", fmt::format("{} has no parameter \"{}\"", experiment, key),
                        didYouMean(key, keysOf(schema)), reader.path() + ".free");
    return LabRequest{experiment, device, parameters, free, start, replay};
}

Result<LabQuestion> readLabQuestion(const JsonReader& reader)
{
    MEMSCAPE_CHECK(onlyLabKeys(
        reader, {"key", "ask", "type", "unit", "options", "items", "x", "x_label", "x_unit", "y_label", "points"}));
    LabQuestion question;
    MEMSCAPE_TRY(key, labName(reader, "key"));
    MEMSCAPE_TRY(ask, reader.string("ask"));
    MEMSCAPE_TRY(kind, (labKind<LabQuestionKind, 6>(reader, "type", labQuestionKindText)));
    MEMSCAPE_TRY(unit, reader.string("unit", "1"));
    question.key = key;
    question.ask = ask;
    question.kind = kind;
    const auto known = unitFromText(unit);
    if (!known)
        return fail("lab.value", fmt::format("there is no unit \"{}\"", quotedForMessage(unit)),
                    "1, B, s, B/s, FLOP/s or Hz", (*reader.at("unit")).path());
    question.unit = *known;
    const char* listKey = kind == LabQuestionKind::Ranking ? "items" : "options";
    MEMSCAPE_TRY(options, labItems(reader, listKey, 32));
    for (const JsonReader& one : options) {
        MEMSCAPE_CHECK(onlyLabKeys(one, {"key", "label", "by"}));
        MEMSCAPE_TRY(name, one.string("key"));
        MEMSCAPE_TRY(label, one.string("label", name));
        MEMSCAPE_TRY(by, labText(one, "by"));
        question.options.push_back({name, label, by});
    }
    if ((kind == LabQuestionKind::Choice || kind == LabQuestionKind::Ranking) && question.options.size() < 2)
        return fail("lab.value", fmt::format("a {} has 2 to 32 {}", labQuestionKindText(kind), listKey), {},
                    reader.path());
    MEMSCAPE_TRY(x, labWords(reader, "x"));
    question.x = x;
    if (kind == LabQuestionKind::Curve && x.size() < 2)
        return fail("lab.value", "a curve is asked at 2 to 64 places, its \"x\"", {}, reader.path());
    MEMSCAPE_TRY(xLabel, reader.string("x_label", ""));
    MEMSCAPE_TRY(xUnit, reader.string("x_unit", "1"));
    MEMSCAPE_TRY(yLabel, reader.string("y_label", ""));
    question.xLabel = xLabel;
    question.xUnit = xUnit;
    question.yLabel = yLabel;
    MEMSCAPE_TRY(points, labAmount(reader, "points", 0));
    question.points = points;
    if (points > 0 && kind != LabQuestionKind::Text)
        return fail("lab.points", "only a text has points of its own: a person gives them",
                    "give the points to a check of this question", reader.path() + ".points");
    return question;
}

Result<LabCheck> readLabCheck(const JsonReader& reader, const LabStep& step, bool isPack)
{
    MEMSCAPE_CHECK(onlyLabKeys(reader, {"id",  "kind", "question", "value",   "values", "a",      "b",
                                        "x",   "abs",  "rel",      "decades", "curve",  "shape",  "smallest_first",
                                        "tie", "step", "points",   "hidden",  "after",  "because"}));
    LabCheck check;
    MEMSCAPE_TRY(kind, (labKind<LabCheckKind, 7>(reader, "kind", labCheckKindText)));
    MEMSCAPE_TRY(question, reader.string("question", ""));
    MEMSCAPE_TRY(id, reader.string("id", question.empty() ? std::string(labCheckKindText(kind)) : question));
    MEMSCAPE_TRY(value, labText(reader, kind == LabCheckKind::RatioAtLeast ? "a" : "value"));
    MEMSCAPE_TRY(values, labWords(reader, "values"));
    MEMSCAPE_TRY(than, labText(reader, "b"));
    MEMSCAPE_TRY(least, labAmount(reader, "x", 1));
    MEMSCAPE_TRY(absolute, labAmount(reader, "abs", 0));
    MEMSCAPE_TRY(relative, labAmount(reader, "rel", 0));
    MEMSCAPE_TRY(decades, labAmount(reader, "decades", 0));
    MEMSCAPE_TRY(curve, reader.string("curve", ""));
    MEMSCAPE_TRY(shape, labFlag(reader, "shape"));
    MEMSCAPE_TRY(smallest, labFlag(reader, "smallest_first"));
    MEMSCAPE_TRY(tie, labAmount(reader, "tie", 0));
    MEMSCAPE_TRY(source, reader.string("step", step.id));
    MEMSCAPE_TRY(points, labAmount(reader, "points", isPack ? 0 : -1, isPack ? 0 : -1));
    if (points < 0)
        return fail("lab.points", "a check says its points", "add \"points\": 1", reader.path());
    MEMSCAPE_TRY(hidden, labFlag(reader, "hidden"));
    MEMSCAPE_TRY(after, labWords(reader, "after"));
    MEMSCAPE_TRY(because, reader.string("because", ""));
    check = {fmt::format("{}.{}", step.id, id),
             kind,
             question,
             value,
             values,
             than,
             least,
             absolute,
             relative,
             decades,
             curve,
             shape,
             smallest,
             tie,
             source,
             points,
             hidden,
             after,
             because};
    for (std::string& one : check.after)
        if (one.find('.') == std::string::npos)
            one = fmt::format("{}.{}", step.id, one);
    return check;
}

Result<LabStep> readLabStep(const JsonReader& reader, const fs::path& folder, bool isPack)
{
    MEMSCAPE_CHECK(onlyLabKeys(reader,
                               {"id", "title", "kind", "text", "after", "questions", "checks", "hints", "experiment",
                                "device", "parameters", "free", "start", "replay"}));
    LabStep step;
    MEMSCAPE_TRY(id, labName(reader, "id"));
    MEMSCAPE_TRY(title, reader.string("title"));
    MEMSCAPE_TRY(kind, (labKind<LabStepKind, 6>(reader, "kind", labStepKindText)));
    MEMSCAPE_TRY(file, reader.string("text"));
    MEMSCAPE_TRY(after, labWords(reader, "after"));
    step.id = id;
    step.title = title;
    step.kind = kind;
    step.file = file;
    step.after = after;
    MEMSCAPE_TRY(path, insideLab(folder, file, (*reader.at("text")).path()));
    MEMSCAPE_TRY(text, readFile(path, labFileLimit));
    if (!validUtf8(text))
        return fail("lab.value", fmt::format("{} is not UTF-8", file), "save it as UTF-8", reader.path() + ".text");
    step.text = text;
    const bool runs = kind == LabStepKind::Measure || kind == LabStepKind::Tune || kind == LabStepKind::Fix;
    if (runs || reader.has("experiment")) {
        if (!runs)
            return fail("lab.key", "only measure, tune and fix ask an experiment", "use \"predictions\" of the lab",
                        reader.path() + ".experiment");
        MEMSCAPE_TRY(request, readLabRequest(reader));
        step.request = request;
        if (!request.replay.empty())
            MEMSCAPE_CHECK(insideLab(folder, request.replay, (*reader.at("replay")).path()));
    }
    MEMSCAPE_TRY(questions, labItems(reader, "questions", 32));
    for (const JsonReader& one : questions) {
        MEMSCAPE_TRY(question, readLabQuestion(one));
        step.questions.push_back(std::move(question));
    }
    MEMSCAPE_TRY(checks, labItems(reader, "checks", 64));
    for (const JsonReader& one : checks) {
        MEMSCAPE_TRY(check, readLabCheck(one, step, isPack));
        step.checks.push_back(std::move(check));
    }
    MEMSCAPE_TRY(hints, labItems(reader, "hints", 16));
    for (const JsonReader& one : hints) {
        MEMSCAPE_CHECK(onlyLabKeys(one, {"text", "cost"}));
        MEMSCAPE_TRY(words, one.string("text"));
        MEMSCAPE_TRY(cost, labAmount(one, "cost", 0));
        step.hints.push_back({words, cost});
    }
    return step;
}

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
            std::sort(all.begin(), all.end());
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
    MEMSCAPE_TRY(id, reader.string("id"));
    MEMSCAPE_TRY(title, reader.string("title"));
    MEMSCAPE_TRY(summary, reader.string("summary", ""));
    MEMSCAPE_TRY(level, reader.string("level", "intro"));
    MEMSCAPE_TRY(minutes, labAmount(reader, "minutes", 45, 1));
    MEMSCAPE_TRY(points, labAmount(reader, "points", 0));
    MEMSCAPE_TRY(pack, labFlag(reader, "student_pack"));
    MEMSCAPE_TRY(hash, reader.string("hash", ""));
    const bool plain = !id.empty() && id.size() <= 60 && std::all_of(id.begin(), id.end(), [](unsigned char one) {
        return std::islower(one) != 0 || std::isdigit(one) != 0 || one == '-';
    });
    if (!plain)
        return fail("lab.value", fmt::format("\"{}\" is no id of a lab", quotedForMessage(id)),
                    "1 to 60 small letters, digits and -", "id");
    lab.id = id;
    lab.title = title;
    lab.summary = summary;
    lab.level = level;
    lab.minutes = int(minutes);
    lab.points = points;
    lab.isStudentPack = pack;
    lab.hash = pack ? hash : std::string();
    if (reader.has("needs")) {
        MEMSCAPE_TRY(needs, reader.at("needs"));
        MEMSCAPE_CHECK(onlyLabKeys(needs, {"gpu"}));
        MEMSCAPE_TRY(gpu, labFlag(needs, "gpu"));
        lab.needsGpu = gpu;
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
    if (reader.has("values")) {
        MEMSCAPE_TRY(values, labTexts(reader, "values"));
        lab.values = values;
    }
    MEMSCAPE_TRY(steps, labItems(reader, "steps", 100));
    if (steps.empty())
        return fail("lab.key", "a lab has steps", "add \"steps\": […]", "steps");
    for (const JsonReader& one : steps) {
        MEMSCAPE_TRY(step, readLabStep(one, folder, pack));
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

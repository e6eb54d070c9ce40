// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_authoring.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/experiment/document.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

/// Relative links and pictures of a text lead to files of the lab.
void checkLabLinks(const Lab& lab, const LabStep& step, std::vector<Error>& problems)
{
    for (std::size_t at = step.text.find("]("); at != std::string::npos; at = step.text.find("](", at + 1)) {
        const auto end = step.text.find(')', at);
        if (end == std::string::npos)
            continue;
        const std::string target = step.text.substr(at + 2, end - at - 2);
        std::error_code problem;
        const bool away = target.find("..") != std::string::npos || target.starts_with("/");
        if (target.starts_with("http://") || target.starts_with("https://") || target.starts_with("#")
            || target.starts_with("help:"))
            continue;
        if (away || !fs::exists((lab.folder / step.file).parent_path() / target, problem))
            problems.push_back({"lab.link", fmt::format("the link to \"{}\" leads nowhere", quotedForMessage(target)),
                                step.file, "links are relative to the text and stay in the lab's folder"});
    }
}

/// A student of each variant, at most 16: names are tried until every row was dealt.
std::vector<std::string> studentsOfVariants(const Lab& lab)
{
    const std::size_t wanted = std::clamp<std::size_t>(lab.variants.size(), 1, 16);
    std::vector<std::string> students;
    std::vector<bool> seen(std::max<std::size_t>(1, lab.variants.size()), false);
    for (int i = 0; students.size() < wanted && i < 2000; ++i) {
        const std::string name = fmt::format("student {}", i);
        const std::size_t row = labVariant(lab, name);
        if (seen[row])
            continue;
        seen[row] = true;
        students.push_back(name);
    }
    return students;
}

void checkSolution(const std::shared_ptr<const Lab>& lab, const std::string& student, LabPredictions& predictions,
                   std::vector<Error>& problems)
{
    const std::string row =
        lab->variants.size() < 2 ? std::string() : fmt::format("variant {}: ", labVariant(*lab, student) + 1);
    const auto solved = solvedLab(lab, student);
    if (!solved) {
        problems.push_back(solved.error());
        problems.back().message = row + problems.back().message;
        return;
    }
    const LabContext context(*solved, predictions);
    for (const LabStep& step : lab->steps)
        if (const auto text = filledLabText(step.text, context.scope()); !text)
            problems.push_back(placedIn(step.file, text.error()));
        else if (text->find("(not measured yet)") != std::string::npos)
            problems.push_back({"lab.value", row + "a placeholder has no value even when everything is answered",
                                step.file, "it names a run or an answer that does not come before"});
    const auto grade = gradeLab(*solved, predictions);
    if (!grade) {
        problems.push_back(grade.error());
        return;
    }
    for (const LabCheckResult& one : grade->checks)
        if (one.verdict != LabVerdict::Passed)
            problems.push_back(
                {"lab.solution",
                 fmt::format("{}the solution does not pass {}: {} (answered {}; right: {})", row, one.id,
                             one.message.empty() ? std::string(labVerdictText(one.verdict)) : one.message, one.actual,
                             one.expected),
                 "solution.json", "correct the solution or the check"});
}

void checkStart(const Lab& lab, const std::string& student, const std::shared_ptr<const Lab>& shared,
                LabPredictions& predictions, std::vector<Error>& problems)
{
    const LabAttempt empty(shared, student);
    const auto grade = gradeLab(empty, predictions);
    if (!grade)
        return; // said with the solution
    if (grade->points > 0)
        for (const LabCheckResult& one : grade->checks)
            if (one.points > 0)
                problems.push_back(
                    {"lab.points", fmt::format("who does nothing gets {} points of {}", numberText(one.points), one.id),
                     "lab.json", "a fix begins broken, and a check asks for what the student did"});
    std::error_code problem;
    if (fs::exists(lab.folder / "start.memscape", problem))
        if (const auto study = readStudy(lab.folder / "start.memscape"); !study)
            problems.push_back(study.error());
}

constexpr auto newLabJson = R"({
  "format": "memscape-lab",
  "version": 1,
  "id": "@ID@",
  "title": "@TITLE@",
  "summary": "What a student learns, in a sentence.",
  "minutes": 30,
  "level": "intro",
  "needs": {"gpu": false},
  "points": 4,
  "variants": [
    {"stride": "4"},
    {"stride": "2"}
  ],
  "predictions": [
    {"key": "near", "experiment": "stride", "device": "amd-epyc-zen4-vm", "parameters": {"stride": "1"}},
    {"key": "far", "experiment": "stride", "device": "amd-epyc-zen4-vm", "parameters": {"stride": "{stride}"}}
  ],
  "steps": [
    {
      "id": "start",
      "title": "What moves",
      "kind": "read",
      "text": "steps/1-start.md"
    },
    {
      "id": "guess",
      "title": "How much of it is used?",
      "kind": "predict",
      "text": "steps/2-guess.md",
      "questions": [
        {"key": "used", "ask": "Which share of the bytes that move is used with a stride of {{stride}}?", "type": "number"}
      ],
      "hints": [{"text": "An element of float32 has 4 bytes, a line 64.", "cost": 0.5}],
      "checks": [
        {"kind": "within", "question": "used", "value": "far.efficiency", "rel": 0.02, "points": 2,
         "because": "Whole lines move: of each, one element in {{stride}} is used."}
      ]
    },
    {
      "id": "repair",
      "title": "Use at least half",
      "kind": "tune",
      "text": "steps/3-repair.md",
      "experiment": "stride",
      "device": "amd-epyc-zen4-vm",
      "parameters": {"stride": "16"},
      "free": ["stride"],
      "questions": [{"key": "choice", "ask": "Which stride?", "type": "parameters"}],
      "checks": [
        {"kind": "ratio_at_least", "id": "half", "a": "repair.efficiency", "b": "0.5", "points": 2}
      ]
    }
  ]
}
)";

constexpr auto newLabSolution = R"({
  "format": "memscape-solution",
  "version": 1,
  "steps": {
    "guess": {"used": "=far.efficiency"},
    "repair": {"choice": {"stride": "2"}}
  }
}
)";

constexpr auto newLabStart = R"(# What moves

Memory moves in lines of 64 bytes. A program that reads every element of an array of float32 uses all of each line:
the model says {{near.efficiency | percent}}.

In this lab you predict what is left when it reads one element in {{stride}}.
)";

constexpr auto newLabGuess = R"(# How much of it is used?

A loop reads one element in {{stride}}. Say which share of the bytes that move it uses, as a number (0.3) or a
percentage (30%). Then lock your answer.
)";

constexpr auto newLabRepair = R"(# Use at least half

With a stride of 16 elements a line holds one that is used. Choose a stride with which at least half of what moves is
used.
)";

std::string withNames(std::string_view text, const std::string& id, const std::string& title)
{
    std::string all(text);
    const std::string quoted = jsonLine(Json(title));
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"@ID@", id}, {"\"@TITLE@\"", quoted}})
        if (const auto at = all.find(from); at != std::string::npos)
            all.replace(at, from.size(), to);
    return all;
}

/// Adds the names that the expressions of a text or of a list need.
void addNames(const Result<std::vector<std::string>>& names, std::set<std::string>& all)
{
    if (names) // the lab was read: its expressions are sound
        for (const std::string& name : *names)
            all.insert(name.substr(0, name.find('.')));
}

/// The names of values without which a student could not read the lab; those that checks alone use are answers.
std::set<std::string> valuesForStudents(const Lab& lab)
{
    std::set<std::string> needed;
    for (const LabStep& step : lab.steps) {
        addNames(namesInLabText(step.text), needed);
        for (const LabHint& hint : step.hints)
            addNames(namesInLabText(hint.text), needed);
        for (const LabQuestion& question : step.questions) {
            addNames(namesInLabText(question.ask), needed);
            for (const LabOption& option : question.options)
                addNames(namesInLabText(option.label), needed);
            for (const std::string& x : question.x)
                addNames(namesInLab(x), needed);
        }
    }
    for (std::size_t before = 0; before != needed.size();) { // values name others
        before = needed.size();
        for (const auto& [key, expression] : lab.values)
            if (needed.contains(key))
                addNames(namesInLab(expression), needed);
    }
    return needed;
}

Result<void> makeFolder(const fs::path& folder)
{
    std::error_code problem;
    fs::create_directories(folder, problem);
    if (problem)
        return fail("file.write", fmt::format("cannot make the folder {}: {}", folder.string(), problem.message()),
                    "choose a place you may write to");
    return {};
}

Result<void> refuseExisting(const fs::path& folder)
{
    std::error_code problem;
    if (fs::exists(folder, problem) && !fs::is_empty(folder, problem))
        return fail("file.exists", fmt::format("{} is there already", folder.string()), "choose another name");
    return {};
}

} // namespace

std::vector<Error> checkLab(const std::shared_ptr<const Lab>& lab)
{
    std::vector<Error> problems;
    if (lab->isStudentPack)
        return {{"lab.empty", "this is a pack for students: it has no checks", "lab.json", "check the whole lab"}};
    for (const LabStep& step : lab->steps) {
        checkLabLinks(*lab, step, problems);
        if (step.kind == LabStepKind::Measure && step.request->replay.empty())
            problems.push_back({"lab.key", fmt::format("step {} has no recorded run", step.id), "lab.json",
                                "record one (memscape-cli measure … -o FILE) and name it as \"replay\""});
    }
    for (const auto& [file, record] : lab->replays)
        for (const std::string& one : runProblems(record))
            problems.push_back({"lab.run", one, file, "record the run again; nothing in it is edited by hand"});
    LabPredictions predictions;
    const auto students = studentsOfVariants(*lab);
    for (const std::string& student : students)
        checkSolution(lab, student, predictions, problems);
    checkStart(*lab, students.front(), lab, predictions, problems);
    return problems;
}

Result<void> packLabForStudents(const Lab& lab, const fs::path& folder)
{
    MEMSCAPE_CHECK(refuseExisting(folder));
    MEMSCAPE_TRY(text, readFile(lab.folder / "lab.json", labFileLimit));
    MEMSCAPE_TRY(json, parseJson(text));
    Json none = Json::array();
    for (Json& step : json["steps"]) {
        step.erase("checks");
        for (Json& question : step.contains("questions") ? step["questions"] : none)
            for (Json& item : question.contains("items") ? question["items"] : none)
                item.erase("by");
    }
    const auto needed = valuesForStudents(lab);
    for (const auto& [key, expression] : lab.values)
        if (!needed.contains(key))
            json["values"].erase(key);
    json["student_pack"] = true;
    json["hash"] = lab.hash;
    std::error_code problem;
    for (fs::recursive_directory_iterator at(lab.folder, problem), end; !problem && at != end; at.increment(problem)) {
        const fs::path inside = fs::relative(at->path(), lab.folder, problem);
        if (!at->is_regular_file(problem) || inside == "solution.json" || inside == "lab.json")
            continue;
        MEMSCAPE_TRY(content, readFile(at->path(), labReplayLimit));
        MEMSCAPE_CHECK(makeFolder((folder / inside).parent_path()));
        MEMSCAPE_CHECK(writeFileAtomically(folder / inside, content));
    }
    MEMSCAPE_CHECK(makeFolder(folder));
    return writeFileAtomically(folder / "lab.json", jsonText(json));
}

Result<Study> labStartStudy(const LabAttempt& attempt, LabPredictions& predictions)
{
    Study study;
    study.title = attempt.lab().title;
    for (const LabStep& step : attempt.lab().steps) {
        if (step.kind != LabStepKind::Tune && step.kind != LabStepKind::Fix)
            continue;
        const LabContext context(attempt, predictions);
        MEMSCAPE_TRY(record, context.predicted(step.id));
        study.records.push_back(*record);
        study.records.back().name = step.title;
    }
    if (study.records.empty())
        return fail("lab.step", fmt::format("the lab {} has no tune or fix step to begin from", attempt.lab().id),
                    "its measure steps name what to run");
    return study;
}

Result<void> writeNewLab(const fs::path& folder, const std::string& title)
{
    const std::string id = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
    if (id.empty() || id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
        return fail("lab.value", fmt::format("\"{}\" is no id of a lab", quotedForMessage(id)),
                    "the folder's name is the id: small letters, digits and -");
    MEMSCAPE_CHECK(refuseExisting(folder));
    MEMSCAPE_CHECK(makeFolder(folder / "steps"));
    for (const auto& [file, text] : {std::pair<const char*, std::string_view>{"steps/1-start.md", newLabStart},
                                     {"steps/2-guess.md", newLabGuess},
                                     {"steps/3-repair.md", newLabRepair},
                                     {"solution.json", newLabSolution},
                                     {"lab.json", newLabJson}})
        MEMSCAPE_CHECK(writeFileAtomically(folder / file, withNames(text, id, title.empty() ? id : title)));
    return {};
}

Result<std::string> labStepText(const LabAttempt& attempt, const LabStep& step, LabPredictions& predictions)
{
    const LabContext context(attempt, predictions);
    auto filled = filledLabText(step.text, context.scope());
    if (!filled)
        return fail(placedIn(step.file, filled.error()));
    std::string text = *filled;
    if (step.request) {
        MEMSCAPE_TRY(parameters, attempt.parameters(step));
        std::string line = "memscape-cli ";
        line += step.kind == LabStepKind::Measure ? "measure " : "predict ";
        line += step.request->experiment;
        for (const auto& [key, value] : parameters)
            line += fmt::format(" {}={}", key, value);
        line += step.kind == LabStepKind::Measure ? " --device cpu -o run.json" : " --device " + step.request->device;
        text += "\n    " + line + "\n";
        if (!step.request->free.empty())
            text += fmt::format("\nYou choose: {}.\n", join(step.request->free, ", "));
    }
    for (const LabQuestion& one : step.questions) {
        MEMSCAPE_TRY(ask, filledLabText(one.ask, context.scope()));
        text += fmt::format("\n- **{}** ({}{}): {}\n", one.key, labQuestionKindText(one.kind),
                            one.unit == Unit::One ? "" : fmt::format(", {}", unitText(one.unit)), ask);
        for (const LabOption& option : one.options) {
            MEMSCAPE_TRY(label, filledLabText(option.label, context.scope()));
            text += fmt::format("  - {}: {}\n", option.key, label);
        }
        if (!one.x.empty()) {
            std::vector<std::string> places;
            for (const std::string& x : one.x) {
                MEMSCAPE_TRY(value, evaluateLab(x, context.scope()));
                places.push_back(value.text());
            }
            text += fmt::format("  at {}\n", join(places, ", "));
        }
    }
    if (const LabStepState* state = attempt.state(step.id))
        for (std::size_t i = 0; i < std::min(state->hints, step.hints.size()); ++i) {
            MEMSCAPE_TRY(hint, filledLabText(step.hints[i].text, context.scope()));
            text += fmt::format("\nHint: {}\n", hint);
        }
    return text;
}

} // namespace memscape

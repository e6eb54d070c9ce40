// SPDX-License-Identifier: Apache-2.0
// What a student and a teacher do with labs without the window: list, show, start, answer, report; check, pack, new.
#include "app/cli/answers.h"
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/experiment/document.h"
#include "core/lab/lab_authoring.h"
#include "core/report/text_table.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace memscape::cli {

namespace {

int refusedLabs(const Error& error)
{
    complain(error);
    const bool usage = error.code == "usage" || error.code == "lab.unknown" || error.code == "lab.missing"
        || error.code.starts_with("file.");
    return usage ? static_cast<int>(ExitCode::BadInput) : brokenLab;
}

int listLabs(const Arguments& arguments)
{
    std::vector<std::shared_ptr<const Lab>> labs;
    int code = 0;
    for (const auto& folder : labFolders()) {
        auto lab = readLab(folder);
        if (lab)
            labs.push_back(std::move(*lab));
        else
            code = refusedLabs(lab.error());
    }
    if (arguments.json) {
        printOut(jsonText(labListJson(labs)));
        return code;
    }
    TextTable table{{{"lab", false}, {"minutes", true}, {"points", true}, {"level", false}, {"title", false}}, {}};
    for (const auto& lab : labs)
        table.rows.push_back({lab->id, numberText(lab->minutes), numberText(lab->points), lab->level,
                              lab->title + (lab->needsGpu ? " (needs a GPU)" : "")});
    printOut(alignedText(table));
    return code;
}

/// The whole lab for a student, or one step; texts of later steps are not kept back.
int showLab(const Arguments& arguments)
{
    const auto lab = findLab(arguments.files.front());
    if (!lab)
        return refusedLabs(lab.error());
    const LabAttempt attempt(*lab, arguments.student);
    LabPredictions predictions;
    std::string text = fmt::format("{} · {} minutes, {} points, {}\n", (*lab)->title, (*lab)->minutes,
                                   numberText((*lab)->points), (*lab)->level);
    if (!(*lab)->summary.empty())
        text += (*lab)->summary + "\n";
    const bool one = arguments.files.size() > 1;
    if (one && !(*lab)->step(arguments.files[1]))
        return refused({"usage", fmt::format("the lab has no step \"{}\"", quotedForMessage(arguments.files[1]))});
    for (const LabStep& step : (*lab)->steps) {
        if (one && step.id != arguments.files[1])
            continue;
        const auto words = labStepText(attempt, step, predictions);
        if (!words)
            return refusedLabs(words.error());
        text += fmt::format("\n--- {} ({}{})\n\n{}", step.id, labStepKindText(step.kind),
                            step.points() > 0
                                ? fmt::format(", {} point{}", numberText(step.points()), step.points() == 1 ? "" : "s")
                                : "",
                            *words);
    }
    printOut(text);
    return 0;
}

int checkLabs(const Arguments& arguments)
{
    std::vector<std::string> names = arguments.files;
    if (names.empty())
        for (const auto& folder : labFolders())
            names.push_back(folder.string());
    if (names.empty())
        return refused({"usage", "there is no lab to check", {}, "name one, or its folder"});
    int code = 0;
    for (const std::string& name : names) {
        const auto lab = findLab(name);
        if (!lab) {
            code = std::max(code, refusedLabs(lab.error()));
            continue;
        }
        const auto problems = checkLab(*lab);
        for (const Error& one : problems)
            note(fmt::format("{}: {}", (*lab)->id, one.text()));
        if (!problems.empty()) {
            code = brokenLab;
            continue;
        }
        printOut(fmt::format("{}: {} steps, {} checks, {} points, {} variant{}: sound\n", (*lab)->id,
                             (*lab)->steps.size(), (*lab)->checkCount(), numberText((*lab)->points),
                             std::max<std::size_t>(1, (*lab)->variants.size()),
                             (*lab)->variants.size() > 1 ? "s" : ""));
    }
    return code;
}

int packLab(const Arguments& arguments)
{
    if (!arguments.forStudents || arguments.output.empty())
        return refused({"usage",
                        "pack needs --student and -o FOLDER",
                        {},
                        "memscape-cli lab pack cache-size --student -o handout/cache-size"});
    const auto lab = findLab(arguments.files.front());
    if (!lab)
        return refusedLabs(lab.error());
    if (const auto packed = packLabForStudents(**lab, arguments.output); !packed)
        return refusedLabs(packed.error());
    note(fmt::format("packed into {}: no solution, no checks; grade with the whole lab", arguments.output));
    return 0;
}

int newLab(const Arguments& arguments)
{
    const std::string& folder = arguments.files.front();
    if (const auto made = writeNewLab(folder, arguments.title); !made)
        return refused(made.error());
    note(fmt::format("made {}: try memscape-cli lab check {}", folder, folder));
    return 0;
}

int startLab(const Arguments& arguments)
{
    if (arguments.output.empty() || trimmed(arguments.student).empty())
        return refused({"usage",
                        "start needs the student's name and a file",
                        {},
                        "memscape-cli lab start cache-size --for \"Ada L.\" -o ada.mlab"});
    const auto lab = findLab(arguments.files.front());
    if (!lab)
        return refusedLabs(lab.error());
    std::error_code problem;
    if (std::filesystem::exists(arguments.output, problem)
        && std::filesystem::is_regular_file(arguments.output, problem))
        return refused(
            {"usage", fmt::format("{} is there already", arguments.output), {}, "answers are not overwritten"});
    LabAttempt attempt(*lab, arguments.student);
    if (arguments.solution) {
        auto solved = solvedLab(*lab, arguments.student);
        if (!solved)
            return refusedLabs(solved.error());
        attempt = std::move(*solved);
    }
    std::string study;
    if (!arguments.study.empty()) {
        if (const auto fits = writable(arguments.study); !fits)
            return refused(fits.error());
        LabPredictions predictions;
        const auto start = labStartStudy(LabAttempt(*lab, arguments.student), predictions);
        if (!start)
            return refusedLabs(start.error());
        study = jsonText(studyToJson(*start));
    }
    const int code = deliver(arguments.output, jsonText(attempt.toJson()), false, 0);
    return code != 0 || study.empty() ? code : deliver(arguments.study, study, false, 0);
}

/// "l1=48KiB", or a list or object as JSON: "order=[\"a\", \"b\"]".
Result<void> answerOne(LabAttempt& attempt, const std::string& step, const std::string& text)
{
    const auto sign = text.find('=');
    if (sign == std::string::npos)
        return fail("usage", fmt::format("\"{}\" is no answer", quotedForMessage(text)), "write QUESTION=ANSWER");
    const std::string key = text.substr(0, sign), value = text.substr(sign + 1);
    const LabQuestion* question = attempt.lab().question(key);
    Json given = value;
    if (question && question->kind != LabQuestionKind::Text && (value.starts_with("[") || value.starts_with("{"))) {
        MEMSCAPE_SET(given, parseJson(value));
    } else if (question && question->kind == LabQuestionKind::Parameters) {
        given = Json::object(); // "precision=bf16;batch=4", as the levers of a budget are written
        for (const std::string& one : split(value, ';')) {
            const auto equals = one.find('=');
            if (equals == std::string::npos)
                return fail("usage", fmt::format("\"{}\" is no parameter", quotedForMessage(one)),
                            "write QUESTION=\"key=value;key=value\"");
            given[std::string(trimmed(one.substr(0, equals)))] = trimmed(one.substr(equals + 1));
        }
    }
    return attempt.answer(step, key, given);
}

Result<void> change(LabAttempt& attempt, const Arguments& arguments)
{
    const std::string& step = arguments.files[1];
    for (std::size_t i = 2; i < arguments.files.size(); ++i)
        MEMSCAPE_CHECK(answerOne(attempt, step, arguments.files[i]));
    if (!arguments.record.empty()) {
        MEMSCAPE_TRY(record, readRecord(arguments.record));
        MEMSCAPE_CHECK(attempt.attach(step, std::move(record)));
    }
    if (arguments.replay)
        MEMSCAPE_CHECK(attempt.replay(step));
    if (arguments.lock)
        MEMSCAPE_CHECK(attempt.lock(step));
    if (arguments.hint) {
        MEMSCAPE_TRY(hint, attempt.hint(step));
        LabPredictions predictions;
        const LabContext context(attempt, predictions);
        MEMSCAPE_TRY(filled, filledLabText(hint, context.scope()));
        printOut(filled + "\n");
    }
    return {};
}

std::string progressText(const LabAttempt& attempt)
{
    TextTable table{{{"step", false}, {"kind", false}, {"state", false}, {"title", false}}, {}};
    for (const LabStep& step : attempt.lab().steps)
        table.rows.push_back({step.id, std::string(labStepKindText(step.kind)),
                              attempt.isLocked(step.id)     ? "locked"
                                  : attempt.isDone(step.id) ? "done"
                                  : attempt.isOpen(step.id) ? "open"
                                                            : "closed",
                              step.title});
    return alignedText(table);
}

int answerLab(const Arguments& arguments)
{
    const std::string& file = arguments.files.front();
    const auto text = readFile(file);
    if (!text)
        return refused(text.error());
    const auto id = labIdOfAnswers(*text);
    if (!id)
        return refused(id.error());
    const auto lab = findLab(arguments.labFolder.empty() ? *id : arguments.labFolder);
    if (!lab)
        return refusedLabs(lab.error());
    auto attempt = LabAttempt::parse(*lab, *text);
    if (!attempt)
        return refused(attempt.error());
    if (arguments.files.size() > 1) {
        if (const auto changed = change(*attempt, arguments); !changed)
            return refused(changed.error());
        if (const auto written = writeFileAtomically(file, jsonText(attempt->toJson())); !written)
            return refused(written.error());
    }
    printOut(progressText(*attempt));
    return 0;
}

struct LabAction
{
    std::string_view name;
    int (*run)(const Arguments&);
    std::size_t least, most; ///< words behind it
    std::string_view words;
};

constexpr std::size_t many = 1000;
constexpr std::array labActions{
    LabAction{"list", listLabs, 0, 0, ""},
    LabAction{"show", showLab, 1, 2, "LAB [STEP]"},
    LabAction{"start", startLab, 1, 1, "LAB --for NAME -o FILE"},
    LabAction{"answer", answerLab, 1, many, "FILE [STEP QUESTION=ANSWER …]"},
    LabAction{"report", reportAnswers, 1, 1, "FILE or FOLDER"},
    LabAction{"check", checkLabs, 0, many, "[LAB …]"},
    LabAction{"pack", packLab, 1, 1, "LAB --student -o FOLDER"},
    LabAction{"new", newLab, 1, 1, "FOLDER"},
};

} // namespace

int runLab(const Arguments& arguments)
{
    std::vector<std::string> names;
    for (const LabAction& one : labActions) {
        names.emplace_back(one.name);
        if (one.name != arguments.action)
            continue;
        if (arguments.files.size() < one.least || arguments.files.size() > one.most)
            return refused({"usage",
                            fmt::format("lab {} takes {}", one.name, one.words.empty() ? "nothing else" : one.words),
                            {},
                            "memscape-cli lab --help has examples"});
        return one.run(arguments);
    }
    return refused({"usage",
                    fmt::format("lab cannot \"{}\"", quotedForMessage(arguments.action)),
                    {},
                    didYouMean(arguments.action, names)});
}

} // namespace memscape::cli

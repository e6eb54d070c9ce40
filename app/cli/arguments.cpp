// SPDX-License-Identifier: Apache-2.0
// Syntax and help of every command. Help teaches: what it does, an example that works, what comes
// out. A usage error says what was wrong, names what is near, and ends with 2.
#include "app/cli/arguments.h"

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/parse_problem.h"
#include "core/base/text.h"
#include "core/experiment/record.h"

#include <algorithm>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace memscape::cli {

namespace {

constexpr auto overview = R"(
Predicts the memory use and time of a workload, measures them, and shows both side by side.

  memscape-cli list                                  the experiments
  memscape-cli describe stride                       its parameters and figures
  memscape-cli predict stride stride=8 --device nvidia-h200
  memscape-cli measure stride stride=1:64:x2 --device cpu -o stride.json
  memscape-cli report stride.json --to html -o stride.html

Exit codes: 0 done, 1 the measurement failed, 2 the input was wrong, 3 no such device,
130 interrupted. With --json, standard output holds one JSON document and nothing else; messages
go to standard error.)";

constexpr auto parameterHelp = R"(
A parameter is KEY=VALUE, with a unit where it has one: bytes=256MiB (2^20) or bytes=256MB (10^6).
One parameter may be swept: stride=1:128:x2 (doubling), stride=0:64:8 (in steps of 8) or
stride=1,2,5; several texts are each in quotes: '"one","two"'. `memscape-cli describe EXPERIMENT`
lists the parameters, their ranges and defaults.)";

constexpr auto predictExamples = R"(
Examples:
  memscape-cli predict stride                              on this machine's CPU
  memscape-cli predict hierarchy working_set=24MiB --device nvidia-h200
  memscape-cli predict stride stride=1:32:x2 element=float64 --json | jq .predicted.figures
  memscape-cli predict training-memory zero=2 --device nvidia-h200 --as deepspeed -o ds.json
  memscape-cli predict training-memory batch=2 --device nvidia-h200 --as memory_viz -o step.pickle

The device may be any that `memscape-cli devices` lists, measured or not, or a device file.)";

constexpr auto claimsExamples = R"(
What five course notes claim of memory and time, with our number for the device, a verdict (holds,
holds when …, does not hold, cannot be tested here: why), and what is right. Every number is
predicted by the experiment and the parameters that are named below it.

  memscape-cli claims                                            judged for this machine's CPU
  memscape-cli claims --device nvidia-h200 --source vram-bottleneck
  memscape-cli claims --experiment checkpoint --json | jq '.[] | .verdict'
  memscape-cli claims --questions --device nvidia-h200               the deep questions, step by step

Sources: memory-and-execution, device-and-memory-theory, gpu-memory-management,
batch-size-optimization, vram-bottleneck.)";

constexpr auto accuracyExamples = R"(
Predicts the setting of every row of published tables (resource tables, papers, benchmarks: source,
file and commit are in each table) and prints the errors by family: mean, median, signed median, and
the worst row. Rows that the program cannot express are listed with the reason.

  memscape-cli accuracy                        the tables that ship with the program
  memscape-cli accuracy --rows                 every row, worst first
  memscape-cli accuracy mine.json --json | jq '.families'

A table of your own has the form of those in resources/published.)";

constexpr auto measureExamples = R"(
Examples:
  memscape-cli measure stride --device cpu --json > stride.json
  memscape-cli measure hierarchy --device cuda:0 -o hierarchy.json
  memscape-cli measure training-memory model=gpt2 batch=2 sequence=128 --device pytorch:cpu
  memscape-cli measure stride --device replay:stride.json  plays a recorded run

Only a device of this machine can be measured: cpu, cuda:0, pytorch:cpu … Ctrl+C stops the run and keeps the
points that are there, marked as interrupted; a second Ctrl+C ends the program at once. What is
predicted not to fit the memory is refused before it is tried; with --force it is tried anyway.)";

constexpr auto calibrateExamples = R"(
Runs the probes once, one to three minutes, and writes a device file. Predictions for this device then
use the rates measured here instead of those of a data sheet, and state it.

  memscape-cli calibrate --device cpu                      kept where predictions look for it
  memscape-cli calibrate --device cpu -o lab-machine.json  to be used as --device lab-machine.json
  memscape-cli calibrate --device cpu --forget             predictions use the description again

A calibration of grade D (something else used the machine) is not kept unless --use-anyway is given.
An impossible one (a far level quicker than a near one) is refused. Both exit with 1.)";

constexpr auto reportExamples = R"(
Examples:
  memscape-cli report stride.json --to html -o stride.html   one file: charts, why, provenance
  memscape-cli report a.json b.json --to csv -o both.csv     one row per point, for a spreadsheet
  memscape-cli measure stride --device cpu --json | memscape-cli report - --to md -o -

A RECORD is a record or a study file; - reads one from standard input.)";

constexpr auto snapshotExamples = R"(
Reads what torch.cuda.memory._dump_snapshot() wrote (PyTorch 1.13 or newer) or a *.memscape-run of
memscape_probe, at any size, without running anything in it, and prints peaks, fragmentation and
findings: growth a step, out of memory, retained graphs, gradients kept, cache held, retries.

  memscape-cli snapshot oom.pickle
  memscape-cli snapshot oom.pickle --json | jq .measured.detail.findings
  memscape-cli snapshot oom.pickle model=gpt2 batch=32       what would have saved how much where it ran out
  memscape-cli snapshot run.memscape-run --range 25%:75%
  memscape-cli snapshot oom.pickle --to html -o oom.html
  memscape-cli snapshot run.memscape-run --to memory_viz -o run.pickle   for pytorch.org/memory_viz
  memscape-cli snapshot oom.pickle --to csv -o blocks.csv                a line for every block

A range is FIRST:LAST in events (1200:2400) or in shares of the trace (0.25:0.75).)";

constexpr auto compareExamples = R"(
The figures of two snapshots side by side, and which categories, lines and stacks hold more in one
than in the other at the peak. Records, too, by the figures that both have.

  memscape-cli compare before.pickle after.pickle
  memscape-cli compare a.json b.json --json)";

constexpr auto checkExamples = R"(
Prints the type of each file and whether it is valid, or the place of the first error. Reads every
Memscape document (record, study, device, chain), Hugging Face config.json and PyTorch memory
snapshots. Exits with 2 when any file has an error.

  memscape-cli check lesson.memscape resources/devices/*.json)";

constexpr auto labExamples = R"(
A lab has steps: read, predict, lock the prediction, measure, explain, tune. Answers are a text file, *.mlab.

For students:
  memscape-cli lab list                                      the labs; --json for programs
  memscape-cli lab show cache-size --for "Ada L."            its text with Ada's parameters
  memscape-cli lab start cache-size --for "Ada L." -o ada.mlab
  memscape-cli lab start zero --for Ada -o ada.mlab --study start.memscape   with pages prepared for the window
  memscape-cli lab answer ada.mlab                           which steps are open, locked, done
  memscape-cli lab answer ada.mlab guess l1=48KiB l2=1MiB --lock
  memscape-cli lab answer ada.mlab run --record run.json     what measure -o run.json wrote
  memscape-cli lab answer ada.mlab run --replay              the lab's recorded run instead
  memscape-cli lab answer ada.mlab guess --hint              the next hint; it may cost points
  memscape-cli lab report ada.mlab -o ada.html               answers, points and runs as a page

For teachers:
  memscape-cli lab new my-lab --title "My lab"               a small lab that works, to be changed
  memscape-cli lab check my-lab                              texts, links, points, solution; without a name: all
  memscape-cli lab pack my-lab --student -o handout/my-lab   without solution and checks
  memscape-cli lab start my-lab --for "Ada L." --solution -o full.mlab
  memscape-cli grade my-lab submissions/ --format csv -o class.csv
  memscape-cli lab report submissions/ -o pages/             a page for each *.mlab below the folder

A LAB is an id of the list or the folder of a lab. Exit codes: 0 done, 2 the input was wrong, 3 the lab is broken.)";

constexpr auto gradeExamples = R"(
Grades answers to a lab; of a folder every *.mlab below it, in the order of their names. What can be recomputed is
recomputed; a submission that cannot be graded says why and does not stop the rest.

  memscape-cli grade cache-size ada.mlab
  memscape-cli grade cache-size submissions/ --format csv -o class.csv
  memscape-cli grade cache-size ada.mlab --format gradescope -o results.json
  memscape-cli grade cache-size full.mlab --fail-under 100

Formats: text, json, csv, autolab, gradescope, junit. Exit codes: 0 all graded whatever the points, 1 a submission could
not be graded or is under --fail-under, 2 usage, 3 the lab itself is broken (or checks nothing).)";

constexpr auto selftestExamples = R"(
Runs every measuring kernel on small inputs and compares the results with a plain reference.
Without --device: every device of this machine. Exits with 1 when a kernel is wrong.)";

constexpr auto workerExamples = R"(
For programs: reads commands and writes events, one JSON object per line, until standard input
ends. The window starts one; with `ssh lab-gpu memscape-cli worker` it measures on a remote machine.

  {"cmd":"run","id":1,"experiment":"stride","device":"cpu","parameters":{"stride":4}}
  {"cmd":"cancel","id":1})";

using Apps = std::vector<CLI::App*>;

void addJson(CLI::App& command, Arguments& arguments)
{
    command.add_flag("--json", arguments.json, "JSON on standard output, and nothing else");
}

void addOutput(CLI::App& command, Arguments& arguments, const std::string& what)
{
    command.add_option("-o,--output", arguments.output, what)->type_name("FILE");
}

CLI::Option* addDevice(CLI::App& command, Arguments& arguments, const std::string& what)
{
    return command.add_option("--device", arguments.device, what)->type_name("ID");
}

void addPython(CLI::App& command, Arguments& arguments)
{
    command
        .add_option("--python", arguments.python, "which Python runs PyTorch (default: MEMSCAPE_PYTHON, else python3)")
        ->type_name("PATH");
}

void addExperiment(CLI::App& command, Arguments& arguments)
{
    command.add_option("EXPERIMENT", arguments.experiment, "the experiment; see `memscape-cli list`")
        ->type_name("")
        ->required();
    // CLI11 of Debian 13 takes no name with an equals sign.
    command.add_option("PARAMETERS", arguments.assignments, "KEY=VALUE")->type_name("");
}

CLI::App& addCommand(CLI::App& app, const char* name, const char* what, const char* footer)
{
    CLI::App& command = *app.add_subcommand(name, what);
    command.footer(footer);
    return command;
}

void addLookups(CLI::App& app, Arguments& arguments)
{
    addJson(addCommand(app, "list", "the experiments and their questions", ""), arguments);
    CLI::App& devices = addCommand(app, "devices", "live, catalogue and calibrated devices", "");
    addJson(devices, arguments);
    addPython(devices, arguments);
    CLI::App& describe = addCommand(app, "describe", "one experiment: parameters, figures, curves",
                                    "\nExample:\n  memscape-cli describe stride --json");
    describe.add_option("EXPERIMENT", arguments.experiment, "its id; see `memscape-cli list`")
        ->type_name("")
        ->required();
    addJson(describe, arguments);
}

void addQuestions(CLI::App& app, Arguments& arguments)
{
    CLI::App& predict = addCommand(app, "predict", "predict memory and time: instant", "");
    predict.footer(std::string(parameterHelp) + "\n" + predictExamples);
    addExperiment(predict, arguments);
    addDevice(predict, arguments, "for which device (default: cpu)");
    addPython(predict, arguments);
    addJson(predict, arguments);
    addOutput(predict, arguments, "write the record to FILE");
    predict
        .add_option(
            "--as", arguments.snippet,
            "the setting for another program: pytorch, deepspeed, accelerate, torchrun; the step for memory_viz")
        ->type_name("PROGRAM")
        ->excludes("--json");

    CLI::App& claims = addCommand(app, "claims", "what course notes claim, each with a verdict", claimsExamples);
    claims.add_option("--source", arguments.source, "only those of one note (default: all)")->type_name("NOTE");
    claims.add_option("--experiment", arguments.experiment, "only those that this experiment shows")->type_name("ID");
    claims
        .add_flag("--questions", arguments.questions,
                  "the deep questions of the notes: their answers, where they are true, and steps that show it")
        ->excludes("--source")
        ->excludes("--experiment");
    addDevice(claims, arguments, "judged for which device (default: cpu)");
    addJson(claims, arguments);

    CLI::App& accuracy = addCommand(app, "accuracy", "predictions against published figures", accuracyExamples);
    accuracy.add_option("TABLE", arguments.files, "tables of published figures (default: those that ship)")
        ->type_name("");
    addJson(accuracy, arguments);
    accuracy.add_flag("--rows", arguments.everyRow, "every row, not the families alone")->excludes("--json");

    CLI::App& measure = addCommand(app, "measure", "measure memory and time: a real run beside the prediction", "");
    measure.footer(std::string(parameterHelp) + "\n" + measureExamples);
    addExperiment(measure, arguments);
    addDevice(measure, arguments, "on which device of this machine");
    addPython(measure, arguments);
    addJson(measure, arguments);
    measure
        .add_flag("--events", arguments.events,
                  "JSON lines while it runs: started, progress, "
                  "sample, note, one done")
        ->excludes("--json");
    measure.add_flag("--force", arguments.force, "also sizes that are predicted not to fit, in a process of its own");
    addOutput(measure, arguments, "write the record to FILE");

    CLI::App& calibrate =
        addCommand(app, "calibrate", "measure a device once, for better predictions", calibrateExamples);
    addDevice(calibrate, arguments, "which device of this machine");
    addOutput(calibrate, arguments, "write the device to FILE instead");
    calibrate.add_flag("--use-anyway", arguments.anyway, "use the new one even if it has grade D");
    calibrate.add_flag("--forget", arguments.forget, "remove the saved calibration and measure nothing")
        ->excludes("--use-anyway", "--output");
}

void addDocuments(CLI::App& app, Arguments& arguments)
{
    CLI::App& report = addCommand(app, "report", "records as a page, a table or text", reportExamples);
    report.add_option("RECORD", arguments.files, "record or study files")->type_name("")->required();
    report.add_option("--to", arguments.format, "html, md, text, csv or json")->type_name("FORMAT")->required();
    addOutput(report, arguments, "where to (default, or -: standard output)");
    report.add_option("--title", arguments.title, "heading of the report")->type_name("TEXT");
    report.add_flag("--comments", arguments.comments, "csv: lines with # on top that name the units");

    CLI::App& snapshot = addCommand(app, "snapshot", "a PyTorch memory snapshot: peaks and findings", snapshotExamples);
    // One text, not the list itself: a list would take the parameters behind it.
    snapshot
        .add_option_function<std::string>(
            "FILE", [&arguments](const std::string& file) { arguments.files = {file}; },
            "snapshot or *.memscape-run; - is standard input")
        ->type_name("")
        ->required();
    snapshot.add_option("PARAMETERS", arguments.assignments, "KEY=VALUE: the plan of the run, as for training-memory")
        ->type_name("");
    snapshot.add_option("--range", arguments.range, "only these events")->type_name("FIRST:LAST");
    addDevice(snapshot, arguments, "cuda:0, cuda:1 … of the file (default: the one with most events)");
    addJson(snapshot, arguments);
    snapshot.add_option("--to", arguments.format, "html, csv, json or memory_viz")
        ->type_name("FORMAT")
        ->excludes("--json");
    addOutput(snapshot, arguments, "write the record, or what --to names, to FILE");

    CLI::App& compare = addCommand(app, "compare", "two snapshots or records side by side", compareExamples);
    compare.add_option("FILE", arguments.files, "two files")->type_name("")->expected(2)->required();
    addDevice(compare, arguments, "cuda:0, cuda:1 … of snapshots (default: the one with most events)");
    addJson(compare, arguments);
    addOutput(compare, arguments, "write the comparison as JSON to FILE");

    CLI::App& check = addCommand(app, "check", "the type of each file, and whether it is valid", checkExamples);
    check.add_option("FILE", arguments.files, "any document; - is standard input")->type_name("")->required();

    CLI::App& selftest = addCommand(app, "selftest", "every kernel against its reference", selftestExamples);
    addDevice(selftest, arguments, "which device (default: every one here)");
    addPython(selftest, arguments);
    addPython(addCommand(app, "worker", "measure for another program: JSON lines", workerExamples), arguments);
}

void addLabs(CLI::App& app, Arguments& arguments)
{
    CLI::App& lab = addCommand(app, "lab", "labs: list, show, start, answer, report; check, pack, new", labExamples);
    lab.add_option("ACTION", arguments.action, "list, show, start, answer, report, check, pack or new")
        ->type_name("")
        ->required();
    lab.add_option("WORDS", arguments.files, "the lab, or what the action takes")->type_name("");
    addJson(lab, arguments);
    lab.add_option("--for", arguments.student, "show, start: whose parameters")->type_name("NAME");
    lab.add_option("--title", arguments.title, "new: the lab's title")->type_name("TEXT");
    lab.add_option("--lab", arguments.labFolder,
                   "answer, report: the folder of a lab that does not ship with the program")
        ->type_name("FOLDER");
    lab.add_option("--record", arguments.record, "answer: the run of a measure step")->type_name("FILE");
    lab.add_flag("--replay", arguments.replay, "answer: the lab's recorded run instead")->excludes("--record");
    lab.add_flag("--lock", arguments.lock, "answer: commit the prediction; the measurement opens");
    lab.add_flag("--hint", arguments.hint, "answer: the next hint");
    lab.add_flag("--student", arguments.forStudents, "pack: leave out solution and checks");
    lab.add_option("--study", arguments.study, "start: pages that tune and fix steps begin with, for the window")
        ->type_name("FILE");
    lab.add_flag("--solution", arguments.solution, "start: with the teacher's answers");
    addOutput(lab, arguments, "start: the answers; report: the page; pack, report of a folder: the folder");

    CLI::App& grade = addCommand(app, "grade", "answers to a lab: points, and why", gradeExamples);
    grade.add_option("LAB", arguments.labFolder, "its id, or the folder of a lab")->type_name("")->required();
    grade.add_option("ANSWERS", arguments.files, "files, or folders of them")->type_name("")->required();
    grade.add_option("--format", arguments.format, "text (default), json, csv, autolab, gradescope, junit")
        ->type_name("FORMAT");
    grade.add_option("-o,--output,--out", arguments.output, "where to (default, or -: standard output)")
        ->type_name("FILE");
    grade.add_option("--show", arguments.show, "hidden: also what hidden checks say")->type_name("WHAT");
    grade.add_option("--jobs", arguments.jobs, "submissions at a time (default: as many as cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    grade.add_option("--fail-under", arguments.failUnder, "exit with 1 when one has fewer percent")
        ->type_name("P")
        ->check(CLI::Range(0.0, 100.0));
}

std::vector<std::string> optionNames(const CLI::App& command)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    return names;
}

/// The help of predict and measure ends with the parameters of the experiment that was named.
void printHelp(const CLI::App& app, const std::vector<std::string>& words)
{
    const auto chosen = app.get_subcommands();
    std::string text = chosen.empty() ? app.help() : chosen.front()->help("memscape-cli");
    for (const std::string& word : words) {
        if (const auto experiment = findExperiment(word); experiment && !chosen.empty())
            text += "\n" + parametersText(**experiment);
    }
    printOut(text.ends_with('\n') ? text : text + "\n");
}

Answered usageError(const CLI::App& app, const std::string& message, const std::string& hint)
{
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
    complain({"usage", message, {}, hint});
    note(fmt::format("try: memscape-cli{} --help", command));
    return {static_cast<int>(ExitCode::BadInput)};
}

Answered unexpectedWords(const CLI::App& app, const CLI::ExtrasError& problem)
{
    const auto chosen = app.get_subcommands();
    const auto words = app.remaining(true);
    const std::string word = words.empty() ? "" : words.front();
    const std::string shown = quotedForMessage(word);
    if (!chosen.empty() && word.starts_with("-"))
        return usageError(app, fmt::format("{} has no option {}", chosen.front()->get_name(), shown),
                          didYouMean(word.substr(0, word.find('=')), optionNames(*chosen.front())));
    return usageError(app, parseProblem(app, problem), {});
}

/// The first word that is not an option must be a command; CLI11 alone would not name near ones.
std::optional<Answered> unknownCommand(const CLI::App& app, const std::vector<std::string>& words)
{
    const auto word = std::ranges::find_if(words, [](const std::string& text) { return !text.starts_with("-"); });
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands(nullptr))
        names.push_back(command->get_name());
    if (word == words.end() || std::ranges::find(names, *word) != names.end())
        return {};
    return usageError(app, fmt::format("there is no command \"{}\"", quotedForMessage(*word)),
                      didYouMean(*word, names));
}

} // namespace

std::variant<Arguments, Answered> parseArguments(int argc, char** argv)
{
    Arguments arguments;
    CLI::App app("Memscape on the command line.", "memscape-cli");
    app.footer(overview);
    app.set_version_flag("--version", "memscape-cli " + programVersion());
    addLookups(app, arguments);
    addQuestions(app, arguments);
    addDocuments(app, arguments);
    addLabs(app, arguments);

    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty()) {
        const std::string help = app.help();
        std::fwrite(help.data(), 1, help.size(), stderr);
        return Answered{static_cast<int>(ExitCode::BadInput)};
    }
    if (auto answered = unknownCommand(app, words))
        return *answered;
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        printHelp(app, words);
        return Answered{0};
    } catch (const CLI::CallForVersion& version) {
        printOut(std::string(version.what()) + "\n");
        return Answered{0};
    } catch (const CLI::ExtrasError& problem) {
        return unexpectedWords(app, problem);
    } catch (const CLI::ParseError& problem) {
        return usageError(app, parseProblem(app, problem), {});
    }
    const auto chosen = app.get_subcommands();
    if (chosen.empty())
        return usageError(app, "a command is missing", "memscape-cli --help lists them");
    arguments.command = chosen.front()->get_name();
    return arguments;
}

} // namespace memscape::cli

// SPDX-License-Identifier: Apache-2.0
// Submissions are read, graded and dropped a few at a time: a class of runs would not fit the memory at once. Exit
// codes: 0 all graded (whatever the score), 1 a submission could not be graded or is under --fail-under, 2 usage, 3 the
// lab itself is broken.
#include "app/cli/answers.h"
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/lab/lab_report.h"
#include "core/report/text_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape::cli {

namespace {

constexpr int ungraded = 1;

/// Of a submission that cannot be read or graded the problem is in the grade; an error is the lab's.
Result<LabGrade> graded(const std::shared_ptr<const Lab>& lab, const std::string& file, LabPredictions& predictions)
{
    LabGrade unreadable;
    unreadable.lab = lab->id;
    const auto text = readText(file);
    auto attempt = text ? LabAttempt::parse(lab, *text) : tl::unexpected(text.error());
    if (!attempt)
        unreadable.problem = attempt.error();
    auto grade = attempt ? gradeLab(*attempt, predictions) : Result<LabGrade>(std::move(unreadable));
    if (grade)
        grade->file = file;
    return grade;
}

int refusedLab(const Error& error)
{
    complain(error);
    return error.code == "lab.unknown" || error.code == "lab.missing" ? static_cast<int>(ExitCode::BadInput)
                                                                      : brokenLab;
}

Result<void> checkOptions(const Arguments& arguments, GradeFormat format, std::size_t submissions)
{
    if (!arguments.show.empty() && arguments.show != "hidden")
        return fail("usage", fmt::format("--show takes \"hidden\", not \"{}\"", quotedForMessage(arguments.show)));
    const bool single = format == GradeFormat::Autolab || format == GradeFormat::Gradescope;
    if (single && submissions > 1)
        return fail("usage",
                    fmt::format("{} grades one submission at a time, these are {}", arguments.format, submissions),
                    "use --format csv for a class");
    return writable(arguments.output);
}

} // namespace

int runGrade(const Arguments& arguments)
{
    const auto format = gradeFormatFromText(arguments.format.empty() ? "text" : arguments.format);
    if (!format)
        return refused(format.error());
    const auto files = answerFiles(arguments.files);
    if (!files)
        return refused(files.error());
    if (const auto sound = checkOptions(arguments, *format, files->size()); !sound)
        return refused(sound.error());
    const auto lab = findLab(arguments.labFolder);
    if (!lab)
        return refusedLab(lab.error());

    const bool showHidden = arguments.show == "hidden";
    const std::size_t jobs = arguments.jobs > 0 ? arguments.jobs : coreCount();
    const bool streams = *format == GradeFormat::Text && (arguments.output.empty() || arguments.output == "-");
    LabPredictions predictions;
    std::vector<LabGrade> grades;
    int code = 0;
    for (std::size_t first = 0; first < files->size(); first += jobs) {
        const std::size_t count = std::min(jobs, files->size() - first);
        std::vector<Result<LabGrade>> some(count);
        inParallel(count, jobs, [&](std::size_t i) { some[i] = graded(*lab, (*files)[first + i], predictions); });
        for (Result<LabGrade>& one : some) {
            if (!one)
                return refusedLab(one.error());
            if (one->problem || (arguments.failUnder >= 0 && one->percent() < arguments.failUnder))
                code = ungraded;
            if (one->problem)
                note(fmt::format("{}: {}", one->file, one->problem->text()));
            if (streams)
                printOut((grades.empty() ? "" : "\n") + gradesReport(*format, **lab, {*one}, showHidden));
            grades.push_back(std::move(*one));
        }
    }
    const auto before = flagCopiedRuns(grades);
    if (streams) {
        for (std::size_t i = 0; i < grades.size(); ++i)
            for (std::size_t j = before[i]; j < grades[i].flags.size(); ++j)
                printOut(printable(fmt::format("{}: look at: {}", grades[i].student, grades[i].flags[j])) + "\n");
        return code;
    }
    const std::string output = arguments.output.empty() ? "-" : arguments.output;
    return deliver(output, gradesReport(*format, **lab, grades, showHidden), false, code);
}

} // namespace memscape::cli

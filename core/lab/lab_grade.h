// SPDX-License-Identifier: Apache-2.0
// Grading: every check of a lab against one student's answers, in the lab's order. What can be recomputed is
// recomputed: predictions with the student's parameters, the prediction inside of a run, a drawn curve against the
// measured one. A check whose dependency failed is skipped; one that cannot be graded says why and the rest goes on.
// Left out: copied texts, the sense of texts (a person reads them), and proof of who did the work.
#pragma once

#include "core/lab/lab_context.h"

namespace memscape {

enum class LabVerdict { Passed, Failed, Skipped, Ungraded };
std::string_view labVerdictText(LabVerdict verdict); ///< "passed", "failed", "skipped", "cannot be graded"
std::string labPointsText(double points);            ///< "2.25": at most two decimals

struct LabCheckResult
{
    std::string id, step, kind;
    LabVerdict verdict = LabVerdict::Failed;
    double points = 0, most = 0;
    std::string expected, actual; ///< for people; may be empty
    std::string message;          ///< why, a sentence
    std::string needs;            ///< of a skipped one: the check that must pass first
    std::string because;          ///< the lab's explanation
    bool hidden = false;
};

/// A text that a person reads.
struct LabTextAnswer
{
    std::string question, ask, text;
    double most = 0; ///< points
};

struct LabStepResult
{
    std::string id, title;
    double points = 0, most = 0; ///< of checks; hints taken off, not below 0
    std::size_t hints = 0;
    double hintCost = 0; ///< what was taken off
};

struct LabGrade
{
    std::string lab, student, file;
    std::optional<Error> problem; ///< it could not be graded; the rest is empty
    double points = 0, most = 0;  ///< of checks
    double byPerson = 0;          ///< points that a person still gives
    std::vector<LabStepResult> steps;
    std::vector<LabCheckResult> checks;
    std::vector<LabTextAnswer> texts;
    std::vector<std::string> flags;            ///< what a teacher should look at, a sentence each
    std::map<std::string, std::uint64_t> runs; ///< by step: what tells the samples of the student's own run from others

    double percent() const { return most > 0 ? 100 * points / most : 0; }
};

/// Errors are the lab's own: lab.broken with the check (an expression that cannot be computed), lab.empty (a lab
/// without checks grades nothing). What is the student's is in the answer.
Result<LabGrade> gradeLab(const LabAttempt& attempt, LabPredictions& predictions);

/// Flags runs of different students with the same samples: no two measurements agree in all of them. Returns for each
/// grade how many flags it had before.
std::vector<std::size_t> flagCopiedRuns(std::vector<LabGrade>& grades);

/// Why a run is not what it says: its curves lie elsewhere than its parameters' sweep, a sample belongs to no point,
/// counts, medians or minima differ from the samples', its values lie outside of their bands. Empty: nothing found.
std::vector<std::string> runProblems(const Record& record);

/// Why the prediction in a record is not what its device and parameters predict; empty when it is. `relative` is the
/// largest difference that counts as none. Times of our own solvers are left out.
std::string reproductionProblem(const Record& record, double relative = 1e-6);

} // namespace memscape

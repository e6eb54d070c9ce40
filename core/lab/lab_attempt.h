// SPDX-License-Identifier: Apache-2.0
// A lab in progress: what a student answered, locked and measured, as a value. Its document, *.mlab, is a text file:
//     {"format": "memscape-answers", "version": 1, "lab": "cache-size", "hash": "…", "student": "Ada", "started": …,
//      "steps": {"knees": {"answers": {"l1": "48 KiB"}, "answered": …, "locked": …, "hints": 1},
//                "run": {"record": 0} or {"replay": "replay/latency.json"}},
//      "study": {a memscape-study with the runs}}
// Unknown keys are kept and written back; one migration function per version. A student could edit it: grading
// recomputes what can be recomputed and claims no more than that.
// Left out: signatures, and hiding the lab's texts of later steps.
#pragma once

#include "core/lab/lab.h"

namespace memscape {

inline constexpr int answersVersion = 1;

/// What is kept of one step.
struct LabStepState
{
    std::map<std::string, Json> answers; ///< by question, as given: a text, a list, an object
    std::string answered, locked;        ///< when, UTC; empty: not yet
    std::size_t hints = 0;               ///< seen so far
    std::optional<std::size_t> record;   ///< of the study
    std::string replay;                  ///< the lab's recorded run instead
    Json extra;
};

/// An answer as its question wants it.
struct LabAnswer
{
    double number = nan;
    std::string word;                 ///< of a choice, or a text
    std::vector<std::string> ranking; ///< keys, in the student's order
    std::vector<double> curve;        ///< y at each x of the question
    std::vector<std::pair<std::string, std::string>> parameters;
};

/// Errors: lab.answer with what was expected. A comma as decimal sign is refused with the way to write it.
Result<LabAnswer> readLabAnswer(const LabQuestion& question, const LabStep& step, const Json& given);
/// Of an answer that is being given, which can be read: a time that is written has its unit (who writes 4 means
/// nanoseconds as a rule, and would have answered 4 s), and nothing is below zero. Answers that are kept are read as
/// they are. Errors: lab.answer.
Result<void> checkLabNumbers(const LabQuestion& question, const Json& given);

class LabAttempt
{
public:
    LabAttempt(std::shared_ptr<const Lab> lab, std::string student, std::string started = utcNow());
    /// Errors: json.*, document.newer, lab.answers (another lab's), those of a study. Of another version of the lab
    /// what still fits is kept; see isOfThisLab().
    static Result<LabAttempt> parse(std::shared_ptr<const Lab> lab, const std::string& text);
    Json toJson() const;

    const Lab& lab() const { return *m_lab; }
    const std::string& student() const { return m_student; }
    const std::string& started() const { return m_started; }
    bool isOfThisLab() const { return m_hash == m_lab->hash; }
    const std::vector<std::pair<std::string, std::string>>& variant() const;

    /// Whether its steps before are done, so that it may be read and worked on.
    bool isOpen(std::string_view step) const;
    /// A prediction that was committed: its answers stay as they are.
    bool isLocked(std::string_view step) const;
    /// read: it is open; predict: locked; measure: a run is there; else every question has an answer.
    bool isDone(std::string_view step) const;

    /// Keeps an answer. Errors: lab.step, lab.question, lab.closed (steps before it are not done), lab.locked,
    /// lab.answer.
    Result<void> answer(std::string_view step, std::string_view question, const Json& given,
                        const std::string& time = utcNow());
    /// Commits a prediction; the measurement opens. Errors: lab.closed, lab.locked, lab.answer (one is missing).
    Result<void> lock(std::string_view step, const std::string& time = utcNow());
    /// Keeps the run of a measure step. Errors: lab.closed, lab.run (another experiment or other parameters).
    Result<void> attach(std::string_view step, Record record, const std::string& time = utcNow());
    /// The recorded run of the lab instead of an own one. Errors: lab.closed, lab.run (the lab has none).
    Result<void> replay(std::string_view step, const std::string& time = utcNow());
    /// The next hint, from now on counted. Errors: lab.closed, lab.hint (there is none left).
    Result<std::string> hint(std::string_view step);

    const LabStepState* state(std::string_view step) const;
    /// The answer as kept; null when there is none.
    const Json* given(const LabQuestion& question) const;
    /// The run of a measure step: the student's, or the lab's recorded one; null when there is none.
    const Record* run(std::string_view step) const;
    const std::vector<Record>& records() const { return m_study.records; }

    /// The parameters of a step: the lab's with the variant put in, and the student's where they are free (of a fix
    /// step its start where there is no answer).
    Result<std::vector<std::pair<std::string, std::string>>> parameters(const LabStep& step) const;

private:
    Result<const LabStep*> openStep(std::string_view step) const;
    std::vector<bool> doneSteps() const; ///< in the lab's order

    std::shared_ptr<const Lab> m_lab;
    std::string m_student, m_started, m_hash;
    std::map<std::string, LabStepState, std::less<>> m_steps;
    Study m_study;
    Json m_extra;
};

/// The step's fixed parameters and sweep are the record's. Errors: lab.run with the first that differs.
Result<void> checkLabRun(const LabAttempt& attempt, const LabStep& step, const Record& record);

/// The teacher's solution as an attempt of that student: expressions ("=sqrt(n)") are computed for the variant.
/// Errors: lab.solution (it is missing, or a step of it cannot be answered).
Result<LabAttempt> solvedLab(std::shared_ptr<const Lab> lab, const std::string& student,
                             const std::string& time = utcNow());

} // namespace memscape

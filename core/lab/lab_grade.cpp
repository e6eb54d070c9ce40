// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_grade.h"

#include "core/base/json_values.h"
#include "core/base/text.h"
#include "core/lab/lab_hash.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Errors of the student's answer or run, and of what is not there yet: the check fails, the lab goes on.
bool isOfStudent(const Error& error)
{
    return error.code == "lab.missing" || error.code == "lab.answer" || error.code == "lab.run"
        || error.code.starts_with("parameter.") || error.code.starts_with("predict.")
        || !(error.code.starts_with("lab.") || error.code.starts_with("expression."));
}

/// One check while it is graded.
class CheckGrader
{
public:
    CheckGrader(const LabAttempt& attempt, const LabContext& context, const LabCheck& check, LabCheckResult& result)
        : m_lab(attempt.lab())
        , m_attempt(attempt)
        , m_context(context)
        , m_check(check)
        , m_result(result)
        , m_question(check.question.empty() ? nullptr : m_lab.question(check.question))
    { }

    Result<void> run()
    {
        switch (m_check.kind) {
        case LabCheckKind::RatioAtLeast: return ratio();
        case LabCheckKind::Reproduces: return reproduces();
        case LabCheckKind::Equals:
        case LabCheckKind::Within:
        case LabCheckKind::OneOf:
        case LabCheckKind::Order:
        case LabCheckKind::ModelAgrees: break;
        }
        const Json* given = m_attempt.given(*m_question);
        if (!given) {
            end(LabVerdict::Failed, "there is no answer");
            return {};
        }
        const LabStep& step = *m_lab.stepOf(*m_question);
        if (step.kind == LabStepKind::Predict && !m_attempt.isLocked(step.id)) {
            end(LabVerdict::Ungraded, "the prediction was never locked: it may have been made after the measurement");
            return {};
        }
        MEMSCAPE_TRY(answer, readLabAnswer(*m_question, step, *given));
        if (m_check.kind == LabCheckKind::Order)
            return order(answer);
        if (m_question->kind == LabQuestionKind::Curve)
            return curve(answer);
        if (m_question->kind == LabQuestionKind::Choice)
            return choice(answer);
        return number(answer);
    }

private:
    void end(LabVerdict verdict, std::string message)
    {
        m_result.verdict = verdict;
        m_result.message = std::move(message);
    }
    void decide(bool passed, std::string message)
    {
        end(passed ? LabVerdict::Passed : LabVerdict::Failed, std::move(message));
    }

    Result<LabValue> value(const std::string& text) const
    {
        if (m_question && m_question->kind == LabQuestionKind::Choice)
            for (const LabOption& one : m_question->options)
                if (one.key == text)
                    return labWord(text);
        return evaluateLab(text, m_context.scope());
    }

    /// The value as a number of the question's dimension.
    Result<LabValue> likeQuestion(const std::string& text) const
    {
        MEMSCAPE_TRY(wanted, value(text));
        if (wanted.isWord() || wanted.dimension != dimensionOf(m_question->unit))
            return fail("lab.dimension",
                        fmt::format("\"{}\" is {}, the answer to {} is in {}", text, wanted.text(), m_question->key,
                                    unitText(m_question->unit)));
        if (wanted.dimension.isTimed())
            return fail("lab.absolute", fmt::format("\"{}\" is an absolute time or rate", text), "use a ratio");
        return wanted;
    }

    Result<void> number(const LabAnswer& answer)
    {
        const double given = answer.number;
        m_result.actual = labNumber(given, m_question->unit).text(4);
        if (m_check.kind == LabCheckKind::OneOf) {
            bool found = false;
            for (const std::string& one : m_check.values) {
                MEMSCAPE_TRY(wanted, likeQuestion(one));
                found = found || std::abs(given - wanted.number()) <= 1e-9 * std::abs(wanted.number());
                m_result.expected += (m_result.expected.empty() ? "" : " or ") + wanted.text(4);
            }
            decide(found, found ? "" : "it is none of the right ones");
            return {};
        }
        MEMSCAPE_TRY(wanted, likeQuestion(m_check.value));
        const double right = wanted.number();
        const double slack = m_check.kind == LabCheckKind::Equals
            ? 1e-9 * std::abs(right)
            : std::max(m_check.absolute, m_check.relative * std::abs(right));
        m_result.expected = wanted.text(4);
        if (m_check.kind != LabCheckKind::Equals)
            m_result.expected += m_check.relative > 0 ? fmt::format(" ± {}", percentText(m_check.relative))
                                                      : fmt::format(" ± {}", labNumber(slack, m_question->unit).text());
        if (!std::isfinite(right)) {
            end(LabVerdict::Ungraded, "the right answer cannot be computed from this run");
            return {};
        }
        const bool passed = std::abs(given - right) <= slack * (1 + 1e-12);
        decide(passed, passed ? "" : given > right ? "it is too large" : "it is too small");
        return {};
    }

    Result<void> choice(const LabAnswer& answer)
    {
        m_result.actual = answer.word;
        const auto wanted = m_check.kind == LabCheckKind::OneOf ? m_check.values : std::vector{m_check.value};
        bool found = false;
        for (const std::string& one : wanted) {
            MEMSCAPE_TRY(right, value(one));
            const std::string word = right.isWord() ? right.word() : numberText(right.number());
            found = found || word == answer.word;
            m_result.expected += (m_result.expected.empty() ? "" : " or ") + word;
        }
        decide(found, found ? "" : "another option is right");
        return {};
    }

    Result<void> order(const LabAnswer& answer)
    {
        std::vector<std::pair<std::string, LabValue>> ranked;
        for (const std::string& key : answer.ranking)
            for (const LabOption& one : m_question->options)
                if (one.key == key) {
                    MEMSCAPE_TRY(by, evaluateLab(one.by, m_context.scope()));
                    if (by.isWord() || (!ranked.empty() && ranked.front().second.dimension != by.dimension))
                        return fail("lab.dimension",
                                    fmt::format("the items of {} cannot be ordered: {} is {}", m_question->key, key,
                                                by.text()));
                    ranked.emplace_back(key, by);
                }
        auto right = ranked;
        std::ranges::stable_sort(right, [&](const auto& a, const auto& b) {
            return m_check.smallest ? a.second.number() < b.second.number() : a.second.number() > b.second.number();
        });
        for (const auto& [key, by] : right)
            m_result.expected += fmt::format("{}{} ({})", m_result.expected.empty() ? "" : ", ", key, by.text());
        m_result.actual = join(answer.ranking, ", ");
        for (std::size_t i = 0; i < ranked.size(); ++i)
            for (std::size_t j = i + 1; j < ranked.size(); ++j) {
                const double a = ranked[i].second.number(), b = ranked[j].second.number();
                const bool wrong = m_check.smallest ? a > b * (1 + m_check.tie) : a * (1 + m_check.tie) < b;
                if (wrong) {
                    decide(false, fmt::format("{} stands before {}", ranked[i].first, ranked[j].first));
                    return {};
                }
            }
        decide(true, "");
        return {};
    }

    /// Median over the points of |log10(drawn / measured)|; of a shape after the median ratio is taken out.
    Result<void> curve(const LabAnswer& answer)
    {
        MEMSCAPE_TRY(right, m_context.curve(m_check.curve));
        std::vector<double> ratios;
        for (std::size_t i = 0; i < answer.curve.size(); ++i) {
            MEMSCAPE_TRY(x, evaluateLab(m_question->x[i], m_context.scope()));
            MEMSCAPE_TRY(y, labCurveAt(right, x));
            if (y <= 0)
                return fail("lab.missing", fmt::format("{} is not positive at {}", right.label, x.text()));
            if (answer.curve[i] <= 0) {
                decide(false, fmt::format("the drawn value at {} is not positive", x.text()));
                return {};
            }
            ratios.push_back(std::log10(answer.curve[i] / y));
        }
        const auto middle = [](std::vector<double> all) {
            std::ranges::sort(all);
            const std::size_t half = all.size() / 2;
            return all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
        };
        const double offset = m_check.shape ? middle(ratios) : 0;
        for (double& ratio : ratios)
            ratio = std::abs(ratio - offset);
        const double error = middle(ratios);
        m_result.expected = fmt::format("median error of at most {} decades", numberText(m_check.decades));
        m_result.actual =
            fmt::format("{} decades, a factor of {}", shortNumber(error, 2), shortNumber(std::pow(10, error), 3));
        decide(error <= m_check.decades, error <= m_check.decades ? "" : "the drawn curve lies too far off");
        return {};
    }

    Result<void> ratio()
    {
        MEMSCAPE_TRY(a, evaluateLab(m_check.value, m_context.scope()));
        MEMSCAPE_TRY(b, evaluateLab(m_check.than, m_context.scope()));
        if (a.isWord() || b.isWord() || a.dimension != b.dimension)
            return fail("lab.dimension",
                        fmt::format("\"{}\" ({}) and \"{}\" ({}) have no ratio", m_check.value, a.text(), m_check.than,
                                    b.text()));
        const double ratio = a.number() / b.number();
        m_result.expected =
            fmt::format("{} is at least {} times {}", m_check.value, numberText(m_check.least), m_check.than);
        m_result.actual = fmt::format("{} against {}: {} times", a.text(), b.text(), shortNumber(ratio));
        if (!std::isfinite(ratio)) {
            end(LabVerdict::Ungraded, "the ratio has no value");
            return {};
        }
        decide(ratio >= m_check.least * (1 - 1e-12), ratio >= m_check.least * (1 - 1e-12) ? "" : "it is too small");
        return {};
    }

    Result<void> reproduces()
    {
        const Record* run = m_attempt.run(m_check.source);
        if (!run) {
            end(LabVerdict::Failed, fmt::format("step {} was not measured", m_check.source));
            return {};
        }
        MEMSCAPE_CHECK(checkLabRun(m_attempt, *m_lab.step(m_check.source), *run));
        const std::string problem = reproductionProblem(*run, m_check.relative > 0 ? m_check.relative : 1e-6);
        const std::string version = words(run->provenance, "version");
        const bool other = !problem.empty() && version != programVersion();
        decide(problem.empty(), problem + (other ? fmt::format(" (the run was made by version {})", version) : ""));
        return {};
    }

    const Lab& m_lab;
    const LabAttempt& m_attempt;
    const LabContext& m_context;
    const LabCheck& m_check;
    LabCheckResult& m_result;
    const LabQuestion* m_question;
};

Result<LabCheckResult> gradedCheck(const LabAttempt& attempt, const LabContext& context, const LabStep& step,
                                   const LabCheck& check, const std::vector<LabCheckResult>& before)
{
    LabCheckResult result;
    result.id = check.id;
    result.step = step.id;
    result.kind = labCheckKindText(check.kind);
    result.most = check.points;
    result.hidden = check.hidden;
    for (const LabCheckResult& one : before) {
        const bool needed = std::ranges::find(check.after, one.id) != check.after.end();
        if (needed && one.verdict != LabVerdict::Passed) {
            result.verdict = LabVerdict::Skipped;
            result.needs = one.id;
            result.message = fmt::format("counts once {} is passed", one.id);
            return result;
        }
    }
    const auto ran = CheckGrader(attempt, context, check, result).run();
    if (!ran && !isOfStudent(ran.error()))
        return fail("lab.broken", fmt::format("check {} cannot be computed: {}", check.id, ran.error().message),
                    ran.error().hint, ran.error().place);
    if (!ran) {
        result.verdict = LabVerdict::Ungraded;
        result.message = ran.error().text();
    }
    result.points = result.verdict == LabVerdict::Passed ? check.points : 0;
    if (!check.because.empty()) {
        const auto text = filledLabText(check.because, context.scope());
        if (!text && !isOfStudent(text.error()))
            return fail("lab.broken", fmt::format("\"because\" of check {}: {}", check.id, text.error().message),
                        text.error().hint);
        result.because = text.value_or("");
    }
    return result;
}

/// What stands against a run: its samples, and when it was made.
void flagRuns(const LabAttempt& attempt, LabGrade& grade)
{
    std::vector<std::string>& flags = grade.flags;
    std::string locked;
    for (const LabStep& step : attempt.lab().steps) {
        const LabStepState* state = attempt.state(step.id);
        if (state && step.kind == LabStepKind::Predict)
            locked = std::max(locked, state->locked); // ISO 8601 in UTC: sorted as text
        const Record* run = state ? attempt.run(step.id) : nullptr;
        if (!run || step.kind != LabStepKind::Measure)
            continue;
        if (!state->replay.empty()) {
            flags.push_back(fmt::format("{}: the lab's recorded run was played, nothing was measured", step.id));
            continue;
        }
        if (const Json& samples = listOf(run->provenance, "samples"); !samples.empty())
            grade.runs[step.id] = labHash(jsonLine(samples));
        if (const auto fits = checkLabRun(attempt, step, *run); !fits)
            flags.push_back(fmt::format("{}: {}", step.id, fits.error().message));
        for (const std::string& problem : runProblems(*run))
            flags.push_back(fmt::format("{}: {}", step.id, problem));
        const std::string time = words(run->provenance, "time");
        if (!time.empty() && !locked.empty() && time < locked)
            flags.push_back(
                fmt::format("{}: the run was made at {}, the prediction locked at {}", step.id, time, locked));
        if (words(run->provenance, "grade") == "D")
            flags.push_back(fmt::format("{}: the run has grade D: {}", step.id, words(run->provenance, "reason")));
    }
}

} // namespace

std::string_view labVerdictText(LabVerdict verdict)
{
    switch (verdict) {
    case LabVerdict::Passed: return "passed";
    case LabVerdict::Failed: return "failed";
    case LabVerdict::Skipped: return "skipped";
    case LabVerdict::Ungraded: break;
    }
    return "cannot be graded";
}

std::string labPointsText(double points)
{
    return numberText(double(std::int64_t(points * 100 + (points < 0 ? -0.5 : 0.5))) / 100);
}

Result<LabGrade> gradeLab(const LabAttempt& attempt, LabPredictions& predictions)
{
    const Lab& lab = attempt.lab();
    if (lab.checkCount() == 0)
        return fail("lab.empty", fmt::format("the lab {} has no checks: nothing was graded", lab.id),
                    lab.isStudentPack ? "this is the pack for students: grade with the whole lab"
                                      : "add checks to its steps");
    const LabContext context(attempt, predictions);
    LabGrade grade;
    grade.lab = lab.id;
    grade.student = attempt.student();
    grade.byPerson = lab.byPerson();
    for (const LabStep& step : lab.steps) {
        LabStepResult result{step.id, step.title, 0, 0, 0, 0};
        for (const LabCheck& check : step.checks) {
            MEMSCAPE_TRY(one, gradedCheck(attempt, context, step, check, grade.checks));
            result.points += one.points;
            result.most += one.most;
            grade.checks.push_back(std::move(one));
        }
        if (const LabStepState* state = attempt.state(step.id)) {
            result.hints = std::min(state->hints, step.hints.size());
            double cost = 0;
            for (std::size_t i = 0; i < result.hints; ++i)
                cost += step.hints[i].cost;
            result.hintCost = std::min(cost, result.points);
        }
        result.points -= result.hintCost;
        grade.points += result.points;
        grade.most += result.most;
        for (const LabQuestion& question : step.questions) {
            if (question.kind != LabQuestionKind::Text)
                continue;
            const Json* given = attempt.given(question);
            grade.texts.push_back({question.key, filledLabText(question.ask, context.scope()).value_or(question.ask),
                                   given ? words(*given) : "", question.points});
        }
        grade.steps.push_back(std::move(result));
    }
    if (!attempt.isOfThisLab())
        grade.flags.emplace_back("the answers were written for another version of this lab");
    if (trimmed(attempt.student()).empty())
        grade.flags.emplace_back("the answers name no student");
    flagRuns(attempt, grade);
    return grade;
}

std::vector<std::size_t> flagCopiedRuns(std::vector<LabGrade>& grades)
{
    std::map<std::pair<std::string, std::uint64_t>, std::vector<LabGrade*>> owners;
    std::vector<std::size_t> before;
    for (LabGrade& grade : grades) {
        before.push_back(grade.flags.size());
        for (const auto& run : grade.runs)
            owners[run].push_back(&grade);
    }
    const auto isSame = [](const LabGrade* one, const LabGrade* other) {
        return lowered(trimmed(one->student)) == lowered(trimmed(other->student));
    };
    for (const auto& [run, all] : owners)
        for (LabGrade* grade : all)
            for (const LabGrade* other : all)
                if (!isSame(grade, other))
                    grade->flags.push_back(fmt::format("{}: the run has the samples of {}'s ({})", run.first,
                                                       other->student, other->file));
    return before;
}

} // namespace memscape

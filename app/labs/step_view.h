// SPDX-License-Identifier: GPL-3.0-or-later
// What the page shows of one step, computed beside the window's thread from values alone: its words with the figures
// put in, and what became of the answers so far. Of steps that are not done, and of hidden checks, nothing is said.
#pragma once

#include "core/lab/lab_grade.h"

#include <QString>
#include <QStringList>

namespace memscape {

struct QuestionView
{
    QString ask;                  ///< with values, Markdown
    QStringList labels;           ///< of the options, in the lab's order
    std::vector<LabValue> x;      ///< of a curve
    std::optional<Error> problem; ///< why it cannot be shown
};

/// A line of "you, predicted, measured, points".
struct ResultRow
{
    QString what;
    QString you, predicted, measured; ///< empty where there is none
    QString points;                   ///< "2 of 2", "checked when you hand in"
    QString why;                      ///< the lab's explanation where it did not pass, else empty
    LabVerdict verdict = LabVerdict::Passed;
    bool isHidden = false;
};

/// A drawn curve's question, and what it is compared with; null until the prediction is locked and measured.
struct CurveAnswer
{
    std::string question;
    std::vector<LabValue> x; ///< where it is asked
    std::optional<Series> predicted, measured;
};

struct LabStepView
{
    std::string step;
    QString text;                        ///< Markdown without its heading
    std::vector<QuestionView> questions; ///< as many as the step has
    QStringList hints;                   ///< those that were seen
    std::vector<ResultRow> rows;         ///< of this step and, of a measurement, of the predictions before it
    std::vector<CurveAnswer> curves;     ///< of this step, or of the steps before
    double points = 0;                   ///< so far, hints taken off, without hidden checks
    std::optional<LabGrade> grade;       ///< none of a student pack, which holds no checks
    std::optional<Error> problem;        ///< the text or the checks cannot be computed
};

LabStepView viewOfStep(const LabAttempt& attempt, const LabStep& step, LabPredictions& predictions);

/// "page_price" as words: "page price".
QString spokenKey(const std::string& key);
/// A number as a student would type it: "48 KiB", "1.5 ns", "0.25".
QString typedNumber(double value, Unit unit);
/// A kept answer as the field shows it; a list's items with ", " between.
QString answerText(const LabQuestion& question, const Json& given);
/// "3 of 5 steps".
QString progressText(const LabAttempt& attempt);
std::size_t doneSteps(const LabAttempt& attempt);
/// "2.5 of 4 points".
QString pointsText(double points, double most);

} // namespace memscape

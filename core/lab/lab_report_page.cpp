// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_report_page.h"

#include "core/base/json_values.h"
#include "core/base/text.h"
#include "core/report/html_page.h"
#include "core/report/svg_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

class AnswersPage
{
public:
    AnswersPage(const LabAttempt& attempt, const LabGrade& grade, LabPredictions& predictions)
        : m_lab(attempt.lab())
        , m_attempt(attempt)
        , m_grade(grade)
        , m_context(attempt, predictions)
    { }

    std::string html() const
    {
        std::string out = htmlPairs(facts());
        if (m_grade.problem)
            out += htmlElement("p", "It cannot be graded: " + m_grade.problem->text());
        if (!m_grade.flags.empty()) {
            out += "<h2>To look at</h2>\n<ul>\n";
            for (const std::string& flag : m_grade.flags)
                out += htmlElement("li", flag);
            out += "</ul>\n";
        }
        if (!m_grade.checks.empty())
            out += "<h2>Points</h2>\n" + htmlTable(pointsTable());
        for (const LabStep& step : m_lab.steps)
            if (step.kind == LabStepKind::Measure || !step.questions.empty() || !step.checks.empty())
                out += stepHtml(step);
        const std::string& student = m_attempt.student();
        return htmlPage(m_lab.title + (trimmed(student).empty() ? "" : " · " + student), out);
    }

private:
    TextPairs facts() const
    {
        TextPairs facts{{"student", trimmed(m_attempt.student()).empty() ? "(no name)" : m_attempt.student()},
                        {"lab", m_lab.id},
                        {"begun", m_attempt.started().empty() ? "(no date)" : m_attempt.started()}};
        std::string last;
        for (const LabStep& step : m_lab.steps)
            if (const LabStepState* state = m_attempt.state(step.id))
                last = std::max({last, state->answered, state->locked}); // ISO 8601 in UTC: sorted as text
        if (!last.empty())
            facts.emplace_back("last change", last);
        if (m_grade.checks.empty())
            facts.emplace_back("points", "not graded");
        else
            facts.emplace_back("points",
                               fmt::format("{} of {}, {} %", labPointsText(m_grade.points), labPointsText(m_grade.most),
                                           labPointsText(m_grade.percent())));
        if (m_lab.byPerson() > 0)
            facts.emplace_back("by a person",
                               fmt::format("texts, up to {} points more", labPointsText(m_lab.byPerson())));
        return facts;
    }

    TextTable pointsTable() const
    {
        TextTable table{{{"step", false}, {"points", true}, {"of", true}, {"hints", true}, {"hints cost", true}}, {}};
        for (const LabStepResult& step : m_grade.steps)
            if (step.most > 0 || step.hints > 0)
                table.rows.push_back({step.title, labPointsText(step.points), labPointsText(step.most),
                                      numberText(double(step.hints)), labPointsText(step.hintCost)});
        return table;
    }

    std::string stepHtml(const LabStep& step) const
    {
        std::string out = "<div>\n" + htmlElement("h2", step.title);
        out += htmlElement("p", stateText(step));
        if (step.kind == LabStepKind::Measure)
            out += runHtml(step);
        for (const LabQuestion& question : step.questions) {
            out += htmlElement("h3", filled(question.ask)) + answerHtml(question, step);
            for (LabCheckResult result : resultsOf(question.key)) {
                if (question.kind == LabQuestionKind::Choice && !result.expected.empty())
                    result.expected = labelsIn(question, result.expected);
                if (question.kind != LabQuestionKind::Curve)
                    result.actual.clear(); // it stands above
                out += checkHtml(result);
            }
            if (question.points > 0)
                out += htmlElement("p", fmt::format("A person gives up to {} points.", labPointsText(question.points)));
        }
        std::string others;
        for (const LabCheck& check : step.checks)
            if (const LabCheckResult* result = check.question.empty() ? resultOf(check.id) : nullptr)
                others += htmlElement("h3", "Check " + result->id) + checkHtml(*result);
        return out + others + "</div>\n";
    }

    std::string stateText(const LabStep& step) const
    {
        const LabStepState* state = m_attempt.state(step.id);
        std::string text(labStepKindText(step.kind));
        if (!state || state->answered.empty())
            return text + ", not answered";
        text += fmt::format(", answered {}", state->answered);
        if (step.kind == LabStepKind::Predict)
            text += state->locked.empty() ? ", never locked" : fmt::format(", locked {}", state->locked);
        return text;
    }

    std::string runHtml(const LabStep& step) const
    {
        const Record* run = m_attempt.run(step.id);
        if (!run)
            return htmlElement("p", "Nothing was measured.");
        std::string out;
        if (!m_attempt.state(step.id)->record)
            out += "<p><b>The lab's recorded run was played: the student measured nothing.</b></p>\n";
        TextPairs facts{{"machine", run->device.name}};
        if (const std::string grade = gradeText(*run); !grade.empty())
            facts.emplace_back("measured", grade);
        if (const std::string time = words(run->provenance, "time"); !time.empty())
            facts.emplace_back("at", time);
        for (const auto& [name, value] : parameterRows(*run))
            facts.emplace_back(name, value);
        return out + htmlPairs(facts) + htmlTable(figuresTable(*run));
    }

    /// A text of the lab for this student; as it is written where it cannot be filled.
    std::string filled(const std::string& text) const { return filledLabText(text, m_context.scope()).value_or(text); }

    std::string labelOf(const LabQuestion& question, const std::string& key) const
    {
        for (const LabOption& one : question.options)
            if (one.key == key)
                return filled(one.label);
        return key;
    }

    /// "a or b", keys of options, as their labels.
    std::string labelsIn(const LabQuestion& question, const std::string& keys) const
    {
        std::vector<std::string> labels;
        for (const LabOption& one : question.options) {
            const std::string padded = " " + keys + " ";
            if (padded.find(" " + one.key + " ") != std::string::npos)
                labels.push_back(filled(one.label));
        }
        return labels.empty() ? keys : join(labels, " or ");
    }

    /// Where checks follow, they say what is wrong with it.
    std::string unreadHtml(const LabQuestion& question, const Json& given, const Error& error) const
    {
        return htmlElement("p", "Answer: " + quotedForMessage(jsonLine(given), 2000))
            + (resultsOf(question.key).empty() ? htmlElement("p", error.text()) : "");
    }

    std::string answerHtml(const LabQuestion& question, const LabStep& step) const
    {
        const Json* given = m_attempt.given(question);
        if (!given)
            return "<p class=\"dim\">No answer.</p>\n";
        const auto answer = readLabAnswer(question, step, *given);
        if (!answer)
            return unreadHtml(question, *given, answer.error());
        switch (question.kind) {
        case LabQuestionKind::Text:
            return "<blockquote style=\"white-space: pre-wrap\">" + escapedForXml(answer->word) + "</blockquote>\n";
        case LabQuestionKind::Curve: return curveHtml(question, step, *answer);
        case LabQuestionKind::Choice: return htmlElement("p", "Answer: " + labelOf(question, answer->word));
        case LabQuestionKind::Ranking: {
            std::string items;
            for (const std::string& key : answer->ranking) {
                const std::string label = labelOf(question, key);
                items += htmlElement("li", label == key ? key : fmt::format("{} ({})", label, key));
            }
            return "<ol>\n" + items + "</ol>\n";
        }
        case LabQuestionKind::Parameters: {
            const TextPairs pairs(answer->parameters.begin(), answer->parameters.end());
            return htmlPairs(pairs);
        }
        case LabQuestionKind::Number: break;
        }
        return htmlElement(
            "p",
            "Answer: "
                + (given->is_string() ? given->get<std::string>() : quantityText(answer->number, question.unit)));
    }

    /// What was drawn, over the predicted and the measured curve as soon as the prediction is locked.
    std::string curveHtml(const LabQuestion& question, const LabStep& step, const LabAnswer& answer) const
    {
        Chart chart;
        chart.title = question.yLabel.empty() ? question.key : question.yLabel;
        chart.x = {question.xLabel, unitFromText(question.xUnit).value_or(Unit::One), ChartScale::Log10, {}};
        chart.y = {chart.title, question.unit, ChartScale::Log10, {}};
        if (chart.x.unit == Unit::Byte)
            chart.x.scale = ChartScale::Log2;
        const LabCheck* check = curveCheckOf(question);
        if (check && (step.kind != LabStepKind::Predict || m_attempt.isLocked(step.id)))
            addKnownCurves(check->curve, chart);
        std::vector<std::pair<double, double>> points;
        TextTable table{{{question.xLabel.empty() ? "at" : question.xLabel, false}, {chart.title, true}}, {}};
        for (std::size_t i = 0; i < answer.curve.size(); ++i) {
            const auto x = evaluateLab(question.x[i], m_context.scope());
            if (!x)
                return unreadHtml(question, *m_attempt.given(question), x.error());
            if (const double at = x->isWord() ? placeOf(x->word(), chart.x) : x->number(); std::isfinite(at))
                points.emplace_back(at, answer.curve[i]);
            table.rows.push_back({x->text(), quantityText(answer.curve[i], question.unit)});
        }
        std::ranges::sort(points);
        ChartCurve drawn{"drawn by the student", ChartRole::Drawn, {}, {}, {}, {}};
        for (const auto& [x, y] : points) {
            drawn.x.push_back(x);
            drawn.y.push_back(y);
        }
        chart.curves.push_back(std::move(drawn));
        for (const ChartCurve& curve : chart.curves) { // zero and below have no place on a logarithmic axis
            const auto isPositive = [](double value) { return !(value <= 0); };
            if (chart.x.scale != ChartScale::Category && !std::ranges::all_of(curve.x, isPositive))
                chart.x.scale = ChartScale::Linear;
            if (!std::ranges::all_of(curve.y, isPositive))
                chart.y.scale = ChartScale::Linear;
        }
        return "<figure>\n" + svgChart(chart) + "</figure>\n" + htmlDetails("Points", htmlTable(table));
    }

    /// Where a word stands on an axis of categories, which has it from now on.
    static double placeOf(const std::string& word, ChartAxis& axis)
    {
        axis.scale = ChartScale::Category;
        auto at = std::ranges::find(axis.names, word);
        if (at == axis.names.end())
            at = axis.names.insert(at, word);
        return double(at - axis.names.begin());
    }

    void addKnownCurves(const std::string& name, Chart& chart) const
    {
        const auto dot = name.find('.');
        const std::string key = name.substr(dot + 1);
        const auto add = [&](const Series& series, const char* label, ChartRole role) {
            if (!series.x.names.empty()) {
                chart.x.scale = ChartScale::Category;
                chart.x.names = series.x.names;
            }
            if (chart.x.label.empty())
                chart.x.label = series.x.label;
            chart.curves.push_back({label, role, series.x.values, series.y, series.low, series.high});
        };
        if (const Record* run = m_attempt.run(name.substr(0, dot))) {
            if (const Series* series = run->predicted ? run->predicted->findSeries(key) : nullptr)
                add(*series, "predicted", ChartRole::Predicted);
            if (const Series* series = run->measured ? run->measured->findSeries(key) : nullptr)
                add(*series, "measured", ChartRole::Measured);
        } else if (const auto curve = m_context.curve(name)) {
            add(*curve, "predicted", ChartRole::Predicted);
        }
    }

    const LabCheck* curveCheckOf(const LabQuestion& question) const
    {
        for (const LabStep& step : m_lab.steps)
            for (const LabCheck& check : step.checks)
                if (check.question == question.key && !check.curve.empty())
                    return &check;
        return nullptr;
    }

    const LabCheckResult* resultOf(const std::string& id) const
    {
        for (const LabCheckResult& one : m_grade.checks)
            if (one.id == id)
                return &one;
        return nullptr;
    }

    std::vector<LabCheckResult> resultsOf(const std::string& question) const
    {
        std::vector<LabCheckResult> results;
        for (const LabStep& step : m_lab.steps)
            for (const LabCheck& check : step.checks)
                if (const LabCheckResult* result = check.question == question ? resultOf(check.id) : nullptr)
                    results.push_back(*result);
        return results;
    }

    static std::string checkHtml(const LabCheckResult& result)
    {
        std::string out =
            fmt::format("<p><b>{}{}</b>, {} of {} points", result.hidden ? "hidden check: " : "",
                        labVerdictText(result.verdict), labPointsText(result.points), labPointsText(result.most));
        if (result.hidden)
            return out + "</p>\n";
        if (!result.message.empty())
            out += ": " + escapedForXml(result.message);
        out += "</p>\n";
        if (!result.expected.empty())
            out += htmlElement("p", "Right: " + result.expected);
        if (!result.actual.empty())
            out += htmlElement("p", "Found: " + result.actual);
        if (!result.because.empty())
            out += "<p class=\"dim\">" + escapedForXml(result.because) + "</p>\n";
        return out;
    }

    const Lab& m_lab;
    const LabAttempt& m_attempt;
    const LabGrade& m_grade;
    LabContext m_context;
};

} // namespace

std::string labAnswersHtml(const LabAttempt& attempt, const LabGrade& grade, LabPredictions& predictions)
{
    return AnswersPage(attempt, grade, predictions).html();
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/step_view.h"

#include "app/settings/words.h"
#include "core/base/json_values.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// The names of a lab with its runs' predictions in place of their measurements: what the model would have answered.
class ModelScope
{
public:
    ModelScope(const LabAttempt& attempt, const LabContext& context)
        : m_attempt(attempt)
        , m_context(context)
        , m_scope{[this](const std::string& name) { return value(name); },
                  [this](const std::string& function, const std::vector<LabValue>& arguments) {
                      return call(function, arguments);
                  }}
    { }

    const LabScope& scope() const { return m_scope; }

private:
    const Record* runOf(const std::string& source) const
    {
        const LabStep* step = m_attempt.lab().step(source);
        return step && step->kind == LabStepKind::Measure ? m_attempt.run(source) : nullptr;
    }

    Result<LabValue> value(const std::string& name) const
    {
        const auto dot = name.find('.');
        const Record* run = dot == std::string::npos ? nullptr : runOf(name.substr(0, dot));
        if (run && run->predicted) {
            const Figure* figure = findFigure(run->predicted->figures, name.substr(dot + 1));
            if (figure && figure->isNumber())
                return labNumber(figure->number(), figure->unit);
        }
        for (const auto& [key, expression] : m_attempt.lab().values)
            if (key == name && m_depth < 32) {
                ++m_depth;
                auto inner = evaluateLab(expression, m_scope);
                --m_depth;
                return inner;
            }
        return m_context.scope().name(name);
    }

    Result<LabValue> call(const std::string& function, const std::vector<LabValue>& arguments) const
    {
        const bool isMeasured = function == "at" && !arguments.empty() && arguments.front().isWord()
            && runOf(arguments.front().word()) != nullptr;
        return m_context.scope().call(isMeasured ? "predicted" : function, arguments);
    }

    const LabAttempt& m_attempt;
    const LabContext& m_context;
    LabScope m_scope;
    mutable int m_depth = 0;
};

/// "100 (+6.4 %)": what it is, and how far it is from the truth.
QString withError(const QString& text, double value, double truth)
{
    if (!std::isfinite(value) || !std::isfinite(truth) || truth == 0)
        return text;
    const double error = value / truth - 1;
    return std::abs(error) < 5e-4 ? text : QStringLiteral("%1 (%2)").arg(text, toQString(signedPercentText(error)));
}

double medianDecades(const std::vector<double>& ys, const std::vector<double>& truth)
{
    std::vector<double> errors;
    for (std::size_t i = 0; i < ys.size() && i < truth.size(); ++i)
        if (ys[i] > 0 && truth[i] > 0)
            errors.push_back(std::abs(std::log10(ys[i] / truth[i])));
    if (errors.empty())
        return nan;
    std::ranges::sort(errors);
    const std::size_t half = errors.size() / 2;
    return errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
}

QString factorText(double decades)
{
    return tr("median %1 × off").arg(toQString(shortNumber(std::pow(10, decades), 3)));
}

/// Fills the columns of one check.
class RowWriter
{
public:
    RowWriter(const LabAttempt& attempt, const LabContext& context, const LabCheck& check, const LabCheckResult& result)
        : m_attempt(attempt)
        , m_context(context)
        , m_model(attempt, context)
        , m_check(check)
        , m_result(result)
        , m_question(check.question.empty() ? nullptr : attempt.lab().question(check.question))
    { }

    ResultRow row()
    {
        const std::string name = m_check.id.substr(m_check.id.find('.') + 1);
        m_row.what = spokenKey(m_question ? m_question->key : name);
        m_row.verdict = m_result.verdict;
        m_row.isHidden = m_check.hidden;
        if (m_check.hidden) {
            m_row.points = tr("checked when you hand in");
            return m_row;
        }
        m_row.points = m_result.verdict == LabVerdict::Ungraded || m_result.verdict == LabVerdict::Skipped
            ? toQString(m_result.message)
            : pointsText(m_result.points, m_result.most);
        if (m_result.verdict == LabVerdict::Ungraded && isMeasurementMissing())
            m_row.points = tr("after the measurement");
        if (m_result.verdict == LabVerdict::Failed)
            m_row.why = toQString(m_result.because.empty() ? m_result.message : m_result.because);
        m_row.you = toQString(m_result.actual);
        if (m_check.kind == LabCheckKind::Reproduces) {
            m_row.what = tr("the run");
            m_row.you = m_result.verdict == LabVerdict::Passed ? tr("follows from its parameters") : QString();
        }
        if (m_question)
            answered();
        return m_row;
    }

private:
    bool isMeasurementMissing() const
    {
        const auto& steps = m_attempt.lab().steps;
        return std::ranges::any_of(
            steps, [&](const LabStep& one) { return one.kind == LabStepKind::Measure && !m_attempt.run(one.id); });
    }

    /// With this student's values, without marks.
    QString filled(const std::string& label) const
    {
        return toQString(filledLabText(label, m_context.scope()).value_or(label)).remove(u'`').remove(u'*');
    }

    QString labelOf(const std::string& key) const
    {
        for (const LabOption& one : m_question->options)
            if (one.key == key)
                return filled(one.label);
        return toQString(key);
    }

    void answered()
    {
        const Json* given = m_attempt.given(*m_question);
        const LabStep* step = m_attempt.lab().stepOf(*m_question);
        const auto answer = given ? readLabAnswer(*m_question, *step, *given) : Result<LabAnswer>(LabAnswer());
        if (!given || !answer)
            return;
        switch (m_question->kind) {
        case LabQuestionKind::Curve: return curve(*answer);
        case LabQuestionKind::Number: return number(*answer);
        case LabQuestionKind::Choice: return choice(*answer);
        case LabQuestionKind::Ranking: return order(*answer);
        case LabQuestionKind::Text:
        case LabQuestionKind::Parameters: break;
        }
    }

    void number(const LabAnswer& answer)
    {
        if (m_check.kind == LabCheckKind::OneOf) {
            m_row.predicted = toQString(m_result.expected);
            return;
        }
        const auto truth = evaluateLab(m_check.value, m_context.scope());
        if (!truth || truth->isWord())
            return;
        const auto model = evaluateLab(m_check.value, m_model.scope());
        const double right = truth->number();
        const bool isMeasured = model && !model->isWord() && std::abs(model->number() - right) > 1e-9 * std::abs(right);
        m_row.you = withError(m_row.you, answer.number, right);
        (isMeasured ? m_row.measured : m_row.predicted) = toQString(truth->text());
        if (isMeasured)
            m_row.predicted = withError(toQString(model->text()), model->number(), right);
    }

    void choice(const LabAnswer& answer)
    {
        m_row.you = labelOf(answer.word);
        QStringList right;
        for (const LabOption& one : m_question->options)
            if (m_result.expected == one.key || m_result.expected.starts_with(one.key + " or ")
                || m_result.expected.find(" or " + one.key) != std::string::npos)
                right << filled(one.label);
        m_row.predicted = right.join(tr(" or "));
    }

    void order(const LabAnswer& answer)
    {
        QStringList yours;
        for (const std::string& key : answer.ranking)
            yours << labelOf(key);
        m_row.you = yours.join(QStringLiteral(" › "));
        std::vector<std::pair<double, QString>> right;
        for (const LabOption& one : m_question->options) {
            const auto by = evaluateLab(one.by, m_context.scope());
            if (!by || by->isWord())
                return;
            right.emplace_back(by->number(), QStringLiteral("%1 (%2)").arg(filled(one.label), toQString(by->text())));
        }
        std::ranges::stable_sort(right, [&](const auto& a, const auto& b) {
            return m_check.smallest ? a.first < b.first : a.first > b.first;
        });
        QStringList texts;
        for (const auto& [by, text] : right)
            texts << text;
        m_row.predicted = texts.join(QStringLiteral(" › "));
    }

    void curve(const LabAnswer& answer)
    {
        const auto measured = m_context.curve(m_check.curve);
        if (!measured)
            return;
        const Record* run = m_attempt.run(m_check.curve.substr(0, m_check.curve.find('.')));
        const Series* predicted = run && run->predicted ? run->predicted->findSeries(measured->key) : nullptr;
        std::vector<double> truth, model;
        for (const std::string& text : m_question->x) {
            const auto x = evaluateLab(text, m_context.scope());
            truth.push_back(x ? labCurveAt(*measured, *x).value_or(nan) : nan);
            model.push_back(x && predicted ? labCurveAt(*predicted, *x).value_or(nan) : nan);
        }
        m_row.what = tr("your curve");
        m_row.you = factorText(medianDecades(answer.curve, truth));
        if (predicted)
            m_row.predicted = factorText(medianDecades(model, truth));
    }

    const LabAttempt& m_attempt;
    const LabContext& m_context;
    ModelScope m_model;
    const LabCheck& m_check;
    const LabCheckResult& m_result;
    const LabQuestion* m_question;
    ResultRow m_row;
};

QuestionView questionView(const LabQuestion& question, const LabContext& context)
{
    QuestionView view;
    const auto filled = [&](const std::string& text) {
        auto words = filledLabText(text, context.scope());
        if (!words && !view.problem)
            view.problem = words.error();
        return toQString(words.value_or(text));
    };
    view.ask = filled(question.ask);
    for (const LabOption& one : question.options)
        view.labels << filled(one.label);
    for (const std::string& one : question.x) {
        auto x = evaluateLab(one, context.scope());
        if (!x && !view.problem)
            view.problem = x.error();
        view.x.push_back(x.value_or(labNumber(nan)));
    }
    return view;
}

/// The page has a title of its own.
QString withoutHeading(const std::string& markdown)
{
    const QString text = toQString(markdown).trimmed();
    return text.startsWith(QStringLiteral("# ")) ? text.mid(text.indexOf(u'\n') + 1).trimmed() : text;
}

/// A step's own, and of a measurement those of the predictions since the measurement before.
bool isShownWith(const Lab& lab, const LabStep& one, const LabStep& shown)
{
    if (&one == &shown)
        return true;
    if (shown.kind != LabStepKind::Measure || one.kind != LabStepKind::Predict || &one > &shown)
        return false;
    return std::none_of(&one, &shown, [](const LabStep& between) { return between.kind == LabStepKind::Measure; })
        && lab.step(one.id) != nullptr;
}

void addRows(LabStepView& view, const LabAttempt& attempt, const LabStep& shown, const LabContext& context)
{
    const Lab& lab = attempt.lab();
    for (const LabStep& step : lab.steps) {
        if (!attempt.isDone(step.id))
            continue;
        double points = 0, cost = 0;
        for (const LabCheck& check : step.checks) {
            const auto result = std::ranges::find(view.grade->checks, check.id, &LabCheckResult::id);
            if (result == view.grade->checks.end())
                continue;
            points += check.hidden ? 0 : result->points;
            if (isShownWith(lab, step, shown))
                view.rows.push_back(RowWriter(attempt, context, check, *result).row());
        }
        if (const LabStepState* state = attempt.state(step.id))
            for (std::size_t i = 0; i < std::min(state->hints, step.hints.size()); ++i)
                cost += step.hints[i].cost;
        view.points += points - std::min(points, cost);
    }
}

void addCurves(LabStepView& view, const LabAttempt& attempt, const LabStep& shown, const LabContext& context)
{
    for (const LabStep& step : attempt.lab().steps) {
        if (&step > &shown || step.kind != LabStepKind::Predict || !attempt.isLocked(step.id))
            continue;
        for (const LabCheck& check : step.checks) {
            const LabQuestion* question = attempt.lab().question(check.question);
            if (!question || question->kind != LabQuestionKind::Curve || check.hidden)
                continue;
            CurveAnswer curve{question->key, questionView(*question, context).x, {}, {}};
            const Record* run = attempt.run(check.curve.substr(0, check.curve.find('.')));
            if (const auto measured = context.curve(check.curve); measured && run) {
                curve.measured = *measured;
                if (const Series* model = run->predicted ? run->predicted->findSeries(measured->key) : nullptr)
                    curve.predicted = *model;
            }
            view.curves.push_back(std::move(curve));
        }
    }
}

} // namespace

LabStepView viewOfStep(const LabAttempt& attempt, const LabStep& step, LabPredictions& predictions)
{
    const LabContext context(attempt, predictions);
    LabStepView view;
    view.step = step.id;
    const auto text = filledLabText(step.text, context.scope());
    if (!text)
        view.problem = text.error();
    view.text = withoutHeading(text.value_or(step.text));
    for (const LabQuestion& one : step.questions)
        view.questions.push_back(questionView(one, context));
    if (const LabStepState* state = attempt.state(step.id))
        for (std::size_t i = 0; i < std::min(state->hints, step.hints.size()); ++i)
            view.hints << toQString(filledLabText(step.hints[i].text, context.scope()).value_or(step.hints[i].text));
    addCurves(view, attempt, step, context);
    auto grade = gradeLab(attempt, predictions);
    if (grade) {
        view.grade = std::move(*grade);
        addRows(view, attempt, step, context);
    } else if (grade.error().code != "lab.empty" && !view.problem) {
        view.problem = grade.error();
    }
    return view;
}

QString spokenKey(const std::string& key)
{
    return toQString(key).replace(u'_', u' ');
}

QString typedNumber(double value, Unit unit)
{
    if (unit == Unit::One)
        return toQString(numberText(value));
    for (int digits = 3; digits < 17; ++digits) { // as short as it stays the same number
        const std::string text = quantityText(value, unit, ByteStyle::Binary, digits);
        const auto read = parseQuantity(text, unit);
        if (read && std::abs(*read - value) <= 5e-3 * std::abs(value))
            return toQString(text);
    }
    return toQString(numberText(value));
}

QString answerText(const LabQuestion& question, const Json& given)
{
    const auto one = [&](const Json& value) {
        return value.is_string() ? toQString(value.get<std::string>())
            : value.is_number()  ? typedNumber(value.get<double>(), question.unit)
                                 : toQString(jsonLine(value));
    };
    QStringList parts;
    if (given.is_array())
        for (const Json& value : given)
            parts << one(value);
    else if (given.is_object())
        for (const auto& [key, value] : given.items())
            parts << QStringLiteral("%1=%2").arg(toQString(key), one(value));
    else
        parts << one(given);
    return parts.join(QStringLiteral(", "));
}

std::size_t doneSteps(const LabAttempt& attempt)
{
    const auto& steps = attempt.lab().steps;
    return std::size_t(std::ranges::count_if(steps, [&](const LabStep& one) { return attempt.isDone(one.id); }));
}

QString progressText(const LabAttempt& attempt)
{
    return tr("%1 of %2 steps done").arg(doneSteps(attempt)).arg(attempt.lab().steps.size());
}

QString pointsText(double points, double most)
{
    return tr("%1 of %2").arg(toQString(numberText(points)), toQString(numberText(most)));
}

} // namespace memscape

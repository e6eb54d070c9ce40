// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_rules.h"

#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

bool isTimedUnit(Unit unit)
{
    return dimensionOf(unit).isTimed();
}

class LabRules
{
public:
    explicit LabRules(const Lab& lab)
        : m_lab(lab)
    { }

    Result<void> all()
    {
        MEMSCAPE_CHECK(collectNames());
        for (const LabPrediction& one : m_lab.predictions)
            MEMSCAPE_CHECK(parameters(one.request, fmt::format("predictions, {}", one.key)));
        for (const auto& [key, expression] : m_lab.values)
            MEMSCAPE_CHECK(names(expression, fmt::format("values.{}", key)));
        for (const LabStep& one : m_lab.steps)
            MEMSCAPE_CHECK(step(one));
        return points();
    }

private:
    Result<void> add(const std::string& name, const std::string& place)
    {
        if (!m_names.insert(name).second)
            return fail("lab.key", fmt::format("the name \"{}\" is given twice", name),
                        "variants, values, predictions, steps and questions share their names", place);
        return {};
    }

    Result<void> collectNames()
    {
        if (!m_lab.variants.empty())
            for (const auto& [key, text] : m_lab.variants.front())
                MEMSCAPE_CHECK(add(key, "variants"));
        for (const LabPrediction& one : m_lab.predictions)
            MEMSCAPE_CHECK(add(one.key, "predictions"));
        for (const auto& [key, expression] : m_lab.values)
            MEMSCAPE_CHECK(add(key, "values"));
        for (const LabStep& one : m_lab.steps) {
            MEMSCAPE_CHECK(add(one.id, fmt::format("step {}", one.id)));
            for (const LabQuestion& question : one.questions)
                MEMSCAPE_CHECK(add(question.key, fmt::format("step {}, question {}", one.id, question.key)));
        }
        return {};
    }

    /// An expression is read, and each of its names leads somewhere.
    Result<void> names(const std::string& expression, const std::string& place)
    {
        return known(namesInLab(expression), place);
    }

    Result<void> placeholders(const std::string& text, const std::string& place)
    {
        return known(namesInLabText(text), place);
    }

    Result<void> known(Result<std::vector<std::string>> found, const std::string& place)
    {
        for (std::size_t i = 0; found && i < found->size(); ++i) {
            const std::string name = (*found)[i].substr(0, (*found)[i].find('.'));
            if (!m_names.contains(name))
                found = fail("lab.key", fmt::format("\"{}\" is the name of nothing here", quotedForMessage(name)),
                             didYouMean(name, {m_names.begin(), m_names.end()}));
        }
        return at(std::move(found), place);
    }

    template <typename Value> static Result<void> at(Result<Value> result, const std::string& place)
    {
        if (result)
            return {};
        return fail(placedIn(place, std::move(result).error()));
    }

    Result<void> parameters(const LabRequest& request, const std::string& place)
    {
        auto rows = m_lab.variants;
        rows.resize(std::max<std::size_t>(1, rows.size()));
        for (const auto& row : rows) {
            std::vector<std::pair<std::string, std::string>> texts;
            for (const auto& [key, text] : request.parameters) {
                const auto filled = filledLabParameter(text, row);
                if (!filled)
                    return at(filled, fmt::format("{}, parameters.{}", place, key));
                texts.emplace_back(key, *filled);
            }
            MEMSCAPE_CHECK(at(resolve((*findExperiment(request.experiment))->schema(), texts), place));
        }
        return {};
    }

    Result<void> step(const LabStep& step)
    {
        const std::string place = fmt::format("step {}", step.id);
        for (const std::string& id : step.after)
            if (const LabStep* before = m_lab.step(id); !before || before >= &step)
                return fail("lab.key", fmt::format("\"{}\" is no earlier step", quotedForMessage(id)),
                            "after names steps that come before this one", place + ", after");
        MEMSCAPE_CHECK(placeholders(step.text, step.file));
        if (step.request)
            MEMSCAPE_CHECK(parameters(*step.request, place));
        for (std::size_t i = 0; i < step.hints.size(); ++i)
            MEMSCAPE_CHECK(placeholders(step.hints[i].text, fmt::format("{}, hint {}", place, i + 1)));
        MEMSCAPE_CHECK(questions(step, place));
        if (step.kind == LabStepKind::Read && !step.checks.empty())
            return fail("lab.key", "a step that is only read has no checks", "make it a predict step", place);
        for (const LabCheck& one : step.checks)
            MEMSCAPE_CHECK(check(one, step, fmt::format("{}, check {}", place, one.id)));
        return {};
    }

    Result<void> questions(const LabStep& step, const std::string& place)
    {
        for (const LabQuestion& one : step.questions) {
            const std::string here = fmt::format("{}, question {}", place, one.key);
            MEMSCAPE_CHECK(placeholders(one.ask, here));
            for (const std::string& x : one.x)
                MEMSCAPE_CHECK(names(x, here + ", x"));
            std::set<std::string> keys;
            for (const LabOption& option : one.options) {
                MEMSCAPE_CHECK(placeholders(option.label, here));
                if (!option.by.empty())
                    MEMSCAPE_CHECK(names(option.by, here));
                if (!keys.insert(option.key).second)
                    return fail("lab.key", fmt::format("the key \"{}\" is given twice", quotedForMessage(option.key)),
                                {}, here);
            }
            if (one.kind == LabQuestionKind::Parameters && (!step.request || step.request->free.empty()))
                return fail("lab.key", "parameters are asked of a tune or fix step that leaves some free",
                            "add \"experiment\" and \"free\" to the step", here);
        }
        const auto asks = [&](LabQuestionKind kind) {
            return std::ranges::any_of(step.questions, [&](const LabQuestion& one) { return one.kind == kind; });
        };
        const bool chooses = step.kind == LabStepKind::Tune || step.kind == LabStepKind::Fix;
        if (chooses && !asks(LabQuestionKind::Parameters))
            return fail("lab.key", fmt::format("a {} step asks for parameters", labStepKindText(step.kind)),
                        R"(add a question {"key": …, "type": "parameters"})", place);
        if (step.kind == LabStepKind::Explain && !asks(LabQuestionKind::Text))
            return fail("lab.key", "an explain step asks for a text", R"(add a question {"key": …, "type": "text"})",
                        place);
        if (step.kind == LabStepKind::Predict && step.questions.empty())
            return fail("lab.key", "a predict step has questions", R"(add a question {"key": …, "type": "number"})",
                        place);
        return {};
    }

    Result<void> check(const LabCheck& check, const LabStep& step, const std::string& place)
    {
        if (!m_checks.insert(check.id).second)
            return fail("lab.key", fmt::format("the check \"{}\" is there twice", check.id), "give it an \"id\"",
                        place);
        for (const std::string& id : check.after)
            if (!m_checks.contains(id) || id == check.id)
                return fail("lab.key", fmt::format("\"{}\" is no earlier check", quotedForMessage(id)),
                            didYouMean(id, {m_checks.begin(), m_checks.end()}), place + ", after");
        MEMSCAPE_CHECK(placeholders(check.because, place));
        const LabQuestion* question = check.question.empty() ? nullptr : m_lab.question(check.question);
        if (!check.question.empty() && (!question || m_lab.stepOf(*question) > &step))
            return fail("lab.key", fmt::format("\"{}\" is no question up to here", quotedForMessage(check.question)),
                        {}, place + ", question");
        for (const std::string* one : {&check.value, &check.than})
            if (!one->empty() && !isChoiceKey(question, *one))
                MEMSCAPE_CHECK(names(*one, place));
        for (const std::string& one : check.values)
            if (!isChoiceKey(question, one))
                MEMSCAPE_CHECK(names(one, place));
        return needs(check, question, place);
    }

    static bool isChoiceKey(const LabQuestion* question, const std::string& text)
    {
        return question && question->kind == LabQuestionKind::Choice
            && std::ranges::any_of(question->options, [&](const LabOption& one) { return one.key == text; });
    }

    Result<void> needs(const LabCheck& check, const LabQuestion* question, const std::string& place)
    {
        const auto lacks = [&](std::string_view what) {
            return fail("lab.key", fmt::format("{} needs {}", labCheckKindText(check.kind), what), {}, place);
        };
        using Kind = LabCheckKind;
        if (check.kind == Kind::RatioAtLeast)
            return check.value.empty() || check.than.empty() ? lacks("\"a\" and \"b\"") : Result<void>();
        if (check.kind == Kind::Reproduces) {
            const LabStep* source = m_lab.step(check.source);
            return !source || source->kind != LabStepKind::Measure ? lacks("the id of a measure step, \"step\"")
                                                                   : Result<void>();
        }
        if (!question)
            return lacks("a \"question\"");
        if (check.kind == Kind::Order) {
            const bool known = question->kind == LabQuestionKind::Ranking
                && std::ranges::all_of(question->options, [](const LabOption& one) { return !one.by.empty(); });
            return known ? Result<void>() : lacks("a ranking whose items all say \"by\" what they are ranked");
        }
        if (question->kind == LabQuestionKind::Curve) {
            const auto dot = check.curve.find('.');
            if (check.kind != Kind::Within || check.decades <= 0 || dot == std::string::npos)
                return lacks("for a curve \"within\", with \"decades\" and \"curve\": \"run.latency\"");
            if (!m_names.contains(check.curve.substr(0, dot)))
                return lacks("a \"curve\" of a step or prediction");
            return {};
        }
        if (question->kind == LabQuestionKind::Number && isTimedUnit(question->unit))
            return fail(
                "lab.absolute",
                fmt::format("a check would grade an absolute {}", question->unit == Unit::Second ? "time" : "rate"),
                "machines differ: ask for a ratio, an order, the position of a knee or a count", place);
        if (question->kind == LabQuestionKind::Text || question->kind == LabQuestionKind::Parameters)
            return lacks(
                "a number, a choice, a ranking or a curve: a person reads texts, and parameters are checked by "
                "figures of their step (ratio_at_least)");
        if (check.kind == Kind::OneOf)
            return check.values.empty() ? lacks("\"values\"") : Result<void>();
        if (check.value.empty())
            return lacks("a \"value\"");
        if (check.kind == Kind::Within && check.absolute <= 0 && check.relative <= 0)
            return lacks("\"abs\" or \"rel\"");
        if (check.kind == Kind::ModelAgrees && check.relative <= 0)
            return lacks("\"rel\"");
        return {};
    }

    Result<void> points() const
    {
        if (m_lab.isStudentPack)
            return {};
        double sum = 0;
        for (const LabStep& one : m_lab.steps)
            sum += one.points();
        if (std::abs(sum - m_lab.points) > 1e-9)
            return fail("lab.points",
                        fmt::format("the lab has {} points, its checks and texts {}", numberText(m_lab.points),
                                    numberText(sum)),
                        fmt::format("write \"points\": {}", numberText(sum)), "points");
        return {};
    }

    const Lab& m_lab;
    std::set<std::string> m_names, m_checks;
};

} // namespace

Result<void> checkLabRules(const Lab& lab)
{
    return LabRules(lab).all();
}

} // namespace memscape

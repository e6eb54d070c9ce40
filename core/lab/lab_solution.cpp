// SPDX-License-Identifier: Apache-2.0
// solution.json: {"format": "memscape-solution", "version": 1, "steps": {"knees": {"l1": "=capacity(run, \"L1\")",
// …}}}. A text that begins with = is an expression, computed for the student's variant; "=sorted" of a ranking sorts it
// by what its items say; "=curve" of a drawn curve is the curve it is checked against.
#include "core/lab/lab_grade.h"

#include "core/base/json_values.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

Result<Json> sortedItems(const LabQuestion& question, const LabStep& step, const LabContext& context)
{
    const auto check = std::ranges::find(step.checks, question.key, &LabCheck::question);
    std::vector<std::pair<double, std::string>> items;
    for (const LabOption& one : question.options) {
        MEMSCAPE_TRY(by, evaluateLab(one.by, context.scope()));
        items.emplace_back(by.number(), one.key);
    }
    const bool smallest = check != step.checks.end() && check->smallest;
    std::ranges::stable_sort(
        items, [&](const auto& a, const auto& b) { return smallest ? a.first < b.first : a.first > b.first; });
    Json keys = Json::array();
    for (const auto& [by, key] : items)
        keys.push_back(key);
    return keys;
}

Result<Json> curveItself(const LabQuestion& question, const LabStep& step, const LabContext& context)
{
    const auto check = std::ranges::find(step.checks, question.key, &LabCheck::question);
    if (check == step.checks.end())
        return fail("lab.solution", fmt::format("no check of step {} names the curve {}", step.id, question.key));
    MEMSCAPE_TRY(curve, context.curve(check->curve));
    Json ys = Json::array();
    for (const std::string& one : question.x) {
        MEMSCAPE_TRY(x, evaluateLab(one, context.scope()));
        MEMSCAPE_TRY(y, labCurveAt(curve, x));
        ys.push_back(y);
    }
    return ys;
}

Result<Json> solvedValue(const Json& given, const LabQuestion& question, const LabStep& step, const LabAttempt& attempt,
                         const LabContext& context)
{
    if (given.is_object() || given.is_array()) {
        Json all = given.is_object() ? Json(Json::object()) : Json(Json::array());
        for (const auto& [key, value] : given.items()) {
            MEMSCAPE_TRY(one, solvedValue(value, question, step, attempt, context));
            if (given.is_object())
                all[key] = std::move(one);
            else
                all.push_back(std::move(one));
        }
        return all;
    }
    if (!given.is_string())
        return given;
    const std::string text = given.get<std::string>();
    if (text == "=sorted")
        return sortedItems(question, step, context);
    if (text == "=curve")
        return curveItself(question, step, context);
    if (!text.starts_with("=")) {
        if (question.kind == LabQuestionKind::Text)
            return given;
        MEMSCAPE_TRY(filled, filledLabParameter(text, attempt.variant()));
        return Json(filled);
    }
    MEMSCAPE_TRY(value, evaluateLab(text.substr(1), context.scope()));
    return value.isWord()                              ? Json(value.word())
        : question.kind == LabQuestionKind::Parameters ? Json(numberText(value.number()))
                                                       : Json(value.number());
}

} // namespace

Result<LabAttempt> solvedLab(std::shared_ptr<const Lab> lab, const std::string& student, const std::string& time)
{
    if (lab->solution.is_null())
        return fail("lab.solution", fmt::format("the lab {} has no solution.json", lab->id),
                    "packs for students have none: use the teacher's folder");
    const JsonReader reader(lab->solution);
    MEMSCAPE_TRY(format, reader.string("format"));
    if (format != "memscape-solution")
        return fail("lab.solution", "solution.json begins with {\"format\": \"memscape-solution\"", {}, "format");
    const Json& given = member(lab->solution, "steps");
    Json known{{"format", "memscape-answers"},
               {"version", answersVersion},
               {"lab", lab->id},
               {"student", student},
               {"steps", Json::object()}};
    for (const LabStep& step : lab->steps) // expressions may ask the runs that come later
        if (step.kind == LabStepKind::Measure)
            known["steps"][step.id]["replay"] = step.request->replay;
    LabPredictions predictions;
    LabAttempt solved(lab, student, time);
    for (const LabStep& step : lab->steps) {
        for (const LabQuestion& question : step.questions) {
            const std::string place = fmt::format("solution.json, steps.{}.{}", step.id, question.key);
            const Json& answer = member(member(given, step.id.c_str()), question.key.c_str());
            if (answer.is_null())
                return fail("lab.solution", "the solution lacks an answer", "add it", place);
            MEMSCAPE_TRY(sofar, LabAttempt::parse(lab, jsonLine(known)));
            const LabContext context(sofar, predictions);
            auto value = solvedValue(answer, question, step, sofar, context);
            if (value)
                if (const auto kept = solved.answer(step.id, question.key, *value, time); !kept)
                    value = fail(kept.error());
            if (!value) {
                Error error = value.error();
                error.place = place;
                return fail(std::move(error));
            }
            known["steps"][step.id]["answers"][question.key] = *value;
        }
        if (step.kind == LabStepKind::Measure)
            MEMSCAPE_CHECK(solved.replay(step.id, time));
        if (step.kind == LabStepKind::Predict) {
            MEMSCAPE_CHECK(solved.lock(step.id, time));
            known["steps"][step.id]["locked"] = time;
        }
    }
    return solved;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_step_reader.h"

#include "core/base/file.h"
#include "core/lab/lab_keys.h"

namespace memscape {

namespace {

Result<LabQuestion> readLabQuestion(const JsonReader& reader)
{
    MEMSCAPE_CHECK(onlyLabKeys(
        reader, {"key", "ask", "type", "unit", "options", "items", "x", "x_label", "x_unit", "y_label", "points"}));
    LabQuestion question;
    MEMSCAPE_SET(question.key, labName(reader, "key"));
    MEMSCAPE_SET(question.ask, reader.string("ask"));
    MEMSCAPE_SET(question.kind, (labKind<LabQuestionKind, 6>(reader, "type", labQuestionKindText)));
    MEMSCAPE_TRY(unit, reader.string("unit", "1"));
    const auto known = unitFromText(unit);
    if (!known)
        return fail("lab.value", fmt::format("there is no unit \"{}\"", quotedForMessage(unit)),
                    "1, B, s, B/s, FLOP/s or Hz", (*reader.at("unit")).path());
    question.unit = *known;
    const char* listKey = question.kind == LabQuestionKind::Ranking ? "items" : "options";
    MEMSCAPE_TRY(options, labItems(reader, listKey, 32));
    for (const JsonReader& one : options) {
        MEMSCAPE_CHECK(onlyLabKeys(one, {"key", "label", "by"}));
        LabOption& option = question.options.emplace_back();
        MEMSCAPE_SET(option.key, one.string("key"));
        MEMSCAPE_SET(option.label, one.string("label", option.key));
        MEMSCAPE_SET(option.by, labText(one, "by"));
    }
    if ((question.kind == LabQuestionKind::Choice || question.kind == LabQuestionKind::Ranking)
        && question.options.size() < 2)
        return fail("lab.value", fmt::format("a {} has 2 to 32 {}", labQuestionKindText(question.kind), listKey), {},
                    reader.path());
    MEMSCAPE_SET(question.x, labWords(reader, "x"));
    if (question.kind == LabQuestionKind::Curve && question.x.size() < 2)
        return fail("lab.value", "a curve is asked at 2 to 64 places, its \"x\"", {}, reader.path());
    MEMSCAPE_SET(question.xLabel, reader.string("x_label", ""));
    MEMSCAPE_SET(question.xUnit, reader.string("x_unit", "1"));
    MEMSCAPE_SET(question.yLabel, reader.string("y_label", ""));
    MEMSCAPE_SET(question.points, labAmount(reader, "points", 0));
    if (question.points > 0 && question.kind != LabQuestionKind::Text)
        return fail("lab.points", "only a text has points of its own: a person gives them",
                    "give the points to a check of this question", reader.path() + ".points");
    return question;
}

Result<LabCheck> readLabCheck(const JsonReader& reader, const LabStep& step, bool isPack)
{
    MEMSCAPE_CHECK(onlyLabKeys(reader, {"id",  "kind", "question", "value",   "values", "a",      "b",
                                        "x",   "abs",  "rel",      "decades", "curve",  "shape",  "smallest_first",
                                        "tie", "step", "points",   "hidden",  "after",  "because"}));
    LabCheck check;
    MEMSCAPE_SET(check.kind, (labKind<LabCheckKind, 7>(reader, "kind", labCheckKindText)));
    MEMSCAPE_SET(check.question, reader.string("question", ""));
    MEMSCAPE_TRY(
        id, reader.string("id", check.question.empty() ? std::string(labCheckKindText(check.kind)) : check.question));
    check.id = fmt::format("{}.{}", step.id, id);
    MEMSCAPE_SET(check.value, labText(reader, check.kind == LabCheckKind::RatioAtLeast ? "a" : "value"));
    MEMSCAPE_SET(check.values, labWords(reader, "values"));
    MEMSCAPE_SET(check.than, labText(reader, "b"));
    MEMSCAPE_SET(check.least, labAmount(reader, "x", 1));
    MEMSCAPE_SET(check.absolute, labAmount(reader, "abs", 0));
    MEMSCAPE_SET(check.relative, labAmount(reader, "rel", 0));
    MEMSCAPE_SET(check.decades, labAmount(reader, "decades", 0));
    MEMSCAPE_SET(check.curve, reader.string("curve", ""));
    MEMSCAPE_SET(check.shape, reader.boolean("shape", false));
    MEMSCAPE_SET(check.smallest, reader.boolean("smallest_first", false));
    MEMSCAPE_SET(check.tie, labAmount(reader, "tie", 0));
    MEMSCAPE_SET(check.source, reader.string("step", step.id));
    MEMSCAPE_SET(check.points, labAmount(reader, "points", isPack ? 0 : -1, isPack ? 0 : -1));
    if (check.points < 0)
        return fail("lab.points", "a check says its points", "add \"points\": 1", reader.path());
    MEMSCAPE_SET(check.hidden, reader.boolean("hidden", false));
    MEMSCAPE_SET(check.after, labWords(reader, "after"));
    MEMSCAPE_SET(check.because, reader.string("because", ""));
    for (std::string& one : check.after)
        if (one.find('.') == std::string::npos)
            one = fmt::format("{}.{}", step.id, one);
    return check;
}

} // namespace

Result<LabRequest> readLabRequest(const JsonReader& reader)
{
    LabRequest request;
    MEMSCAPE_SET(request.experiment, reader.string("experiment"));
    const auto experiment = findExperiment(request.experiment);
    if (!experiment) {
        Error error = experiment.error();
        error.place = (*reader.at("experiment")).path();
        return fail(std::move(error));
    }
    MEMSCAPE_SET(request.device, reader.string("device", ""));
    MEMSCAPE_SET(request.parameters, labTexts(reader, "parameters"));
    MEMSCAPE_SET(request.free, labWords(reader, "free"));
    MEMSCAPE_SET(request.start, labTexts(reader, "start"));
    MEMSCAPE_SET(request.replay, reader.string("replay", ""));
    const Schema& schema = (*experiment)->schema();
    const auto known = [&](const std::string& key, const std::string& place) -> Result<void> {
        if (findParameter(schema, key))
            return {};
        return fail("lab.key", fmt::format("{} has no parameter \"{}\"", request.experiment, key),
                    didYouMean(key, keysOf(schema)), place);
    };
    for (const auto* list : {&request.parameters, &request.start})
        for (const auto& [key, text] : *list)
            MEMSCAPE_CHECK(known(key, reader.path()));
    for (const std::string& key : request.free)
        MEMSCAPE_CHECK(known(key, reader.path() + ".free"));
    return request;
}

Result<LabStep> readLabStep(const JsonReader& reader, const std::filesystem::path& folder, bool isPack)
{
    MEMSCAPE_CHECK(onlyLabKeys(reader,
                               {"id", "title", "kind", "text", "after", "questions", "checks", "hints", "experiment",
                                "device", "parameters", "free", "start", "replay"}));
    LabStep step;
    MEMSCAPE_SET(step.id, labName(reader, "id"));
    MEMSCAPE_SET(step.title, reader.string("title"));
    MEMSCAPE_SET(step.kind, (labKind<LabStepKind, 6>(reader, "kind", labStepKindText)));
    MEMSCAPE_SET(step.file, reader.string("text"));
    MEMSCAPE_SET(step.after, labWords(reader, "after"));
    MEMSCAPE_TRY(path, insideLab(folder, step.file, (*reader.at("text")).path()));
    MEMSCAPE_SET(step.text, readFile(path, labFileLimit));
    if (!validUtf8(step.text))
        return fail("lab.value", fmt::format("{} is not UTF-8", step.file), "save it as UTF-8",
                    reader.path() + ".text");
    const bool runs =
        step.kind == LabStepKind::Measure || step.kind == LabStepKind::Tune || step.kind == LabStepKind::Fix;
    if (runs || reader.has("experiment")) {
        if (!runs)
            return fail("lab.key", "only measure, tune and fix ask an experiment", "use \"predictions\" of the lab",
                        reader.path() + ".experiment");
        MEMSCAPE_SET(step.request, readLabRequest(reader));
        if (!step.request->replay.empty())
            MEMSCAPE_CHECK(insideLab(folder, step.request->replay, (*reader.at("replay")).path()));
    }
    MEMSCAPE_TRY(questions, labItems(reader, "questions", 32));
    for (const JsonReader& one : questions)
        MEMSCAPE_SET(step.questions.emplace_back(), readLabQuestion(one));
    MEMSCAPE_TRY(checks, labItems(reader, "checks", 64));
    for (const JsonReader& one : checks)
        MEMSCAPE_SET(step.checks.emplace_back(), readLabCheck(one, step, isPack));
    MEMSCAPE_TRY(hints, labItems(reader, "hints", 16));
    for (const JsonReader& one : hints) {
        MEMSCAPE_CHECK(onlyLabKeys(one, {"text", "cost"}));
        LabHint& hint = step.hints.emplace_back();
        MEMSCAPE_SET(hint.text, one.string("text"));
        MEMSCAPE_SET(hint.cost, labAmount(one, "cost", 0));
    }
    return step;
}

} // namespace memscape

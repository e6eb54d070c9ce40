// SPDX-License-Identifier: Apache-2.0
#include "core/claims/question_table.h"

#include "core/base/text.h"
#include "core/claims/claim_quotes.h"
#include "core/device/catalogue.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

const std::vector<std::string> questionKeys{"id",    "line", "heading", "question", "answer",
                                            "claim", "on",   "true",    "not",      "steps"};
const std::vector<std::string> stepKeys{"name", "experiment", "parameters", "device", "says"};

Result<QuestionStep> questionStepOf(const JsonReader& reader)
{
    MEMSCAPE_CHECK(checkKeys(reader, stepKeys));
    QuestionStep step;
    MEMSCAPE_TRY(name, reader.string("name"));
    MEMSCAPE_TRY(id, reader.string("experiment"));
    MEMSCAPE_TRY(experiment, findExperiment(id));
    step.experiment = experiment;
    step.asked.name = name;
    MEMSCAPE_SET(step.asked.device, reader.string("device", ""));
    if (reader.has("parameters")) {
        MEMSCAPE_TRY(given, reader.at("parameters"));
        MEMSCAPE_SET(step.asked.assignments, textsOf(given));
    }
    MEMSCAPE_SET(step.asked.parameters, caseParameters(*experiment, step.asked.assignments, name));
    MEMSCAPE_TRY(words, reader.string("says"));
    MEMSCAPE_SET(step.says, claimSentence(words));
    return step;
}

Result<DeepQuestion> deepQuestionOf(const JsonReader& reader)
{
    MEMSCAPE_CHECK(checkKeys(reader, questionKeys));
    DeepQuestion made;
    for (const auto& [key, text] : {std::pair{"id", &made.id},
                                    {"heading", &made.heading},
                                    {"question", &made.question},
                                    {"answer", &made.answer},
                                    {"claim", &made.claim}}) {
        MEMSCAPE_SET(*text, reader.string(key));
    }
    MEMSCAPE_TRY(line, reader.at("line"));
    MEMSCAPE_TRY(number, line.integer());
    made.line = int(number);
    MEMSCAPE_TRY(on, reader.string("on", ""));
    if (!on.empty() && on != "gpu" && on != "host")
        return fail("claims.key", fmt::format("no device is a \"{}\"", quotedForMessage(on)), "write gpu or host",
                    "on");
    made.on = on;
    for (const auto& [key, sentence] : {std::pair{"true", &made.isTrue}, {"not", &made.isNot}}) {
        MEMSCAPE_TRY(words, reader.string(key));
        MEMSCAPE_SET(*sentence, claimSentence(words));
    }
    MEMSCAPE_TRY(steps, reader.at("steps"));
    MEMSCAPE_TRY(items, steps.items());
    for (const JsonReader& item : items) {
        auto step = questionStepOf(item);
        if (!step)
            return fail(placedIn(item.path(), step.error()));
        const auto isTaken = [&](const QuestionStep& one) { return one.asked.name == step->asked.name; };
        if (std::ranges::any_of(made.steps, isTaken))
            return fail("claims.twice", fmt::format("two steps are named \"{}\"", quotedForMessage(step->asked.name)),
                        "give each its own name", item.path());
        made.steps.push_back(std::move(*step));
    }
    if (made.steps.empty())
        return fail("claims.empty", "the question has no steps", "write at least one", "steps");
    return made;
}

} // namespace

std::string DeepQuestion::place() const
{
    return fmt::format("{}, line {}", heading, line);
}

std::filesystem::path questionsFile()
{
    return resourcesFolder() / "questions.json";
}

Result<std::vector<DeepQuestion>> readQuestions(const std::filesystem::path& file)
{
    MEMSCAPE_TRY(json, readClaimFile(file, "memscape-questions"));
    const std::string name = file.filename().string();
    const JsonReader reader(json, name);
    MEMSCAPE_TRY(source, reader.string("source"));
    MEMSCAPE_TRY(title, reader.string("title"));
    MEMSCAPE_TRY(list, reader.at("questions"));
    MEMSCAPE_TRY(items, list.items());
    std::vector<DeepQuestion> questions;
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(id, item.string("id"));
        const std::string where = fmt::format("{}, \"{}\"", name, quotedForMessage(id));
        auto made = deepQuestionOf(JsonReader(item.node()));
        if (!made)
            return fail(placedIn(where, made.error()));
        if (std::ranges::any_of(questions, [&, &id = id](const DeepQuestion& one) { return one.id == id; }))
            return fail("claims.twice", "two questions have this id", "give each its own", where);
        made->source = source;
        made->title = title;
        questions.push_back(std::move(*made));
    }
    if (questions.empty())
        return fail("claims.empty", "the file has no questions", "write at least one", name);
    return questions;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/claims/question_answers.h"

#include "core/device/catalogue.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace memscape {

namespace {

struct AskedQuestion
{
    const DeepQuestion* question = nullptr;
    std::vector<AskedCase> steps = {};
};

std::vector<std::string> namesIn(const DeepQuestion& question)
{
    std::vector<std::string> names = question.isTrue.names();
    const auto add = [&](const std::vector<std::string>& more) { names.insert(names.end(), more.begin(), more.end()); };
    add(question.isNot.names());
    for (const QuestionStep& step : question.steps)
        add(step.says.names());
    return names;
}

Result<AskedQuestion> askedOf(CaseAsking& asking, const DeepQuestion& question, const std::string& standIn)
{
    const std::vector<std::string> names = namesIn(question);
    const bool wantsDetail = std::any_of(
        names.begin(), names.end(), [](const std::string& name) { return name.find("detail.") != std::string::npos; });
    AskedQuestion made{&question};
    for (const QuestionStep& step : question.steps) {
        MEMSCAPE_TRY(added, asking.add(*step.experiment, step.asked, standIn));
        added.question->wantsDetail |= wantsDetail;
        made.steps.push_back(added);
    }
    return made;
}

/// The cases as a sentence of one step names them: a name without a case is of the step itself.
std::vector<AskedCase> stepFirst(std::vector<AskedCase> steps, std::size_t step)
{
    std::rotate(steps.begin(), steps.begin() + std::ptrdiff_t(step), steps.begin() + std::ptrdiff_t(step) + 1);
    return steps;
}

/// Why the numbers of this device do not answer the question; empty when they do.
Result<std::string> obstacleOf(const AskedQuestion& asked, const Device& device)
{
    const DeepQuestion& question = *asked.question;
    if (isElsewhere(question.on, device))
        return fmt::format("the question is about {}, {} is none", question.on == "gpu" ? "GPUs" : "processors",
                           device.name);
    for (const AskedCase& one : asked.steps) {
        if (!one.question->answer && one.question->answer.error().code == "run.cancelled")
            return fail(one.question->answer.error());
        if (!one.question->answer)
            return one.question->answer.error().message;
    }
    const ExpressionScope scope = scopeOf(asked.steps);
    MEMSCAPE_TRY(whole, unknownName(question.isTrue.names(), scope));
    MEMSCAPE_TRY(other, unknownName(question.isNot.names(), scope));
    std::string unknown = whole.empty() ? other : whole;
    for (std::size_t i = 0; i < asked.steps.size() && unknown.empty(); ++i) {
        const std::vector<AskedCase> ownFirst = stepFirst(asked.steps, i);
        MEMSCAPE_SET(unknown, unknownName(question.steps[i].says.names(), scopeOf(ownFirst)));
    }
    return unknown.empty() ? std::string()
                           : fmt::format("the {} is not known for {}", nameInWords(unknown), device.name);
}

Result<AnsweredQuestion> answeredOf(const AskedQuestion& asked, const Device& device, const std::string& instead)
{
    const DeepQuestion& question = *asked.question;
    AnsweredQuestion made{&question, device.id, instead, {}, {}, {}, {}};
    const ExpressionScope scope = scopeOf(asked.steps);
    MEMSCAPE_SET(made.isTrue, question.isTrue.filled(scope, claimStyle));
    MEMSCAPE_SET(made.isNot, question.isNot.filled(scope, claimStyle));
    for (std::size_t i = 0; i < asked.steps.size(); ++i) {
        const std::vector<AskedCase> ownFirst = stepFirst(asked.steps, i);
        MEMSCAPE_TRY(says, question.steps[i].says.filled(scopeOf(ownFirst), claimStyle));
        made.says.push_back(says);
        made.devices.push_back(asked.steps[i].device->id);
    }
    return made;
}

tl::unexpected<Error> placedAt(const DeepQuestion& question, Error error)
{
    return fail(placedIn(fmt::format("questions.json, \"{}\"", question.id), std::move(error)));
}

/// Answers those of `open` that the asked device answers, or one in its stead; returns the others.
Result<std::vector<std::size_t>> answerSome(const std::vector<const DeepQuestion*>& questions,
                                            const std::vector<std::size_t>& open, const Device& asked, bool standsIn,
                                            std::vector<AnsweredQuestion>& answers, const ClaimProgress& progress)
{
    CaseAsking asking(asked);
    std::vector<AskedQuestion> round;
    for (const std::size_t i : open) {
        auto made = askedOf(asking, *questions[i], standsIn ? standInFor(questions[i]->on) : "");
        if (!made)
            return placedAt(*questions[i], made.error());
        round.push_back(std::move(*made));
    }
    MEMSCAPE_CHECK(asking.askAll(progress));
    std::vector<std::size_t> left;
    for (std::size_t k = 0; k < open.size(); ++k) {
        const DeepQuestion& question = *questions[open[k]];
        AnsweredQuestion& answer = answers[open[k]];
        Device device = asked;
        if (standsIn)
            MEMSCAPE_SET(device, findDevice(standInFor(question.on)));
        const auto obstacle = obstacleOf(round[k], device);
        if (!obstacle)
            return placedAt(question, obstacle.error());
        if (!obstacle->empty()) {
            if (standsIn)
                return placedAt(question, {"claims.figure", *obstacle, {}, "name a device at the step"});
            answer.instead = *obstacle;
            left.push_back(open[k]);
            continue;
        }
        auto made = answeredOf(round[k], device, answer.instead);
        if (!made)
            return placedAt(question, made.error());
        answer = std::move(*made);
    }
    return left;
}

} // namespace

Result<std::vector<AnsweredQuestion>> answerQuestions(const std::vector<const DeepQuestion*>& questions,
                                                      const Device& asked, const ClaimProgress& progress)
{
    std::vector<AnsweredQuestion> answers(questions.size());
    std::vector<std::size_t> all(questions.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    MEMSCAPE_TRY(left, answerSome(questions, all, asked, false, answers, progress));
    MEMSCAPE_CHECK(answerSome(questions, left, asked, true, answers, progress));
    return answers;
}

Json answeredJson(const AnsweredQuestion& answer)
{
    const DeepQuestion& question = *answer.question;
    Json steps = Json::array();
    for (std::size_t i = 0; i < question.steps.size(); ++i) {
        const QuestionStep& step = question.steps[i];
        steps.push_back({{"name", step.asked.name},
                         {"says", answer.says[i]},
                         {"experiment", step.experiment->id()},
                         {"parameters", step.asked.assignments},
                         {"device", answer.devices[i]}});
    }
    return {{"id", question.id},         {"source", question.source}, {"title", question.title},
            {"place", question.place()}, {"line", question.line},     {"question", question.question},
            {"answer", question.answer}, {"claim", question.claim},   {"true", answer.isTrue},
            {"not", answer.isNot},       {"device", answer.device},   {"instead", answer.instead},
            {"steps", std::move(steps)}};
}

} // namespace memscape

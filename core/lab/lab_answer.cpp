// SPDX-License-Identifier: Apache-2.0
// Answers as people write them: "48 KiB", 48, "b", ["c", "a", "b"], {"precision": "bf16"}.
#include "core/base/text.h"
#include "core/lab/lab_attempt.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

tl::unexpected<Error> notAnswer(const LabQuestion& question, std::string_view what, const Json& given,
                                std::string hint = {})
{
    return fail("lab.answer", fmt::format("the answer is {}, found {}", what, quotedForMessage(jsonLine(given))),
                std::move(hint), question.key);
}

std::vector<std::string> keysOfOptions(const LabQuestion& question)
{
    std::vector<std::string> keys;
    for (const LabOption& one : question.options)
        keys.push_back(one.key);
    return keys;
}

/// A number, or a text such as "1.5 GiB" or "25 %".
Result<double> numberAnswer(const LabQuestion& question, const Json& given)
{
    if (given.is_number())
        return given.get<double>();
    if (!given.is_string())
        return notAnswer(question, "a number", given);
    const std::string text(trimmed(given.get_ref<const std::string&>()));
    if (text.find(',') != std::string::npos)
        return notAnswer(question, "a number", given, "write a point as decimal sign, and no sign between thousands");
    const auto value = parseQuantity(text, question.unit);
    if (value)
        return *value;
    std::string hint = value.error().hint;
    if (hint.empty())
        hint =
            question.unit == Unit::One ? "write 0.25 or 25 %" : fmt::format("its unit is {}", unitText(question.unit));
    return notAnswer(question, "a number", given, std::move(hint));
}

Result<void> checkWritten(const LabQuestion& question, const Json& given)
{
    MEMSCAPE_TRY(value, numberAnswer(question, given));
    const bool isBare = given.is_string() && parseNumber(trimmed(given.get_ref<const std::string&>()));
    if (question.unit == Unit::Second && value != 0 && isBare)
        return notAnswer(question, "a time", given, "write its unit: 1.5 ns, 20 us, 3 ms, 4 s");
    if (question.unit != Unit::One && value < 0)
        return notAnswer(question, "not negative", given);
    return {};
}

} // namespace

Result<void> checkLabNumbers(const LabQuestion& question, const Json& given)
{
    if (question.kind == LabQuestionKind::Number)
        return checkWritten(question, given);
    if (question.kind == LabQuestionKind::Curve)
        for (const Json& one : given)
            MEMSCAPE_CHECK(checkWritten(question, one));
    return {};
}

Result<LabAnswer> readLabAnswer(const LabQuestion& question, const LabStep& step, const Json& given)
{
    LabAnswer answer;
    switch (question.kind) {
    case LabQuestionKind::Number: {
        MEMSCAPE_SET(answer.number, numberAnswer(question, given));
        return answer;
    }
    case LabQuestionKind::Choice: {
        const auto keys = keysOfOptions(question);
        if (!given.is_string() || std::ranges::find(keys, given.get<std::string>()) == keys.end())
            return notAnswer(question, "one of its options", given, "known: " + join(keys, ", "));
        answer.word = given.get<std::string>();
        return answer;
    }
    case LabQuestionKind::Ranking: {
        auto keys = keysOfOptions(question);
        if (given.is_array())
            for (const Json& one : given)
                answer.ranking.push_back(one.is_string() ? one.get<std::string>() : std::string());
        else if (given.is_string())
            for (const std::string& one : split(given.get_ref<const std::string&>(), ','))
                answer.ranking.emplace_back(trimmed(one));
        auto sorted = answer.ranking;
        std::ranges::sort(sorted);
        std::ranges::sort(keys);
        if (sorted != keys)
            return notAnswer(question, "every one of its items once", given, "known: " + join(keys, ", "));
        return answer;
    }
    case LabQuestionKind::Curve: {
        if (!given.is_array() || given.size() != question.x.size())
            return notAnswer(question, fmt::format("a list of {} values", question.x.size()), given);
        for (const Json& one : given) {
            MEMSCAPE_TRY(y, numberAnswer(question, one));
            answer.curve.push_back(y);
        }
        return answer;
    }
    case LabQuestionKind::Text: {
        if (!given.is_string() || given.get_ref<const std::string&>().size() > 20'000)
            return notAnswer(question, "a text of at most 20000 bytes", given);
        answer.word = given.get<std::string>();
        return answer;
    }
    case LabQuestionKind::Parameters: break;
    }
    if (!given.is_object())
        return notAnswer(question, "parameters, {\"key\": \"value\"}", given);
    for (const auto& [key, value] : given.items()) {
        if (std::ranges::find(step.request->free, key) == step.request->free.end())
            return notAnswer(question, "of free parameters alone", given, "free: " + join(step.request->free, ", "));
        answer.parameters.emplace_back(key, value.is_string() ? value.get<std::string>() : jsonLine(value));
        const ParameterSpec* spec = findParameter((*findExperiment(step.request->experiment))->schema(), key);
        if (const auto read = parseValue(*spec, answer.parameters.back().second); !read)
            return fail(read.error());
    }
    return answer;
}

} // namespace memscape

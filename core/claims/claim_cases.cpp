// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_cases.h"

#include "core/base/cancellation.h"
#include "core/base/json_path.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/claims/claim_device.h"
#include "core/device/catalogue.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

void ask(CaseQuestion& question)
{
    const Experiment& experiment = *question.experiment;
    if (question.wantsDetail) {
        question.answer = experiment.predict(*question.device, *question.parameters);
    } else {
        auto figures = experiment.predictPoint(*question.device, *question.parameters);
        if (figures)
            question.answer = Prediction{std::move(*figures), {}, Json::object()};
        else
            question.answer = fail(figures.error());
    }
    if (question.wantsJudgement)
        question.judgements = experiment.claims(*question.device, *question.parameters);
}

ExpressionValue detailValue(const Json& detail, const std::string& path)
{
    const Json* const node = nodeAt(detail, path);
    if (node == nullptr)
        return numberValue(nan);
    if (node->is_string())
        return wordValue(node->get<std::string>());
    if (node->is_boolean())
        return numberValue(double(node->get<bool>()));
    return numberValue(node->is_number() ? node->get<double>() : nan);
}

/// A figure, a value of the detail, a parameter or a part of the device of one case.
Result<ExpressionValue> valueIn(const AskedCase& asked, const std::string& name)
{
    if (name.starts_with("device."))
        return claimDeviceValue(*asked.device, std::string_view(name).substr(7));
    const Prediction& prediction = *asked.question->answer;
    if (name.starts_with("detail."))
        return detailValue(prediction.detail, name.substr(7));
    if (const Figure* figure = findFigure(prediction.figures, name)) {
        if (figure->isNumber())
            return numberValue(figure->number(), figure->unit);
        return wordValue(figure->text());
    }
    for (const auto& [key, value] : asked.given->parameters.values()) {
        if (key == name)
            return std::holds_alternative<double>(value) ? numberValue(std::get<double>(value))
                                                         : wordValue(valueText(value));
    }
    std::vector<std::string> known;
    for (const Figure& figure : prediction.figures)
        known.push_back(figure.key);
    return fail("claims.figure", fmt::format("{} has no figure \"{}\"", asked.question->experiment->id(), name),
                didYouMean(name, known));
}

} // namespace

ExpressionScope scopeOf(const std::vector<AskedCase>& cases)
{
    return {[&cases](const std::string& name) -> Result<ExpressionValue> {
        const std::size_t point = name.find('.');
        for (const AskedCase& one : cases) {
            if (point != std::string::npos && name.compare(0, point, one.given->name) == 0
                && point == one.given->name.size())
                return valueIn(one, name.substr(point + 1));
        }
        if (cases.empty())
            return fail("claims.figure", fmt::format("\"{}\" is named, and no experiment is", name),
                        "name an experiment and its parameters");
        return valueIn(cases.front(), name);
    }};
}

Result<AskedCase> CaseAsking::add(const Experiment& experiment, const ClaimCase& one, const std::string& standIn)
{
    const std::string& id = one.device.empty() ? standIn : one.device;
    const Device* device = &m_asked;
    if (!id.empty() && id != m_asked.id) {
        auto known = m_devices.find(id);
        if (known == m_devices.end()) {
            MEMSCAPE_TRY(found, findDevice(id));
            known = m_devices.emplace(id, std::move(found)).first;
        }
        device = &known->second;
    }
    const std::string key =
        fmt::format("{} {} {}", experiment.id(), device->id, jsonLine(parametersToJson(one.parameters)));
    CaseQuestion& question = m_questions[key];
    question.experiment = &experiment;
    question.device = device;
    question.parameters = &one.parameters;
    return AskedCase{&one, device, &question};
}

Result<void> CaseAsking::askAll(const ClaimProgress& progress)
{
    std::vector<CaseQuestion*> questions;
    for (auto& [key, question] : m_questions)
        questions.push_back(&question);
    std::atomic<std::size_t> done = 0;
    inParallel(questions.size(), coreCount(), [&](std::size_t i) {
        if (isCancelled())
            return;
        ask(*questions[i]);
        if (const std::size_t now = ++done; progress)
            progress(now, questions.size());
    });
    return checkWanted();
}

bool isElsewhere(const std::string& on, const Device& device)
{
    return (on == "gpu" && !device.isGpu()) || (on == "host" && device.isGpu());
}

const char* standInFor(const std::string& on)
{
    return on == "host" ? "amd-epyc-9654" : "nvidia-h200";
}

Result<std::string> unknownName(const std::vector<std::string>& names, const ExpressionScope& scope)
{
    for (const std::string& name : names) {
        MEMSCAPE_TRY(value, scope.name(name));
        if (!value.isWord() && !std::isfinite(value.number()))
            return name;
    }
    return std::string();
}

std::string nameInWords(std::string name)
{
    if (const std::size_t device = name.find("device."); device != std::string::npos)
        name = name.substr(device + 7);
    const std::size_t point = name.rfind('.');
    std::string words =
        point == std::string::npos ? name : fmt::format("{} of {}", name.substr(point + 1), name.substr(0, point));
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

} // namespace memscape

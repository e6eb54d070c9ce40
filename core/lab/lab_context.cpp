// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_context.h"

#include "core/base/json_path.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// "48", "16KiB" or a word.
LabValue variantValue(const std::string& text)
{
    if (const auto number = parseQuantity(text, Unit::One))
        return labNumber(*number);
    if (const auto bytes = parseQuantity(text, Unit::Byte))
        return labNumber(*bytes, Unit::Byte);
    return labWord(text);
}

Result<LabValue> valueOfFigure(const Figures& figures, const std::string& key, const std::string& source)
{
    const Figure* figure = findFigure(figures, key);
    if (!figure) {
        std::vector<std::string> keys;
        for (const Figure& one : figures)
            keys.push_back(one.key);
        return fail("lab.key", fmt::format("{} has no figure \"{}\"", source, key), didYouMean(key, keys));
    }
    if (!figure->isNumber())
        return labWord(std::get<std::string>(figure->value));
    return labNumber(figure->number(), figure->unit);
}

Result<LabValue> valueInDetail(const Json& detail, const std::string& path, const std::string& source)
{
    const Json* const node = nodeAt(detail, path);
    if (node == nullptr)
        return fail("lab.key", fmt::format("the detail of {} has no \"{}\"", source, path),
                    "memscape-cli predict --json shows it");
    if (node->is_string())
        return labWord(node->get<std::string>());
    if (node->is_boolean())
        return labNumber(node->get<bool>() ? 1 : 0);
    if (!node->is_number())
        return fail("lab.value", fmt::format("\"{}\" of {} is no number or word", path, source));
    const std::string last = split(path, '.').back();
    const bool isBytes = last == "bytes" || last == "allocated" || last == "reserved" || last == "capacity"
        || last.starts_with("live_at") || last.ends_with("_bytes") || last == "peak";
    return labNumber(node->get<double>(), isBytes ? Unit::Byte : Unit::One);
}

} // namespace

Result<double> labCurveAt(const Series& series, const LabValue& x)
{
    const auto& xs = series.x.values;
    if (x.isWord()) {
        const auto at = std::ranges::find(series.x.names, x.word());
        if (at == series.x.names.end())
            return fail("lab.missing", fmt::format("the curve {} has no point {}", series.label, x.word()));
        return series.y[std::size_t(at - series.x.names.begin())];
    }
    const double wanted = x.number();
    std::optional<std::size_t> below, above;
    for (std::size_t i = 0; i < xs.size() && i < series.y.size(); ++i) {
        if (!std::isfinite(series.y[i]))
            continue;
        if (std::abs(xs[i] - wanted) <= 1e-9 * std::abs(wanted))
            return series.y[i];
        if (xs[i] < wanted && (!below || xs[i] > xs[*below]))
            below = i;
        if (xs[i] > wanted && (!above || xs[i] < xs[*above]))
            above = i;
    }
    if (!below || !above)
        return fail("lab.missing", fmt::format("the curve {} does not reach {}", series.label, x.text()),
                    "measure it over the range that the step names");
    const double x0 = xs[*below], x1 = xs[*above], y0 = series.y[*below], y1 = series.y[*above];
    if (x0 > 0 && y0 > 0 && y1 > 0)
        return y0 * std::pow(y1 / y0, std::log(wanted / x0) / std::log(x1 / x0));
    return y0 + (y1 - y0) * (wanted - x0) / (x1 - x0);
}

Result<std::shared_ptr<const Record>> LabPredictions::get(
    const LabRequest& request, const std::string& device,
    const std::vector<std::pair<std::string, std::string>>& parameters)
{
    std::string key = request.experiment + "\n" + device;
    for (const auto& [name, text] : parameters)
        key += "\n" + name + "=" + text;
    std::optional<Device> known;
    {
        const std::scoped_lock lock(m_mutex);
        if (const auto kept = m_records.find(key); kept != m_records.end())
            return kept->second;
        if (const auto at = m_devices.find(device); at != m_devices.end())
            known = at->second;
    }
    const auto make = [&]() -> Result<std::shared_ptr<const Record>> {
        if (!known)
            MEMSCAPE_SET(known, findDevice(device));
        MEMSCAPE_TRY(experiment, findExperiment(request.experiment));
        MEMSCAPE_TRY(resolved, resolve(experiment->schema(), parameters));
        MEMSCAPE_TRY(record, predictRecord(*experiment, *known, resolved));
        return std::make_shared<const Record>(std::move(record));
    };
    auto made = make();
    if (!made && made.error().code == "predict.cancelled")
        return made; // it was not wanted any more: the next who asks makes it
    const std::scoped_lock lock(m_mutex);
    if (known)
        m_devices.emplace(device, *known);
    return m_records.emplace(key, std::move(made)).first->second;
}

LabContext::LabContext(const LabAttempt& attempt, LabPredictions& predictions)
    : m_attempt(attempt)
    , m_predictions(predictions)
    , m_scope{[this](const std::string& text) { return name(text); },
              [this](const std::string& function, const std::vector<LabValue>& arguments) {
                  return call(function, arguments);
              }}
{ }

Result<std::shared_ptr<const Record>> LabContext::predicted(const std::string& source) const
{
    const Lab& lab = m_attempt.lab();
    for (const LabPrediction& one : lab.predictions) {
        if (one.key != source)
            continue;
        std::vector<std::pair<std::string, std::string>> texts;
        for (const auto& [key, text] : one.request.parameters) {
            MEMSCAPE_TRY(filled, filledLabParameter(text, m_attempt.variant()));
            texts.emplace_back(key, filled);
        }
        auto record = m_predictions.get(one.request, one.request.device, texts);
        if (!record) // the lab's fault, whatever its code
            return fail("lab.prediction", fmt::format("the prediction {} fails: {}", source, record.error().text()));
        return record;
    }
    const LabStep* step = lab.step(source);
    if (!step || !step->request)
        return fail(
            "lab.key",
            fmt::format("\"{}\" is no prediction and no step that asks an experiment", quotedForMessage(source)));
    MEMSCAPE_TRY(device, filledLabParameter(step->request->device, m_attempt.variant()));
    if (device.empty())
        return fail("lab.key", fmt::format("step {} names no device to predict for", source), "add \"device\" to it");
    MEMSCAPE_TRY(texts, m_attempt.parameters(*step));
    return m_predictions.get(*step->request, device, texts);
}

Result<const Record*> LabContext::record(const std::string& source, std::shared_ptr<const Record>& keep) const
{
    const LabStep* step = m_attempt.lab().step(source);
    if (step && step->kind == LabStepKind::Measure) {
        const Record* run = m_attempt.run(source);
        if (!run)
            return fail("lab.missing", fmt::format("step {} was not measured", source));
        return run;
    }
    if (step && step->kind != LabStepKind::Fix)
        for (const LabQuestion& one : step->questions)
            if (one.kind == LabQuestionKind::Parameters && !m_attempt.given(one))
                return fail("lab.missing", fmt::format("{} has no answer", one.key));
    MEMSCAPE_SET(keep, predicted(source));
    return keep.get();
}

Result<const Outcome*> LabContext::outcome(const std::string& source, std::shared_ptr<const Record>& keep,
                                           bool measured) const
{
    MEMSCAPE_TRY(found, record(source, keep));
    const LabStep* step = m_attempt.lab().step(source);
    const bool isRun = step && step->kind == LabStepKind::Measure;
    const auto& side = isRun && measured ? found->measured : found->predicted;
    if (!side)
        return fail("lab.missing",
                    fmt::format("the run of {} holds no {}", source, measured ? "measurement" : "prediction"));
    return &*side;
}

Result<Series> LabContext::curve(const std::string& text) const
{
    const auto dot = text.find('.');
    const std::string source = text.substr(0, dot), key = dot == std::string::npos ? "" : text.substr(dot + 1);
    std::shared_ptr<const Record> keep;
    MEMSCAPE_TRY(found, outcome(source, keep, true));
    const Series* series = found->findSeries(key);
    if (!series) {
        std::vector<std::string> keys;
        for (const Series& one : found->series)
            keys.push_back(one.key);
        return fail("lab.key", fmt::format("{} has no curve \"{}\"", source, key), didYouMean(key, keys));
    }
    return *series;
}

Result<LabValue> LabContext::figure(const std::string& source, const std::string& key) const
{
    std::shared_ptr<const Record> keep;
    MEMSCAPE_TRY(found, outcome(source, keep, true));
    return valueOfFigure(found->figures, key, source);
}

Result<LabValue> LabContext::answerOf(const LabQuestion& question) const
{
    const Json* given = m_attempt.given(question);
    if (!given)
        return fail("lab.missing", fmt::format("{} has no answer", question.key));
    const LabStep& step = *m_attempt.lab().stepOf(question);
    if (step.kind == LabStepKind::Predict && !m_attempt.isLocked(step.id))
        return fail("lab.missing", fmt::format("the prediction {} is not locked", question.key));
    MEMSCAPE_TRY(answer, readLabAnswer(question, step, *given));
    if (question.kind == LabQuestionKind::Number)
        return labNumber(answer.number, question.unit);
    if (question.kind == LabQuestionKind::Choice || question.kind == LabQuestionKind::Text)
        return labWord(answer.word);
    return fail("lab.key", fmt::format("the answer to {} is neither a number nor a word", question.key));
}

Result<LabValue> LabContext::name(const std::string& text) const
{
    if (const auto dot = text.find('.'); dot != std::string::npos)
        return figure(text.substr(0, dot), text.substr(dot + 1));
    for (const auto& [key, value] : m_attempt.variant())
        if (key == text)
            return variantValue(value);
    for (const auto& [key, expression] : m_attempt.lab().values) {
        if (key != text)
            continue;
        if (const auto known = m_values.find(key); known != m_values.end())
            return known->second;
        if (m_depth > 32)
            return fail("lab.value", fmt::format("the value {} is computed from itself", key),
                        "values name earlier ones");
        ++m_depth;
        auto value = evaluateLab(expression, m_scope);
        --m_depth;
        if (value)
            m_values.emplace(key, *value);
        return value;
    }
    if (const LabQuestion* question = m_attempt.lab().question(text))
        return answerOf(*question);
    return fail("lab.key", fmt::format("\"{}\" is no number or word of the lab", quotedForMessage(text)),
                "a prediction or a run needs a figure: best.peak");
}

Result<LabValue> LabContext::call(const std::string& function, const std::vector<LabValue>& arguments) const
{
    const std::string source = arguments.front().word();
    const bool isAt = function == "at" || function == "predicted";
    if (arguments.size() != (isAt ? 3 : 2) || !arguments[1].isWord())
        return fail("lab.expression",
                    fmt::format("{} is asked as {}({}, \"…\"{})", function, function, source, isAt ? ", x" : ""));
    const std::string& key = arguments[1].word();
    std::shared_ptr<const Record> keep;
    if (isAt) {
        MEMSCAPE_TRY(found, outcome(source, keep, function == "at"));
        const Series* series = found->findSeries(key);
        if (!series)
            return fail("lab.key", fmt::format("{} has no curve \"{}\"", source, key));
        MEMSCAPE_TRY(y, labCurveAt(*series, arguments[2]));
        return labNumber(y, series->yUnit);
    }
    if (function == "detail") {
        MEMSCAPE_TRY(found, outcome(source, keep, true));
        return valueInDetail(found->detail, key, source);
    }
    MEMSCAPE_TRY(found, record(source, keep));
    if (function == "capacity") {
        const MemoryLevel* level = found->device.level(key);
        if (!level || !level->capacity.known())
            return fail("lab.missing", fmt::format("the size of {} of {} is not known", key, found->device.name));
        return labNumber(level->capacity.value, Unit::Byte);
    }
    const ParameterSpec* spec = findParameter((*findExperiment(found->experiment))->schema(), key);
    if (!spec || !found->parameters.has(key))
        return fail("lab.key", fmt::format("{} has no parameter \"{}\"", source, key));
    for (const auto& [name, value] : found->parameters.values()) {
        if (name != key)
            continue;
        if (const auto* number = std::get_if<double>(&value))
            return labNumber(*number, spec->unit);
        return variantValue(valueText(value));
    }
    return fail("lab.key", fmt::format("{} has no parameter \"{}\"", source, key));
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/parameter.h"

#include "core/base/text.h"
#include "core/experiment/parameter_text.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// The error with the parameter's key as its place.
Error placed(Error error, const std::string& key)
{
    if (error.place.empty())
        error.place = key;
    return error;
}

/// The longest text that the spec allows, in bytes.
std::size_t longestText(const ParameterSpec& spec)
{
    return spec.maximum > 0 ? static_cast<std::size_t>(spec.maximum) : textLimit;
}

std::string rangeText(const ParameterSpec& spec)
{
    if (spec.kind == ParameterKind::Text)
        return fmt::format("a text of {} to {} bytes", numberText(spec.minimum), longestText(spec));
    return numbersText(spec);
}

/// "GPU" of "GPUs", "micro-batch" of "micro-batches".
std::string singular(std::string_view many)
{
    for (const std::string_view ending : {"ches", "shes", "sses", "xes"}) {
        if (many.ends_with(ending))
            return std::string(many.substr(0, many.size() - 2));
    }
    return std::string(many.ends_with('s') ? many.substr(0, many.size() - 1) : many);
}

Result<ParameterValue> checkedNumber(const ParameterSpec& spec, double value)
{
    if (!std::isfinite(value) || value < spec.minimum || value > spec.maximum) {
        return fail("parameter.range", fmt::format("{} is out of range", valueLabel(spec, value)),
                    "allowed: " + rangeText(spec), spec.key);
    }
    if (spec.kind == ParameterKind::Integer && value != std::floor(value)) {
        return fail("parameter.type", fmt::format("expected a whole number, found {}", numberText(value)),
                    "allowed: " + rangeText(spec), spec.key);
    }
    return ParameterValue(value);
}

bool isCounted(const ParameterSpec& spec, std::string_view text)
{
    return !spec.counted.empty() && text.starts_with(spec.counted + ":");
}

/// `every:4`
Result<ParameterValue> parseCounted(const ParameterSpec& spec, std::string_view text)
{
    constexpr double most = 65536;
    const auto count = parseNumber(text.substr(spec.counted.size() + 1));
    if (!count || *count < 1 || *count > most || *count != std::floor(*count)) {
        return fail("parameter.choice",
                    fmt::format("\"{}\": after {}: comes a whole number", quotedForMessage(text), spec.counted),
                    fmt::format("allowed: {0}:1 to {0}:{1}", spec.counted, most), spec.key);
    }
    return ParameterValue(fmt::format("{}:{}", spec.counted, *count));
}

Result<ParameterValue> parseChoice(const ParameterSpec& spec, std::string_view text)
{
    if (isCounted(spec, text))
        return parseCounted(spec, text);
    std::vector<std::string> keys;
    for (const ChoiceValue& choice : spec.choices) {
        if (choice.key == text)
            return ParameterValue(choice.key);
        keys.push_back(choice.key);
    }
    return fail("parameter.choice", fmt::format("\"{}\" is not a choice", quotedForMessage(text)),
                didYouMean(text, keys), spec.key);
}

Result<ParameterValue> parseFlag(const ParameterSpec& spec, std::string_view text)
{
    if (text == "true" || text == "yes" || text == "on" || text == "1")
        return ParameterValue(true);
    if (text == "false" || text == "no" || text == "off" || text == "0")
        return ParameterValue(false);
    return fail("parameter.type",
                fmt::format("expected true or false, found \"{}\"", quotedForMessage(text)), {}, spec.key);
}

Result<ParameterValue> parseText(const ParameterSpec& spec, std::string_view text)
{
    if (text.size() > longestText(spec) || static_cast<double>(text.size()) < spec.minimum) {
        return fail("parameter.range",
                    text.empty() ? std::string("is empty")
                                 : fmt::format("a text of {} bytes is out of range", text.size()),
                    "allowed: " + rangeText(spec), spec.key);
    }
    if (!validUtf8(text))
        return fail("parameter.type", "the text is not UTF-8", {}, spec.key);
    const bool control = std::any_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (control)
        return fail("parameter.type", fmt::format("\"{}\" holds a control character", quotedForMessage(text)),
                    "write it on one line, without tabs", spec.key);
    return ParameterValue(std::string(text));
}

tl::unexpected<Error> sweepSyntax(const ParameterSpec& spec, std::string_view text, std::string why)
{
    return fail("sweep.syntax", fmt::format("\"{}\": {}", quotedForMessage(text), why),
                "a sweep is written 1:128:x2, 0:64:8 or 1,2,5", spec.key);
}

Result<std::vector<ParameterValue>> sweepList(const ParameterSpec& spec, std::string_view text)
{
    std::vector<ParameterValue> values;
    for (const std::string& part : split(text, ',')) {
        if (trimmed(part).empty())
            return sweepSyntax(spec, text, "a value is empty");
        if (values.size() == sweepLimit)
            return fail("sweep.limit", fmt::format("more than {} points", sweepLimit),
                        "take fewer points", spec.key);
        MEMSCAPE_TRY(value, parseValue(spec, part));
        values.push_back(value);
    }
    return values;
}

/// `"a","b"`: a comma or an equals sign inside the quotes belongs to the text.
Result<std::vector<ParameterValue>> sweepTexts(const ParameterSpec& spec, std::string_view text)
{
    const auto wrong = [&] {
        return fail("sweep.syntax", fmt::format("\"{}\": each text needs its own double quotes",
                                                quotedForMessage(text)),
                    "several texts are written \"one\",\"two\"", spec.key);
    };
    std::vector<ParameterValue> values;
    for (std::string_view rest = text;;) {
        const std::size_t end = rest.starts_with('"') ? rest.find('"', 1) : std::string_view::npos;
        if (end == std::string_view::npos)
            return wrong();
        if (values.size() == sweepLimit)
            return fail("sweep.limit", fmt::format("more than {} points", sweepLimit),
                        "take fewer points", spec.key);
        MEMSCAPE_TRY(value, parseValue(spec, rest.substr(1, end - 1)));
        values.push_back(value);
        rest = trimmed(rest.substr(end + 1));
        if (rest.empty())
            return values;
        if (!rest.starts_with(','))
            return wrong();
        rest = trimmed(rest.substr(1));
    }
}

Result<std::vector<ParameterValue>> sweepRange(const ParameterSpec& spec, std::string_view text)
{
    const auto parts = split(text, ':');
    if (parts.size() < 2 || parts.size() > 3)
        return sweepSyntax(spec, text, "a range has the form first:last:step");
    if (spec.kind != ParameterKind::Integer && spec.kind != ParameterKind::Real)
        return sweepSyntax(spec, text, "a range needs numbers; list the choices with commas");
    MEMSCAPE_TRY(firstValue, parseValue(spec, parts[0]));
    MEMSCAPE_TRY(lastValue, parseValue(spec, parts[1]));
    const double first = std::get<double>(firstValue), last = std::get<double>(lastValue);
    if (last < first)
        return sweepSyntax(spec, text, "the last value is below the first");

    std::string step = parts.size() == 3 ? std::string(trimmed(parts[2])) : "1";
    const bool geometric = step.starts_with('x') || step.starts_with('X');
    if (geometric)
        step.erase(0, 1);
    auto size = geometric ? parseNumber(step) : parseQuantity(step, spec.unit);
    if (!size)
        return sweepSyntax(spec, text, "the step is not a number");
    if (geometric ? *size <= 1 : *size <= 0)
        return sweepSyntax(spec, text, geometric ? "the factor must be above 1" : "the step must be above 0");
    if (geometric && first <= 0)
        return sweepSyntax(spec, text, "a range by a factor cannot start at 0");

    std::vector<ParameterValue> values;
    // The end belongs to the sweep when a step lands on it up to rounding.
    const double slack = 1e-9 * std::max(std::fabs(last), 1.0);
    for (std::size_t i = 0;; ++i) {
        double value = geometric ? first * std::pow(*size, static_cast<double>(i))
                                 : first + static_cast<double>(i) * *size;
        if (value > last + slack)
            return values;
        if (spec.kind == ParameterKind::Integer)
            value = std::round(value);
        if (values.size() == sweepLimit)
            return fail("sweep.limit", fmt::format("more than {} points", sweepLimit),
                        "take a larger step", spec.key);
        const ParameterValue next = std::min(value, last);
        if (values.empty() || values.back() != next) // 1:4:x1.1 rounds to the same integer twice
            values.push_back(next);
    }
}

} // namespace

std::vector<std::string> keysOf(const Schema& schema)
{
    std::vector<std::string> keys;
    for (const ParameterSpec& spec : schema)
        keys.push_back(spec.key);
    return keys;
}

const ParameterSpec* findParameter(const Schema& schema, std::string_view key)
{
    for (const ParameterSpec& spec : schema) {
        if (spec.key == key)
            return &spec;
    }
    return nullptr;
}

bool operator==(const Sweep& a, const Sweep& b)
{
    return a.key == b.key && a.values == b.values;
}

bool Parameters::operator==(const Parameters&) const = default;

bool Parameters::has(std::string_view key) const
{
    return std::any_of(m_values.begin(), m_values.end(),
                       [&](const auto& entry) { return entry.first == key; });
}

namespace {

const ParameterValue& valueOf(const Parameters& parameters, std::string_view key)
{
    for (const auto& [name, value] : parameters.values()) {
        if (name == key)
            return value;
    }
    assert(!"no such parameter: experiments only read what their schema declares");
    static const ParameterValue none = 0.0;
    return none;
}

} // namespace

double Parameters::number(std::string_view key) const
{
    return std::get<double>(valueOf(*this, key));
}

std::int64_t Parameters::integer(std::string_view key) const
{
    return static_cast<std::int64_t>(number(key));
}

const std::string& Parameters::choice(std::string_view key) const
{
    return std::get<std::string>(valueOf(*this, key));
}

const std::string& Parameters::text(std::string_view key) const
{
    return choice(key);
}

bool Parameters::flag(std::string_view key) const
{
    return std::get<bool>(valueOf(*this, key));
}

void Parameters::set(std::string_view key, ParameterValue value)
{
    for (auto& [name, old] : m_values) {
        if (name == key) {
            old = std::move(value);
            return;
        }
    }
    m_values.emplace_back(key, std::move(value));
}

void Parameters::setSweep(std::optional<Sweep> sweep)
{
    m_sweep = std::move(sweep);
    if (m_sweep && !m_sweep->values.empty())
        set(m_sweep->key, m_sweep->values.front());
}

Parameters Parameters::at(std::string_view key, const ParameterValue& value) const
{
    Parameters copy = *this;
    copy.m_sweep.reset();
    copy.set(key, value);
    return copy;
}

Result<ParameterValue> parseValue(const ParameterSpec& spec, std::string_view text)
{
    text = trimmed(text);
    switch (spec.kind) {
    case ParameterKind::Choice: return parseChoice(spec, text);
    case ParameterKind::Flag: return parseFlag(spec, text);
    case ParameterKind::Text: return parseText(spec, text);
    case ParameterKind::Integer:
    case ParameterKind::Real: break;
    }
    for (const ChoiceValue& word : spec.choices) {
        if (text == word.label)
            text = word.key;
    }
    auto number = parseQuantity(text, spec.unit);
    if (!number) {
        Error error = placed(number.error(), spec.key);
        error.code = error.code == "number.range" ? "parameter.range" : "parameter.type";
        if (error.hint.empty())
            error.hint = "allowed: " + rangeText(spec);
        return fail(std::move(error));
    }
    return checkedNumber(spec, *number);
}

Result<std::vector<ParameterValue>> parseSweep(const ParameterSpec& spec, std::string_view text)
{
    text = trimmed(text);
    if (spec.kind == ParameterKind::Text) {
        if (text.starts_with('"'))
            return sweepTexts(spec, text);
        MEMSCAPE_TRY(value, parseValue(spec, text));
        return std::vector<ParameterValue>{value};
    }
    if (text.find(',') != std::string_view::npos)
        return sweepList(spec, text);
    if (text.find(':') != std::string_view::npos && !isCounted(spec, text))
        return sweepRange(spec, text);
    MEMSCAPE_TRY(value, parseValue(spec, text));
    return std::vector<ParameterValue>{value};
}

Result<Parameters> resolve(const Schema& schema,
                           const std::vector<std::pair<std::string, std::string>>& assignments)
{
    Parameters parameters;
    for (const ParameterSpec& spec : schema) {
        auto standard = parseValue(spec, spec.standard);
        assert(standard && "the default of a parameter must be valid");
        parameters.set(spec.key, *standard);
    }
    std::vector<std::string> seen;
    for (const auto& [key, text] : assignments) {
        const ParameterSpec* spec = findParameter(schema, key);
        if (!spec) {
            return fail("parameter.unknown", fmt::format("no parameter \"{}\"", quotedForMessage(key)),
                        didYouMean(key, keysOf(schema)), quotedForMessage(key));
        }
        if (std::find(seen.begin(), seen.end(), key) != seen.end())
            return fail("parameter.twice", "is given twice", "give it once", key);
        seen.push_back(key);
        MEMSCAPE_TRY(values, parseSweep(*spec, text));
        if (values.size() == 1) {
            parameters.set(key, values.front());
        } else if (parameters.sweep()) {
            return fail("sweep.several",
                        fmt::format("only one parameter may be swept, and {} already is",
                                    parameters.sweep()->key),
                        "run the command once per value of the other", key);
        } else {
            parameters.setSweep(Sweep{key, values});
        }
    }
    return parameters;
}

Result<Parameters> resolve(const Schema& schema, const std::vector<std::string>& assignments)
{
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& assignment : assignments) {
        const auto equals = assignment.find('=');
        if (equals == std::string::npos || equals == 0) {
            return fail("parameter.syntax",
                        fmt::format("expected KEY=VALUE, found \"{}\"", quotedForMessage(assignment)),
                        "parameters: " + join(keysOf(schema), ", "));
        }
        pairs.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
    }
    return resolve(schema, pairs);
}

std::string valueText(const ParameterValue& value)
{
    if (const auto* number = std::get_if<double>(&value))
        return numberText(*number);
    if (const auto* flag = std::get_if<bool>(&value))
        return *flag ? "true" : "false";
    return std::get<std::string>(value);
}

std::string wordOf(const ParameterSpec& spec, double value)
{
    for (const ChoiceValue& word : spec.choices) {
        if (word.key == numberText(value))
            return word.label;
    }
    return {};
}

std::string valueLabel(const ParameterSpec& spec, const ParameterValue& value, ByteStyle bytes)
{
    if (const auto* number = std::get_if<double>(&value)) {
        if (const std::string word = wordOf(spec, *number); !word.empty())
            return word;
        if (spec.unit != Unit::One)
            return quantityText(*number, spec.unit, bytes, 4);
        const std::string text = numberText(*number);
        if (spec.suffix.empty())
            return text;
        return text + " " + (*number == 1 ? singular(spec.suffix) : spec.suffix);
    }
    if (const auto* key = std::get_if<std::string>(&value)) {
        for (const ChoiceValue& choice : spec.choices) {
            if (choice.key == *key)
                return choice.label;
        }
    }
    return valueText(value);
}

std::string numbersText(const ParameterSpec& spec)
{
    const std::string low = valueLabel(spec, spec.minimum);
    return fmt::format("{} to {}",
                       wordOf(spec, spec.minimum).empty() ? low : fmt::format("{} ({})", numberText(spec.minimum), low),
                       valueLabel(spec, spec.maximum));
}

} // namespace memscape

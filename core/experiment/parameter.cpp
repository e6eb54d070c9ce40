// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/parameter.h"

#include "core/experiment/parameter_text.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace memscape {

namespace {

/// "GPU" of "GPUs", "micro-batch" of "micro-batches".
std::string singular(std::string_view many)
{
    for (const std::string_view ending : {"ches", "shes", "sses", "xes"}) {
        if (many.ends_with(ending))
            return std::string(many.substr(0, many.size() - 2));
    }
    return std::string(many.ends_with('s') ? many.substr(0, many.size() - 1) : many);
}

} // namespace

std::vector<std::string> keysOf(const Schema& schema)
{
    std::vector<std::string> keys;
    for (const ParameterSpec& spec : schema)
        keys.push_back(spec.key);
    return keys;
}

std::vector<std::string> groupsOf(const Schema& schema)
{
    std::vector<std::string> groups{std::string()};
    for (const ParameterSpec& spec : schema) {
        if (std::find(groups.begin(), groups.end(), spec.group) == groups.end())
            groups.push_back(spec.group);
    }
    return groups;
}

void setGroup(Schema& schema, const std::string& group, std::initializer_list<std::string_view> keys)
{
    for (const std::string_view key : keys) {
        const auto spec =
            std::find_if(schema.begin(), schema.end(), [key](const ParameterSpec& one) { return one.key == key; });
        assert(spec != schema.end());
        spec->group = group;
    }
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
    return std::any_of(m_values.begin(), m_values.end(), [&](const auto& entry) { return entry.first == key; });
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
    Parameters there;
    there.m_values = m_values; // not the sweep: n points would copy n² of its values
    there.set(key, value);
    return there;
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
    if (const auto* flag = std::get_if<bool>(&value))
        return *flag ? "on" : "off";
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

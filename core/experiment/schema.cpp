// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"

#include <utility>

namespace memscape {

namespace {

ParameterSpec specOf(ParameterKind kind, std::string key, std::string label, std::string help, std::string standard)
{
    ParameterSpec spec;
    spec.key = std::move(key);
    spec.label = std::move(label);
    spec.help = std::move(help);
    spec.kind = kind;
    spec.standard = std::move(standard);
    return spec;
}

ParameterSpec within(ParameterSpec spec, NumberRange range)
{
    spec.unit = range.unit;
    spec.minimum = range.least;
    spec.maximum = range.most;
    spec.scale = range.scale;
    spec.choices = std::move(range.words);
    spec.suffix = std::move(range.suffix);
    spec.appliesTo = range.appliesTo;
    return spec;
}

} // namespace

ParameterSpec integerSpec(std::string key, std::string label, std::string help, NumberRange range)
{
    std::string standard = range.standard;
    return within(
        specOf(ParameterKind::Integer, std::move(key), std::move(label), std::move(help), std::move(standard)),
        std::move(range));
}

ParameterSpec realSpec(std::string key, std::string label, std::string help, NumberRange range)
{
    std::string standard = range.standard;
    return within(specOf(ParameterKind::Real, std::move(key), std::move(label), std::move(help), std::move(standard)),
                  std::move(range));
}

ParameterSpec flagSpec(std::string key, std::string label, std::string help, bool standard)
{
    return specOf(ParameterKind::Flag, std::move(key), std::move(label), std::move(help), standard ? "true" : "false");
}

ParameterSpec textSpec(std::string key, std::string label, std::string help, std::string standard, std::size_t least,
                       std::size_t most)
{
    ParameterSpec spec =
        specOf(ParameterKind::Text, std::move(key), std::move(label), std::move(help), std::move(standard));
    spec.minimum = static_cast<double>(least);
    spec.maximum = static_cast<double>(most);
    return spec;
}

ParameterSpec choiceSpec(std::string key, std::string label, std::string help, std::vector<ChoiceValue> choices,
                         std::string standard)
{
    if (standard.empty())
        standard = choices.front().key;
    ParameterSpec spec =
        specOf(ParameterKind::Choice, std::move(key), std::move(label), std::move(help), std::move(standard));
    spec.choices = std::move(choices);
    return spec;
}

} // namespace memscape

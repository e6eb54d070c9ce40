// SPDX-License-Identifier: Apache-2.0
// Parameters and schemas as JSON. A value written as text ("1 GiB") reads as well as a number.
#include "core/base/text.h"
#include "core/experiment/parameter.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Json valueToJson(const ParameterValue& value)
{
    if (const auto* number = std::get_if<double>(&value))
        return jsonNumber(*number);
    if (const auto* flag = std::get_if<bool>(&value))
        return *flag;
    return std::get<std::string>(value);
}

Result<ParameterValue> valueFromJson(const ParameterSpec& spec, const JsonReader& reader)
{
    const Json& node = reader.node();
    Result<ParameterValue> value = ParameterValue(0.0);
    if (node.is_string()) { // "1 GiB" is as good as 1073741824 when written by hand
        value = parseValue(spec, node.get_ref<const std::string&>());
    } else if (spec.kind == ParameterKind::Flag) {
        MEMSCAPE_TRY(flag, reader.boolean());
        return ParameterValue(flag);
    } else if (spec.kind == ParameterKind::Choice && node.is_boolean()) { // of a record made while it was a flag
        value = parseValue(spec, node.get<bool>() ? "true" : "false");
    } else if (spec.kind == ParameterKind::Choice) {
        return reader.expected("one of its choices");
    } else if (spec.kind == ParameterKind::Text) {
        return reader.expected("a text");
    } else {
        MEMSCAPE_TRY(number, reader.number());
        value = parseValue(spec, numberText(number));
    }
    if (!value) {
        Error error = value.error();
        error.place = reader.path();
        return fail(std::move(error));
    }
    return value;
}

} // namespace

Json parametersToJson(const Parameters& parameters)
{
    Json json = Json::object();
    for (const auto& [key, value] : parameters.values()) {
        if (parameters.sweep() && parameters.sweep()->key == key) {
            Json values = Json::array();
            for (const ParameterValue& swept : parameters.sweep()->values)
                values.push_back(valueToJson(swept));
            json[key] = std::move(values);
        } else {
            json[key] = valueToJson(value);
        }
    }
    return json;
}

Result<Parameters> parametersFromJson(const Schema& schema, const JsonReader& reader)
{
    MEMSCAPE_TRY(parameters, resolve(schema, std::vector<std::string>{}));
    MEMSCAPE_TRY(members, reader.members());
    for (const auto& [key, node] : members) {
        const ParameterSpec* spec = findParameter(schema, key);
        if (!spec) {
            return fail("parameter.unknown", "no such parameter", didYouMean(key, keysOf(schema)), node.path());
        }
        if (!node.node().is_array()) {
            MEMSCAPE_TRY(value, valueFromJson(*spec, node));
            parameters.set(key, value);
            continue;
        }
        MEMSCAPE_TRY(items, node.items());
        if (items.empty() || items.size() > sweepLimit)
            return node.expected(fmt::format("1 to {} values", sweepLimit));
        if (parameters.sweep())
            return fail("sweep.several", "only one parameter may be swept", {}, node.path());
        Sweep sweep{key, {}};
        for (const JsonReader& item : items) {
            MEMSCAPE_TRY(value, valueFromJson(*spec, item));
            sweep.values.push_back(value);
        }
        parameters.setSweep(std::move(sweep));
    }
    return parameters;
}

Json schemaToJson(const Schema& schema)
{
    constexpr std::string_view kinds[] = {"integer", "real", "choice", "flag", "text"};
    Json parameters = Json::array();
    for (const ParameterSpec& spec : schema) {
        Json json{{"key", spec.key},
                  {"label", spec.label},
                  {"kind", kinds[static_cast<std::size_t>(spec.kind)]},
                  {"unit", unitText(spec.unit)},
                  {"default", spec.standard},
                  {"help", spec.help}};
        if (spec.kind == ParameterKind::Integer || spec.kind == ParameterKind::Real) {
            json["minimum"] = jsonNumber(spec.minimum);
            json["maximum"] = jsonNumber(spec.maximum);
        } else if (spec.kind == ParameterKind::Text) {
            json["minimum_length"] = jsonNumber(spec.minimum);
            json["maximum_length"] = spec.maximum > 0 ? jsonNumber(spec.maximum) : Json(textLimit);
        }
        if (!spec.counted.empty())
            json["counted"] = spec.counted;
        if (spec.appliesTo != AppliesTo::Everywhere)
            json["applies_to"] = spec.appliesTo == AppliesTo::Gpus ? "gpu"
                : spec.appliesTo == AppliesTo::Hosts               ? "host"
                                                                   : "pytorch";
        if (!spec.group.empty())
            json["group"] = spec.group;
        for (const ChoiceValue& choice : spec.choices)
            json["choices"].push_back({{"key", choice.key}, {"label", choice.label}, {"help", choice.help}});
        parameters.push_back(std::move(json));
    }
    return parameters;
}

} // namespace memscape

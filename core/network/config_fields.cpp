// SPDX-License-Identifier: Apache-2.0
#include "core/network/config_fields.h"

#include "core/base/text.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// No size of a model is larger than this; what a product of two does is checked where it is made.
constexpr std::int64_t sizeLimit = std::int64_t(1) << 31;
constexpr std::size_t listLimit = 10'000;

std::string keysText(ConfigFields::Keys keys)
{
    return join(std::vector<std::string>(keys.begin(), keys.end()), " or ");
}

} // namespace

std::string ConfigFields::within(std::string_view key) const
{
    return m_node.path().empty() ? std::string(key) : fmt::format("{}.{}", m_node.path(), key);
}

void ConfigFields::refuse(Error error)
{
    if (!m_error)
        m_error = std::move(error);
}

void ConfigFields::contradict(std::string_view key, std::string message)
{
    refuse(Error{"model.contradiction", std::move(message), within(key), "check the configuration"});
}

std::optional<JsonReader> ConfigFields::find(Keys keys) const
{
    for (const JsonReader* object : {&m_node, m_outer ? &*m_outer : nullptr}) {
        if (!object)
            continue;
        for (const char* key : keys) {
            if (!object->has(key))
                continue;
            auto value = object->at(key);
            if (value && !value->node().is_null())
                return *value;
        }
    }
    return std::nullopt;
}

std::optional<std::int64_t> ConfigFields::count(Keys keys, std::int64_t low)
{
    const auto node = find(keys);
    if (failed() || !node)
        return std::nullopt;
    const auto number = node->number();
    const auto value = node->integer();
    if (!value && !(number && *number > static_cast<double>(sizeLimit))) {
        refuse(value.error());
        return std::nullopt;
    }
    if (!value || *value < low || *value > sizeLimit) {
        refuse(Error{"model.range", fmt::format("{} is out of range", node->node().dump()), node->path(),
                     fmt::format("allowed: {} to {}", low, sizeLimit)});
        return std::nullopt;
    }
    return *value;
}

std::int64_t ConfigFields::required(Keys keys)
{
    const auto value = count(keys);
    if (!value && !failed())
        refuse(Error{"config.missing", "is missing", within(*keys.begin()),
                     fmt::format("a model configuration gives {}", keysText(keys))});
    return value.value_or(1);
}

std::int64_t ConfigFields::countOr(Keys keys, std::int64_t standard, std::int64_t low)
{
    if (standard == 0)
        return required(keys);
    const auto value = count(keys, low);
    if (!value && !failed())
        assume(fmt::format("{} is not given: {} is assumed", *keys.begin(), standard));
    return value.value_or(standard);
}

template <typename Value> Value ConfigFields::one(Keys keys, Value standard, Result<Value> (JsonReader::*read)() const)
{
    const auto node = find(keys);
    if (failed() || !node)
        return standard;
    auto value = ((*node).*read)();
    if (!value)
        refuse(value.error());
    return value.value_or(std::move(standard));
}

double ConfigFields::number(Keys keys, double standard)
{
    return one(keys, standard, &JsonReader::number);
}

bool ConfigFields::flag(Keys keys, bool standard)
{
    return one(keys, standard, &JsonReader::boolean);
}

std::string ConfigFields::word(Keys keys, std::string standard)
{
    return one(keys, std::move(standard), &JsonReader::string);
}

template <typename Value> std::vector<Value> ConfigFields::list(Keys keys, Result<Value> (JsonReader::*read)() const)
{
    std::vector<Value> values;
    const auto node = find(keys);
    if (failed() || !node)
        return values;
    const auto items = node->items();
    if (!items || items->size() > listLimit) {
        refuse(items ? Error{"model.range", "the list is too long", node->path(),
                             fmt::format("at most {} are read", listLimit)}
                     : items.error());
        return values;
    }
    for (const JsonReader& item : *items) {
        auto value = (item.*read)();
        if (!value) {
            refuse(value.error());
            return {};
        }
        values.push_back(std::move(*value));
    }
    return values;
}

std::vector<std::int64_t> ConfigFields::counts(Keys keys)
{
    std::vector<std::int64_t> values = list(keys, &JsonReader::integer);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] >= 0 && values[i] <= sizeLimit)
            continue;
        refuse(Error{"model.range", fmt::format("{} is out of range", values[i]),
                     fmt::format("{}[{}]", find(keys)->path(), i), fmt::format("allowed: 0 to {}", sizeLimit)});
        return {};
    }
    return values;
}

std::vector<std::string> ConfigFields::words(Keys keys)
{
    return list(keys, &JsonReader::string);
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Reading with the first error kept: see device_fields.h.
#include "core/device/device_fields.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

void Fields::refuse(Error error) const
{
    if (!failed())
        *m_error = std::move(error);
}

void Fields::refuse(std::string_view key, const std::string& message) const
{
    const std::string place = key.empty() ? m_node.path() : m_node.path() + "." + std::string(key);
    refuse(Error{"json.range", message, place, {}});
}

bool Fields::has(std::string_view key) const
{
    return !failed() && m_node.has(key);
}

double Fields::inRange(double value, const JsonReader& at, Range range) const
{
    const bool lowEnough = value <= range.high;
    const bool highEnough = range.zeroAllowed ? value >= 0 : value > 0;
    if (lowEnough && highEnough && (!range.whole || value == std::floor(value)))
        return value;
    refuse(Error{"json.range",
                 fmt::format("{} is not {} between 0{} and {}", numberText(value),
                             range.whole ? "a whole number" : "a number", range.zeroAllowed ? "" : " (excluded)",
                             numberText(range.high)),
                 at.path(),
                 {}});
    return std::numeric_limits<double>::quiet_NaN();
}

double Fields::number(std::string_view key, Range range, double fallback) const
{
    if (!has(key))
        return fallback;
    const auto at = m_node.at(key);
    const auto value = at ? at->number() : Result<double>(tl::unexpected<Error>(at.error()));
    if (!value) {
        refuse(value.error());
        return fallback;
    }
    const double checked = inRange(*value, *at, range);
    return failed() ? fallback : checked;
}

int Fields::integer(std::string_view key, Range range, int fallback) const
{
    range.whole = true;
    return static_cast<int>(number(key, range, fallback));
}

bool Fields::boolean(std::string_view key, bool fallback) const
{
    if (!has(key))
        return fallback;
    const auto value = m_node.boolean(key, fallback);
    if (!value)
        refuse(value.error());
    return value.value_or(fallback);
}

std::string Fields::text(std::string_view key, std::string fallback) const
{
    if (!has(key))
        return fallback;
    const auto value = m_node.string(key);
    if (!value)
        refuse(value.error());
    return value.value_or(fallback);
}

std::string Fields::requiredText(std::string_view key) const
{
    if (failed())
        return {};
    const auto value = m_node.string(key);
    if (!value)
        refuse(value.error());
    else if (value->empty() || value->size() > 200)
        refuse(key, "a text of 1 to 200 bytes is needed here");
    return value.value_or("");
}

Sourced Fields::sourced(std::string_view key, Range range) const
{
    Sourced result;
    if (!has(key))
        return result;
    const auto at = m_node.at(key);
    if (!at || at->node().is_null())
        return result;
    const Fields inner(*at, m_error);
    if (!at->node().is_object()) {
        refuse(at->expected("an object with value, kind and source").value());
        return result;
    }
    const auto value = at->at("value");
    const auto number = value ? value->numberOrNan() : Result<double>(tl::unexpected<Error>(value.error()));
    if (!number) {
        refuse(number.error());
        return result;
    }
    if (std::isfinite(*number))
        result.value = inRange(*number, *value, range);
    static const std::vector<std::string_view> kinds = {"specified", "measured", "derived", "unverified"};
    result.evidence =
        static_cast<Evidence>(inner.choice("kind", kinds, static_cast<std::size_t>(Evidence::Unverified)));
    result.source = inner.text("source");
    result.method = inner.text("method");
    return result;
}

std::optional<Sourced> Fields::optionalSourced(std::string_view key, Range range) const
{
    if (!has(key))
        return std::nullopt;
    return sourced(key, range);
}

std::size_t Fields::choice(std::string_view key, const std::vector<std::string_view>& words, std::size_t fallback) const
{
    if (!has(key))
        return fallback;
    const std::string word = text(key);
    const auto found = std::ranges::find(words, word);
    if (found != words.end())
        return static_cast<std::size_t>(found - words.begin());
    refuse(key, fmt::format("\"{}\" is not one of {}", quotedForMessage(word), fmt::join(words, ", ")));
    return fallback;
}

void Fields::inside(std::string_view key, const std::function<void(const Fields&)>& read) const
{
    if (!has(key))
        return;
    const auto at = m_node.at(key);
    if (!at)
        refuse(at.error());
    else if (!at->node().is_object())
        refuse(at->expected("an object").value());
    else
        read(Fields(*at, m_error));
}

void Fields::each(std::string_view key, std::size_t limit, const std::function<void(const Fields&)>& read) const
{
    if (!has(key))
        return;
    const auto at = m_node.at(key);
    const auto items = at ? at->items() : Result<std::vector<JsonReader>>(tl::unexpected<Error>(at.error()));
    if (!items)
        return refuse(items.error());
    if (items->size() > limit)
        return refuse(key, fmt::format("{} entries, at most {} are read", items->size(), limit));
    for (const JsonReader& item : *items) {
        if (!item.node().is_object())
            refuse(item.expected("an object").value());
        if (failed())
            return;
        read(Fields(item, m_error));
    }
}

void Fields::eachMember(std::string_view key, std::size_t limit,
                        const std::function<void(const std::string&, const Fields&)>& read) const
{
    if (!has(key))
        return;
    const auto at = m_node.at(key);
    if (!at)
        return refuse(at.error());
    const auto members = at->members();
    if (!members)
        return refuse(members.error());
    if (members->size() > limit)
        return refuse(key, fmt::format("{} entries, at most {} are read", members->size(), limit));
    for (const auto& [name, member] : *members) {
        if (!member.node().is_object())
            refuse(member.expected("an object").value());
        if (failed())
            return;
        read(name, Fields(member, m_error));
    }
}

std::vector<std::string> Fields::texts(std::string_view key, std::size_t limit) const
{
    std::vector<std::string> result;
    if (!has(key))
        return result;
    const auto at = m_node.at(key);
    const auto items = at ? at->items() : Result<std::vector<JsonReader>>(tl::unexpected<Error>(at.error()));
    if (!items) {
        refuse(items.error());
        return result;
    }
    if (items->size() > limit)
        refuse(key, fmt::format("{} entries, at most {} are read", items->size(), limit));
    for (const JsonReader& item : *items) {
        const auto value = item.string();
        if (!value)
            refuse(value.error());
        if (failed())
            return result;
        result.push_back(*value);
    }
    return result;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Keeping what we do not know: see device_unknown.h. "+" and "~" tell an unknown key whose value is
// an object from a known object that has unknown keys inside.
#include "core/device/device_unknown.h"

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

Json unknownInArray(const Json& document, const Json& known)
{
    Json items = Json::object();
    if (document.size() != known.size())
        return Json();
    for (std::size_t i = 0; i < document.size(); ++i) {
        if (Json part = unknownPart(document[i], known[i]); !part.is_null())
            items[std::to_string(i)] = std::move(part);
    }
    return items.empty() ? Json() : Json{{"size", document.size()}, {"items", std::move(items)}};
}

} // namespace

Json unknownPart(const Json& document, const Json& known)
{
    if (document.is_array() && known.is_array())
        return unknownInArray(document, known);
    if (!document.is_object() || !known.is_object())
        return Json();
    Json unknown = Json::object();
    for (const auto& [key, value] : document.items()) {
        const auto found = known.find(key);
        if (found == known.end())
            unknown["+" + key] = value;
        else if (Json part = unknownPart(value, *found); !part.is_null())
            unknown["~" + key] = std::move(part);
    }
    return unknown.empty() ? Json() : unknown;
}

void mergeUnknown(Json& known, const Json& unknown)
{
    if (!unknown.is_object())
        return;
    if (known.is_array()) {
        if (unknown.value("size", std::size_t(0)) != known.size())
            return;
        std::size_t i = 0;
        for (Json& item : known) {
            const Json& items = unknown["items"];
            if (const auto found = items.find(std::to_string(i++)); found != items.end())
                mergeUnknown(item, *found);
        }
        return;
    }
    for (const auto& [key, value] : unknown.items()) {
        const std::string name = key.substr(1);
        if (key.front() == '+' && !known.contains(name))
            known[name] = value;
        else if (key.front() == '~' && known.contains(name))
            mergeUnknown(known[name], value);
    }
}

Json unknownMember(const Json& unknown, const std::string& key)
{
    return unknown.is_object() ? unknown.value("+" + key, Json()) : Json();
}

} // namespace memscape

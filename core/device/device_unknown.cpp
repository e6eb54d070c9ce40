// SPDX-License-Identifier: Apache-2.0
// Keeping what we do not know: see device_unknown.h. "+" and "~" tell an unknown key whose value is
// an object from a known object that has unknown keys inside.
#include "core/device/device_unknown.h"

#include <functional>
#include <map>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// The members of an object by key. A foreign document may have a hundred thousand of them.
template <typename Value> std::map<std::string, Value*, std::less<>> membersOf(Value& object)
{
    std::map<std::string, Value*, std::less<>> members;
    for (auto member = object.begin(); member != object.end(); ++member)
        members.emplace(member.key(), &*member);
    return members;
}

Json unknownInArray(const Json& document, const Json& known)
{
    Json items = Json::object();
    if (document.size() != known.size())
        return Json();
    for (std::size_t i = 0; i < document.size(); ++i) {
        if (Json part = unknownPart(document[i], known[i]); !part.is_null())
            addMember(items, std::to_string(i), std::move(part));
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
    const auto members = membersOf(known);
    for (const auto& [key, value] : document.items()) {
        const auto found = members.find(key);
        if (found == members.end())
            addMember(unknown, "+" + key, value);
        else if (Json part = unknownPart(value, *found->second); !part.is_null())
            addMember(unknown, "~" + key, std::move(part));
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
        const auto items = membersOf(unknown["items"]);
        std::size_t i = 0;
        for (Json& item : known) {
            if (const auto found = items.find(std::to_string(i++)); found != items.end())
                mergeUnknown(item, *found->second);
        }
        return;
    }
    Json added = Json::object();
    const auto members = membersOf(known);
    for (const auto& [key, value] : unknown.items()) {
        const auto found = members.find(std::string_view(key).substr(1));
        if (key.front() == '+' && found == members.end())
            addMember(added, key.substr(1), value);
        else if (key.front() == '~' && found != members.end())
            mergeUnknown(*found->second, value);
    }
    for (auto& [key, value] : added.get_ref<Json::object_t&>()) // these move what `members` points to
        addMember(known, key, std::move(value));
}

Json unknownMember(const Json& unknown, const std::string& key)
{
    return unknown.is_object() ? unknown.value("+" + key, Json()) : Json();
}

} // namespace memscape

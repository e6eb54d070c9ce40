// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_keys.h"

#include <algorithm>
#include <cctype>

namespace memscape {

namespace fs = std::filesystem;

Result<void> onlyLabKeys(const JsonReader& reader, std::initializer_list<const char*> known)
{
    MEMSCAPE_TRY(members, reader.members());
    const std::vector<std::string> all(known.begin(), known.end());
    for (const auto& [key, node] : members)
        if (std::ranges::find(all, key) == all.end())
            return fail("lab.key", fmt::format("there is no key \"{}\" here", quotedForMessage(key)),
                        didYouMean(key, all), node.path());
    return {};
}

Result<std::vector<JsonReader>> labItems(const JsonReader& reader, std::string_view key, std::size_t most)
{
    if (!reader.has(key))
        return std::vector<JsonReader>();
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(items, node.items());
    if (items.size() > most)
        return fail("lab.value", fmt::format("{} elements, at most {} are read", items.size(), most), {}, node.path());
    return items;
}

Result<std::vector<std::string>> labWords(const JsonReader& reader, std::string_view key, std::size_t most)
{
    MEMSCAPE_TRY(items, labItems(reader, key, most));
    std::vector<std::string> words;
    for (const JsonReader& item : items) {
        if (item.node().is_number()) {
            words.push_back(numberText(item.node().get<double>()));
            continue;
        }
        MEMSCAPE_TRY(word, item.string());
        words.push_back(word);
    }
    return words;
}

Result<std::string> labText(const JsonReader& reader, std::string_view key)
{
    if (!reader.has(key))
        return std::string();
    MEMSCAPE_TRY(node, reader.at(key));
    if (node.node().is_number())
        return numberText(node.node().get<double>());
    return node.string();
}

Result<double> labAmount(const JsonReader& reader, std::string_view key, double fallback, double least)
{
    MEMSCAPE_TRY(value, reader.number(key, fallback));
    if (value < least || value > 1e6)
        return fail("lab.value", fmt::format("{} is out of range", numberText(value)),
                    fmt::format("{} to 1000000", numberText(least)), (*reader.at(key)).path());
    return value;
}

Result<std::string> labName(const JsonReader& reader, std::string_view key)
{
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(name, node.string());
    const bool fits = !name.empty() && name.size() <= 40 && std::ranges::all_of(name, [](unsigned char one) {
        return std::islower(one) != 0 || std::isdigit(one) != 0 || one == '_';
    }) && std::isdigit(static_cast<unsigned char>(name.front())) == 0;
    if (!fits)
        return fail("lab.value", fmt::format("\"{}\" is no name", quotedForMessage(name)),
                    "a name has 1 to 40 small letters, digits and _, and begins with a letter", node.path());
    return name;
}

Result<fs::path> insideLab(const fs::path& folder, const std::string& name, const std::string& place)
{
    const fs::path path(name);
    std::error_code problem;
    bool inside = !name.empty() && path.is_relative() && name.find('\\') == std::string::npos
        && name.find('\0') == std::string::npos && name.size() <= 200;
    for (const fs::path& part : path)
        inside = inside && part != ".." && part != ".";
    if (inside && fs::exists(folder / path, problem)) { // a link may still lead away
        const std::string real = fs::weakly_canonical(folder / path, problem).string();
        inside = real.starts_with(fs::weakly_canonical(folder, problem).string() + "/");
    }
    if (!inside)
        return fail("lab.path", fmt::format("\"{}\" is not a file inside the lab's folder", quotedForMessage(name)),
                    "name a file beside lab.json, such as steps/1-start.md", place);
    return folder / path;
}

Result<std::vector<std::pair<std::string, std::string>>> labTexts(const JsonReader& reader, std::string_view key)
{
    std::vector<std::pair<std::string, std::string>> texts;
    if (!reader.has(key))
        return texts;
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(members, node.members());
    if (members.size() > 64)
        return node.expected("at most 64 members");
    for (const auto& [name, value] : members) {
        if (value.node().is_boolean()) {
            texts.emplace_back(name, value.node().get<bool>() ? "true" : "false");
            continue;
        }
        MEMSCAPE_TRY(text, labText(node, name));
        texts.emplace_back(name, text);
    }
    return texts;
}

} // namespace memscape

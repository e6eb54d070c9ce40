// SPDX-License-Identifier: Apache-2.0
// The values of lab.json, key by key. Every key is known or refused: a check whose key is misspelt would pass in
// silence. Errors: lab.key, lab.value, lab.path, at the place in the JSON.
#pragma once

#include "core/base/text.h"
#include "core/lab/lab.h"

#include <initializer_list>

#include <fmt/format.h>

namespace memscape {

/// Nothing when all keys are among the known.
Result<void> onlyLabKeys(const JsonReader& reader, std::initializer_list<const char*> known);

/// The kind with that word under the key; there are `Count` kinds, from 0 on.
template <typename Kind, std::size_t Count>
Result<Kind> labKind(const JsonReader& reader, std::string_view key, std::string_view (*word)(Kind))
{
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(text, node.string());
    std::vector<std::string> words;
    for (std::size_t i = 0; i < Count; ++i) {
        words.emplace_back(word(Kind(i)));
        if (words.back() == text)
            return Kind(i);
    }
    return fail("lab.value", fmt::format("there is no {} \"{}\"", key, quotedForMessage(text)), didYouMean(text, words),
                node.path());
}

/// The elements of a list; none without the key.
Result<std::vector<JsonReader>> labItems(const JsonReader& reader, std::string_view key, std::size_t most);
/// Words and numbers of a list, as text.
Result<std::vector<std::string>> labWords(const JsonReader& reader, std::string_view key, std::size_t most = 64);
/// A number or a text under the key, as text.
Result<std::string> labText(const JsonReader& reader, std::string_view key);
/// From `least` to a million.
Result<double> labAmount(const JsonReader& reader, std::string_view key, double fallback, double least = 0);
/// A name that expressions can hold: letters, digits and _.
Result<std::string> labName(const JsonReader& reader, std::string_view key);
/// Keys and texts of an object; true and false are texts, too.
Result<std::vector<std::pair<std::string, std::string>>> labTexts(const JsonReader& reader, std::string_view key);
/// A file of the lab's folder: plain words joined by /, nothing that leads outside.
Result<std::filesystem::path> insideLab(const std::filesystem::path& folder, const std::string& name,
                                        const std::string& place);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Small text helpers, and the "did you mean" of every error about a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

std::string_view trimmed(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string lowered(std::string_view text);

/// Levenshtein distance, case-insensitive.
int editDistance(std::string_view a, std::string_view b);

/// At most `limit` candidates near `wanted`, nearest first: those that begin with it, those that hold it or are held
/// by it, then by edit distance up to a third of its length. Case and everything but letters and digits is passed
/// over, so "llama3" is near "llama-3-8b". Empty when nothing is near.
std::vector<std::string> nearest(std::string_view wanted, const std::vector<std::string>& candidates,
                                 std::size_t limit = 3);

/// "did you mean a or b?" when something is near, else "known: a, b, c".
std::string didYouMean(std::string_view wanted, const std::vector<std::string>& candidates);

/// Whether every byte belongs to a well-formed UTF-8 sequence (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF).
bool validUtf8(std::string_view text);

/// `text` cut to `limit` bytes at a UTF-8 boundary with "…"; control characters become spaces. For
/// messages that quote foreign input.
std::string quotedForMessage(std::string_view text, std::size_t limit = 60);

} // namespace memscape

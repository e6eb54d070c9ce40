// SPDX-License-Identifier: Apache-2.0
// A table of words, laid out with spaces for a terminal or with bars for Markdown. Widths are counted
// in characters, not bytes: units and signs ("µs", "−", "–") are more than one byte. Characters that
// terminals draw two cells wide (CJK) count as one, which at worst bends a column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

struct TextColumn
{
    std::string title;   ///< may hold newlines: a header of several lines
    bool number = false; ///< aligned to the right
};

struct TextTable
{
    std::vector<TextColumn> columns;
    std::vector<std::vector<std::string>> rows;

    bool empty() const { return rows.empty(); }
};

/// Characters of UTF-8 text.
std::size_t textWidth(std::string_view text);

/// Lines with `indent` spaces before, two between columns, a newline after each, none of them with
/// trailing spaces. The text of cells is made printable (control characters become spaces).
std::string alignedText(const TextTable& table, int indent = 0);

/// A GitHub-flavoured Markdown table; cells are escaped.
std::string markdownTable(const TextTable& table);

/// `text` as literal Markdown in one line: markup characters escaped, addresses no links, newlines become spaces.
std::string escapedForMarkdown(std::string_view text);

/// `text` for a terminal: control characters, escape sequences among them, become spaces.
std::string printable(std::string_view text);

/// `text` in lines of at most 96 characters, each after `indent` spaces.
std::string wrappedText(const std::string& text, std::size_t indent);

} // namespace memscape

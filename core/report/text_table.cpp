// SPDX-License-Identifier: Apache-2.0
#include "core/report/text_table.h"

#include "core/base/text.h"

#include <algorithm>

namespace memscape {

namespace {

std::string padded(std::string_view text, std::size_t width, bool right)
{
    const std::string spaces(width - std::min(width, textWidth(text)), ' ');
    return right ? spaces + std::string(text) : std::string(text) + spaces;
}

/// Header titles and cells alike as rows of lines, so that layout has one case.
std::vector<std::vector<std::string>> headerLines(const std::vector<TextColumn>& columns)
{
    std::size_t height = 0;
    std::vector<std::vector<std::string>> titles;
    for (const TextColumn& column : columns) {
        titles.push_back(split(column.title, '\n'));
        height = std::max(height, titles.back().size());
    }
    std::vector<std::vector<std::string>> lines(height);
    for (std::size_t line = 0; line < height; ++line) {
        for (const auto& title : titles) {
            const std::size_t missing = height - title.size(); // one-line titles sit at the bottom
            lines[line].push_back(line < missing ? std::string() : title[line - missing]);
        }
    }
    return lines;
}

} // namespace

std::size_t textWidth(std::string_view text)
{
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80; // not a continuation byte
    }));
}

std::string printable(std::string_view text)
{
    std::string out(text);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto c = static_cast<unsigned char>(out[i]);
        if (c < 0x20 || c == 0x7F)
            out[i] = ' ';
        // U+0080 to U+009F are control characters too: CSI among them.
        if (c == 0xC2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xA0)
            out[i] = out[i + 1] = ' ';
    }
    return out;
}

std::string alignedText(const TextTable& table, int indent)
{
    auto lines = headerLines(table.columns);
    for (const auto& row : table.rows) {
        lines.emplace_back();
        for (const std::string& cell : row)
            lines.back().push_back(printable(cell));
    }
    std::vector<std::size_t> widths(table.columns.size(), 0);
    for (const auto& line : lines)
        for (std::size_t i = 0; i < std::min(line.size(), widths.size()); ++i)
            widths[i] = std::max(widths[i], textWidth(line[i]));
    std::string out;
    for (const auto& line : lines) {
        std::string text(static_cast<std::size_t>(indent), ' ');
        for (std::size_t i = 0; i < std::min(line.size(), widths.size()); ++i) {
            if (i > 0)
                text += "  ";
            text += padded(line[i], widths[i], table.columns[i].number);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + '\n';
    }
    return out;
}

std::string escapedForMarkdown(std::string_view text)
{
    const std::string plain = printable(text);
    const std::string_view all = plain;
    std::string out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool opens = std::string_view("\\`*_{}[]<>#|~!&$").find(all[i]) != std::string_view::npos
            || all.substr(i).starts_with("://") // GitHub's Markdown makes links of bare addresses
            || (all[i] == '.' && i >= 3 && (all.substr(i - 3, 3) == "www" || all.substr(i - 3, 3) == "WWW"))
            || (i == 0 && (all.starts_with("- ") || all.starts_with("+ ")));
        if (opens)
            out += '\\';
        out += all[i];
        // and of mail addresses (and it calls people by their names), a backslash or not
        if (all[i] == '@' && i + 1 < all.size() && all[i + 1] != ' ')
            out += "<!-- -->";
    }
    return out;
}

std::string markdownTable(const TextTable& table)
{
    std::string out = "|", rule = "|";
    for (const TextColumn& column : table.columns) {
        out += " " + escapedForMarkdown(column.title) + " |"; // a newline becomes a space
        rule += column.number ? " ---: |" : " --- |";
    }
    out += "\n" + rule + "\n";
    for (const auto& row : table.rows) {
        out += "|";
        for (const std::string& cell : row)
            out += " " + escapedForMarkdown(cell) + " |";
        out += "\n";
    }
    return out;
}

std::string wrappedText(const std::string& text, std::size_t indent)
{
    const std::string start(indent, ' ');
    std::string out, line;
    for (const std::string& word : split(text, ' ')) {
        if (!line.empty() && indent + textWidth(line) + 1 + textWidth(word) > 96) {
            out += start + line + "\n";
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
    }
    return out + start + line + "\n";
}

} // namespace memscape

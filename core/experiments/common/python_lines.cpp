// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/common/python_lines.h"

#include "core/base/text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace memscape {

void PythonLines::import(std::string line)
{
    if (std::ranges::find(m_imports, line) == m_imports.end())
        m_imports.push_back(std::move(line));
}

void PythonLines::comment(std::string_view text, int indent)
{
    for (std::string& line : commentLines(text, indent))
        m_lines.push_back(std::move(line));
}

std::string PythonLines::text() const
{
    std::vector<std::string> all = m_preamble;
    all.insert(all.end(), m_imports.begin(), m_imports.end());
    all.emplace_back();
    all.insert(all.end(), m_lines.begin(), m_lines.end());
    return join(all, "\n") + "\n";
}

std::string pythonText(std::string_view text)
{
    // JSON's escapes are Python's; what is no UTF-8 is replaced.
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string_view pythonFlag(bool value)
{
    return value ? "True" : "False";
}

std::vector<std::string> commentLines(std::string_view text, int indent)
{
    constexpr std::size_t width = 88;
    const std::string start = std::string(std::size_t(indent), ' ') + "#";
    const std::string safe = validUtf8(text) ? quotedForMessage(text, text.size()) : pythonText(text);
    std::vector<std::string> lines;
    std::string line = start;
    for (const std::string& word : split(safe, ' ')) {
        if (line != start && line.size() + 1 + word.size() > width) {
            lines.push_back(line);
            line = start;
        }
        line += " " + word;
    }
    lines.push_back(line);
    return lines;
}

} // namespace memscape

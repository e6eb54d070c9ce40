// SPDX-License-Identifier: Apache-2.0
// Lines of a Python program under construction: imports on top, each once, then the statements. Foreign
// text (the name of a model) gets in as a quoted literal or on one line of a comment, never as code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

class PythonLines
{
public:
    /// `import torch`, `from torch.utils.checkpoint import checkpoint`; those that were there stay once.
    void import(std::string line);
    void add(std::string line) { m_lines.push_back(std::move(line)); }
    /// A paragraph that starts with "# ", wrapped at 88 characters; `indent` spaces before it.
    void comment(std::string_view text, int indent = 0);
    void blank() { m_lines.emplace_back(); }
    /// What stands above the imports: comments, environment.
    void preamble(std::string line) { m_preamble.push_back(std::move(line)); }

    std::string text() const;

private:
    std::vector<std::string> m_preamble, m_imports, m_lines;
};

/// A literal that Python reads back as the same text.
std::string pythonText(std::string_view text);
std::string_view pythonFlag(bool value);

/// The lines of a comment: see PythonLines::comment().
std::vector<std::string> commentLines(std::string_view text, int indent = 0);

} // namespace memscape

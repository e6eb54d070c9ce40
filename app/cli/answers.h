// SPDX-License-Identifier: Apache-2.0
// Files of answers to labs, *.mlab: which there are, and each with its lab.
#pragma once

#include "app/cli/arguments.h"
#include "core/lab/lab_grade.h"

namespace memscape::cli {

/// Exit code where the lab itself is broken, not the answers.
inline constexpr int brokenLab = 3;

/// The files themselves, of a folder every *.mlab below it, sorted. Errors: usage (a folder without any).
Result<std::vector<std::string>> answerFiles(const std::vector<std::string>& names);

/// The id of the lab that a document of answers names. Errors: json.*.
Result<std::string> labIdOfAnswers(const std::string& text);

/// lab report: a page for each file of answers.
int reportAnswers(const Arguments& arguments);

} // namespace memscape::cli

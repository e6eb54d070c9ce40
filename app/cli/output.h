// SPDX-License-Identifier: Apache-2.0
// Where words go. Results go to standard output, messages to standard error, files are written
// whole. A reader that went away (EPIPE) is no error; a full disk is, and then nothing is lost.
#pragma once

#include "core/base/result.h"
#include "core/experiment/record.h"

#include <string>
#include <string_view>

namespace memscape::cli {

void printOut(std::string_view text);
/// True when standard output can no longer be written to.
bool outputGone();
/// Flushes standard output; `code`, or 2 with a message when it could not be written.
int finishedOutput(int code);

void note(std::string_view text);  ///< one line on standard error
void complain(const Error& error); ///< "memscape-cli: …" with its hint on a second line
int refused(const Error& error);   ///< complain, and the exit code for that error

/// Every word of a file, or of standard input for "-".
Result<std::string> readText(const std::string& path);

/// Whether a file of that name could be written, asked before a long run rather than after it.
Result<void> writable(const std::string& path);

/// The document of a run to where the user wants it: FILE, standard output (`printed`), or both.
/// When FILE cannot be written the text is kept all the same: on standard output if it went there,
/// else in a temporary file that is named. Answers `code`, or 2.
int deliver(const std::string& path, const std::string& text, bool printed, int code);

/// Figures, why, points: what a person reads after predict and measure.
std::string recordText(const Record& record);

} // namespace memscape::cli

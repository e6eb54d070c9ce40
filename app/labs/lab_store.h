// SPDX-License-Identifier: GPL-3.0-or-later
// Where a student's answers lie: a folder for each student below the data folder of the program, a file for each lab,
// so that several people may use one account. A file that cannot be read is never written over.
#pragma once

#include "core/lab/lab_attempt.h"

#include <QString>

namespace memscape {

/// $XDG_DATA_HOME/memscape/labs.
QString labAnswersFolder();
/// "…/ada-l/cache-size.mlab". Names that differ in case or spaces around them are one, as for the variant.
QString labAnswersPath(const std::string& lab, const QString& student);
/// "ada-l-cache-size.mlab": what a file is called that goes to a teacher, who gets many.
QString handInName(const std::string& student, const std::string& lab);

/// Answers, and the step that was shown when they were saved.
struct LabAnswersFile
{
    LabAttempt attempt;
    std::string at; ///< id of a step; empty: not said
};

/// Which lab a file answers. Errors: file.*, json.*, document.format, document.newer.
Result<std::string> labOfAnswers(const QString& path);
/// Errors: file.*, those of LabAttempt::parse(), with the file's name in the place.
Result<LabAnswersFile> readLabAnswers(std::shared_ptr<const Lab> lab, const QString& path);
/// Beside it, then renamed. Errors: file.*.
Result<void> writeLabAnswers(const QString& path, const LabAttempt& attempt, const std::string& at);
/// Renames a file that cannot be read to "cache-size.mlab.broken", or ".broken-2"…, and says to what.
/// Errors: file.write.
Result<QString> setBrokenAside(const QString& path);

} // namespace memscape

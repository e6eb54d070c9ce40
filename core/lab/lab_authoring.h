// SPDX-License-Identifier: Apache-2.0
// What a teacher does with a lab: check it, pack it for students, begin a new one; what a student begins with.
#pragma once

#include "core/lab/lab_grade.h"

namespace memscape {

/// Everything that is wrong with a lab beyond what readLab() refuses; empty: sound. Texts are filled for every variant
/// (at most 16), links of texts lead to files, recorded runs reproduce and their samples fit them, a fix begins broken,
/// start.memscape opens, the solution gets every point and the empty attempt none.
std::vector<Error> checkLab(const std::shared_ptr<const Lab>& lab);

/// Copies what students get into `folder`, which must not exist: no solution.json, no checks, none of the values that
/// only checks use, and of ranked items not what ranks them. Errors: file.*.
Result<void> packLabForStudents(const Lab& lab, const std::filesystem::path& folder);

/// What tune and fix steps begin with, predicted with the student's parameters: opened in the window, their pages are
/// prepared. Errors: lab.step (there is none), those of LabContext::predicted().
Result<Study> labStartStudy(const LabAttempt& attempt, LabPredictions& predictions);

/// A small lab that works, to be changed: `folder`/lab.json, steps, solution.json. Errors: lab.value (the name of the
/// folder is no id), file.exists, file.*.
Result<void> writeNewLab(const std::filesystem::path& folder, const std::string& title);

/// The text of a step for a student: placeholders filled, then questions and hints that were seen. Markdown.
Result<std::string> labStepText(const LabAttempt& attempt, const LabStep& step, LabPredictions& predictions);

} // namespace memscape

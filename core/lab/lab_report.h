// SPDX-License-Identifier: Apache-2.0
// Grades as people and course systems read them. Order is the lab's and the submissions'; no text holds a time, so that
// the same answers give the same bytes.
//   text        for a student: what was right, what not and why
//   json        everything: {"lab", "submissions": [{"student", "points", "checks": […]}…]}
//   csv         the class: a row for each submission, a column for each check (RFC 4180)
//   autolab     the lines that Autolab's driver reads; the last is {"scores": {…}}; one submission
//   gradescope  results.json with visibility; one submission
//   junit       <testsuites> for continuous integration
#pragma once

#include "core/lab/lab_grade.h"

namespace memscape {

enum class GradeFormat { Text, Json, Csv, Autolab, Gradescope, Junit };
/// Errors: usage with the known ones.
Result<GradeFormat> gradeFormatFromText(std::string_view text);

/// Hidden checks count; what they say is left out unless `showHidden`.
std::string gradesReport(GradeFormat format, const Lab& lab, const std::vector<LabGrade>& grades, bool showHidden);

} // namespace memscape

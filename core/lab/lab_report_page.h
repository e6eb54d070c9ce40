// SPDX-License-Identifier: Apache-2.0
// One student's answers as a page for paper or mail: points by step, each question with the answer, what was right and
// why, texts in full, drawn curves over the predicted and the measured ones, runs, and what a teacher should look at.
// Left out: what hidden checks say, and the lab's own texts.
#pragma once

#include "core/lab/lab_grade.h"

namespace memscape {

/// Self-contained HTML: styles and charts inside, no script, every word of the answers escaped. The grade is that of
/// the attempt; of one with a problem, or without checks (a pack for students), the answers are shown without points.
std::string labAnswersHtml(const LabAttempt& attempt, const LabGrade& grade, LabPredictions& predictions);

} // namespace memscape

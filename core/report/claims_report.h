// SPDX-License-Identifier: Apache-2.0
// Judged claims and answered questions as documents: the text that a terminal shows, CSV and JSON. The command line and
// the window write the same.
#pragma once

#include "core/claims/claim_verdicts.h"
#include "core/claims/question_answers.h"

#include <array>

namespace memscape {

/// By ClaimVerdict.
using VerdictCounts = std::array<std::size_t, 4>;
VerdictCounts countVerdicts(const std::vector<JudgedClaim>& claims);

/// "checkpoint chain=uniform:64; more: chain=uniform:256": the experiment with its cases.
std::string shownByText(const ClaimEntry& entry);

/// Note by note, the counts of verdicts at the end.
std::string claimsText(const std::vector<JudgedClaim>& claims, const Device& device);
/// A row for each claim: id, source, note, heading, line, quote, topic, verdict, ours, right, experiment, parameters.
std::string claimsCsv(const std::vector<JudgedClaim>& claims);
/// An array of judgedJson().
std::string claimsDocument(const std::vector<JudgedClaim>& claims);

/// `verdicts` of the claims that judge the answers; a question whose claim is not among them has none.
std::string questionsText(const std::vector<AnsweredQuestion>& answers, const std::vector<JudgedClaim>& verdicts,
                          const Device& device);
/// An array of answeredJson() with "verdict".
std::string questionsDocument(const std::vector<AnsweredQuestion>& answers, const std::vector<JudgedClaim>& verdicts);

} // namespace memscape

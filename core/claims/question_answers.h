// SPDX-License-Identifier: Apache-2.0
// The deep questions with the numbers of a device: where the note's answer is true, where it is not, and what each step
// shows.
#pragma once

#include "core/claims/claim_cases.h"
#include "core/claims/question_table.h"

namespace memscape {

struct AnsweredQuestion
{
    const DeepQuestion* question = nullptr; ///< of the list that was answered
    std::string device;                     ///< id of the one whose numbers these are
    std::string instead;                    ///< why it is not the one that was asked; empty when it is
    std::string isTrue, isNot;
    std::vector<std::string> says;    ///< of each step
    std::vector<std::string> devices; ///< id of each step's device
};

/// In the order of `questions`. Where the asked device lacks what a step needs, or is of the other kind, the numbers
/// are those of an H200 (an EPYC 9654), and `instead` says why. Errors: claims.figure, claims.device,
/// expression.*, device.* of a step's own, each with the question as place; run.cancelled.
Result<std::vector<AnsweredQuestion>> answerQuestions(const std::vector<const DeepQuestion*>& questions,
                                                      const Device& asked, const ClaimProgress& progress = {});

/// {"id", "source", "title", "place", "line", "question", "answer", "claim", "true", "not", "device", "instead",
/// "steps": [{"name", "says", "experiment", "parameters", "device"}…]}
Json answeredJson(const AnsweredQuestion& answer);

} // namespace memscape

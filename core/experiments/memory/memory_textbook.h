// SPDX-License-Identifier: Apache-2.0
// The formulas of papers and courses for a training step, with our own figure and what makes the
// difference. They multiply parameters by constants; the step is simulated (training_memory.h).
#pragma once

#include "core/experiments/training-memory/training_memory.h"

namespace memscape {

struct TextbookLine
{
    std::string formula; ///< "L × s b h (34 + 5 a s / h)"
    std::string source;
    double value = 0; ///< B
    double ours = 0;  ///< B, the simulated figure that it stands for
    std::string difference;
};

struct TextbookFigures
{
    std::optional<double> activations; ///< B; only for transformers
    std::string activationsFormula;
    std::optional<double> total; ///< B: states and activations; only where both have a formula
    std::vector<TextbookLine> lines;
};

TextbookFigures textbookFigures(const TrainingAnswer& answer);

/// `textbook_activations` and `textbook_total`.
void appendTextbook(Figures& figures, const TextbookFigures& textbook);
/// [{"formula","source","value","unit","ours","difference"}…]
Json textbookJson(const TextbookFigures& textbook);

/// The claims of the course notes about training memory, with our number for these parameters.
/// `halved` is the same step with half the batch, null when the batch is 1.
std::vector<Claim> trainingClaims(const TrainingAnswer& answer, const TrainingAnswer* halved);

} // namespace memscape

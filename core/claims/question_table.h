// SPDX-License-Identifier: Apache-2.0
// The deep questions of a course note as guided explorations: the question and the answer in the note's words, where
// that answer is true and where it is not, and steps, each with a sentence and the case that shows it. One file:
//
//     {"format": "memscape-questions", "version": 1, "source": "device-and-memory-theory", "title": "Day 1, part 4: …",
//      "questions": [{
//        "id": "interval", "line": 350, "heading": "Advanced Analysis", "question": "Derive …", "answer": "Standard …",
//        "claim": "question-interval", "true": "{eight.peak} units with a checkpoint every 8 …", "not": "…",
//        "steps": [{"name": "eight", "experiment": "checkpoint", "parameters": ["chain=uniform:64",
//        "strategy=every:8"],
//                   "says": "Keep every eighth input: the peak is {peak} units."}]}]}
//
// The sentences are templates (core/expression) over the steps as cases: "eight.peak" anywhere, "peak" in a step's
// own. "claim" is the entry of the table of claims that judges the answer. A step without "device" is asked of the
// user's; "on": "gpu" or "host" is the kind of device that the question is about.
#pragma once

#include "core/claims/claim_table.h"

namespace memscape {

struct QuestionStep
{
    const Experiment* experiment = nullptr;
    ClaimCase asked;
    ExpressionTemplate says;
};

struct DeepQuestion
{
    std::string id;
    std::string source; ///< "device-and-memory-theory"
    std::string title;  ///< of the note
    std::string heading;
    int line = 0; ///< of the question; the answer is in the next one
    std::string question, answer;
    std::string claim;
    std::string on; ///< "gpu", "host" or empty
    ExpressionTemplate isTrue, isNot;
    std::vector<QuestionStep> steps; ///< at least one

    std::string place() const; ///< "Advanced Analysis, line 350"
};

/// resources/questions.json of what the program ships.
std::filesystem::path questionsFile();

/// Errors: file.*, json.*, claims.* (key, empty, twice, expression, template), experiment.unknown, parameter.*; the
/// place names the file and the question.
Result<std::vector<DeepQuestion>> readQuestions(const std::filesystem::path& file);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// What the course notes claim, as data: the note's words and place, the experiment and the parameters that show it, how
// our number is formed from the figures, and the rule of the verdict. One file for each note in resources/claims/:
//
//     {"format": "memscape-claims", "version": 1, "source": "vram-bottleneck", "title": "Day 19: memory optimization",
//      "claims": [{
//        "id": "zero-1-saves", "line": 33, "heading": "2. ZeRO", "quote": "Stage 1: Shard Optimizer States. (4x …)",
//        "topic": "sharding", "experiment": "training-memory", "parameters": ["model=params:7.5e9", "advice=none"],
//        "cases": {"one": [], "many": ["zero=1", "data_parallel=64"]}, "devices": {"one": "nvidia-h100-sxm"},
//        "ours": "{{one.weights}} …", "verdict": [["near(one.x / many.x, 4, 0.1)", "holds"], ["", "does not hold: …"]],
//        "right": "…"}]}
//
// `parameters` go for every case; without `cases` there is one, "here". A case without a device is asked of the user's.
// In place of a rule, "verdict" is "experiment": the experiment's own judgement of the claim (Experiment::claims()) at
// the first case, of the claim `judge` (the entry's own id where it is missing). "cannot": why nothing here can test
// it. "on": "gpu" or "host": the kind of device that the claim is about. "as": the id of an entry whose other keys hold
// here too. Expressions and sentences: core/expression. Left out: sweeps (cases are few and named), measured figures.
#pragma once

#include "core/experiment/experiment.h"
#include "core/expression/expression_template.h"

#include <filesystem>
#include <memory>

namespace memscape {

struct ClaimCase
{
    std::string name;   ///< "here", "one"
    std::string device; ///< empty: the one that is asked
    std::vector<std::string> assignments;
    Parameters parameters;
};

struct ClaimRule
{
    std::vector<Expression> when; ///< none: in every other case
    ExpressionTemplate verdict;
};

struct ClaimEntry
{
    std::string id;
    std::string source; ///< "vram-bottleneck"
    std::string title;  ///< of the note
    std::string heading;
    int line = 0;
    std::string quote;
    std::string topic;
    std::string on;                         ///< "gpu", "host" or empty
    const Experiment* experiment = nullptr; ///< none: only arithmetic shows it, or nothing
    std::vector<ClaimCase> cases;           ///< none without an experiment
    std::string judge;                      ///< id of the experiment's own claim; empty: the rules judge
    std::vector<ClaimRule> rules;           ///< the first that applies
    std::string cannot;                     ///< why nothing here can test it
    ExpressionTemplate ours, right;

    std::string place() const; ///< "2. ZeRO, line 33"
};

/// Every claim of a folder, file by file. Errors: file.*, json.*, claims.* (claims.empty, claims.key, claims.twice,
/// claims.verdict, claims.sentence), expression.*, experiment.unknown, parameter.*; the place names the file and
/// the entry.
Result<std::vector<ClaimEntry>> readClaimTable(const std::filesystem::path& folder);

/// The one of claimsFolder(), read once for all threads; after an error it is read again. Errors: those of
/// readClaimTable().
Result<std::shared_ptr<const std::vector<ClaimEntry>>> sharedClaimTable();

/// Parameters of an experiment from assignments, as cases have them. Errors: parameter.*; claims.key for a sweep.
Result<Parameters> caseParameters(const Experiment& experiment, const std::vector<std::string>& assignments,
                                  const std::string& name);
/// A sentence with places for numbers. Errors: expression.*, claims.sentence (a lone brace, which would be printed as
/// it stands).
Result<ExpressionTemplate> claimSentence(const std::string& text);
/// Every text of an array. Errors: json.type.
Result<std::vector<std::string>> textsOf(const JsonReader& reader);
/// Errors: claims.key with the nearest of `known`.
Result<void> checkKeys(const JsonReader& reader, const std::vector<std::string>& known);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// A lab: steps in which a student predicts, locks, measures, explains and tunes, and the checks that grade them. A
// folder with lab.json, steps/*.md, solution.json (left out of what students get) and replay/*.json (real recorded
// runs, so that a class without the hardware does the same lab); a study beside them, start.memscape, is handed out as
// it is. resources/help/labs.md describes it.
//     {"format": "memscape-lab", "version": 1, "id": "cache-size", "title": …, "minutes": 45, "level": "intro",
//      "needs": {"gpu": false}, "points": 20, "variants": [{"small": "16KiB"}, …], "predictions": […], "values": […],
//      "steps": […]}
// No check grades an absolute time or rate: the reader refuses one.
#pragma once

#include "core/experiment/record.h"
#include "core/lab/lab_expression.h"

#include <filesystem>
#include <map>
#include <memory>

namespace memscape {

inline constexpr int labVersion = 1;

enum class LabStepKind { Read, Predict, Measure, Explain, Tune, Fix };
enum class LabQuestionKind { Number, Choice, Ranking, Curve, Text, Parameters };
enum class LabCheckKind { Equals, Within, OneOf, Order, RatioAtLeast, ModelAgrees, Reproduces };

std::string_view labStepKindText(LabStepKind kind);         ///< "predict"
std::string_view labQuestionKindText(LabQuestionKind kind); ///< "ranking"
std::string_view labCheckKindText(LabCheckKind kind);       ///< "ratio_at_least"

/// A choice, or something to be ranked; `by` is what puts it in order.
struct LabOption
{
    std::string key, label;
    std::string by = {}; ///< expression, of ranked items
};

struct LabQuestion
{
    std::string key; ///< of no other question, value or source of the lab
    std::string ask; ///< with placeholders
    LabQuestionKind kind = LabQuestionKind::Number;
    Unit unit = Unit::One;             ///< of a number, or of a curve's y
    std::vector<LabOption> options;    ///< of a choice or a ranking
    std::vector<std::string> x;        ///< of a curve: expressions, where it is asked
    std::string xLabel, xUnit, yLabel; ///< of a curve
    double points = 0;                 ///< of a text: what a person may give
};

struct LabCheck
{
    std::string id; ///< "knees.l1": of no other check
    LabCheckKind kind = LabCheckKind::Equals;
    std::string question;            ///< the one whose answer is checked; empty: of expressions alone
    std::string value;               ///< expression, or the key of a choice; of ratio_at_least a
    std::vector<std::string> values; ///< of one_of
    std::string than;                ///< of ratio_at_least b
    double least = 1;                ///< of ratio_at_least x
    double absolute = 0, relative = 0;
    double decades = 0;    ///< of a curve: largest median error, log10
    std::string curve;     ///< "run.latency": what a drawn curve is compared with
    bool shape = false;    ///< a factor over the whole curve does not count
    bool smallest = false; ///< of order: the smallest comes first
    double tie = 0;        ///< of order: relative; values so near may stand either way
    std::string source;    ///< of reproduces: the step
    double points = 0;
    bool hidden = false;
    std::vector<std::string> after; ///< ids of checks: one of them failed, and this one is skipped
    std::string because;            ///< for the student: why it is so, with placeholders
};

struct LabHint
{
    std::string text;
    double cost = 0; ///< points
};

/// What is asked of an experiment: by a prediction of the lab, or by a step.
struct LabRequest
{
    std::string experiment;
    std::string device = {};                                     ///< of the catalogue; empty: the student's run says it
    std::vector<std::pair<std::string, std::string>> parameters; ///< text with {keys} of the variant
    std::vector<std::string> free;                               ///< keys that the student chooses
    std::vector<std::pair<std::string, std::string>> start = {}; ///< of a fix: what the free ones are at first
    std::string replay = {};                                     ///< file of a recorded run in the lab's folder
};

struct LabStep
{
    std::string id, title;
    LabStepKind kind = LabStepKind::Read;
    std::string file; ///< "steps/knees.md"
    std::string text; ///< its words, with placeholders
    std::vector<std::string> after;
    std::vector<LabQuestion> questions;
    std::vector<LabCheck> checks;
    std::vector<LabHint> hints;
    std::optional<LabRequest> request; ///< of measure, tune and fix
    double points() const;
};

struct LabPrediction
{
    std::string key;
    LabRequest request;
};

struct Lab
{
    std::string id, title, level, summary;
    int minutes = 0;
    bool needsGpu = false;
    double points = 0;
    std::vector<std::vector<std::pair<std::string, std::string>>> variants; ///< all with the same keys
    std::vector<LabPrediction> predictions;
    std::vector<std::pair<std::string, std::string>> values; ///< key and expression
    std::vector<LabStep> steps;
    std::string hash; ///< of what a student sees: 16 hexadecimal digits
    bool isStudentPack = false;
    std::filesystem::path folder;
    Json solution;                         ///< null without solution.json
    std::map<std::string, Record> replays; ///< by file

    const LabStep* step(std::string_view id) const;
    /// Of all steps; null when there is none.
    const LabQuestion* question(std::string_view key) const;
    const LabStep* stepOf(const LabQuestion& question) const;
    std::size_t checkCount() const;
    /// Points that a person gives: those of texts.
    double byPerson() const;
};

/// Which row of the variants a student has: the same on every machine and in every version. 0 without variants.
std::size_t labVariant(const Lab& lab, std::string_view student);

/// B, of lab.json, solution.json and each text.
inline constexpr std::size_t labFileLimit = 1u << 20;
/// B of one recorded run.
inline constexpr std::size_t labReplayLimit = 32u << 20;

/// Reads the folder. Errors name file, step and key, with the remedy: lab.missing (no such file), lab.format, lab.key
/// (unknown, twice or missing), lab.value, lab.path (outside of the folder), lab.points (they do not add up),
/// lab.absolute, expression.*, json.*, document.newer.
Result<std::shared_ptr<const Lab>> readLab(const std::filesystem::path& folder);

/// Folders of the labs that ship with the program, sorted as they are taught; those in "order.json" first.
std::vector<std::filesystem::path> labFolders();
/// An id of a shipped lab, or the path of a folder. Errors: lab.unknown with near names, those of readLab().
Result<std::shared_ptr<const Lab>> findLab(const std::string& idOrFolder);

/// [{"id","title","minutes","needs","points"}…]
Json labListJson(const std::vector<std::shared_ptr<const Lab>>& labs);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// What the pages of memory draw, read from the `detail` of a prediction (or of a record that came
// from a file, so nothing in it is taken for granted: what is missing or of another kind is left
// out). Bytes are in B.
#pragma once

#include "app/pictures/common/parameter_changes.h"
#include "core/base/json.h"
#include "core/base/number.h"

#include <nlohmann/json.hpp>

#include <QString>

#include <optional>
#include <vector>

namespace memscape {

struct MemoryPart
{
    QString key, label; ///< "optimizer_state", "optimizer state"
    double bytes = 0;
};

/// A change that was simulated: what it saves and costs.
struct LeverCard
{
    QString key, label, why, actsOn;
    ParameterChanges changes;
    double saving = 0;     ///< B of the device total; positive is less
    double total = 0;      ///< B on the device afterwards
    double timeChange = 0; ///< share of the step time; NaN unknown
    bool fits = false;
    bool keepsTraining = true; ///< false: it trains something else
};

/// What "Make it fit" answered.
struct FitAnswer
{
    std::vector<LeverCard> combinations; ///< that train the same, quickest first
    std::vector<LeverCard> changing;     ///< when none of those fits: what fits and trains something else
    std::optional<LeverCard> smallest;   ///< what came nearest when nothing fits
    int tried = 0;
    std::optional<double> largestBatch, largestSequence, fewestDevices;

    /// What can be chosen.
    const std::vector<LeverCard>& cards() const { return combinations.empty() ? changing : combinations; }
};

struct LiveTensor
{
    QString category, module, name;
    double bytes = 0;
    int count = 1;
};

/// The tensors alive after one event.
struct MemoryMoment
{
    int event = -1; ///< −1: not known
    QString phase, module, name;
    int microBatch = 0;
    double allocated = 0;
    std::vector<LiveTensor> live; ///< largest first
    double restBytes = 0;
    int restCount = 0;
};

struct TimelineCategory
{
    QString key, label;
    std::vector<double> bytes;
};

struct TimelinePhase
{
    QString key, label;
    double begin = 0, end = 0;
    int microBatch = 0;
};

struct OutOfMemoryPoint
{
    double event = 0;
    QString phase, module, name;
    double bytes = 0;
};

struct MemoryTimeline
{
    std::vector<double> event;
    std::vector<TimelineCategory> categories; ///< as many values as events
    std::vector<TimelinePhase> phases;
    int peak = -1;
    std::optional<double> capacity; ///< for the allocator
    std::optional<OutOfMemoryPoint> outOfMemory;

    std::vector<double> totals() const;
};

struct TextbookFormula
{
    QString formula, source, difference;
    double value = 0, ours = 0;
};

/// Ranks of a pipeline: the bytes of each, and the one that the parts are of.
struct PipelineRanks
{
    std::vector<double> totals;   ///< B of the device; empty without a pipeline
    std::vector<double> inFlight; ///< passes whose backward has not run, at most
    int fullest = 0;
};

struct MemoryState
{
    PipelineRanks ranks;
    QString model, family;
    double positions = 0; ///< of the model; 0: as many as one likes
    std::vector<QString> assumptions;
    QString caution; ///< what may make every number wrong
    std::vector<MemoryPart> parts;
    std::optional<double> capacity, available; ///< B: all, and for PyTorch
    QString device;
    bool fits = true;
    bool isTight = false; ///< it fits with less room than predictions may be off
    double over = 0;
    double loading = 0; ///< B that a model takes while it is loaded; 0: not known
    std::vector<LeverCard> levers;
    QString outOfMemory;
    std::optional<FitAnswer> fit;

    double total() const; ///< of the parts: the device total
    bool empty() const { return parts.empty(); }
};

MemoryState readMemoryState(const Json& detail);
LeverCard readLever(const Json& lever); ///< of `levers`
MemoryTimeline readTimeline(const Json& timeline);
MemoryMoment readMoment(const Json& moment);
std::vector<TextbookFormula> readTextbook(const Json& textbook);

// How quantities of these pages are written, once for all of them.
QString memoryText(double bytes, ByteStyle style);  ///< "53.9 GB"
QString savingText(double saving, ByteStyle style); ///< "−62.8 GB", "+1 GB"
QString timeChangeText(double change);              ///< "+31 % time", "≈ same time", "time not known"
/// "backward · blocks.15.attention · scores"
QString placeText(const QString& phase, const QString& module, const QString& name);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture and the plot of `checkpoint` draw, read from the `detail` of a prediction (or of a
// record that came from a file: what is missing or of another kind is left out). Memory is in B or in
// the chain's own units, time in s or in its own.
#pragma once

#include "app/pictures/training-memory/memory_state.h"
#include "core/checkpoint/schedule.h"
#include "core/experiment/outcome.h"

#include <QString>
#include <QStringList>

#include <limits>
#include <vector>

namespace memscape {

struct ScheduleStep
{
    ChainOperation operation;
    double begin = 0, end = 0;    ///< time
    double during = 0, after = 0; ///< memory while it runs, and resident afterwards
    bool isRecomputation = false;

    bool isDiscard() const { return operation.kind >= OperationKind::DiscardValue; }
};

/// x_i or x̄_{i+1} from the step that makes it to the step that frees it. Both belong to stage i: its
/// input, and what it saved.
struct KeptSpan
{
    int stage = 0;
    bool isSaved = false;
    int made = -1; ///< step; −1: there at the start
    int freed = 0;
    bool operator==(const KeptSpan&) const = default;
};

struct ScheduleUnits
{
    bool isBytes = true, isSeconds = true;
    ByteStyle bytes = ByteStyle::Decimal;

    QString memory(double value) const; ///< "5.2 GB", "12 units"
    QString time(double value) const;   ///< "31 ms", "12 units"
};

/// A schedule that the user may choose: a point of the plane.
struct StrategyPoint
{
    QString key, label;            ///< "sqrt", "√n"
    QString note, missing;         ///< what kind of answer it is; why there is none
    double peak = 0, makespan = 0; ///< NaN without a schedule
    bool feasible = true;
};

/// The least time for every budget, and where the budget may be.
struct FrontLine
{
    std::vector<double> budget, makespan;
    double given = 0, least = 0, full = 0; ///< the budget; the least there is; nothing is recomputed from here on
    double fullTime = 0;                   ///< when nothing is recomputed
    ScheduleUnits units;
};

/// A measured point on the axis of steps.
struct MeasuredPoint
{
    double step = 0; ///< whole and share of the step
    double memory = 0;
};

struct ScheduleState
{
    QString title;
    QString missing; ///< why there is no schedule
    int length = 0;
    QStringList stages; ///< their names, when the chain has names of its own
    std::vector<ScheduleStep> steps;
    std::vector<KeptSpan> kept; ///< without values that the very next step frees
    std::vector<int> keptCount; ///< of those, how many each step finds there
    double budget = std::numeric_limits<double>::quiet_NaN();
    int peak = -1;      ///< the step that needs most
    double highest = 0; ///< of the memory curve and measured points
    std::vector<MeasuredPoint> measured;
    ScheduleUnits units;

    bool empty() const { return steps.empty(); }
    /// Rows before each step and after the last: a discard takes none.
    std::vector<double> rows() const;
    /// Times instead; rows when no time is known.
    std::vector<double> times() const;
    bool hasTimes() const;
    /// "recompute 15", "loss"; stages count from 1.
    QString name(int step) const;
    /// "recompute 15: 5.2 GB live, 11 values kept"
    QString words(int step) const;
    /// The same with what is kept, times and memory afterwards: a tooltip of several lines.
    QString details(int step) const;
};

ScheduleState readSchedule(const Json& detail);
/// The lifetime of each value, and how many are kept after each step.
std::vector<KeptSpan> keptSpans(const std::vector<ScheduleStep>& steps, int length);

FrontLine readFront(const Json& detail);
std::vector<StrategyPoint> readStrategies(const Json& detail);
/// What a strategy's key is called: "every:7" is "every 7".
QString strategyLabel(const QString& key);

/// The measured curve `memory` beside these steps: by the operations' own times where both have as many,
/// else by the share of the whole.
std::vector<MeasuredPoint> measuredPoints(const Outcome& measured, const ScheduleState& predicted);

} // namespace memscape

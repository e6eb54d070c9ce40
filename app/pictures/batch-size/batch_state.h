// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `batch-size` draws, read from a prediction's detail and a measurement's series.
#pragma once

#include "core/base/number.h"
#include "core/experiment/experiment.h"

#include <QString>

#include <cmath>
#include <limits>
#include <vector>

namespace memscape {

struct BatchMark
{
    double batch = 0, accumulation = 1, update = 0;
    double memory = 0, allocated = 0, throughput = 0; ///< B of the device, B of tensors, examples/s
    double steps = 0, examples = 0;                   ///< to the target; NaN unknown
    QString bound;
    bool fits = true;
};

struct BatchRegime
{
    QString bound; ///< "memory-bound"
    double from = 1, to = 1;
};

struct BatchSchedulePoint
{
    double step = 0, batch = 0, noise = 0, loss = 0, examples = 0;
};

struct BatchState
{
    std::vector<BatchMark> curve;
    std::vector<BatchRegime> regimes;
    std::vector<BatchMark> front;
    std::vector<BatchSchedulePoint> schedule;
    QString scheduleKind = QStringLiteral("constant");
    double scheduleSteps = 0, scheduleExamples = 0, constantSteps = 0, constantExamples = 0;
    bool isScheduleReached = true;

    double batch = 1, accumulation = 1, perBatch = 1; ///< update = batch × perBatch
    double capacity = std::numeric_limits<double>::quiet_NaN();
    double largest = 0;     ///< 0: none fits
    bool isLimited = false; ///< the largest is that of the parameter, not of the memory
    double over = 0;
    double sweetSpot = 0; ///< 0: none
    QString sweetReason;

    double target = 0;
    double fewestSteps = 0, fewestExamples = 0, critical = 0; ///< 0: unknown
    bool isFitted = false; ///< these are of the measured points: no prediction knows them
    double noiseScale = std::numeric_limits<double>::quiet_NaN();
    QString noiseReason, noiseRemedy;

    std::vector<BatchMark> measured; ///< batch, throughput, steps and examples that were measured
    double measuredNoise = std::numeric_limits<double>::quiet_NaN();
    QString model, device;
    ByteStyle bytes = ByteStyle::Binary;

    bool knowsSteps() const { return fewestSteps > 0 && fewestExamples > 0; }
    double steps(double update) const { return fewestSteps + fewestExamples / update; }
    /// Steps of the schedule as people are told them: with a constant batch it is the curve at this batch, and was
    /// followed step by step from there, which rounds otherwise.
    double shownScheduleSteps() const
    {
        const bool isCurve = scheduleKind == QLatin1String("constant") && isScheduleReached && knowsSteps();
        return isCurve ? std::ceil(steps(batch * perBatch)) : scheduleSteps;
    }
    double examples(double update) const { return fewestExamples + fewestSteps * update; }
    /// Between the points of the curve, in logarithms.
    double memoryAt(double batch) const;
    double allocatedAt(double batch) const;
    double throughputAt(double batch) const;
    QString boundAt(double batch) const;
};

BatchState batchState(const Device& device, const Parameters& parameters, const Outcome* predicted,
                      const Outcome* measured);

/// "1.2 k", "34", "1.05 M" of a count.
QString shortCount(double count);

} // namespace memscape

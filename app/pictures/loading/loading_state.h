// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `loading` reads of a prediction: the bytes, where they lie at a moment, and the two ways to load
// them, one step after the other and in a pipeline. What a document from elsewhere lacks is left out.
#pragma once

#include "app/pictures/common/amounts.h"
#include "app/pictures/common/lane_piece.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <optional>
#include <vector>

namespace memscape {

struct Outcome;
using Prediction = Outcome;
using Measurement = Outcome;

struct LoadingWay : LaneWay
{
    QStringList steps;         ///< of each lane: "read", "convert", "copy"
    std::vector<double> alone; ///< s of each lane without the others
};

/// Bytes in the three vessels.
struct LoadingLevels
{
    double unread = 0;    ///< on the medium, not yet read
    double process = 0;   ///< in the loader's memory
    double pageCache = 0; ///< in the host's memory besides
    double gpu = 0;       ///< on all GPUs
};

struct LoadingState : Amounts
{
    QString title, medium, bottleneck, asked, serial;
    std::vector<LoadingWay> ways;
    double longest = 0;                   ///< s
    double bytes = 0, converted = 0;      ///< B of the file that are loaded, and what they become
    double hostMemory = 0, pageCache = 0; ///< B when all is read
    std::int64_t chunk = 0, chunks = 0;
    int depth = 1, gpus = 0;
    bool readsInPlace = false, convertsInPlace = false, isWarm = false, isMapped = false;

    bool empty() const { return ways.empty(); }
    const LoadingWay& askedWay() const;
    /// Share of the bytes that have passed a step of a way by then; 0 where it has no such step.
    double passed(const LoadingWay& way, const char* step, double seconds) const;
    LoadingLevels levelsAt(double seconds) const;
    double fullest() const; ///< B that the highest vessel holds at most
    QString wordsAt(double seconds) const;
    QString wayWords(const LoadingWay& way) const;
};

LoadingState readLoading(const Prediction* predicted, const Measurement* measured, ByteStyle style);

} // namespace memscape

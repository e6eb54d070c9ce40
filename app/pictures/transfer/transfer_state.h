// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `transfer` reads of a prediction: the ways that move the same bytes, each with its lanes and the
// pieces in them. What a document from elsewhere lacks is left out.
#pragma once

#include "app/pictures/common/amounts.h"
#include "app/pictures/common/lane_piece.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <optional>
#include <vector>

namespace memscape {

class Parameters;
struct Outcome;
using Prediction = Outcome;
using Measurement = Outcome;

struct TransferWay : LaneWay
{
    double hidden = 0;             ///< s that lanes ran beside others
    std::int64_t chunk = 0;        ///< B
    double fixed = 0, perByte = 0; ///< of the first lane: s, s/B
};

struct TransferState : Amounts
{
    QString title, serial; ///< why nothing overlaps; empty where it can
    std::vector<TransferWay> ways;
    double longest = 0;                               ///< s
    std::int64_t bytes = 0, chunk = 0, bestChunk = 0; ///< B; chunk: of what was asked for
    int depth = 1;

    bool empty() const { return ways.empty(); }
    /// The way whose chunks a hand changes: the last that has several; −1 for none.
    int draggedWay() const;
    /// The chunk (B, a power of two) whose copy ends nearest to `seconds`.
    std::int64_t chunkEndingAt(double seconds) const;
    /// "pinned, one piece: 36.3 ms".
    QString wayWords(const TransferWay& way) const;
    /// What every way does at that moment.
    QString wordsAt(double seconds) const;
    /// "copy in, chunk 3: 1.2 to 1.6 ms".
    QString pieceWords(const TransferWay& way, const LanePiece& piece) const;
};

TransferState readTransfer(const Parameters& parameters, const Prediction* predicted, const Measurement* measured,
                           ByteStyle style);

} // namespace memscape

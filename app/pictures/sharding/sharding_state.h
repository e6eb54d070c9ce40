// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `sharding` reads of a prediction: what one rank stores beside one that has everything, and the
// timeline of a step. What a document from elsewhere lacks is left out.
#pragma once

#include "app/pictures/common/amounts.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace memscape {

struct Outcome;
using Prediction = Outcome;
using Measurement = Outcome;

/// A part of a column.
struct ShardingPart
{
    QString key, label; ///< "optimizer_state", "optimizer state"
    double bytes = 0;   ///< of each rank
    double alone = 0;   ///< of one that has everything
};

/// A lane at work, s. Without `kind` the rank computes.
struct ShardingSpan
{
    std::size_t lane = 0;
    QString phase, what, kind, unit; ///< "backward", "gradients", "all-reduce", "layer 3"
    std::int64_t first = 0, last = 0;
    double begin = 0, end = 0;
    double bytes = 0, sent = 0; ///< of the payload; by each rank
};

struct ShardingState : Amounts
{
    QString title, link;
    std::vector<ShardingPart> parts; ///< from the bottom up; activations and what is gathered are the last two
    std::int64_t ranks = 0, dataParallel = 1, mostRanks = 1024;
    int zero = 0;
    double gathered = 0; ///< B at most
    std::vector<std::pair<double, double>> gatheredOver;
    QStringList lanes;
    std::vector<ShardingSpan> spans;
    double end = 0, exposed = 0, sent = 0; ///< s, s, B
    double onHost = 0;                     ///< B of each rank that the host keeps
    bool isSerial = false;
    std::optional<double> measured = {}; ///< s of the collectives
    std::optional<double> communication = {};

    bool empty() const { return spans.empty() || ranks < 1; }
    double rankBytes() const;  ///< of a column at its highest
    double aloneBytes() const; ///< of the one beside it
    double highest() const { return std::max(rankBytes(), aloneBytes()); }
    /// Bytes that are gathered at that moment.
    double gatheredAt(double seconds) const;
    /// "all-gather of weights, layer 3: 417 MiB, each rank sends 410 MiB; 1.5 ms".
    QString spanWords(const ShardingSpan& span) const;
    /// What every lane does then.
    QString wordsAt(double seconds) const;
    /// The collective between ranks that runs then; null for none.
    const ShardingSpan* collectiveAt(double seconds) const;
};

ShardingState readSharding(const Prediction* predicted, const Measurement* measured, ByteStyle style);

} // namespace memscape

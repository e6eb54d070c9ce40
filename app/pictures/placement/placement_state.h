// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `placement` reads of a prediction: nodes with the place where they run, and what the lanes do
// when. What a document from elsewhere lacks is left out.
#pragma once

#include "app/pictures/common/amounts.h"

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

struct PlacedNode
{
    QString name, kind;
    bool isOnHost = false, isStreamed = false, isPinned = false;
    bool isFixed = false;                ///< a copy, or placed by training
    std::int64_t weights = 0, bytes = 0; ///< B, bytes: of what it makes
    double seconds = 0;                  ///< where it runs
    std::vector<std::size_t> inputs;     ///< nodes before it

    bool computes() const; ///< is neither there from the beginning nor a copy
};

/// A lane at work, s.
struct PlacedPiece
{
    std::size_t lane = 0; ///< of PlacementState::lanes
    QString what;         ///< "forward", "weights", …
    double begin = 0, end = 0;
    std::size_t node = 0;
    std::int64_t bytes = 0; ///< that are copied

    bool isCopy() const { return bytes > 0; }
};

struct PlacementState : Amounts
{
    QString title, serial;
    QString place; ///< the parameter: what is placed by hand
    bool trains = false;
    std::int64_t peak = 0, limit = 0;       ///< B
    double time = 0;                        ///< s
    std::optional<double> measured = {};    ///< s
    std::size_t allNodes = 0, allSteps = 0; ///< drawn or not
    std::vector<PlacedNode> nodes;
    QStringList lanes; ///< those that have something to do
    std::vector<PlacedPiece> pieces;

    bool empty() const { return nodes.empty(); }
    /// What `place` is with this node on the host or on the device, or as the strategy has it.
    QString placed(std::size_t node, std::optional<bool> onHost) const;
    /// "layer3: matmul on the device, 1.2 ms, weights 4 MiB come up".
    QString nodeWords(const PlacedNode& node) const;
    QString pieceWords(const PlacedPiece& piece) const;
    /// "4 MiB, 81 µs" of the copy of that node's tensor; empty where none is copied.
    QString copyWords(std::size_t node) const;
};

PlacementState readPlacement(const Parameters& parameters, const Prediction* predicted, const Measurement* measured,
                             ByteStyle style);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `in-place` shows: the tensors of both ways with who keeps them, their totals, the bytes that
// each way moves, and what PyTorch says. Read from a prediction's figures and detail
// (core/experiments/in-place/in_place.cpp), measured peaks from a measurement's series.
#pragma once

#include "core/base/number.h"

#include <QString>

#include <array>
#include <optional>
#include <vector>

namespace memscape {

class Experiment;
class Parameters;
struct Outcome;

enum class InPlaceMoment { Before, During, After };
inline constexpr std::array inPlaceMoments{InPlaceMoment::Before, InPlaceMoment::During, InPlaceMoment::After};

enum class TensorRole { Input, Result, Factor, Copy };

struct ShownTensor
{
    TensorRole role = TensorRole::Input;
    double bytes = 0;
    bool overwrites = false; ///< the result, in the input's memory
    bool isGiven = false, staysAlive = false;
    bool isSaved = false, wasSaved = false; ///< for backward: by the operation, by a node before it
    bool isOwned = false;
    QString why;

    bool isThere(InPlaceMoment moment) const; ///< takes memory then
    bool isKeptForBackward(InPlaceMoment moment) const;
    QString symbol(InPlaceMoment moment) const; ///< "x", "y", "copy of x"
};

enum class Move { Read, Fetched, Written };

struct MovedPart
{
    Move move = Move::Read;
    double bytes = 0;
};

/// Out of place, or in place.
struct InPlaceWay
{
    std::vector<ShownTensor> tensors;
    double peak = 0, kept = 0, moved = 0; ///< B, the prediction's figures
    std::vector<MovedPart> parts;         ///< of what is moved; none is empty
    std::optional<double> measuredPeak;   ///< B, at this size

    double total(InPlaceMoment moment) const;
    double keptForBackward() const; ///< B, afterwards
    QString symbolsForBackward() const;
};

struct InPlaceState
{
    QString subject;                ///< "ReLU · input: result of a linear layer"
    std::array<InPlaceWay, 2> ways; ///< out of place, in place
    bool isAllowed = true, hasGradients = true, hasForm = true;
    QString error, at, rule, destroys;
    ByteStyle byteStyle = ByteStyle::Binary;

    bool isMeasured() const { return ways[0].measuredPeak || ways[1].measuredPeak; }
    bool empty() const { return ways[0].tensors.empty() || ways[1].tensors.empty(); }
    bool isRefusedAtCall() const { return !isAllowed && at == QStringLiteral("at the call"); }
    double most() const; ///< B, of the longest bar
    QString bytes(double value) const;
    QString exact(double value) const; ///< "64 MiB (67 108 864 B)"

    QString title() const;
    QString verdict() const;  ///< what in place saves, or why it is refused
    QString backward() const; ///< what autograd keeps of these tensors
    QString tensorWords(int way, InPlaceMoment moment, const ShownTensor& tensor) const;
    QString partWords(int way, const MovedPart& part) const;
};

QString wayName(int way);                 ///< "out of place"
QString moveName(Move move);              ///< "read"
QString momentName(InPlaceMoment moment); ///< "while it runs"

QString shortMomentName(InPlaceMoment moment);

/// Empty where the outcome's detail lacks the tensors.
InPlaceState readInPlace(const Experiment& experiment, const Parameters& parameters, const Outcome* predicted,
                         const Outcome* measured, ByteStyle style);

} // namespace memscape

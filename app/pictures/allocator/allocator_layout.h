// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `allocator` stands. Segments lie one behind the other by address, to one scale of
// bytes: a row for each while they are few, else they flow over the rows as words do over lines. The window says which
// bytes of that tape are shown, so that a zoom is a shorter window. Geometry only, for painting, hit tests and tests.
#pragma once

#include "app/pictures/allocator/allocator_state.h"

#include <QRectF>

namespace memscape {

/// Of the tape of all reserved bytes: [begin, begin + length), shares from 0 to 1.
struct TapeWindow
{
    double begin = 0, length = 1;
    bool operator==(const TapeWindow&) const = default;
};

/// A block, or a part of it: the next row goes on.
struct AllocatorPiece
{
    std::size_t segment = 0, block = 0;
    QRectF rect;
};

struct AllocatorFrame
{
    std::size_t segment = 0;
    QRectF rect;
    bool isBegun = false, isEnded = false; ///< the segment begins and ends here
};

struct AllocatorLayout
{
    QRectF title, caption, tape, words, cardsTitle, button;
    std::vector<QRectF> rows, labels;
    std::vector<QString> labelTexts;
    std::vector<AllocatorFrame> frames;
    std::vector<AllocatorPiece> pieces;
    std::vector<QRectF> cards; ///< as many as the state has; empty where there is no room for one
    QRectF scrub;              ///< the strip that stands for all requests
    double unit = 1, bytesOnTape = 0;
    bool isFlow = false;

    int pieceAt(QPointF at) const; ///< −1 for none
    int cardAt(QPointF at) const;
    /// The place of a point on the tape, 0 to 1 of all of it.
    double tapeAt(QPointF at, const TapeWindow& window) const;
    int requestAt(double x, int count) const;
};

/// `unit`: one pixel of the drawings (plotUnit()).
AllocatorLayout layoutAllocator(const AllocatorState& state, const AllocatorMoment* moment, TapeWindow window,
                                const QRectF& rect, double unit);

/// The window with `factor` times its length, the place at `share` of the tape staying where it is.
TapeWindow zoomed(TapeWindow window, double factor, double share);

} // namespace memscape

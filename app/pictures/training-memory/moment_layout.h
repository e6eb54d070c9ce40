// SPDX-License-Identifier: GPL-3.0-or-later
// Where the parts of the page "Step timeline" are: the search on top, the blocks of the step over its
// events, the modules at work under them, and the tensors alive at the cursor in columns at the foot. What
// has too little room goes in this order: the list, all rows of modules but two.
#pragma once

#include "app/pictures/training-memory/memory_state.h"
#include "app/pictures/training-memory/step_chart.h"

#include <QRectF>

#include <memory>

namespace memscape {

struct MomentState
{
    MemoryMoment moment;
    std::shared_ptr<const StepBlocks> step; ///< null: not known (yet)
    MemoryTimeline timeline;                ///< phases, capacity, where memory runs out
    bool isPeak = false;
    bool pending = false; ///< the moment that was asked for is still being looked up
    int firstRow = 0;     ///< of the list
    QString words;        ///< that are searched for
    ByteStyle bytes = ByteStyle::Decimal;

    /// All of the step; the capacity is in sight where the step comes near it.
    StepView whole() const;
    /// The capacity when it is to be drawn.
    std::optional<double> shownCapacity() const;
};

struct LiveRow
{
    QRectF rect, swatch, name, size;
    int live = 0; ///< of MemoryMoment::live; as many as there are: the rest
    QString nameText, sizeText;
};

struct LegendItem
{
    QRectF rect, swatch;
    QString text, category;
};

struct MomentLayout
{
    QRectF title, found, search;
    QString titleText, foundText;
    std::vector<LegendItem> legend;
    QRectF axis; ///< left of the chart: where its numbers are
    QRectF chart, flame;
    QRectF heading, total, place;
    QString headingText, totalText, placeText;
    QRectF list; ///< where rows are
    std::vector<LiveRow> rows;
    int rowsInAll = 0;

    std::vector<QRectF> pieces() const;
};

/// `foundText`: what the search says of itself.
MomentLayout layoutMoment(const MomentState& state, const QRectF& rect, const QString& foundText = {});

} // namespace memscape

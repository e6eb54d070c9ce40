// SPDX-License-Identifier: GPL-3.0-or-later
// One moment of a training step on paper: on the left the tensors that are alive, largest first, on
// the right the same bytes by module as a treemap, one level inside the other, with the path to the
// module that is looked into above it.
#pragma once

#include "app/pictures/memory_state.h"

#include <QRectF>
#include <QStringList>

#include <memory>

namespace memscape {

struct MomentState
{
    MemoryMoment moment;
    std::shared_ptr<const MemoryNode> root; ///< null: nothing is known
    bool isPeak = false;
    bool pending = false; ///< the moment that was asked for is still being looked up
    QStringList path; ///< of the module that is looked into
    int firstRow = 0; ///< of the list
    ByteStyle bytes = ByteStyle::Decimal;

    const MemoryNode& tree() const;
};

struct LiveRow
{
    QRectF rect, swatch, name, size;
    int live = 0; ///< of MemoryMoment::live; as many as there are: the rest
    QString nameText, sizeText;
};

struct TreeCell
{
    QRectF rect;
    QRectF label; ///< empty when there is no room for it
    QString text;
    QString category; ///< that most of its bytes are
    int depth = 0; ///< above 0: inside a cell
    QStringList path; ///< from the root
    double bytes = 0;
    bool leaf = false; ///< a tensor, not a module
};

struct Crumb
{
    QRectF rect;
    QString text;
    QStringList path;
};

struct MomentLayout
{
    QRectF heading, total, place;
    QString headingText, totalText, placeText;
    QRectF list; ///< where rows are
    std::vector<LiveRow> rows;
    int rowsInAll = 0;
    std::vector<Crumb> crumbs;
    QRectF map;
    std::vector<TreeCell> cells; ///< parents before what is in them

    std::vector<QRectF> pieces() const;
};

MomentLayout layoutMoment(const MomentState& state, const QRectF& rect);

/// The node at a path; the deepest that is there.
const MemoryNode& nodeAt(const MemoryNode& root, const QStringList& path);

} // namespace memscape

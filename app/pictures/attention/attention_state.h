// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `attention` shows: the queries × keys matrix as a grid of cells, the order in
// which flash attention walks over it, what is on the chip meanwhile, and how many bytes have gone
// to memory and back by then. Read from the detail of a prediction; see
// core/experiments/attention/attention_detail.cpp.
#pragma once

#include "core/base/json.h"
#include "core/base/number.h"

#include <QString>

#include <vector>

namespace memscape {

struct ChipPart
{
    QString name; ///< "Q", "K", "V", "S", "O"
    qint64 rows = 0, columns = 0;
    double bytes = 0;
};

/// A cell of the grid: one tile, or a block of them where there are too many to draw.
struct TileStep
{
    int row = 0, column = 0;
};

struct AttentionState
{
    QString title;
    qint64 batch = 0, heads = 0, queries = 0, keys = 0, headDim = 0;
    bool isCausal = false, hasStandard = false, hasFlash = false;
    double scoreBytes = 0, logBytes = 0;        ///< B of one sequence of the batch
    double standardBytes = 0, flashBytes = 0;   ///< B to and from memory, the whole pass
    qint64 tileQueries = 0, tileKeys = 0;       ///< of flash attention
    int rows = 0, columns = 0;                  ///< cells that are drawn
    double tilesPerRow = 1, tilesPerColumn = 1; ///< tiles of one cell, down and across
    std::vector<TileStep> steps;                ///< the walk: cells that are not hidden
    std::vector<ChipPart> parts;
    double chipBytes = 0, chipUsed = 0;
    QString chipLevel;
    std::vector<double> maxima, sums, factors; ///< of one query, after every tile of keys
    ByteStyle byteStyle = ByteStyle::Binary;

    bool empty() const { return steps.empty(); }
    bool isHidden(int row, int column) const; ///< by the causal mask, the whole cell
    /// Tiles before and with this step, as a share of the walk.
    double share(int step) const { return empty() ? 0 : double(step + 1) / double(steps.size()); }
    double standardSoFar(int step) const { return standardBytes * share(step); }
    /// Q, O and L go row by row; K and V come once, when their column is first met, and stay in the
    /// last cache.
    double flashSoFar(int step) const;
    /// The index into maxima at a step; −1 without an example.
    int exampleAt(int step) const;
    QString bytes(double value) const;
    QString words(int step) const; ///< what happens at the step
    /// The step nearest to a cell: the cell's own, or the row's last where it is hidden.
    int stepAt(int row, int column) const;
};

/// From a prediction's detail, and a measurement's, whose versions the title names.
AttentionState readAttention(const Json& detail, const Json& measured = {});

} // namespace memscape

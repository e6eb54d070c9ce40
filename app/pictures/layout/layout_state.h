// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `layout` shows: a corner of the tensor as a grid of elements, the lines of memory in
// which they lie, the operations as chips, and a walk over what is shown with a small cache beside it.
// Everything comes from the parameters by core's own rules (core/experiments/layout/layout.h).
#pragma once

#include "core/base/number.h"
#include "core/device/device.h"
#include "core/experiments/layout/layout.h"

#include <QString>

#include <vector>

namespace memscape {

struct TensorCell
{
    int panel = 0, row = 0, column = 0;
    Sizes index;              ///< in the tensor
    std::int64_t element = 0; ///< in its storage
    int line = 0;             ///< index into LayoutState::lines
    int slot = 0;             ///< elements from the line's beginning
};

/// One visit of the walk over the cells that are shown.
struct TensorStep
{
    int cell = 0;
    bool isFetched = false; ///< its granule was not in the small cache
    int fetched = 0;        ///< granules so far, this one among them
};

struct OperationChip
{
    QString text;    ///< "transpose(0,1)"
    QString strides; ///< "[1, 2048]"
    QString verdict; ///< "view", "copy 16 MiB", "refused"
    QString tip;
    bool isRefused = false, isCopy = false;
};

struct LayoutState
{
    /// Granules that the walk's small cache has room for: few, so that a corner shows what a tensor does.
    static constexpr std::size_t cacheRoom = 8;

    bool isValid = false;
    LayoutCase asked;
    std::int64_t lineBytes = 64, granuleBytes = 64; ///< a granule is what is fetched: a line, or a GPU's sector
    bool isGpu = false;
    int panels = 1, rows = 1, columns = 1;
    bool isWhole = true; ///< every element is shown
    std::vector<TensorCell> cells;
    std::vector<std::int64_t> lines; ///< numbers of the lines in which they lie, ascending
    std::vector<TensorStep> steps;
    OperationChip base;
    std::vector<OperationChip> chips;
    QString pytorch, numpy; ///< the line of code, with its strides
    ByteStyle byteStyle = ByteStyle::Binary;

    bool empty() const { return cells.empty(); }
    int lineSlots() const { return int(lineBytes / asked.itemBytes()); } ///< elements of a line
    int cellOf(int line, int slot) const;                                ///< −1 when nothing that is shown lies there
    std::int64_t granuleOf(const TensorCell& cell) const { return cell.element * asked.itemBytes() / granuleBytes; }
    std::vector<std::int64_t> cachedAfter(int step) const; ///< granules in the small cache, ascending
    QString granuleWord() const;                           ///< "line", "sector"
    QString title() const;
    QString refusal() const;           ///< why the first operation that is refused is; empty where all are taken
    QString cellWords(int cell) const; ///< "x[1, 0] · byte 8192, line 128, with x[1, 1] …"
    QString stepWords(int step) const;
};

LayoutState readTensor(const Device& device, const Parameters& parameters, ByteStyle byteStyle);

/// The operations as text with one of them taken away, put in or moved.
QString viewsWithout(const LayoutCase& asked, int index);
QString viewsWith(const LayoutCase& asked, int index,
                  const QString& text); ///< in place of that one; behind the last: added
QString viewsMoved(const LayoutCase& asked, int from, int to);

/// Operations to add to a tensor, with arguments that it takes.
struct OperationOffer
{
    QString text, help;
};
std::vector<OperationOffer> offersFor(const TensorView& view);

} // namespace memscape

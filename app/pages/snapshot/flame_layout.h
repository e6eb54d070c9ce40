// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes as a flame graph that hangs: the whole on top, below it what it is made of, each as wide as its bytes. By the
// frames of the stacks (outermost on top), or by the modules of a network.
#pragma once

#include "core/snapshot/groups.h"

#include <QRectF>
#include <QString>

#include <vector>

namespace memscape {

struct FlameItem
{
    QString text;
    QString brief; ///< where there is little room: of a frame its function
    QString kind;  ///< what has the same kind has the same colour: the file of a frame, the name of a module
    std::uint32_t parent = 0;
    double bytes = 0; ///< of all below, its own included
    std::size_t blocks = 0;
    std::vector<std::uint32_t> children; ///< largest first
};

/// [0] is the root, which is all of it.
std::vector<FlameItem> stackItems(const Snapshot& snapshot, const std::vector<FlameNode>& nodes);
/// The groups of SnapshotGrouping::Module, parted at the dots of their paths.
std::vector<FlameItem> moduleItems(const std::vector<SnapshotGroup>& modules);

struct ItemBox
{
    QRectF rect;
    std::uint32_t item = 0;
    QString text; ///< empty: no room
    bool isMatch = true;
};

double itemRowHeight();
/// `root` fills the width, what it is part of stands above it. Boxes narrower than a pixel are left out.
std::vector<ItemBox> layoutItems(const std::vector<FlameItem>& items, std::uint32_t root, const QRectF& rect,
                                 const QString& words);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// One training step, tensor by tensor: every block of memory with its lifetime in events, and which
// module was at work when. What memory_viz of PyTorch shows of a recorded run, of a simulated one.
//
// Time is counted in events (allocations and frees), as in the trace: how long one takes is not
// modelled. A module is at work from its first allocation to that of the next one.
#pragma once

#include "core/trace/trace.h"

#include <QString>
#include <QStringList>

#include <vector>

namespace memscape {

struct StepBlock
{
    int begin = 0, end = 0; ///< alive after the events [begin, end)
    double bytes = 0;
    Category category = Category::Unknown;
    int module = 0, name = 0;                            ///< of StepBlocks
    Phase madeIn = Phase::Setup, freedIn = Phase::Setup; ///< the latter only where it is freed
    bool isFreed = false;
};

/// Blocks of a category that are too small to be drawn one by one.
struct StepRest
{
    Category category = Category::Unknown;
    int count = 0;
    std::vector<double> bytes; ///< B after event first + i
};

/// A stretch of the step: a phase (row 0), a module of the network in it (row 1), a part of that…
struct StepSpan
{
    int begin = 0, end = 0; ///< events [begin, end)
    int row = 0;
    QString text, path; ///< "layers.3" and all of it: "backward · model.layers.3"
    int kind = 0;       ///< the same for parts that differ in numbers only
};

struct StepBlocks
{
    int first = 0, last = 0;          ///< the events of the step, without its setup
    std::vector<double> totals;       ///< B after event first + i
    std::vector<StepBlock> blocks;    ///< in order of allocation, the largest of them
    std::vector<StepBlock> residents; ///< alive before the step and after it
    std::vector<StepRest> rest;       ///< those that are not in `blocks`, in order of their categories
    QStringList modules, names;
    std::vector<StepSpan> spans; ///< rows from the top, each from left to right
    int rows = 0;

    bool empty() const { return totals.empty(); }
    /// "layers.3.mlp · gelu"; the category where it has no name.
    QString textOf(const StepBlock& block) const;
    /// Whether module, name or category have the words, whatever their case; no words fit all.
    bool matches(const StepBlock& block, const QString& words) const;
};

/// `most`: blocks that are drawn one by one, the largest; the others are summed by category.
StepBlocks stepBlocks(const Trace& trace, std::size_t most = 8000);

} // namespace memscape

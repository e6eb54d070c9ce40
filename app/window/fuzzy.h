// SPDX-License-Identifier: GPL-3.0-or-later
// How well a few typed letters fit a line of the command palette. All letters must occur in order;
// starts of words and runs of neighbouring letters count more, gaps and length count less. Words
// may be typed in any order ("plot copy" finds "Copy plot").
#pragma once

#include <QList>
#include <QString>

namespace memscape {

struct FuzzyMatch
{
    int score = 0;        ///< 0: does not match; more is better
    QList<int> positions; ///< of the matched letters in the text, ascending, for the bold letters
};

FuzzyMatch fuzzyMatch(const QString& pattern, const QString& text);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/fuzzy.h"

#include <QStringList>

#include <algorithm>

namespace memscape {

namespace {

bool startsWord(const QString& text, qsizetype at)
{
    return at == 0 || !text.at(at - 1).isLetterOrNumber();
}

/// One word of the pattern: a run of letters at the start of a word, else anywhere, else scattered.
FuzzyMatch matchWord(const QString& word, const QString& text)
{
    FuzzyMatch match;
    qsizetype best = -1;
    for (qsizetype at = text.indexOf(word, 0, Qt::CaseInsensitive); at >= 0;
         at = text.indexOf(word, at + 1, Qt::CaseInsensitive)) {
        if (best < 0 || (startsWord(text, at) && !startsWord(text, best)))
            best = at;
    }
    if (best >= 0) {
        match.score = 100 + 20 * int(word.size()) + (startsWord(text, best) ? 60 : 0) + (best == 0 ? 30 : 0);
        for (qsizetype i = 0; i < word.size(); ++i)
            match.positions << int(best + i);
        return match;
    }
    int score = 40;
    qsizetype at = 0;
    for (const QChar letter : word) {
        const qsizetype found = text.indexOf(letter, at, Qt::CaseInsensitive);
        if (found < 0)
            return {};
        score += startsWord(text, found) ? 15 : 5;
        score -= std::min<int>(8, int(found - at));
        match.positions << int(found);
        at = found + 1;
    }
    match.score = std::max(1, score);
    return match;
}

} // namespace

FuzzyMatch fuzzyMatch(const QString& pattern, const QString& text)
{
    FuzzyMatch all;
    const QStringList words = pattern.split(u' ', Qt::SkipEmptyParts);
    for (const QString& word : words) {
        const FuzzyMatch match = matchWord(word, text);
        if (match.score == 0)
            return {};
        all.score += match.score;
        all.positions << match.positions;
    }
    std::ranges::sort(all.positions);
    all.positions.erase(std::unique(all.positions.begin(), all.positions.end()), all.positions.end());
    if (!words.isEmpty())
        all.score = std::max(1, all.score - int(text.size()) / 4);
    return all;
}

} // namespace memscape

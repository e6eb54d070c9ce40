// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/palette_entries.h"

#include "app/window/fuzzy.h"

#include <QStringList>

#include <algorithm>

namespace memscape {

QList<PaletteEntry> rankedEntries(const QList<PaletteEntry>& entries, const QString& typed, const QStringList& recent)
{
    struct Ranked
    {
        int score;
        qsizetype at;
    };
    std::vector<Ranked> ranked;
    for (qsizetype i = 0; i < entries.size(); ++i) {
        int score = 1;
        if (!typed.trimmed().isEmpty()) {
            const int text = fuzzyMatch(typed, entries.at(i).text).score;
            const int detail = fuzzyMatch(typed, entries.at(i).detail).score / 3;
            score = std::max(text, detail);
        }
        if (score == 0)
            continue;
        const qsizetype use = recent.indexOf(entries.at(i).text);
        if (use >= 0)
            score += int(20 - std::min<qsizetype>(use, 15));
        ranked.push_back({score, i});
    }
    std::ranges::stable_sort(ranked, [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
    QList<PaletteEntry> result;
    for (const Ranked& one : ranked)
        result << entries.at(one.at);
    return result;
}

} // namespace memscape

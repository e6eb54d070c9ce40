// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/attention/attention_layout.h"

#include "app/plots/plot_style.h"

#include <algorithm>

namespace memscape {

AttentionLayout layoutAttention(const AttentionState& state, const QRectF& rect)
{
    const double u = plotUnit();
    AttentionLayout layout;
    const QRectF inside = rect.adjusted(14 * u, 8 * u, -14 * u, -10 * u);
    const double titleWidth = inside.width() * (inside.width() > 700 * u ? 0.76 : 1);
    layout.title = {inside.left(), inside.top(), titleWidth, 22 * u};
    layout.hint = {inside.left() + titleWidth, inside.top(), inside.width() - titleWidth, 22 * u};
    const double top = layout.title.bottom() + 4 * u;
    layout.keys = {inside.left(), top, inside.width() * 0.3, 16 * u};
    const double bodyTop = layout.keys.bottom() + 2 * u;
    const double height = std::max(40.0, inside.bottom() - bodyTop - 26 * u);
    const double side = std::max(40.0, std::min(height, inside.width() * 0.30));
    layout.matrix = {inside.left(), bodyTop, side, side};
    layout.playButton = {inside.left(), layout.matrix.bottom() + 6 * u, 70 * u, 20 * u};
    layout.cellWidth = side / std::max(1, state.columns);
    layout.cellHeight = side / std::max(1, state.rows);
    const double wordsLeft = layout.matrix.right() + 14 * u;
    const double wordsWidth = std::max(90.0, inside.width() * 0.20);
    layout.words = {wordsLeft, bodyTop, wordsWidth, inside.bottom() - bodyTop};
    const double boxesLeft = layout.words.right() + 14 * u;
    const double boxesWidth = std::max(60.0, inside.right() - boxesLeft);
    const double boxesHeight = inside.bottom() - top;
    const double chipHeight = (boxesHeight - 8 * u) * 0.54;
    layout.chip = {boxesLeft, top, boxesWidth, chipHeight};
    layout.traffic = {boxesLeft, layout.chip.bottom() + 8 * u, boxesWidth, boxesHeight - chipHeight - 8 * u};
    return layout;
}

} // namespace memscape

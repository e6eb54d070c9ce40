// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/attention/attention_picture.h"
#include "app/pictures/common/word_pen.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/base/number.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

/// "16384", never "1.64e+04".
QString countOf(double value)
{
    return QString::fromStdString(quantityText(value, Unit::One, ByteStyle::Binary, 4));
}

/// Cells share tiles out evenly: "2.7" where they do not come out whole.
QString tilesOf(double count)
{
    return QString::fromStdString(quantityText(count, Unit::One, ByteStyle::Binary, 2));
}

/// The first wording that is no wider than there is room, longest first; else the last.
QString fitting(const QStringList& wordings, const QFont& font, double room)
{
    const QFontMetricsF metrics(font);
    for (const QString& words : wordings) {
        if (metrics.horizontalAdvance(words) <= room)
            return words;
    }
    return wordings.back();
}

struct AttentionPen : WordPen
{
    const AttentionState& state;
    const AttentionLayout& layout;
    int cursor;
    PlayButton play;

    const TileStep& at() const { return state.steps[std::size_t(cursor)]; }
    QColor colourOf(const QString& part) const;
    void text(const QRectF& box, const QString& words, double size, const QColor& colour, bool bold = false,
              int align = Qt::AlignLeft | Qt::AlignTop) const;
    void head() const;
    void matrix() const;
    void words() const;
    void box(const QRectF& rect, const QColor& edge) const;
    void chip() const;
    void parts(const QRectF& area) const;
    void traffic() const;
    void bar(const QRectF& row, const QString& name, double value, double most, const QColor& colour) const;
    void button() const;
};

QColor AttentionPen::colourOf(const QString& part) const
{
    if (part == QLatin1String("Q"))
        return theme.series(4);
    if (part == QLatin1String("S"))
        return theme.series(3);
    return part == QLatin1String("O") ? theme.good : theme.fill;
}

void AttentionPen::text(const QRectF& box, const QString& words, double size, const QColor& colour, bool bold,
                        int align) const
{
    painter.setFont(plotFont(size, bold));
    painter.setPen(colour);
    painter.drawText(box, align | Qt::TextWordWrap, words);
}

void AttentionPen::head() const
{
    line(layout.title, state.title, 1.1, theme.text, true);
    if (layout.hint.width() > 1 && play != PlayButton::None)
        line(layout.hint, tr("space plays · ← → step a tile"), 0.85, theme.textFaint, false,
             Qt::AlignRight | Qt::AlignVCenter);
    const bool isCoarse = state.tilesPerRow > 1 || state.tilesPerColumn > 1;
    line(layout.keys,
         isCoarse
             ? tr("keys →   a cell is %1 × %2 tiles").arg(tilesOf(state.tilesPerRow), tilesOf(state.tilesPerColumn))
             : tr("keys →   a cell is a tile"),
         0.8, theme.textFaint);
}

void AttentionPen::matrix() const
{
    const QColor still = mix(theme.background, theme.textDim, 0.16);
    const QColor done = mix(theme.background, theme.textDim, 0.62);
    for (int row = 0; row < state.rows; ++row) {
        for (int column = 0; column < state.columns; ++column) {
            const bool isDone = row < at().row || (row == at().row && column < at().column);
            const QRectF cell = layout.cell(row, column).adjusted(1, 1, -1, -1);
            if (state.isHidden(row, column))
                painter.fillRect(cell, mix(theme.background, theme.textDim, 0.05));
            else
                painter.fillRect(cell, isDone ? done : still);
        }
    }
    painter.fillRect(layout.cell(at().row, at().column).adjusted(1, 1, -1, -1), theme.highlight);
    painter.setPen(QPen(theme.predicted, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(layout.row(at().row, state.columns), 3, 3);
}

void AttentionPen::words() const
{
    const double u = plotUnit();
    QRectF box = layout.words;
    const auto put = [&](const QString& words, double size, const QColor& colour, bool bold, double gap) {
        painter.setFont(plotFont(size, bold));
        const QRectF used = painter.boundingRect(box, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, words);
        if (used.bottom() > layout.words.bottom() + 1)
            return; // no room for half a sentence
        text(box, words, size, colour, bold);
        box.setTop(used.bottom() + gap * u);
    };
    put(tr("%1 × %2 scores").arg(state.queries).arg(state.keys), 0.95, theme.text, true, 4);
    put(tr("standard: written and read, S and P, for each of %1 heads").arg(state.heads), 0.85, theme.textDim, false,
        3);
    put(tr("%1 an array").arg(state.bytes(state.scoreBytes)), 0.95, theme.series(2), true, 8);
    put(tr("flash: a tile at a time, kept on the chip"), 0.85, theme.textDim, false, 3);
    put(tr("%1 of log-sum-exp").arg(state.bytes(state.logBytes)), 0.95, theme.good, true, 4);
}

void AttentionPen::box(const QRectF& rect, const QColor& edge) const
{
    painter.setPen(QPen(edge, 1.3));
    painter.setBrush(theme.surface);
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
}

void AttentionPen::parts(const QRectF& area) const
{
    const double u = plotUnit();
    double total = 0;
    for (const ChipPart& part : state.parts)
        total += std::sqrt(std::max(part.bytes, 1.0));
    double left = area.left();
    const double gap = 6 * u;
    const double room = area.width() - gap * double(state.parts.size() - 1);
    for (const ChipPart& part : state.parts) {
        const double width = room * std::sqrt(std::max(part.bytes, 1.0)) / total;
        const QRectF cell(left, area.top(), width, area.height());
        painter.setPen(Qt::NoPen);
        const QColor colour = colourOf(part.name);
        painter.setBrush(mix(theme.surface, colour, 0.82));
        painter.drawRoundedRect(cell, 3, 3);
        const QColor ink = contrast(theme.background, mix(theme.surface, colour, 0.82))
                > contrast(theme.text, mix(theme.surface, colour, 0.82))
            ? theme.background
            : theme.text;
        const QString index = part.name == QLatin1String("Q") || part.name == QLatin1String("O")
            ? QString::number(at().row)
            : part.name == QLatin1String("S") ? QString()
                                              : QString::number(at().column);
        line(cell.adjusted(4, 2, -4, -cell.height() / 2), part.name + index, 0.9, ink, true, Qt::AlignCenter);
        const QString shape = QStringLiteral("%1×%2").arg(part.rows).arg(part.columns);
        const QRectF below = cell.adjusted(1, cell.height() / 2, -1, -2);
        if (QFontMetricsF(plotFont(0.72)).horizontalAdvance(shape) <= below.width()) // else the words have it
            line(below, shape, 0.72, ink, false, Qt::AlignCenter);
        left += width + gap;
    }
}

void AttentionPen::chip() const
{
    const double u = plotUnit();
    box(layout.chip, theme.good);
    const QRectF inside = layout.chip.adjusted(12 * u, 6 * u, -12 * u, -6 * u);
    line({inside.left(), inside.top(), inside.width(), 18 * u},
         fitting({tr("on chip: %1 of %2, %3")
                      .arg(state.bytes(state.chipUsed), state.bytes(state.chipBytes), state.chipLevel),
                  tr("on chip: %1 of %2").arg(state.bytes(state.chipUsed), state.bytes(state.chipBytes))},
                 plotFont(0.9, true), inside.width()),
         0.9, theme.good, true);
    const double bottom = 20 * u;
    parts({inside.left(), inside.top() + 22 * u, inside.width(),
           std::max(16 * u, inside.height() - 22 * u - bottom - 4 * u)});
    const int example = state.exampleAt(cursor);
    if (example < 0)
        return;
    const auto i = std::size_t(example);
    const QString m = QString::number(state.maxima[i], 'f', 2), l = countOf(state.sums[i]),
                  factor = QString::number(state.factors[i], 'f', 2);
    line({inside.left(), inside.bottom() - bottom, inside.width(), bottom},
         fitting({tr("for one query: maximum m = %1 · sum ℓ = %2 · rescaled × %3").arg(m, l, factor),
                  tr("one query: maximum %1 · sum %2 · rescaled × %3").arg(m, l, factor),
                  tr("one query: m %1 · ℓ %2 · × %3").arg(m, l, factor)},
                 plotFont(0.8), inside.width()),
         0.8, theme.textDim);
}

void AttentionPen::bar(const QRectF& row, const QString& name, double value, double most, const QColor& colour) const
{
    const double u = plotUnit(), names = 70 * u, values = 78 * u;
    line({row.left(), row.top(), names, row.height()}, name, 0.9, theme.text);
    const double room = std::max(10.0, row.width() - names - values);
    const double width = most > 0 ? std::max(1.5, room * value / most) : 1.5;
    const QRectF filled(row.left() + names, row.center().y() - 6 * u, width, 12 * u);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawRoundedRect(filled, 2, 2);
    line({filled.right() + 6 * u, row.top(), values, row.height()}, state.bytes(value), 0.9, theme.text, true);
}

void AttentionPen::traffic() const
{
    const double u = plotUnit();
    box(layout.traffic, theme.border);
    const QRectF inside = layout.traffic.adjusted(12 * u, 6 * u, -12 * u, -6 * u);
    line({inside.left(), inside.top(), inside.width(), 18 * u}, tr("to and from memory so far, all heads"), 0.9,
         theme.textDim, true);
    const double top = inside.top() + 20 * u, height = std::min(26 * u, (inside.bottom() - top) / 2);
    const double most = std::max(state.standardBytes, state.flashBytes);
    if (state.hasStandard)
        bar({inside.left(), top, inside.width(), height}, tr("standard"), state.standardSoFar(cursor), most,
            theme.series(2));
    if (state.hasFlash)
        bar({inside.left(), top + height, inside.width(), height}, tr("flash"), state.flashSoFar(cursor), most,
            theme.good);
}

void AttentionPen::button() const
{
    if (layout.playButton.bottom() <= layout.words.bottom() + 4)
        playButton(layout.playButton, play);
}

} // namespace

void paintAttention(QPainter& painter, const AttentionState& state, const AttentionLayout& layout, int cursor,
                    PlayButton button, const Theme& theme)
{
    painter.setRenderHint(QPainter::Antialiasing);
    if (state.empty() || cursor < 0)
        return;
    const AttentionPen pen{{painter, theme}, state, layout, cursor, button};
    pen.head();
    pen.matrix();
    pen.words();
    if (state.hasFlash)
        pen.chip();
    pen.traffic();
    pen.button();
}

} // namespace memscape

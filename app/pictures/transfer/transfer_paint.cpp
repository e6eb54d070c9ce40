// SPDX-License-Identifier: GPL-3.0-or-later
// How lanes are drawn: what is copied and what is worked on in their own colours, chunk numbers where they have room,
// the time of each way at the right with what it saves.
#include "app/pictures/common/word_pen.h"
#include "app/pictures/transfer/transfer_picture.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>

namespace memscape {

namespace {

struct TransferPen : WordPen
{
    const TransferState& state;
    const TransferLayout& layout;

    QColor colourOf(const QString& lane) const
    {
        return theme.series(lane == QLatin1String("kernel") ? 1 : lane == QLatin1String("copy in") ? 0 : 4);
    }

    /// What it takes, and what that is less than the first way.
    QString timeText(const TransferWay& way) const
    {
        QString text = state.secondsText(way.time);
        if (way.hidden > 0.001 * way.time)
            text += tr(" · hidden %1").arg(state.secondsText(way.hidden));
        const double saved = state.ways.front().time - way.time;
        if (saved > 0.001 * way.time)
            text += tr(" · saves %1").arg(state.secondsText(saved));
        return text;
    }

    void block(std::size_t index) const
    {
        const TransferWay& way = state.ways[index];
        const LaneBlock& place = layout.blocks[index];
        QRectF left = place.head, right = place.head;
        const double name = QFontMetricsF(plotFont(0.9, true)).horizontalAdvance(way.label) + 12 * layout.unit;
        left.setWidth(std::min(name, place.head.width() * 0.48));
        right.setLeft(left.right());
        if (way.measured)
            right = measured(right, state.secondsText(*way.measured), 10 * layout.unit);
        line(left, way.label, 0.9, theme.text, true);
        line(right, timeText(way), 0.9, theme.predictedText, true, Qt::AlignRight);
        for (qsizetype i = 0; i < way.lanes.size(); ++i)
            lane(place.lanes[std::size_t(i)], place.labels[std::size_t(i)], way.lanes[i]);
    }

    void bar(const LaneBar& bar) const
    {
        const TransferWay& way = state.ways[bar.way];
        const LanePiece& piece = way.pieces[bar.piece];
        const bool isOne = way.chunk >= state.bytes;
        const QString text = piece.first < piece.last ? QString()
            : isOne                                   ? state.secondsText(piece.end - piece.begin)
                                                      : QString::number(piece.first + 1);
        lanePiece(bar.rect, colourOf(way.lanes[qsizetype(piece.lane)]), text, plotFont(0.75, true));
    }

    void depths(PlayButton play) const
    {
        QStringList said;
        if (!state.serial.isEmpty())
            said << state.serial;
        else if (state.bestChunk < state.bytes)
            said << tr("chunks of %1; best by the model: %2")
                        .arg(state.bytesText(double(state.chunk)), state.bytesText(double(state.bestChunk)));
        QRectF words = layout.foot;
        if (play == PlayButton::None || !state.serial.isEmpty())
            return line(words, said.join(QString()), 0.85, theme.textDim);
        line(layout.depthLabel.adjusted(0, 0, -6 * layout.unit, 0), tr("buffers"), 0.8, theme.textDim, false,
             Qt::AlignRight);
        for (std::size_t i = 0; i < layout.depths.size(); ++i) {
            const bool isUsed = int(i) < state.depth;
            painter.setPen(QPen(isUsed ? theme.highlightText : theme.textFaint, layout.unit));
            painter.setBrush(isUsed ? QBrush(theme.highlight) : QBrush(Qt::NoBrush));
            painter.drawRoundedRect(layout.depths[i], 2, 2);
        }
        words.setLeft(layout.depths.back().right() + 12 * layout.unit);
        line(words, said.join(QString()), 0.85, theme.textDim);
    }
};

} // namespace

void paintTransfer(QPainter& painter, const TransferState& state, const TransferLayout& layout, double cursor,
                   PlayButton play, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const TransferPen pen{{painter, theme}, state, layout};
    pen.line(layout.title, state.title, 1.0, theme.text, true);
    for (std::size_t way = 0; way < layout.blocks.size(); ++way)
        pen.block(way);
    for (const LaneBar& bar : layout.bars)
        pen.bar(bar);
    if (cursor >= 0)
        paintMoment(painter, layout.x(cursor), layout.times, layout.unit, theme);
    if (play != PlayButton::None && !layout.handle.isEmpty()) {
        painter.setPen(QPen(theme.text, layout.unit));
        painter.setBrush(theme.highlight);
        painter.drawRoundedRect(layout.handle, 2, 2);
    }
    pen.depths(play);
    paintPlayButton(painter, layout.button, layout.unit, play, theme);
    painter.restore();
}

} // namespace memscape

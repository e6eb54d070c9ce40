// SPDX-License-Identifier: GPL-3.0-or-later
// How columns and lanes are drawn: parts in the colours that they have on every page, what computes and what travels in
// their own; arrows from rank to rank while a collective runs; what is exposed at the right.
#include "app/pictures/common/word_pen.h"
#include "app/pictures/sharding/sharding_picture.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>
#include <QPainter>

namespace memscape {

namespace {

struct ShardingPen : WordPen
{
    const ShardingState& state;
    const ShardingLayout& layout;
    double cursor; ///< s

    QColor colourOf(const ShardingSpan& span) const
    {
        if (span.kind.isEmpty()) // greys: the colours are of what is stored and travels
            return mix(theme.background, theme.text,
                       span.phase == QLatin1String("forward")        ? 0.35
                           : span.phase == QLatin1String("backward") ? 0.5
                                                                     : 0.7);
        return partColour(theme,
                          partIndex(span.what == QLatin1String("activations")            ? "activations"
                                        : span.what.contains(QLatin1String("gradients")) ? "gradients"
                                                                                         : "weights"));
    }

    void columns() const
    {
        for (const ShardingBox& box : layout.boxes) {
            painter.fillRect(box.rect, partColour(theme, partIndex(state.parts[box.part].key.toStdString())));
            if (box.rect.height() > 3) {
                painter.setPen(QPen(theme.background, 1));
                painter.drawLine(box.rect.topLeft(), box.rect.topRight());
            }
        }
        // Of many columns not every number has room.
        double right = -1e9;
        painter.setFont(plotFont(0.8));
        const QFontMetricsF metrics(painter.font());
        for (const ShardingColumn& column : layout.columns) {
            const QString text = column.rank < 0 ? tr("alone") : QString::number(column.rank);
            const double wide = metrics.horizontalAdvance(text);
            if (column.rect.center().x() - wide / 2 < right + 3 * layout.unit)
                continue;
            right = column.rect.center().x() + wide / 2;
            line(column.label, text, 0.8, theme.textDim, false, Qt::AlignHCenter);
        }
        if (!layout.gap.isEmpty())
            line(layout.gap, QStringLiteral("…"), 1.2, theme.text, true, Qt::AlignHCenter);
    }

    /// From each rank to its neighbour, above what they store.
    void arrows() const
    {
        const ShardingSpan* const span = cursor < 0 ? nullptr : state.collectiveAt(cursor);
        if (!span || layout.columns.size() < 3)
            return;
        const double u = layout.unit;
        const double y = layout.columnsArea.top() + 8 * u;
        QPen pen(theme.highlightText, 1.4 * u);
        painter.setPen(pen);
        for (std::size_t i = 1; i + 1 < layout.columns.size(); ++i) {
            const double from = layout.columns[i].rect.center().x(), to = layout.columns[i + 1].rect.center().x();
            painter.drawLine(QPointF(from, y), QPointF(to - 2 * u, y));
            painter.drawLine(QPointF(to - 6 * u, y - 3 * u), QPointF(to - 2 * u, y));
            painter.drawLine(QPointF(to - 6 * u, y + 3 * u), QPointF(to - 2 * u, y));
        }
    }

    void legend() const
    {
        for (std::size_t part = 0; part < state.parts.size(); ++part) {
            const ShardingPart& one = state.parts[part];
            const bool isGathered = part + 1 == state.parts.size();
            const QRectF& row = layout.legendRows[part];
            const double u = layout.unit;
            painter.fillRect(QRectF(row.left(), row.center().y() - 4 * u, 8 * u, 8 * u),
                             partColour(theme, partIndex(one.key.toStdString())));
            const double bytes = isGathered && cursor >= 0 ? state.gatheredAt(cursor) : one.bytes;
            QRectF text = row;
            text.setLeft(row.left() + 13 * u);
            const QString value = state.bytesText(bytes);
            painter.setFont(plotFont(0.85, true));
            const double wide = QFontMetricsF(painter.font()).horizontalAdvance(value) + 2;
            line(QRectF(text.right() - wide, text.top(), wide, text.height()), value, 0.85, theme.text, true,
                 Qt::AlignRight);
            text.setRight(text.right() - wide - 6 * u);
            line(text, one.label, 0.85, theme.textDim);
        }
    }

    void track(PlayButton play) const
    {
        const double u = layout.unit;
        QRectF label(layout.title.left(), layout.track.center().y() - 9 * u,
                     layout.track.left() - layout.title.left() - 10 * u, 18 * u);
        line(label, tr("N = %1").arg(state.dataParallel), 0.9, theme.text, true, Qt::AlignRight);
        if (play == PlayButton::None) // an export has nothing to drag
            return;
        painter.fillRect(layout.track, theme.grid);
        for (std::int64_t ranks = 1; ranks <= layout.most; ranks *= 2) {
            const double x = layout.trackX(ranks);
            line(QRectF(x - 20 * u, layout.track.bottom() + 5 * u, 40 * u, 11 * u), QString::number(ranks), 0.7,
                 theme.textFaint, false, Qt::AlignHCenter);
        }
        painter.setPen(QPen(theme.text, u));
        painter.setBrush(theme.highlight);
        painter.drawEllipse(layout.handle);
    }

    void lanes() const
    {
        for (qsizetype i = 0; i < state.lanes.size(); ++i)
            lane(layout.lanes[std::size_t(i)], layout.labels[std::size_t(i)], state.lanes[i]);
        for (std::size_t i = 0; i < state.spans.size(); ++i) {
            const ShardingSpan& span = state.spans[i];
            lanePiece(layout.spans[i], colourOf(span), span.kind.isEmpty() ? span.phase : span.what,
                      plotFont(0.75, true));
        }
    }

    void foot() const
    {
        QString said = tr("each rank sends %1 over %2, waits %3 of %4")
                           .arg(state.bytesText(state.sent), state.link, state.secondsText(state.exposed),
                                state.secondsText(state.end));
        if (state.onHost > 0)
            said += tr("; the host keeps %1 of it").arg(state.bytesText(state.onHost));
        if (state.isSerial)
            said += tr("; its core moves them, so nothing hides");
        QRectF left = layout.foot;
        if (state.measured) {
            const QString text = tr("collectives: measured %1").arg(state.secondsText(*state.measured));
            painter.setFont(plotFont(0.85, true));
            const double wide = QFontMetricsF(painter.font()).horizontalAdvance(text) + 2;
            line(QRectF(left.right() - wide, left.top(), wide, left.height()), text, 0.85, theme.measuredText, true,
                 Qt::AlignRight);
            left.setRight(left.right() - wide - 10 * layout.unit);
        }
        line(left, said, 0.85, theme.textDim);
    }
};

} // namespace

void paintSharding(QPainter& painter, const ShardingState& state, const ShardingLayout& layout, double cursor,
                   PlayButton play, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const ShardingPen pen{{painter, theme}, state, layout, cursor};
    pen.line(layout.title, state.title, 1.0, theme.text, true);
    pen.columns();
    pen.arrows();
    pen.legend();
    pen.track(play);
    pen.lanes();
    if (cursor >= 0)
        paintMoment(painter, layout.x(cursor), layout.times, layout.unit, theme);
    pen.foot();
    paintPlayButton(painter, layout.button, layout.unit, play, theme);
    painter.restore();
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// How vessels and lanes are drawn. Full vessels are to one scale of bytes; what the page cache holds is hatched, for it
// is the system's and not the loader's. The bottleneck's lane and arrow have the colour of what one looks at.
#include "app/pictures/common/word_pen.h"
#include "app/pictures/loading/loading_picture.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

namespace memscape {

namespace {

struct LoadingPen : WordPen
{
    const LoadingState& state;
    const LoadingLayout& layout;

    QColor colourOf(const QString& step) const
    {
        return theme.series(step == QLatin1String("read") ? 2 : step == QLatin1String("convert") ? 1 : 0);
    }
    QColor colourOf(VesselKind kind) const
    {
        return colourOf(kind == VesselKind::Medium     ? QStringLiteral("read")
                            : kind == VesselKind::Host ? QStringLiteral("convert")
                                                       : QStringLiteral("copy"));
    }

    QString nameOf(const LoadingVessel& vessel) const
    {
        if (vessel.kind == VesselKind::Medium)
            return state.medium;
        if (vessel.kind == VesselKind::Host)
            return tr("host memory");
        return state.gpus == 1 ? tr("GPU memory") : tr("%1 GPUs").arg(state.gpus);
    }

    QString wordsOf(const LoadingVessel& vessel, const LoadingLevels& levels) const
    {
        if (vessel.kind == VesselKind::Medium)
            return tr("%1 unread").arg(state.bytesText(levels.unread));
        if (vessel.kind == VesselKind::Gpu)
            return tr("%1 of %2").arg(state.bytesText(levels.gpu), state.bytesText(state.converted));
        const QString loader = state.bytesText(levels.process), cache = state.bytesText(levels.pageCache);
        if (!(levels.pageCache > 0))
            return tr("loader %1").arg(loader);
        const QString whole = tr("loader %1 · page cache %2").arg(loader, cache);
        const bool fits = QFontMetricsF(plotFont(0.85, false)).horizontalAdvance(whole) <= vessel.words.width();
        return fits ? whole : tr("%1 + page cache %2").arg(loader, cache);
    }

    /// A part of a vessel, `from` B above its bottom.
    void part(const LoadingVessel& vessel, double from, double bytes, const QBrush& brush) const
    {
        const double bottom = vessel.box.bottom() - vessel.heightOf(from, state.fullest());
        const double height = vessel.heightOf(bytes, state.fullest());
        if (height > 0)
            painter.fillRect(QRectF(vessel.box.left(), bottom - height, vessel.box.width(), height), brush);
    }

    /// What a part is, in its middle, where there is room.
    void partName(const LoadingVessel& vessel, double from, double bytes, const QString& name,
                  const QColor& under) const
    {
        const double bottom = vessel.box.bottom() - vessel.heightOf(from, state.fullest());
        const double height = vessel.heightOf(bytes, state.fullest()), line = 16 * layout.unit;
        const double width = QFontMetricsF(plotFont(0.85, false)).horizontalAdvance(name) + 8 * layout.unit;
        if (height < 1.5 * line || width > vessel.box.width())
            return;
        const QRectF box(vessel.box.center().x() - width / 2, bottom - height / 2 - line / 2, width, line);
        painter.fillRect(box, under);
        this->line(box, name, 0.85, textOn(under), false, Qt::AlignHCenter);
    }

    void vessel(const LoadingVessel& one, const LoadingLevels& levels) const
    {
        painter.fillRect(one.box, mix(theme.background, theme.grid, 0.4));
        const QColor colour = colourOf(one.kind);
        if (one.kind == VesselKind::Medium) {
            const QColor read = mix(theme.background, colour, 0.25);
            part(one, 0, state.bytes, read);
            part(one, 0, levels.unread, colour);
            partName(one, 0, levels.unread, tr("unread"), colour);
            partName(one, levels.unread, state.bytes - levels.unread, tr("read"), read);
        } else if (one.kind == VesselKind::Host) {
            const QColor cached = mix(theme.background, colourOf(VesselKind::Medium), 0.35);
            part(one, 0, levels.process, colour);
            part(one, levels.process, levels.pageCache, cached);
            part(one, levels.process, levels.pageCache, QBrush(theme.textFaint, Qt::BDiagPattern));
            partName(one, 0, levels.process, tr("the loader's"), colour);
            partName(one, levels.process, levels.pageCache, tr("page cache"), cached);
        } else {
            part(one, 0, levels.gpu, colour);
            partName(one, 0, levels.gpu, tr("arrived"), colour);
        }
        painter.setPen(QPen(theme.textDim, layout.unit));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(one.box);
        const int columns = one.kind == VesselKind::Gpu ? std::min(state.gpus, 16) : 1;
        for (int i = 1; i < columns; ++i) { // the model is divided among them
            const double x = one.box.left() + one.box.width() * i / columns;
            painter.drawLine(QPointF(x, one.box.top()), QPointF(x, one.box.bottom()));
        }
        line(one.label, nameOf(one), 0.9, theme.text, true);
        line(one.words, wordsOf(one, levels), 0.85, theme.textDim);
    }

    /// Of the way into the next vessel: the rate alone, marked where it is the bottleneck.
    void arrow(std::size_t index) const
    {
        const QRectF& box = layout.arrows[index];
        const LoadingWay& way = state.askedWay();
        const qsizetype lane = index == 0 ? 0 : way.steps.indexOf(QStringLiteral("copy"));
        if (lane < 0)
            return;
        const bool isSlowest = way.lanes[lane] == state.bottleneck;
        const double y = box.center().y(), u = layout.unit;
        painter.setPen(QPen(isSlowest ? theme.highlightText : theme.textDim, (isSlowest ? 2.5 : 1.2) * u));
        painter.drawLine(QPointF(box.left() + 6 * u, y), QPointF(box.right() - 6 * u, y));
        painter.drawPolyline(
            QPolygonF{{box.right() - 12 * u, y - 5 * u}, {box.right() - 6 * u, y}, {box.right() - 12 * u, y + 5 * u}});
        const double busy = way.alone[std::size_t(lane)];
        const double bytes = index == 0 ? state.bytes : state.converted;
        if (busy > 0)
            line(QRectF(box.left(), y - 20 * u, box.width(), 16 * u),
                 toQString(quantityText(bytes / busy, Unit::BytePerSecond)), 0.75,
                 isSlowest ? theme.highlightText : theme.textDim, isSlowest, Qt::AlignHCenter);
        if (isSlowest)
            line(QRectF(box.left(), y + 6 * u, box.width(), 14 * u), tr("slowest"), 0.75, theme.highlightText, true,
                 Qt::AlignHCenter);
    }

    void block(std::size_t index) const
    {
        const LoadingWay& way = state.ways[index];
        const LaneBlock& place = layout.blocks[index];
        QString text = state.secondsText(way.time);
        const double saved = state.ways.front().time - way.time;
        if (saved > 0.001 * way.time)
            text += tr(" · saves %1").arg(state.secondsText(saved));
        QRectF right = place.head;
        right.setLeft(place.head.left() + place.head.width() * 0.4);
        if (way.measured)
            right = measured(right, state.secondsText(*way.measured), 10 * layout.unit);
        const bool isAsked = way.key == state.asked;
        line(place.head, way.label, 0.9, isAsked ? theme.text : theme.textDim, isAsked);
        line(right, text, 0.9, theme.predictedText, isAsked, Qt::AlignRight);
        for (qsizetype i = 0; i < way.lanes.size(); ++i)
            lane(place.lanes[std::size_t(i)], place.labels[std::size_t(i)], way.lanes[i],
                 way.lanes[i] == state.bottleneck);
    }

    void bar(const LaneBar& bar) const
    {
        const LoadingWay& way = state.ways[bar.way];
        lanePiece(bar.rect, colourOf(way.steps[qsizetype(way.pieces[bar.piece].lane)]), QString(), plotFont(0.75));
    }
};

} // namespace

void paintLoading(QPainter& painter, const LoadingState& state, const LoadingLayout& layout, double cursor,
                  PlayButton play, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const LoadingPen pen{{painter, theme}, state, layout};
    const LoadingLevels levels = state.levelsAt(cursor);
    pen.line(layout.title, state.title, 1.0, theme.text, true);
    for (const LoadingVessel& vessel : layout.vessels)
        pen.vessel(vessel, levels);
    for (std::size_t i = 0; i < layout.arrows.size(); ++i)
        pen.arrow(i);
    for (std::size_t way = 0; way < layout.blocks.size(); ++way)
        pen.block(way);
    for (const LaneBar& bar : layout.bars)
        pen.bar(bar);
    if (cursor >= 0)
        paintMoment(painter, layout.x(cursor), layout.times, layout.unit, theme);
    const QString when =
        cursor >= 0 ? tr("after %1").arg(state.secondsText(cursor)) + QStringLiteral(" · ") : QString();
    pen.line(layout.foot,
             when + tr("the bottleneck is the %1").arg(state.bottleneck)
                 + (state.serial.isEmpty() ? QString() : QStringLiteral(" · ") + state.serial),
             0.85, theme.textDim);
    paintPlayButton(painter, layout.button, layout.unit, play, theme);
    painter.restore();
}

} // namespace memscape

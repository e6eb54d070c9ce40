// SPDX-License-Identifier: GPL-3.0-or-later
// How segments, blocks and what a request did are drawn.
#include "app/pictures/allocator/allocator_picture.h"

#include "app/pictures/common/fitting_text.h"
#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/experiments/memory/memory_detail.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <array>

namespace memscape {

namespace {

constexpr double muchUnusable = 0.05, leastShown = 1e-3;

QColor blockColour(const AllocatorState& state, const PolicyBlock& block, const Theme& theme)
{
    const Category category = state.trace->blocks[block.block].category;
    const QColor colour = partColour(theme, partIndex(categoryKey(category)));
    return block.isPending ? mix(theme.background, colour, 0.45) : colour;
}

QString percentOf(double share)
{
    return share >= leastShown ? QString::fromStdString(percentText(share)) : share > 0 ? tr("< 0.1 %") : tr("0 %");
}

/// What the request is about: the block that was made or freed, and the free part behind it.
struct Marked
{
    QRectF block, rest; ///< the first piece of each
};

Marked markedIn(const AllocatorLayout& layout, const AllocatorMoment& moment)
{
    Marked marked;
    const PolicyAct& act = moment.act;
    const bool isFree = act.kind == ActKind::Freed;
    if (act.address == 0)
        return marked;
    for (const AllocatorPiece& piece : layout.pieces) {
        const PolicyBlock& block = moment.segments[piece.segment].blocks[piece.block];
        const std::uint64_t end = block.address + std::uint64_t(block.size);
        const bool holds = block.address <= act.address && act.address < end;
        if (holds && (isFree == (block.block == noBlock)) && marked.block.isNull())
            marked.block = piece.rect;
        if (!isFree && act.rest > 0 && block.address == act.address + std::uint64_t(act.given) && marked.rest.isNull())
            marked.rest = piece.rect;
    }
    return marked;
}

/// The act in a few words, beside the block.
QString callout(const AllocatorState& state, const PolicyAct& act)
{
    const auto bytes = [&](std::int64_t value) { return state.bytes(double(value)); };
    switch (act.kind) {
    case ActKind::Reused:
        return act.rest > 0
            ? tr("split: %1 of %2, %3 stay free").arg(bytes(act.given), bytes(act.found), bytes(act.rest))
            : tr("reused: %1").arg(bytes(act.given));
    case ActKind::Taken:
        return act.isRetry ? tr("cache emptied, then %1 taken").arg(bytes(act.taken))
                           : tr("new: %1 taken").arg(bytes(act.taken));
    case ActKind::Freed:
        return act.merged > 0 ? tr("freed and merged: %1 free").arg(bytes(act.freeAfter))
                              : tr("freed: %1").arg(bytes(act.given));
    case ActKind::Deferred: return tr("freed, still in use elsewhere");
    case ActKind::Refused: return tr("refused");
    default: return {};
    }
}

} // namespace

void AllocatorPen::fitted(const QRectF& rect, int flags, const QString& text) const
{
    painter.drawText(rect, flags, QFontMetricsF(painter.font()).elidedText(text, Qt::ElideRight, rect.width()));
}

void AllocatorPen::heading() const
{
    painter.setFont(plotFont(1.0, true));
    painter.setPen(theme.text);
    fitted(layout.title, Qt::AlignLeft | Qt::AlignVCenter, moment ? state.header(moment->request) : state.title);
    painter.setFont(plotFont(0.85));
    painter.setPen(theme.textDim);
    if (moment == nullptr)
        return;
    const QString segments =
        moment->segments.size() == 1 ? tr("1 segment") : tr("%1 segments").arg(moment->segments.size());
    QString text =
        tr("%1 by address · %2 reserved, %3 allocated")
            .arg(segments, state.bytes(double(moment->counts.reserved)), state.bytes(double(moment->counts.allocated)));
    if (state.scale > 1)
        text += tr(" · sizes divided by %1").arg(state.scale);
    QRectF caption = layout.caption;
    caption.setRight(legend());
    fitted(caption, Qt::AlignLeft | Qt::AlignVCenter, text);
    if (play == PlayButton::None)
        return;
    const double u = layout.unit;
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.predicted);
    const QPointF c = layout.button.center();
    if (play == PlayButton::Play) {
        painter.drawPolygon(QPolygonF{c + QPointF(-5 * u, -7 * u), c + QPointF(7 * u, 0), c + QPointF(-5 * u, 7 * u)});
    } else {
        painter.drawRect(QRectF(c.x() - 6 * u, c.y() - 7 * u, 4 * u, 14 * u));
        painter.drawRect(QRectF(c.x() + 2 * u, c.y() - 7 * u, 4 * u, 14 * u));
    }
}

/// What the colours mean, at the right; returns where it begins.
double AllocatorPen::legend() const
{
    std::array<bool, categoryCount> isThere{};
    for (const AllocatorPiece& piece : layout.pieces)
        if (const BlockId block = moment->segments[piece.segment].blocks[piece.block].block; block != noBlock)
            isThere[std::size_t(state.trace->blocks[block].category)] = true;
    const double u = layout.unit, swatch = 9 * u;
    const QFontMetricsF metrics(painter.font());
    double right = layout.caption.right();
    for (std::size_t i = categoryCount; i-- > 0;) {
        if (!isThere[i])
            continue;
        const auto text = categoryText(Category(i));
        const QString name = QString::fromLatin1(text.data(), qsizetype(text.size()));
        const double width = metrics.horizontalAdvance(name) + swatch + 14 * u;
        if (right - width < layout.caption.center().x())
            break;
        right -= width;
        const QRectF box(right + 6 * u, layout.caption.center().y() - swatch / 2, swatch, swatch);
        painter.fillRect(box, partColour(theme, partIndex(categoryKey(Category(i)))));
        painter.drawText(QRectF(box.right() + 4 * u, layout.caption.top(), width, layout.caption.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, name);
    }
    return right - 6 * u;
}

/// The requests from first to last, phases apart, and where the cursor is.
void AllocatorPen::scrub() const
{
    const QRectF& line = layout.scrub;
    const int count = state.last + 1;
    painter.setFont(plotFont(0.8));
    painter.setPen(theme.textDim);
    painter.drawText(QRectF(line.left() - 66 * layout.unit, line.top() - 3, 62 * layout.unit, line.height() + 6),
                     Qt::AlignLeft | Qt::AlignVCenter, tr("requests"));
    if (count <= 0)
        return;
    const auto x = [&](double request) { return line.left() + request / count * line.width(); };
    for (int begin = 0; begin < count;) {
        const Phase phase = state.trace->requests[std::size_t(begin)].phase;
        int end = begin + 1;
        while (end < count && state.trace->requests[std::size_t(end)].phase == phase)
            ++end;
        const double strength = 0.25 + 0.17 * double(int(phase) % 4);
        painter.fillRect(QRectF(x(begin), line.top(), std::max(1.0, x(end) - x(begin) - 1), line.height()),
                         mix(theme.background, theme.textDim, strength));
        begin = end;
    }
    if (cursor >= 0)
        painter.fillRect(
            QRectF(x(cursor + 0.5) - 1.5 * layout.unit, line.top() - 2, 3 * layout.unit, line.height() + 4),
            theme.highlight);
}

void AllocatorPen::segments() const
{
    if (moment == nullptr)
        return;
    for (const AllocatorPiece& piece : layout.pieces) {
        const PolicyBlock& block = moment->segments[piece.segment].blocks[piece.block];
        if (block.block == noBlock)
            continue;
        QRectF rect = piece.rect;
        if (rect.width() > 3)
            rect.adjust(0, 0, -0.8, 0);
        painter.fillRect(rect, blockColour(state, block, theme));
    }
    painter.setBrush(Qt::NoBrush);
    for (const AllocatorFrame& frame : layout.frames) {
        painter.setPen(QPen(theme.textFaint, 1));
        const QRectF rect = frame.rect.adjusted(0, -0.5, 0, 0.5);
        painter.drawLine(rect.topLeft(), rect.topRight());
        painter.drawLine(rect.bottomLeft(), rect.bottomRight());
        if (frame.isBegun)
            painter.drawLine(rect.topLeft(), rect.bottomLeft());
        if (frame.isEnded)
            painter.drawLine(rect.topRight(), rect.bottomRight());
    }
    painter.setFont(plotFont(0.8));
    painter.setPen(theme.textDim);
    for (std::size_t i = 0; i < layout.labels.size() && i < layout.labelTexts.size(); ++i)
        fitted(layout.labels[i], Qt::AlignRight | Qt::AlignVCenter, layout.labelTexts[i]);
    if (hovered >= 0 && hovered < int(layout.pieces.size())) {
        painter.setPen(QPen(theme.text, 1.5 * layout.unit));
        painter.drawRect(layout.pieces[std::size_t(hovered)].rect);
    }
}

void AllocatorPen::mark() const
{
    if (moment == nullptr)
        return;
    const double u = layout.unit;
    const Marked marked = markedIn(layout, *moment);
    painter.setBrush(Qt::NoBrush);
    if (!marked.rest.isNull()) {
        painter.setPen(QPen(theme.highlight, 1.2 * u, Qt::DashLine));
        painter.drawRect(marked.rest);
    }
    if (marked.block.isNull())
        return;
    QRectF box = marked.block;
    if (box.width() < 4 * u)
        box.adjust(-2 * u, 0, 2 * u, 0);
    painter.setPen(QPen(theme.highlight, 2 * u));
    painter.drawRect(box.adjusted(-0.5, -1.5, 0.5, 1.5));
    const QString text = callout(state, moment->act);
    painter.setFont(plotFont(0.85, true));
    const QFontMetricsF metrics(painter.font());
    const double width = metrics.horizontalAdvance(text) + 10 * u, high = metrics.height() + 2;
    const QRectF& tape = layout.tape;
    double left = box.right() + 8 * u;
    if (left + width > tape.right())
        left = box.left() - 8 * u - width;
    if (left < layout.rows.front().left()) // no room on either side
        left = std::min(box.right(), tape.right()) - 8 * u - width;
    const QRectF pill(left, box.center().y() - high / 2, width, high);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.highlightFill);
    painter.drawRoundedRect(pill, 4 * u, 4 * u);
    painter.setPen(theme.onHighlight);
    painter.drawText(pill, Qt::AlignCenter, text);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void AllocatorPen::words() const
{
    if (moment == nullptr)
        return;
    painter.setFont(plotFont(0.9));
    painter.setPen(moment->act.kind == ActKind::Refused ? theme.bad : theme.text);
    painter.drawText(layout.words, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextWordWrap,
                     fittingText(moment->words.join(QStringLiteral(" · ")), painter.font(), layout.words.width(),
                                 layout.words.height()));
}

void AllocatorPen::card(const QRectF& rect, const ElsewhereCard& one) const
{
    const double u = layout.unit;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(one.isChosen ? theme.predicted : theme.border, one.isChosen ? 2 * u : 1));
    painter.setBrush(theme.raised);
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 5 * u, 5 * u);
    painter.setRenderHint(QPainter::Antialiasing, false);
    const QRectF inside = rect.adjusted(8 * u, 3 * u, -8 * u, -3 * u);
    painter.setFont(plotFont(0.85, true));
    painter.setPen(theme.text);
    fitted(QRectF(inside.left(), inside.top(), inside.width(), inside.height() / 2), Qt::AlignLeft | Qt::AlignVCenter,
           one.label);
    const QRectF below(inside.left(), inside.center().y(), inside.width(), inside.height() / 2);
    painter.setFont(plotFont(0.8));
    if (!one.isKnown || one.isRefused) {
        painter.setPen(one.isRefused ? theme.bad : theme.textFaint);
        fitted(below, Qt::AlignLeft | Qt::AlignVCenter, one.isRefused ? tr("runs out of memory") : one.missing);
        return;
    }
    painter.setPen(theme.textDim);
    const QString reserved = state.bytes(one.reserved);
    fitted(below, Qt::AlignLeft | Qt::AlignVCenter, reserved);
    if (one.key.isEmpty())
        return;
    const double room = below.width() - QFontMetricsF(painter.font()).horizontalAdvance(reserved) - 6 * u;
    painter.setPen(one.unusable > muchUnusable ? theme.warning : theme.good);
    painter.setFont(plotFont(0.8, true));
    const QString share = percentOf(one.unusable), words = tr("%1 not usable").arg(share);
    painter.drawText(below, Qt::AlignRight | Qt::AlignVCenter,
                     QFontMetricsF(painter.font()).horizontalAdvance(words) <= room ? words : share);
}

void AllocatorPen::cards() const
{
    if (layout.cards.empty())
        return;
    painter.setFont(plotFont(0.9, true));
    painter.setPen(theme.text);
    painter.drawText(layout.cardsTitle, Qt::AlignLeft | Qt::AlignVCenter,
                     tr("the same requests elsewhere: most bytes reserved"));
    for (std::size_t i = 0; i < layout.cards.size(); ++i) {
        if (!layout.cards[i].isEmpty())
            card(layout.cards[i], state.cards[i]);
    }
}

void AllocatorPen::all() const
{
    heading();
    scrub();
    segments();
    mark();
    words();
    cards();
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/sharding/sharding_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>

namespace memscape {

ShardingPicture::ShardingPicture(QWidget* parent)
    : ShardingTimeline({340, 240}, parent)
{
    setAccessibleName(tr("What each rank stores, over the collectives of a step"));
}

QString ShardingPicture::shortcuts()
{
    return Player::shortcuts() + u' ' + tr("+ and − double and halve the ranks, 0 to 3 choose the stage of ZeRO.");
}

void ShardingPicture::read(const PictureValues& values)
{
    m_state = readSharding(values.predicted, values.measured, byteStyle());
    // At rest in the middle of backward, where most of what travels does.
    setEnd(m_state.empty() ? 0 : m_state.end, 0.5);
}

ShardingLayout ShardingPicture::layoutIn(const QRectF& rect) const
{
    return layoutSharding(m_state, rect, plotUnit(), m_state.gatheredAt(cursorSeconds()));
}

void ShardingPicture::drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const
{
    paintSharding(painter, m_state, layoutIn(rect), cursorSeconds(), play, theme);
}

QString ShardingPicture::summary() const
{
    if (m_state.empty())
        return problem().isEmpty() ? tr("No prediction.") : problem();
    QStringList said;
    for (const ShardingPart& part : m_state.parts) {
        if (part.bytes > 0)
            said << tr("%1 %2").arg(m_state.bytesText(part.bytes), part.label);
    }
    return tr("%1. Each rank: %2. It sends %3 and waits %4 of %5.")
        .arg(m_state.title, said.join(QStringLiteral(", ")), m_state.bytesText(m_state.sent),
             m_state.secondsText(m_state.exposed), m_state.secondsText(m_state.end));
}

QString ShardingPicture::hint() const
{
    return tr("space plays · drag the yellow handle for the ranks · 0 to 3: the stage of ZeRO");
}

bool ShardingPicture::isOnTrack(const ShardingLayout& layout, QPointF at) const
{
    return layout.handle.adjusted(-3, -3, 3, 3).contains(at)
        || layout.track.adjusted(-4, -6 * layout.unit, 4, 6 * layout.unit).contains(at);
}

bool ShardingPicture::isButton(QPointF at) const
{
    const ShardingLayout layout = layoutNow();
    return layout.button.contains(at) || isOnTrack(layout, at);
}

QString ShardingPicture::ranksWords(std::int64_t ranks)
{
    return ranks == 1 ? tr("1 rank: nothing is sharded") : tr("%1 data-parallel ranks").arg(ranks);
}

QString ShardingPicture::toolTipAt(QPointF at) const
{
    const ShardingLayout layout = layoutNow();
    if (layout.button.contains(at))
        return tr("Play the step (Space)");
    if (isOnTrack(layout, at))
        return ranksWords(m_state.dataParallel);
    if (const int box = layout.boxAt(at); box >= 0) {
        const ShardingBox& one = layout.boxes[std::size_t(box)];
        const ShardingPart& part = m_state.parts[one.part];
        const double bytes = one.rank < 0 ? part.alone : one.rect.height() / layout.bytesHeight;
        return one.rank < 0 ? tr("one rank alone: %1 of %2").arg(m_state.bytesText(bytes), part.label)
                            : tr("rank %1: %2 of %3").arg(one.rank).arg(m_state.bytesText(bytes), part.label);
    }
    const int span = layout.spanAt(at);
    return span < 0 ? QString() : m_state.spanWords(m_state.spans[std::size_t(span)]);
}

void ShardingPicture::setRanks(std::int64_t ranks)
{
    ranks = std::clamp<std::int64_t>(ranks, 1, m_state.mostRanks);
    if (ranks != m_state.dataParallel)
        emit parameterEdited(QStringLiteral("data_parallel"), QString::number(ranks));
}

void ShardingPicture::mousePressEvent(QMouseEvent* event)
{
    const ShardingLayout layout = layoutNow();
    if (event->button() != Qt::LeftButton || m_state.empty() || !isOnTrack(layout, event->position()))
        return ShardingTimeline::mousePressEvent(event);
    hold();
    drag(event->position());
}

void ShardingPicture::drag(QPointF at)
{
    const std::int64_t ranks = std::clamp<std::int64_t>(layoutNow().ranksAt(at.x()), 1, m_state.mostRanks);
    setRanks(ranks);
    emit hoverText(ranksWords(ranks));
}

void ShardingPicture::mouseMoveEvent(QMouseEvent* event)
{
    if (isHeld())
        return drag(event->position());
    ShardingTimeline::mouseMoveEvent(event);
}

void ShardingPicture::keyPressEvent(QKeyEvent* event)
{
    if (m_state.empty())
        return ShardingTimeline::keyPressEvent(event);
    switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: return setRanks(m_state.dataParallel * 2);
    case Qt::Key_Minus: return setRanks(m_state.dataParallel / 2);
    default: break;
    }
    if (event->key() >= Qt::Key_0 && event->key() <= Qt::Key_3) {
        if (const int zero = event->key() - Qt::Key_0; zero != m_state.zero)
            emit parameterEdited(QStringLiteral("zero"), QString::number(zero));
        return;
    }
    ShardingTimeline::keyPressEvent(event);
}

} // namespace memscape

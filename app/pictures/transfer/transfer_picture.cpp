// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/transfer/transfer_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>

namespace memscape {

TransferPicture::TransferPicture(QWidget* parent)
    : TransferTimeline({300, 240}, parent)
{
    setAccessibleName(tr("Lanes of copies and kernels over time"));
}

QString TransferPicture::shortcuts()
{
    return Player::shortcuts() + u' '
        + tr("+ and − double and halve the chunks, B takes the best ones, 1 to 8 set the "
             "buffers in flight.");
}

void TransferPicture::read(const PictureValues& values)
{
    m_state = readTransfer(values.parameters, values.predicted, values.measured, byteStyle());
    setEnd(m_state.empty() ? 0 : m_state.longest, 0.25);
}

TransferLayout TransferPicture::layoutIn(const QRectF& rect) const
{
    return layoutTransfer(m_state, rect, plotUnit());
}

void TransferPicture::drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const
{
    paintTransfer(painter, m_state, layoutIn(rect), cursorSeconds(), play, theme);
}

QString TransferPicture::summary() const
{
    if (m_state.empty())
        return problem().isEmpty() ? tr("No prediction.") : problem();
    QStringList said;
    for (const TransferWay& way : m_state.ways)
        said << m_state.wayWords(way);
    return tr("%1. %2.").arg(m_state.title, said.join(QStringLiteral("; ")));
}

QString TransferPicture::hint() const
{
    return m_state.serial.isEmpty()
        ? tr("space plays · drag the yellow handle for the chunks, the boxes for the buffers "
             "· B: best chunks")
        : m_state.serial;
}

bool TransferPicture::isButton(QPointF at) const
{
    const TransferLayout layout = layoutNow();
    return layout.button.contains(at) || layout.handle.contains(at) || layout.depthAt(at) > 0;
}

QString TransferPicture::toolTipAt(QPointF at) const
{
    const TransferLayout layout = layoutNow();
    if (layout.button.contains(at))
        return tr("Play the transfer (Space)");
    if (layout.handle.contains(at))
        return tr("Chunks of %1; %2 would be best")
            .arg(m_state.bytesText(double(m_state.chunk)), m_state.bytesText(double(m_state.bestChunk)));
    if (const int depth = layout.depthAt(at); depth > 0)
        return tr("%1 buffers in flight").arg(depth);
    const int bar = layout.barAt(at);
    if (bar < 0)
        return {};
    const LaneBar& one = layout.bars[std::size_t(bar)];
    const TransferWay& way = m_state.ways[one.way];
    return m_state.pieceWords(way, way.pieces[one.piece]);
}

void TransferPicture::setChunk(std::int64_t chunk)
{
    if (chunk != m_state.chunk && chunk > 0 && m_state.bytes > 0)
        emit parameterEdited(QStringLiteral("chunk"), QString::number(chunk));
}

void TransferPicture::setDepth(int depth)
{
    if (depth >= 1 && depth <= 8 && depth != m_state.depth)
        emit parameterEdited(QStringLiteral("streams"), QString::number(depth));
}

void TransferPicture::drag(QPointF at)
{
    const TransferLayout layout = layoutNow();
    if (m_handle == Handle::Chunk) {
        const std::int64_t chunk = m_state.chunkEndingAt(layout.secondsAt(at.x()));
        setChunk(chunk);
        emit hoverText(tr("Chunks of %1").arg(m_state.bytesText(double(chunk))));
    } else {
        const int depth = std::clamp(int((at.x() - layout.depths[0].left()) / (17 * layout.unit)) + 1, 1, 8);
        setDepth(depth);
        emit hoverText(tr("%1 buffers in flight").arg(depth));
    }
}

void TransferPicture::mousePressEvent(QMouseEvent* event)
{
    const TransferLayout layout = layoutNow();
    const QPointF at = event->position();
    if (event->button() != Qt::LeftButton || m_state.empty())
        return TransferTimeline::mousePressEvent(event);
    const bool isChunk = layout.handle.adjusted(-3, 0, 3, 0).contains(at);
    if (!isChunk && layout.depthAt(at) <= 0)
        return TransferTimeline::mousePressEvent(event);
    m_handle = isChunk ? Handle::Chunk : Handle::Depth;
    hold();
    drag(at);
}

void TransferPicture::mouseMoveEvent(QMouseEvent* event)
{
    if (isHeld())
        return drag(event->position());
    TransferTimeline::mouseMoveEvent(event);
}

void TransferPicture::keyPressEvent(QKeyEvent* event)
{
    if (m_state.empty())
        return TransferTimeline::keyPressEvent(event);
    switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: return setChunk(std::min(m_state.bytes, m_state.chunk * 2));
    case Qt::Key_Minus: return setChunk(std::max<std::int64_t>(m_state.bytes / 65536 + 1, m_state.chunk / 2));
    case Qt::Key_B: return setChunk(m_state.bestChunk);
    default: break;
    }
    if (event->key() >= Qt::Key_1 && event->key() <= Qt::Key_8)
        return setDepth(event->key() - Qt::Key_0);
    TransferTimeline::keyPressEvent(event);
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture shows and how a hand reads it.
#include "app/pictures/in-place/in_place_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

namespace memscape {

InPlacePicture::InPlacePicture(QWidget* parent)
    : Picture({280, 228, 400}, parent)
{
    setAccessibleName(tr("Tensors alive out of place and in place"));
}

void InPlacePicture::read(const PictureValues& values)
{
    m_state = readInPlace(values.experiment, values.parameters, values.predicted, values.measured, byteStyle());
    m_block = -1;
}

QString InPlacePicture::summary() const
{
    if (m_state.empty())
        return tr("No prediction.");
    QStringList ways;
    for (int i = 0; i < 2; ++i) {
        const InPlaceWay& way = m_state.ways[std::size_t(i)];
        QString text = tr("%1: %2 at the peak, %3 afterwards, %4 moved")
                           .arg(wayName(i), m_state.bytes(way.peak), m_state.bytes(way.kept), m_state.bytes(way.moved));
        if (way.measuredPeak)
            text += tr(", measured peak %1").arg(m_state.bytes(*way.measuredPeak));
        ways << text;
    }
    return tr("%1. %2. %3 %4").arg(title(), ways.join(QStringLiteral("; ")), m_state.verdict(), m_state.backward());
}

InPlaceLayout InPlacePicture::layoutNow() const
{
    return layoutInPlace(m_state, QRectF(rect()), plotUnit());
}

QString InPlacePicture::wordsOf(const InPlaceBlock& block) const
{
    const InPlaceWay& way = m_state.ways[std::size_t(block.way)];
    return block.isMoved() ? m_state.partWords(block.way, way.parts[block.index])
                           : m_state.tensorWords(block.way, block.moment(), way.tensors[block.index]);
}

QString InPlacePicture::shortcuts()
{
    return tr("Arrow keys go from tensor to tensor and from moment to moment; the words are below the curves.");
}

void InPlacePicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    if (m_state.empty() && !problem().isEmpty())
        paintProblem(painter, rect, theme);
    else
        paintInPlace(painter, m_state, layoutInPlace(m_state, rect, plotUnit()), isScreen ? m_block : -1, theme);
}

QString InPlacePicture::toolTipAt(QPointF at) const
{
    const InPlaceLayout layout = layoutNow();
    const int block = m_state.empty() ? -1 : layout.blockAt(at);
    return block < 0 ? QString() : wordsOf(layout.blocks[std::size_t(block)]);
}

QString InPlacePicture::show(int block)
{
    const InPlaceLayout layout = layoutNow();
    const QString text =
        block >= 0 && block < int(layout.blocks.size()) ? wordsOf(layout.blocks[std::size_t(block)]) : QString();
    const int before = std::exchange(m_block, text.isEmpty() ? -1 : block);
    if (m_block != before) {
        emit hoverText(text);
        update();
    }
    return text;
}

void InPlacePicture::mouseMoveEvent(QMouseEvent* event)
{
    if (m_state.empty())
        return;
    const int before = m_block;
    const QString text = show(layoutNow().blockAt(event->position()));
    if (m_block != before)
        QToolTip::showText(event->globalPosition().toPoint(), text, this);
}

void InPlacePicture::leaveEvent(QEvent* event)
{
    Picture::leaveEvent(event);
    show(-1);
}

void InPlacePicture::focusOutEvent(QFocusEvent* event)
{
    Picture::focusOutEvent(event);
    show(-1);
    setAccessibleDescription(summary());
}

void InPlacePicture::keyPressEvent(QKeyEvent* event)
{
    int columns = 0, rows = 0;
    switch (event->key()) {
    case Qt::Key_Left: columns = -1; break;
    case Qt::Key_Right: columns = 1; break;
    case Qt::Key_Up: rows = -1; break;
    case Qt::Key_Down: rows = 1; break;
    default: return Picture::keyPressEvent(event);
    }
    if (!m_state.empty())
        setAccessibleDescription(show(layoutNow().neighbour(m_block, columns, rows)));
}

} // namespace memscape

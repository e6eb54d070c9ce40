// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/loading/loading_picture.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

constexpr std::int64_t leastLoadingChunk = 4096;

} // namespace

LoadingPicture::LoadingPicture(QWidget* parent)
    : LoadingTimeline({320, 240}, parent)
{
    setAccessibleName(tr("Disk, host memory and GPU filling over time"));
}

QString LoadingPicture::shortcuts()
{
    return Player::shortcuts() + u' '
        + tr("+ and − double and halve the chunks, 1 to 8 set the buffers in flight: 1 takes one step after the "
             "other.");
}

void LoadingPicture::read(const PictureValues& values)
{
    m_state = readLoading(values.predicted, values.measured, byteStyle());
    // At rest in the middle of what was asked for.
    setEnd(m_state.empty() ? 0 : m_state.longest,
           m_state.empty() ? 0 : 0.5 * m_state.askedWay().time / m_state.longest);
}

LoadingLayout LoadingPicture::layoutIn(const QRectF& rect) const
{
    return layoutLoading(m_state, rect, plotUnit());
}

void LoadingPicture::drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const
{
    paintLoading(painter, m_state, layoutIn(rect), cursorSeconds(), play, theme);
}

QString LoadingPicture::summary() const
{
    if (m_state.empty())
        return problem().isEmpty() ? tr("No prediction.") : problem();
    QStringList said;
    for (const LoadingWay& way : m_state.ways)
        said << m_state.wayWords(way);
    return tr("%1. %2. The bottleneck is the %3.")
        .arg(m_state.title, said.join(QStringLiteral("; ")), m_state.bottleneck);
}

QString LoadingPicture::hint() const
{
    return m_state.serial.isEmpty() ? tr("space plays · press a way's name to choose it · 1 to 8: buffers")
                                    : m_state.serial;
}

bool LoadingPicture::isButton(QPointF at) const
{
    const LoadingLayout layout = layoutNow();
    return layout.button.contains(at) || (m_state.ways.size() > 1 && layout.headAt(at) >= 0);
}

QString LoadingPicture::toolTipAt(QPointF at) const
{
    const LoadingLayout layout = layoutNow();
    if (layout.button.contains(at))
        return tr("Play the loading (Space)");
    if (const int way = layout.headAt(at); way >= 0)
        return m_state.wayWords(m_state.ways[std::size_t(way)]);
    const int bar = layout.barAt(at);
    if (bar < 0)
        return {};
    const LoadingWay& way = m_state.ways[layout.bars[std::size_t(bar)].way];
    const LanePiece& piece = way.pieces[layout.bars[std::size_t(bar)].piece];
    return tr("%1, chunks %2 to %3: from %4 to %5")
        .arg(way.lanes[qsizetype(piece.lane)])
        .arg(piece.first + 1)
        .arg(piece.last + 1)
        .arg(m_state.secondsText(piece.begin), m_state.secondsText(piece.end));
}

void LoadingPicture::setDepth(int depth)
{
    if (depth >= 1 && depth <= 8 && depth != m_state.depth)
        emit parameterEdited(QStringLiteral("streams"), QString::number(depth));
}

void LoadingPicture::setChunk(std::int64_t chunk)
{
    if (chunk != m_state.chunk && chunk >= leastLoadingChunk)
        emit parameterEdited(QStringLiteral("chunk"), QString::number(chunk));
}

void LoadingPicture::mousePressEvent(QMouseEvent* event)
{
    const int way = m_state.empty() ? -1 : layoutNow().headAt(event->position());
    if (event->button() != Qt::LeftButton || way < 0 || m_state.ways.size() < 2)
        return LoadingTimeline::mousePressEvent(event);
    setDepth(m_state.ways[std::size_t(way)].key == QLatin1String("serial") ? 1 : std::max(2, m_state.depth));
}

void LoadingPicture::keyPressEvent(QKeyEvent* event)
{
    if (m_state.empty())
        return LoadingTimeline::keyPressEvent(event);
    switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: return setChunk(std::min(std::int64_t(m_state.bytes), m_state.chunk * 2));
    case Qt::Key_Minus: return setChunk(std::max(std::int64_t(m_state.bytes / 65536) + 1, m_state.chunk / 2));
    default: break;
    }
    if (event->key() >= Qt::Key_1 && event->key() <= Qt::Key_8)
        return setDepth(event->key() - Qt::Key_0);
    LoadingTimeline::keyPressEvent(event);
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/placement/placement_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <utility>

namespace memscape {

PlacementPicture::PlacementPicture(QWidget* parent)
    : Picture({320, 240}, parent)
{
    setAccessibleName(tr("Operators on the device and on the host, and lanes over time"));
}

QString PlacementPicture::shortcuts()
{
    return tr(
        "← and → choose an operator, ↑ places it on the device, ↓ on the host, Delete leaves it to the strategy.");
}

void PlacementPicture::read(const PictureValues& values)
{
    m_state = readPlacement(values.parameters, values.predicted, values.measured, byteStyle());
    m_chosen = std::min(m_chosen, int(m_state.nodes.size()) - 1);
    m_dragged = std::min(m_dragged, int(m_state.nodes.size()) - 1);
    if (m_told = std::min(m_told, int(m_state.nodes.size()) - 1); m_told >= 0) // it may be elsewhere now
        emit hoverText(m_state.nodeWords(m_state.nodes[std::size_t(m_told)]));
}

PlacementLayout PlacementPicture::layoutNow() const
{
    return layoutPlacement(m_state, QRectF(rect()), plotUnit());
}

QString PlacementPicture::summary() const
{
    if (m_state.empty())
        return problem().isEmpty() ? tr("No prediction.") : problem();
    constexpr std::size_t said = 12;
    QStringList nodes;
    for (std::size_t i = 0; i < std::min(said, m_state.nodes.size()); ++i)
        nodes << m_state.nodeWords(m_state.nodes[i]);
    if (m_state.allNodes > std::size_t(nodes.size()))
        nodes << tr("and %1 more").arg(m_state.allNodes - std::size_t(nodes.size()));
    return tr("%1. %2.").arg(m_state.title, nodes.join(QStringLiteral("; ")));
}

QString PlacementPicture::hint() const
{
    return m_state.trains
        ? tr("training decides what lives where")
        : tr("drag an operator into the other band to place it there · Delete: as the strategy has it");
}

bool PlacementPicture::isMovable(int node) const
{
    return node >= 0 && node < int(m_state.nodes.size()) && !m_state.nodes[std::size_t(node)].isFixed;
}

/// An edit of the parameter; nothing where that is what it is.
void PlacementPicture::place(int node, std::optional<bool> onHost)
{
    if (!isMovable(node))
        return;
    if (const QString placed = m_state.placed(std::size_t(node), onHost); placed != m_state.place)
        emit parameterEdited(QStringLiteral("place"), placed);
}

void PlacementPicture::choose(int node)
{
    m_chosen = m_told = node;
    if (node >= 0)
        emit hoverText(m_state.nodeWords(m_state.nodes[std::size_t(node)]));
    update();
}

QString PlacementPicture::toolTipAt(QPointF at) const
{
    if (m_state.empty())
        return {};
    const PlacementLayout layout = layoutNow();
    if (const int node = layout.nodeAt(at); node >= 0)
        return m_state.nodeWords(m_state.nodes[std::size_t(node)]);
    const int piece = layout.pieceAt(at);
    return piece < 0 ? QString() : m_state.pieceWords(m_state.pieces[std::size_t(piece)]);
}

void PlacementPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    const PlacementHand hand = isScreen ? PlacementHand{m_chosen, m_dragged, m_pointer} : PlacementHand();
    if (m_state.empty())
        paintProblem(painter, rect, theme);
    else
        paintPlacement(painter, m_state, layoutPlacement(m_state, rect, plotUnit()), hand, theme);
}

void PlacementPicture::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || m_state.empty())
        return Picture::mousePressEvent(event);
    const int node = layoutNow().nodeAt(event->position());
    choose(node);
    m_dragged = isMovable(node) ? node : -1;
    m_pointer = event->position();
    update();
}

void PlacementPicture::mouseMoveEvent(QMouseEvent* event)
{
    if (m_state.empty())
        return Picture::mouseMoveEvent(event);
    m_pointer = event->position();
    if (m_dragged >= 0) {
        update();
        return;
    }
    const int node = layoutNow().nodeAt(event->position());
    setCursor(isMovable(node) ? Qt::OpenHandCursor : Qt::ArrowCursor);
    m_told = node;
    emit hoverText(toolTipAt(event->position()));
}

/// In the band where it was, nothing was meant.
void PlacementPicture::mouseReleaseEvent(QMouseEvent* event)
{
    const int node = std::exchange(m_dragged, -1);
    update();
    if (node < 0)
        return Picture::mouseReleaseEvent(event);
    const int band = layoutNow().bandAt(event->position());
    if (band >= 0 && (band == 1) != m_state.nodes[std::size_t(node)].isOnHost)
        place(node, band == 1);
}

void PlacementPicture::leaveEvent(QEvent* event)
{
    m_told = -1;
    Picture::leaveEvent(event);
}

void PlacementPicture::keyPressEvent(QKeyEvent* event)
{
    const int count = int(m_state.nodes.size());
    if (count == 0)
        return Picture::keyPressEvent(event);
    switch (event->key()) {
    case Qt::Key_Right: return choose(std::min(count - 1, m_chosen + 1));
    case Qt::Key_Left: return choose(std::max(0, m_chosen - 1));
    case Qt::Key_Up: return place(m_chosen, false);
    case Qt::Key_Down: return place(m_chosen, true);
    case Qt::Key_Delete:
    case Qt::Key_Backspace: return place(m_chosen, std::nullopt);
    default: return Picture::keyPressEvent(event);
    }
}

} // namespace memscape

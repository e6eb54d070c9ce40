// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/blocks_view.h"

#include "app/pages/snapshot/snapshot_words.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double zoomStep = 0.8;
constexpr int stackLines = 10;

} // namespace

BlocksView::BlocksView(QWidget* parent)
    : SnapshotView(parent)
{
    setFocusPolicy(Qt::WheelFocus); // keys act on what the wheel has zoomed
    setAccessibleName(tr("Segments and blocks at the moment, by address"));
}

void BlocksView::shownChanged(bool isOtherDevice)
{
    if (isOtherDevice) {
        m_sight = {};
        m_layout.reset();
    }
    if (shown().moment != m_layoutMoment)
        m_layout.reset();
    m_layoutMoment = shown().moment;
    if (!m_layout)
        m_current.reset();
    setAccessibleDescription(isVisible() ? title() : QString());
}

const SnapshotLayout& BlocksView::blocksNow() const
{
    if (!m_layout)
        m_layout = shown().device ? shown().device->lifetimes().layoutAt(shown().moment) : SnapshotLayout();
    return *m_layout;
}

const BlocksChart& BlocksView::chartNow() const
{
    if (!m_chart)
        m_chart = layoutBlocks(blocksNow(), m_sight, QRectF(rect()));
    return *m_chart;
}

void BlocksView::setSight(const BlocksSight& sight)
{
    m_sight = sight;
    changed();
}

void BlocksView::setMarksFree(bool marks)
{
    m_marksFree = marks;
    changed();
}

QSize BlocksView::minimumSizeHint() const
{
    return {int(260 * plotUnit()), int(50 * plotUnit())};
}

QString BlocksView::hint() const
{
    return tr(
        "Hover: size, age, stack, neighbours. Wheel zooms, Esc shows all, Shift scrolls. F marks the free holes.");
}

QString BlocksView::shortcuts()
{
    return tr(
        "← → go from block to block, ↑ ↓ scroll, + − zoom, 0 or Esc shows all, F marks the free holes, Enter goes to "
        "the moment that made the block. The wheel zooms at the pointer, with Shift it scrolls.");
}

QString BlocksView::title() const
{
    if (!shown().device)
        return {};
    const SnapshotLayout& layout = blocksNow();
    return tr("%1 segments at %2: %3 free in holes, the largest %4")
        .arg(eventsText(layout.segments.size()), momentText(*shown().device, shown().moment),
             memoryText(double(layout.free), shown().bytes), memoryText(double(layout.largestFree), shown().bytes));
}

QString BlocksView::neighbourText(std::size_t block, const LaidSegment& segment) const
{
    const SnapshotLayout& layout = blocksNow();
    const auto one = [&](std::size_t index) {
        const LaidBlock& neighbour = layout.blocks[index];
        const QString size = memoryText(double(neighbour.size), shown().bytes);
        if (neighbour.isFree())
            return tr("free %1").arg(size);
        const QString name = lifetimeName(*shown().device, neighbour.lifetime);
        return (name.isEmpty() ? categoryName(shown().device->categories().of(neighbour.lifetime)) : name) + u' '
            + size;
    };
    const bool hasBefore = block > segment.firstBlock;
    const bool hasAfter = block + 1 < segment.firstBlock + segment.blockCount;
    return tr("before it %1, after it %2")
        .arg(hasBefore ? one(block - 1) : tr("the segment’s start"),
             hasAfter ? one(block + 1) : tr("the segment’s end"));
}

QString BlocksView::blockText(std::size_t block, std::size_t index) const
{
    const SnapshotLayout& layout = blocksNow();
    const LaidBlock& laid = layout.blocks[block];
    const LaidSegment& segment = layout.segments[index];
    const QString size = memoryText(double(laid.size), shown().bytes);
    QString text =
        laid.isFree() ? tr("free hole of %1").arg(size) : lifetimeText(*shown().device, laid.lifetime, shown().bytes);
    if (laid.isPending)
        text += tr(", freed but still used by a stream");
    text += u'\n' + neighbourText(block, segment);
    text += u'\n'
        + tr("at 0x%1, in a segment of %2 (%3%4)")
              .arg(qulonglong(laid.address), 0, 16)
              .arg(memoryText(double(segment.size), shown().bytes),
                   segment.isSmall ? tr("small pool") : tr("large pool"),
                   segment.isExpandable ? tr(", expandable") : QString());
    if (laid.isFree())
        return text;
    const StackId stack = shown().device->lifetimes()[laid.lifetime].stack;
    if (const QString lines = stackText(shown().device->snapshot(), stack, stackLines); !lines.isEmpty())
        text += u'\n' + lines;
    return text;
}

QString BlocksView::textAt(QPointF at) const
{
    if (!shown().device)
        return {};
    const BlockPiece* piece = chartNow().at(at);
    return piece == nullptr ? QString() : blockText(piece->block, piece->segment);
}

void BlocksView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    painter.save();
    painter.fillRect(rect, theme.background);
    if (shown().device) {
        const double u = plotUnit();
        const SnapshotLayout& layout = blocksNow();
        const BlocksChart own = rect == QRectF(this->rect()) ? BlocksChart() : layoutBlocks(layout, m_sight, rect);
        const BlocksChart& chart = rect == QRectF(this->rect()) ? chartNow() : own;
        painter.setClipRect(rect);
        const QColor hole = mix(theme.background, theme.textFaint, 0.14);
        for (const QRectF& frame : chart.frames)
            painter.fillRect(frame, hole);
        painter.setFont(plotFont(0.72));
        const QFontMetricsF metrics(painter.font());
        for (const BlockPiece& piece : chart.pieces) {
            const LaidBlock& block = layout.blocks[piece.block];
            QColor colour = hole;
            if (!block.isFree()) {
                colour = partColour(theme, partOf(shown().device->categories().of(block.lifetime)));
                colour = mix(theme.background, colour, block.isPending ? 0.45 : 1 - 0.13 * (block.lifetime % 3));
            } else if (m_marksFree) {
                colour = theme.highlightFill;
            }
            const double edge = piece.rect.width() > 3 ? 0.5 : 0;
            painter.fillRect(piece.rect.adjusted(edge, 0, -edge, 0), colour);
            const QString size = memoryText(double(block.size), shown().bytes);
            if (piece.rect.width() < 44 * u || piece.rect.height() < metrics.height())
                continue;
            QString words = block.isFree() ? tr("free %1").arg(size) : lifetimeName(*shown().device, block.lifetime);
            if (words.isEmpty() || metrics.horizontalAdvance(words) + 6 * u > piece.rect.width())
                words = size;
            if (metrics.horizontalAdvance(words) + 6 * u > piece.rect.width())
                continue;
            painter.setPen(textOn(colour));
            painter.drawText(piece.rect.adjusted(3 * u, 0, -3 * u, 0), Qt::AlignCenter, words);
        }
        painter.setPen(QPen(theme.border, 1));
        painter.setBrush(Qt::NoBrush);
        for (const QRectF& frame : chart.frames) {
            if (frame.width() > 4)
                painter.drawRect(frame);
        }
    }
    painter.restore();
}

void BlocksView::paintOver(QPainter& painter, const Theme& theme) const
{
    const BlockPiece* pointed = chartNow().at(pointer());
    painter.setBrush(Qt::NoBrush);
    for (const BlockPiece& piece : chartNow().pieces) {
        const bool isCurrent = hasFocus() && m_current == piece.block;
        if (!isCurrent && (pointed == nullptr || piece.block != pointed->block))
            continue;
        painter.setPen(QPen(isCurrent ? theme.highlight : theme.text, 1.6));
        painter.drawRect(piece.rect);
    }
}

void BlocksView::mousePressEvent(QMouseEvent* event)
{
    if (const BlockPiece* piece = shown().device ? chartNow().at(event->position()) : nullptr)
        choose(piece->block);
}

void BlocksView::mouseDoubleClickEvent(QMouseEvent*)
{
    setSight({});
}

void BlocksView::wheelEvent(QWheelEvent* event)
{
    event->accept();
    if (!shown().device)
        return;
    const int delta = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
    if (event->modifiers() & Qt::ShiftModifier)
        return setSight(scrolledBlocks(chartNow(), m_sight, delta > 0 ? -1 : 1));
    setSight(zoomedBlocks(chartNow(), m_sight, event->position(), std::pow(zoomStep, delta / 120.0)));
}

/// It stays in sight, and its words stand below the picture.
void BlocksView::choose(std::size_t block)
{
    const SnapshotLayout& layout = blocksNow();
    if (block >= layout.blocks.size())
        return;
    m_current = block;
    std::size_t segment = 0;
    while (layout.segments[segment].firstBlock + layout.segments[segment].blockCount <= block)
        ++segment;
    const double offset = double(layout.blocks[block].address - layout.segments[segment].address);
    const double row = std::floor(chartNow().rowOf(layout, segment, offset));
    const double inSight = std::floor((chartNow().area.height() + 1) / chartNow().rowPitch);
    if (row < m_sight.firstRow || row >= m_sight.firstRow + inSight)
        setSight(scrolledBlocks(chartNow(), m_sight, row - m_sight.firstRow - std::floor(inSight / 2)));
    const QString text = blockText(block, segment);
    setAccessibleDescription(text);
    emit hoverText(text.section(u'\n', 0, 0));
    update();
}

void BlocksView::keyPressEvent(QKeyEvent* event)
{
    if (!shown().device || blocksNow().blocks.empty())
        return QWidget::keyPressEvent(event);
    const QPointF middle = QRectF(rect()).center();
    const std::size_t last = blocksNow().blocks.size() - 1;
    switch (event->key()) {
    case Qt::Key_Left: return choose(m_current ? *m_current - std::min<std::size_t>(*m_current, 1) : last);
    case Qt::Key_Right: return choose(m_current ? std::min(*m_current + 1, last) : 0);
    case Qt::Key_Home: return choose(0);
    case Qt::Key_End: return choose(last);
    case Qt::Key_Up:
    case Qt::Key_Down: return setSight(scrolledBlocks(chartNow(), m_sight, event->key() == Qt::Key_Up ? -1 : 1));
    case Qt::Key_Plus:
    case Qt::Key_Equal: return setSight(zoomedBlocks(chartNow(), m_sight, middle, zoomStep));
    case Qt::Key_Minus: return setSight(zoomedBlocks(chartNow(), m_sight, middle, 1 / zoomStep));
    case Qt::Key_0:
    case Qt::Key_Escape: return setSight({});
    case Qt::Key_F: return setMarksFree(!m_marksFree);
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_current && !blocksNow().blocks[*m_current].isFree())
            emit momentWanted(shown().device->lifetimes()[blocksNow().blocks[*m_current].lifetime].begin);
        return;
    default: QWidget::keyPressEvent(event);
    }
}

} // namespace memscape

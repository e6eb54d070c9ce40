// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/snapshot_view.h"

#include "app/plots/plot_style.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

namespace memscape {

SnapshotView::SnapshotView(QWidget* parent)
    : QWidget(parent)
{
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
}

void SnapshotView::setShown(const SnapshotShown& shown)
{
    const bool isOther = shown.device != m_shown.device;
    const bool isStale = isOther || shown.byTime != m_shown.byTime || shown.bytes != m_shown.bytes
        || (followsMoment() && shown.moment != m_shown.moment);
    m_shown = shown;
    shownChanged(isOther);
    if (isStale)
        changed();
    update();
}

QSize SnapshotView::sizeHint() const
{
    return {int(760 * plotUnit()), int(320 * plotUnit())};
}

QSize SnapshotView::minimumSizeHint() const
{
    return {int(260 * plotUnit()), int(90 * plotUnit())};
}

void SnapshotView::changed()
{
    forgetLayout();
    m_canvas = {};
    update();
}

bool SnapshotView::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        QToolTip::showText(help->globalPos(), textAt(help->pos()), this);
        return true;
    }
    return QWidget::event(event);
}

void SnapshotView::paintEvent(QPaintEvent*)
{
    const Theme& theme = currentTheme();
    if (m_canvas.isNull() || m_canvas.size() != size() * devicePixelRatioF()) {
        m_canvas = QPixmap(size() * devicePixelRatioF());
        m_canvas.setDevicePixelRatio(devicePixelRatioF());
        QPainter canvas(&m_canvas);
        paintTo(canvas, QRectF(rect()), theme);
    }
    QPainter painter(this);
    painter.drawPixmap(0, 0, m_canvas);
    painter.setRenderHint(QPainter::Antialiasing);
    if (m_shown.device)
        paintOver(painter, theme);
    if (hasFocus()) {
        painter.setPen(QPen(theme.predicted, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    }
}

void SnapshotView::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange
        || event->type() == QEvent::StyleChange)
        changed();
}

void SnapshotView::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    changed();
}

void SnapshotView::mouseMoveEvent(QMouseEvent* event)
{
    m_pointer = event->position();
    emit hoverText(textAt(m_pointer).section(u'\n', 0, 0));
    update();
}

void SnapshotView::leaveEvent(QEvent* event)
{
    m_pointer = {-1, -1};
    emit hoverText({});
    update();
    QWidget::leaveEvent(event);
}

} // namespace memscape

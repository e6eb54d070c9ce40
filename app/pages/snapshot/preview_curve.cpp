// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/preview_curve.h"

#include "app/plots/plot_style.h"
#include "app/settings/theme.h"
#include "app/settings/words.h"

#include <QPainter>

#include <algorithm>
#include <utility>

namespace memscape {

PreviewCurve::PreviewCurve(QWidget* parent)
    : QWidget(parent)
{
    setObjectName(QStringLiteral("previewCurve"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void PreviewCurve::setColumns(std::vector<std::int64_t> columns, double share)
{
    m_columns = std::move(columns);
    m_share = std::clamp(share, 0.0, 1.0);
    m_highest = m_columns.empty() ? 0 : *std::ranges::max_element(m_columns);
    setAccessibleName(tr("First picture: bytes in blocks so far"));
    setAccessibleDescription(toQString(bytesText(double(m_highest))));
    update();
}

QSize PreviewCurve::sizeHint() const
{
    return {int(600 * plotUnit()), int(130 * plotUnit())};
}

void PreviewCurve::paintEvent(QPaintEvent*)
{
    const Theme& theme = currentTheme();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(theme.textDim);
    const int line = painter.fontMetrics().height();
    painter.drawText(QRect(0, 0, width(), line), Qt::AlignLeft,
                     tr("bytes in blocks so far: up to %1").arg(toQString(bytesText(double(m_highest)))));
    const QRectF field = QRectF(rect()).adjusted(0, line + 4 * plotUnit(), 0, -1);
    painter.setPen(QPen(theme.grid, 1));
    painter.drawLine(field.bottomLeft(), field.bottomRight());
    if (m_highest <= 0)
        return;
    QPolygonF shape{field.bottomLeft()};
    for (std::size_t i = 0; i < m_columns.size(); ++i) {
        const double y = field.bottom() - field.height() * double(m_columns[i]) / double(m_highest);
        for (const std::size_t edge : {i, i + 1})
            shape << QPointF(field.left() + field.width() * m_share * double(edge) / double(m_columns.size()), y);
    }
    shape << QPointF(field.left() + field.width() * m_share, field.bottom());
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.measured);
    painter.drawPolygon(shape);
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// Pens and marks that the panels of the batch picture share.
#pragma once

#include "app/settings/theme.h"

#include <QPainter>

#include <vector>

namespace memscape {

QPen dashedPen(const QColor& colour, double width);
void paintLine(QPainter& painter, const std::vector<QPointF>& points, const QPen& pen);
/// Text with its own colour behind it, kept inside `within`.
void paintTag(QPainter& painter, QRectF box, const QRectF& within, const QColor& back, const QColor& ink,
              const QString& text);
void paintStar(QPainter& painter, const QPointF& centre, double radius, const QColor& colour);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/verdict.h"

#include <QCoreApplication>
#include <QPainter>
#include <QWidget>

#include <algorithm>

namespace memscape {

QString verdictWord(ClaimVerdict verdict)
{
    switch (verdict) {
    case ClaimVerdict::Holds: return QCoreApplication::translate("memscape", "holds");
    case ClaimVerdict::HoldsWhen: return QCoreApplication::translate("memscape", "holds when …");
    case ClaimVerdict::Fails: return QCoreApplication::translate("memscape", "does not hold");
    case ClaimVerdict::Untested: break;
    }
    return QCoreApplication::translate("memscape", "cannot be tested here");
}

const char* verdictTone(ClaimVerdict verdict)
{
    switch (verdict) {
    case ClaimVerdict::Holds: return "good";
    case ClaimVerdict::HoldsWhen: return "warning";
    case ClaimVerdict::Fails: return "bad";
    case ClaimVerdict::Untested: break;
    }
    return "dim";
}

QColor verdictColour(ClaimVerdict verdict, const Theme& theme)
{
    switch (verdict) {
    case ClaimVerdict::Holds: return theme.good;
    case ClaimVerdict::HoldsWhen: return theme.warning;
    case ClaimVerdict::Fails: return theme.bad;
    case ClaimVerdict::Untested: break;
    }
    return theme.textFaint;
}

void paintVerdict(QPainter& painter, const QRectF& rect, ClaimVerdict verdict, const Theme& theme)
{
    const double side = std::min(rect.width(), rect.height());
    const QRectF disc(rect.center() - QPointF(side, side) / 2, QSizeF(side, side));
    const auto at = [&](double x, double y) { return disc.topLeft() + QPointF(x, y) * side; };
    const QColor colour = verdictColour(verdict, theme);
    QPen line(theme.background, side * 0.12, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    if (verdict == ClaimVerdict::Holds || verdict == ClaimVerdict::Fails)
        painter.drawEllipse(disc);
    if (verdict == ClaimVerdict::HoldsWhen)
        painter.drawPie(disc, 90 * 16, 180 * 16);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(line);
    if (verdict == ClaimVerdict::Holds)
        painter.drawPolyline(QPolygonF({at(0.27, 0.53), at(0.44, 0.69), at(0.74, 0.34)}));
    if (verdict == ClaimVerdict::Fails) {
        painter.drawLine(at(0.33, 0.33), at(0.67, 0.67));
        painter.drawLine(at(0.67, 0.33), at(0.33, 0.67));
    }
    if (verdict == ClaimVerdict::HoldsWhen || verdict == ClaimVerdict::Untested) {
        line.setColor(colour);
        line.setWidthF(side * 0.1);
        if (verdict == ClaimVerdict::Untested)
            line.setDashPattern({1.6, 2.2});
        painter.setPen(line);
        const double inset = side * 0.05;
        painter.drawEllipse(disc.adjusted(inset, inset, -inset, -inset));
    }
    painter.restore();
}

QPixmap verdictPixmap(ClaimVerdict verdict, const QWidget& beside)
{
    const int side = beside.fontMetrics().height();
    QPixmap pixmap(QSize(side, side) * beside.devicePixelRatioF());
    pixmap.setDevicePixelRatio(beside.devicePixelRatioF());
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    paintVerdict(painter, QRectF(1, 1, side - 2, side - 2), verdict, currentTheme());
    return pixmap;
}

} // namespace memscape

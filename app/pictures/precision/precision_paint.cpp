// SPDX-License-Identifier: GPL-3.0-or-later
// How bits and gradients are drawn.
#include "app/pictures/precision/precision_picture.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QString powerText(int power)
{
    static const QString digits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
    QString text = power < 0 ? QStringLiteral("2⁻") : QStringLiteral("2");
    for (const QChar c : QString::number(std::abs(power)))
        text += digits[c.digitValue()];
    return text;
}

QColor colourOf(BitPart part, const Theme& theme)
{
    switch (part) {
    case BitPart::Sign: return theme.bad;
    case BitPart::Exponent: return theme.series(1);
    case BitPart::Mantissa: return theme.predicted;
    case BitPart::Unused: break;
    }
    return theme.empty;
}

void paintHandle(QPainter& painter, double x, const QRectF& area, const Theme& theme, double unit)
{
    painter.setPen(QPen(theme.highlight, 2 * unit));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.highlightFill);
    painter.drawEllipse(QPointF(x, area.center().y()), 5 * unit, 5 * unit);
}

} // namespace

void PrecisionPicture::paintLegend(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const
{
    painter.setFont(plotFont(0.82));
    const QFontMetricsF metrics(painter.font());
    double right = layout.head.right();
    const std::pair<BitPart, QString> parts[] = {
        {BitPart::Mantissa, tr("mantissa")}, {BitPart::Exponent, tr("exponent")}, {BitPart::Sign, tr("sign")}};
    for (const auto& [part, word] : parts) {
        const double width = metrics.horizontalAdvance(word), side = 9 * layout.unit;
        painter.setPen(theme.textDim);
        painter.drawText(QRectF(right - width, layout.head.top(), width, layout.head.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, word);
        right -= width + side + 4 * layout.unit;
        painter.fillRect(QRectF(right, layout.head.center().y() - side / 2, side, side),
                         mix(theme.background, colourOf(part, theme), 0.92));
        right -= 14 * layout.unit;
    }
}

void PrecisionPicture::paintLine(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const
{
    const double u = layout.unit;
    painter.setFont(plotFont(0.75));
    const QRectF& line = layout.line;
    const double y = line.top() + 7 * u;
    painter.setPen(QPen(theme.border, 1.5 * u));
    painter.drawLine(QPointF(line.left(), y), QPointF(line.right(), y));
    painter.setPen(theme.textFaint);
    for (int power = -40; power <= 40; power += 10) {
        const double x = layout.lineX(power);
        painter.drawLine(QPointF(x, y - 3 * u), QPointF(x, y + 3 * u));
        painter.drawText(QRectF(x - 24 * u, y + 3 * u, 48 * u, 13 * u), Qt::AlignCenter, powerText(power));
    }
    painter.setPen(theme.textDim);
    painter.drawText(QRectF(layout.head.left(), line.top(), 66 * u, 14 * u), Qt::AlignLeft | Qt::AlignVCenter,
                     tr("the value"));
    if (m_asked.value != 0)
        paintHandle(painter, layout.lineX(std::log2(std::fabs(m_asked.value))),
                    QRectF(line.left(), y - 6 * u, line.width(), 12 * u), theme, u);
}

void PrecisionPicture::paintRow(QPainter& painter, const FormatRow& row, const Theme& theme, double unit) const
{
    const NumberFormat& format = numberFormat(row.format);
    const bool isChosen = row.format == m_asked.format;
    const std::uint64_t bits = encode(format, m_asked.value);
    if (isChosen)
        painter.fillRect(row.area.adjusted(-4 * unit, 0, 4 * unit, 0), mix(theme.background, theme.highlight, 0.14));
    painter.setFont(plotFont(0.82, isChosen));
    painter.setPen(isChosen ? theme.text : theme.textDim);
    painter.drawText(row.label, Qt::AlignLeft | Qt::AlignVCenter,
                     QString::fromUtf8(format.label.data(), qsizetype(format.label.size())));
    for (const BitCell& cell : row.cells) {
        const QColor colour = colourOf(cell.part, theme);
        const bool isSet = cell.bit >= 0 && (bits >> cell.bit & 1) != 0;
        const QRectF box = cell.rect.adjusted(0.5, 1, -0.5, -1);
        painter.fillRect(box, mix(theme.background, colour, isSet ? 0.92 : cell.part == BitPart::Unused ? 0.15 : 0.22));
    }
    const double stored = rounded(format, m_asked.value);
    const double error = m_asked.value == 0 ? 0 : std::fabs((stored - m_asked.value) / m_asked.value);
    QString text = QString::fromStdString(quantityText(stored, Unit::One, ByteStyle::Binary, 7));
    if (std::isnan(stored))
        text = tr("not a number");
    else if (std::isinf(stored))
        text = stored > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
    else if (stored == 0 && m_asked.value != 0)
        text = tr("0: lost");
    else if (error > 0)
        text += QStringLiteral("  ")
            + tr("off %1").arg(error < 1e-4 ? QString::number(error, 'g', 2)
                                            : QString::fromStdString(percentText(error, 2)));
    const bool isLost = !std::isfinite(stored) || (stored == 0 && m_asked.value != 0);
    painter.setPen(isLost ? theme.bad : isChosen ? theme.text : theme.textDim);
    const QFontMetricsF metrics(painter.font());
    painter.drawText(row.text, Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(text, Qt::ElideRight, row.text.width()));
}

void PrecisionPicture::paintRange(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const
{
    const NumberFormat& format = numberFormat(m_asked.format);
    const auto x = [&](double magnitude) {
        return magnitude > 0 ? layout.barsX(std::log2(magnitude)) : layout.bars.left();
    };
    const double zero = x(format.underflowThreshold()), normal = x(format.smallestNormal());
    const double over = x(format.overflowThreshold());
    const QRectF& bars = layout.bars;
    const auto zone = [&](double left, double right, const QColor& colour, double share, const QString& words) {
        if (right - left < 1)
            return;
        const QRectF area(left, bars.top(), right - left, bars.height());
        painter.fillRect(area, mix(theme.background, colour, share));
        painter.setFont(plotFont(0.72));
        painter.setPen(theme.textDim);
        if (QFontMetricsF(painter.font()).horizontalAdvance(words) < area.width() - 4)
            painter.drawText(area.adjusted(2, 1, -2, 0), Qt::AlignTop | Qt::AlignHCenter, words);
    };
    zone(bars.left(), zero, theme.bad, 0.22, tr("become zero"));
    zone(zero, normal, theme.warning, 0.20, tr("fewer bits"));
    zone(normal, over, theme.good, 0.08, tr("kept"));
    zone(over, bars.right(), theme.bad, 0.22, tr("overflow"));
}

void PrecisionPicture::paintBars(QPainter& painter, const PrecisionLayout& layout, const Theme& theme,
                                 const MagnitudeHistogram& histogram, bool isMeasured) const
{
    const double shift = std::log2(m_asked.lossScale);
    double most = 1e-6;
    for (const double share : shown().shares)
        most = std::max(most, share);
    const double height = layout.bars.height() - 14 * layout.unit;
    painter.setPen(Qt::NoPen);
    QPolygonF outline;
    for (std::size_t i = 0; i < histogram.shares.size(); ++i) {
        const double low = histogram.first + double(i) + shift;
        if (low + 1 <= PrecisionLayout::barsFirst || low >= PrecisionLayout::barsLast)
            continue;
        const double left = layout.barsX(low), right = layout.barsX(low + 1);
        const double top = layout.bars.bottom() - std::min(1.0, histogram.shares[i] / most) * height;
        if (isMeasured)
            painter.fillRect(QRectF(QPointF(left + 0.5, top), QPointF(right - 0.5, layout.bars.bottom())),
                             theme.measured);
        outline << QPointF(left, top) << QPointF(right, top);
    }
    if (isMeasured)
        return;
    painter.setPen(QPen(theme.predicted, 1.6 * layout.unit, Qt::DashLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(outline);
}

void PrecisionPicture::paintCaption(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const
{
    const NumberFormat& format = numberFormat(m_asked.format);
    const QString what = m_measured ? tr("measured gradients") : tr("assumed gradients");
    const QString lead = tr("%1 × %2 in %3")
                             .arg(what, QString::fromStdString(numberText(m_asked.lossScale)),
                                  QString::fromUtf8(format.label.data(), qsizetype(format.label.size())));
    painter.setFont(plotFont(0.85, true));
    painter.setPen(theme.text);
    painter.drawText(layout.caption, Qt::AlignLeft | Qt::AlignVCenter, lead);
    const double used = QFontMetricsF(painter.font()).horizontalAdvance(lead) + 20 * layout.unit;
    painter.setFont(plotFont(0.85));
    const LostShares shares = lost();
    painter.setPen(shares.underflow + shares.overflow > 0.01 ? theme.bad : theme.textDim);
    const QFontMetricsF metrics(painter.font());
    painter.drawText(layout.caption, Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(lostText(), Qt::ElideRight, std::max(0.0, layout.caption.width() - used)));
}

void PrecisionPicture::paintAxis(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const
{
    const double u = layout.unit;
    painter.setFont(plotFont(0.72));
    painter.setPen(theme.textFaint);
    for (int power = -50; power <= 20; power += 10) {
        const double x = layout.barsX(power);
        painter.drawLine(QPointF(x, layout.bars.bottom()), QPointF(x, layout.bars.bottom() + 3 * u));
        painter.drawText(QRectF(x - 24 * u, layout.axis.top(), 48 * u, layout.axis.height()), Qt::AlignCenter,
                         powerText(power));
    }
}

void PrecisionPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    const PrecisionLayout layout = layoutPrecision(rect, plotUnit());
    painter.setFont(plotFont(1.1, true));
    painter.setPen(theme.text);
    painter.drawText(layout.head, Qt::AlignLeft | Qt::AlignVCenter, title());
    paintLegend(painter, layout, theme);
    paintLine(painter, layout, theme);
    for (const FormatRow& row : layout.rows)
        paintRow(painter, row, theme, layout.unit);
    paintRange(painter, layout, theme);
    if (m_measured)
        paintBars(painter, layout, theme, *m_measured, true);
    paintBars(painter, layout, theme, m_assumed, false);
    paintAxis(painter, layout, theme);
    paintCaption(painter, layout, theme);
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/precision/precision_layout.h"

#include <algorithm>

namespace memscape {

namespace {

double along(const QRectF& rect, double first, double last, double log2)
{
    return rect.left() + (log2 - first) / (last - first) * rect.width();
}

double backwards(const QRectF& rect, double first, double last, double x)
{
    return first + (x - rect.left()) / rect.width() * (last - first);
}

BitPart partOf(const NumberFormat& format, int bit)
{
    if (bit == format.bits() - 1)
        return BitPart::Sign;
    return bit >= format.mantissaBits ? BitPart::Exponent : BitPart::Mantissa;
}

/// Cells from the sign on; FP64 sets their width, and the longest exponent where mantissas begin.
void placeCells(FormatRow& row, const QRectF& area, double width)
{
    const NumberFormat& format = numberFormat(row.format);
    const int places = std::max(format.bits(), format.bytes * 8);
    for (int i = 0; i < places; ++i) {
        const int bit = format.bits() - 1 - i;
        const QRectF rect(area.left() + i * width, area.top(), width, area.height());
        row.cells.push_back({rect, std::max(bit, -1), bit < 0 ? BitPart::Unused : partOf(format, bit)});
    }
}

} // namespace

double PrecisionLayout::lineX(double log2) const
{
    return along(line, lineFirst, lineLast, std::clamp(log2, lineFirst, lineLast));
}
double PrecisionLayout::lineAt(double x) const
{
    return std::clamp(backwards(line, lineFirst, lineLast, x), lineFirst, lineLast);
}
double PrecisionLayout::barsX(double log2) const
{
    return along(bars, barsFirst, barsLast, std::clamp(log2, barsFirst, barsLast));
}
double PrecisionLayout::barsAt(double x) const
{
    return std::clamp(backwards(bars, barsFirst, barsLast, x), barsFirst, barsLast);
}

PrecisionLayout layoutPrecision(const QRectF& rect, double unit)
{
    PrecisionLayout layout;
    layout.unit = unit;
    const double left = rect.left() + 12 * unit, width = rect.width() - 24 * unit;
    layout.head = QRectF(left, rect.top() + 4 * unit, width, 22 * unit);
    layout.line = QRectF(left + 70 * unit, layout.head.bottom() + 2 * unit, width - 90 * unit, 22 * unit);
    const double below = rect.bottom() - layout.line.bottom() - 6 * unit;
    const auto& formats = numberFormats();
    // Two thirds for the bits, but a row is never higher than it needs to be.
    const double rowHeight = std::clamp(below * 0.56 / double(formats.size()), 9 * unit, 19 * unit);
    const double textWidth = std::min(190 * unit, width * 0.28);
    const double cellWidth = std::max(1.0, (width - 70 * unit - textWidth) / 64);
    double y = layout.line.bottom() + 4 * unit;
    for (const NumberFormat& format : formats) {
        FormatRow row;
        row.format = format.format;
        row.area = QRectF(left, y, width, rowHeight);
        row.label = QRectF(left, y, 68 * unit, rowHeight);
        placeCells(row, QRectF(left + 70 * unit, y + 1, 0, rowHeight - 2), cellWidth);
        const double bits = row.cells.empty() ? row.label.right() : row.cells.back().rect.right() + 6 * unit;
        row.text = QRectF(bits, y, std::max(textWidth, left + width - bits), rowHeight);
        row.text.moveRight(left + width);
        layout.rows.push_back(std::move(row));
        y += rowHeight;
    }
    layout.caption = QRectF(left, y + 4 * unit, width, 16 * unit);
    layout.axis = QRectF(left, rect.bottom() - 18 * unit, width, 15 * unit);
    layout.bars = QRectF(left + 10 * unit, layout.caption.bottom() + 2 * unit, width - 20 * unit,
                         std::max(8.0, layout.axis.top() - layout.caption.bottom() - 4 * unit));
    return layout;
}

} // namespace memscape

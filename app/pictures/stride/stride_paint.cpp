// SPDX-License-Identifier: GPL-3.0-or-later
// How the lanes and the memory under them are drawn.
#include "app/pictures/stride/stride_picture_private.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

void paintArrow(QPainter& painter, QPointF tip, QPointF from, double size)
{
    const double angle = std::atan2(tip.y() - from.y(), tip.x() - from.x());
    QPainterPath path(tip);
    path.lineTo(tip - QPointF(size * std::cos(angle - 0.45), size * std::sin(angle - 0.45)));
    path.lineTo(tip - QPointF(size * std::cos(angle + 0.45), size * std::sin(angle + 0.45)));
    path.closeSubpath();
    painter.fillPath(path, painter.pen().color());
}

/// One touched cell: byte positions inside its granule as pixels, a slot for each element.
class CellSlots
{
public:
    CellSlots(const QRectF& box, const WarpAccess& access, const StrideCase& walk)
        : m_box(box)
        , m_sector(static_cast<double>(access.sizes.sector))
        , m_width(static_cast<double>(walk.elementBytes))
        , m_first(std::fmod(static_cast<double>(walk.offsetBytes), m_width))
    { }

    double slotPixels() const { return m_box.width() * m_width / m_sector; }

    QRectF part(double begin, double end) const
    {
        const double u = plotUnit();
        const double left = m_box.left() + 1.5 + begin / m_sector * (m_box.width() - 3);
        const double right = m_box.left() + 1.5 + end / m_sector * (m_box.width() - 3);
        const double seam = right - left > 3 ? 0.5 : 0;
        return QRectF(left + seam, m_box.top() + 4 * u, std::max(0.8, right - left - 2 * seam), m_box.height() - 8 * u);
    }

    /// `paint(rect, begin)` for every slot of the cell; the first and last may lie half outside.
    template <typename Paint> void each(Paint paint) const
    {
        for (double begin = m_first > 0 ? m_first - m_width : 0; begin < m_sector; begin += m_width)
            paint(part(std::max(0.0, begin), std::min(m_sector, begin + m_width)), begin);
    }

    /// Elements between `begin` and `end`, drawn apart while there is room to see it.
    void fill(QPainter& painter, double begin, double end, const QColor& colour) const
    {
        if (slotPixels() < 4) {
            painter.fillRect(part(begin, end), colour);
            return;
        }
        for (double at = begin; at < end;) {
            const double next = m_first + (std::floor((at - m_first) / m_width + 1e-9) + 1) * m_width;
            painter.fillRect(part(at, std::min(next, end)), colour);
            at = next;
        }
    }

private:
    QRectF m_box;
    double m_sector, m_width;
    double m_first; // where the first whole element of a cell begins
};

} // namespace

void StridePicture::paintHead(QPainter& painter, const Layout& layout, const Theme& theme) const
{
    const QFont bold = plotFont(1.1, true);
    painter.setFont(bold);
    painter.setPen(theme.text);
    painter.drawText(layout.head, Qt::AlignLeft | Qt::AlignVCenter, title());
    if (!m_access)
        return;
    const QString caption = m_gpu
        ? tr("each cell = %1-byte sector · each group = %2-byte line")
              .arg(m_access->sizes.sector)
              .arg(m_access->sizes.line)
        : tr("each cell = %1-byte cache line · each group = 4 KiB page").arg(m_access->sizes.sector);
    const QFont small = plotFont(0.85);
    const double room = layout.head.width() - QFontMetricsF(bold).horizontalAdvance(title()) - 24 * plotUnit();
    painter.setFont(small);
    painter.setPen(theme.textDim);
    painter.drawText(layout.head, Qt::AlignRight | Qt::AlignVCenter,
                     QFontMetricsF(small).elidedText(caption, Qt::ElideRight, std::max(0.0, room)));
}

void StridePicture::paintCell(QPainter& painter, const StrideCell& cell, const Theme& theme, const QColor& colour) const
{
    const double u = plotUnit();
    const QRectF box = cell.rect.adjusted(0.8, 0, -0.8, 0);
    if (cell.kind == StrideCell::Kind::Gap) {
        painter.setPen(theme.textFaint);
        painter.setFont(plotFont(0.85));
        painter.drawText(cell.rect, Qt::AlignCenter, QStringLiteral("…"));
        return;
    }
    const bool touched = cell.kind == StrideCell::Kind::Touched;
    painter.setPen(QPen(theme.border, 1, touched ? Qt::SolidLine : Qt::DotLine));
    painter.setBrush(touched ? QBrush(mix(theme.background, theme.empty, 0.55)) : QBrush(Qt::NoBrush));
    painter.drawRoundedRect(box, 2.5 * u, 2.5 * u);
    if (!touched)
        return;
    painter.setPen(Qt::NoPen);
    const CellSlots cells(box, *m_access, m_walk);
    // What was fetched for nothing; of a structure, its other fields.
    const bool fields = m_walk.pattern == Pattern::Aos && m_walk.stride > 1 && m_walk.stride <= 8;
    if (cells.slotPixels() >= 2.5 || fields) {
        cells.each([&](const QRectF& rect, double begin) {
            painter.fillRect(rect, fields ? fieldColour(cell, begin, theme) : theme.empty);
        });
    }
    for (const ByteRange& used : m_access->sectors[cell.sector].used)
        cells.fill(painter, static_cast<double>(used.begin), static_cast<double>(used.end), colour);
}

/// Of the field of a structure that stands at byte `begin` of a cell.
QColor StridePicture::fieldColour(const StrideCell& cell, double begin, const Theme& theme) const
{
    const double at = static_cast<double>(cell.address) + begin - static_cast<double>(m_walk.offsetBytes);
    const auto element = std::llround(at / static_cast<double>(m_walk.elementBytes));
    const auto field = static_cast<int>(element) % static_cast<int>(m_walk.stride);
    return field == 0 ? theme.empty : mix(theme.background, theme.series(field - 1), 0.38);
}

void StridePicture::paintStrip(QPainter& painter, const StrideStrip& strip, const Theme& theme, const QColor& colour,
                               const Hover& hover, bool labelled) const
{
    const double u = plotUnit();
    const QFont font = plotFont(0.75);
    const QFontMetricsF metrics(font);
    double labelEnd = -1e9;
    for (std::size_t i = 0; i < strip.cells.size(); ++i) {
        const StrideCell& cell = strip.cells[i];
        paintCell(painter, cell, theme, colour);
        if (static_cast<int>(i) == hover.cell) {
            painter.setPen(QPen(theme.highlight, 1.5));
            painter.setBrush(Qt::NoBrush);
            painter.drawRoundedRect(cell.rect.adjusted(-0.5, -1.5, 0.5, 1.5), 3 * u, 3 * u);
        }
        if (!cell.beginsLine)
            continue;
        painter.setPen(QPen(theme.textFaint, 1));
        painter.drawLine(QPointF(cell.rect.left() - 1, cell.rect.top() - 4 * u),
                         QPointF(cell.rect.left() - 1, cell.rect.bottom() + 5 * u));
        const QString address = cell.address < 100000
            ? tr("%1 B").arg(cell.address)
            : QString::fromStdString(quantityText(static_cast<double>(cell.address), Unit::Byte, byteStyle(), 3));
        const double room = strip.cells.back().rect.right() - cell.rect.left();
        if (labelled && cell.rect.left() > labelEnd && metrics.horizontalAdvance(address) <= room) {
            painter.setFont(font);
            painter.drawText(QPointF(cell.rect.left() + 2, cell.rect.bottom() + 4 * u + metrics.ascent()), address);
            labelEnd = cell.rect.left() + metrics.horizontalAdvance(address) + 10 * u;
        }
    }
}

void StridePicture::paintConnection(QPainter& painter, const Layout& layout, const Theme& theme,
                                    const Connection& connection, bool lit) const
{
    const StrideStrip& strip = *connection.strip;
    const QPointF centre = layout.lanes.centres[connection.lane];
    const QRectF row = strip.cells.front().rect;
    const bool above = connection.above;
    const QPointF element(strip.targets[connection.lane], above ? row.bottom() + 1 : row.top() - 1);
    const QPointF edge = centre + QPointF(0, above ? -layout.lanes.radius : layout.lanes.radius);
    const QColor own = connection.writes ? theme.series(0) : theme.predicted;
    painter.setPen(QPen(lit ? theme.highlight : mix(theme.background, own, 0.6), lit ? 1.8 : 1.0));
    painter.drawLine(edge, element);
    const double size = 5 * plotUnit();
    connection.writes ? paintArrow(painter, element, edge, size) : paintArrow(painter, edge, element, size);
}

void StridePicture::paintLanes(QPainter& painter, const Layout& layout, const Theme& theme, const Hover& hover) const
{
    const double radius = layout.lanes.radius;
    const std::size_t count = layout.lanes.centres.size();
    for (std::size_t lane = 0; lane < count; ++lane) {
        const bool lit = static_cast<int>(lane) == hover.lane;
        if (layout.source)
            paintConnection(painter, layout, theme, {&*layout.source, lane, true, false}, lit);
        const bool writes = m_walk.operation != Operation::Read;
        paintConnection(painter, layout, theme, {&layout.strip, lane, false, writes}, lit);
    }
    QFont font = plotFont(0.72, true);
    font.setPixelSize(std::max(5, std::min(font.pixelSize(), static_cast<int>(radius * 1.05))));
    painter.setFont(font);
    const QColor plain = m_walk.operation == Operation::Write ? theme.series(0) : theme.predicted;
    for (std::size_t lane = 0; lane < count; ++lane) {
        const QPointF centre = layout.lanes.centres[lane];
        const bool lit = static_cast<int>(lane) == hover.lane;
        painter.setPen(Qt::NoPen);
        painter.setBrush(lit ? theme.highlightFill : plain);
        painter.drawEllipse(centre, radius, radius);
        painter.setPen(lit ? theme.onHighlight : theme.onAccent);
        if (radius >= 5)
            painter.drawText(QRectF(centre - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius)), Qt::AlignCenter,
                             QString::number(lane));
    }
}

// What was fetched for nothing, in as many words as there is room for.
QString StridePicture::wasteText(const Layout& layout, const QFontMetricsF& metrics, double room) const
{
    const QString wasted = bytes(static_cast<double>(m_access->fetchedBytes - m_access->usedBytes));
    const QString share = QString::fromStdString(percentText(m_access->efficiency(), 3));
    const QString brief = tr("efficiency %1").arg(share);
    const QString whole = tr("%1 wasted → %2").arg(wasted, brief);
    if (metrics.horizontalAdvance(whole) > room)
        return brief;
    QString more = whole;
    if (m_walk.operation == Operation::Copy)
        more += tr(", in each array");
    if (layout.strip.commonGap > 0)
        more += tr(" · gaps of %1").arg(bytes(static_cast<double>(layout.strip.commonGap)));
    return metrics.horizontalAdvance(more) > room ? whole : more;
}

void StridePicture::paintFoot(QPainter& painter, const Layout& layout, const Theme& theme, bool onScreen) const
{
    const double u = plotUnit();
    double x = layout.foot.left() + 8 * u;
    const double end = onScreen ? layout.chips[0].left() - 12 * u : layout.foot.right();
    // What has no room is left out: the words that come first say the most.
    const auto say = [&](const QString& text, const QColor& colour, bool bold) {
        const QFont font = plotFont(0.9, bold);
        const double width = QFontMetricsF(font).horizontalAdvance(text);
        if (x + width > end)
            return;
        painter.setFont(font);
        painter.setPen(colour);
        painter.drawText(QRectF(x, layout.foot.top(), width + 1, layout.foot.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, text);
        x += width + 18 * u;
    };
    if (m_access) {
        const QString fetched = bytes(static_cast<double>(m_access->fetchedBytes));
        const QString used = bytes(static_cast<double>(m_access->usedBytes));
        const QFontMetricsF strong(plotFont(0.9, true));
        const QString both = tr("%1 fetched").arg(fetched), part = tr("%1 used").arg(used);
        if (x + strong.horizontalAdvance(both) + 18 * u + strong.horizontalAdvance(part) > end) {
            say(tr("%1 of %2").arg(used, fetched), theme.predictedText, true);
        } else {
            say(both, theme.text, true);
            say(part, theme.predictedText, true);
        }
        say(wasteText(layout, QFontMetricsF(plotFont(0.9)), end - x), theme.textDim, false);
    }
    if (onScreen)
        paintChips(painter, layout, theme);
}

void StridePicture::paintChips(QPainter& painter, const Layout& layout, const Theme& theme) const
{
    painter.setFont(plotFont(0.88));
    for (std::size_t i = 0; i < warpOperations.size(); ++i) {
        const bool chosen = warpOperations[i] == m_walk.operation;
        const QRectF chip = layout.chips[i];
        painter.setPen(QPen(chosen ? theme.predicted : theme.border, 1.2));
        painter.setBrush(chosen ? theme.raised : theme.background);
        painter.drawRoundedRect(chip, chip.height() / 2, chip.height() / 2);
        painter.setPen(chosen ? theme.text : theme.textDim);
        painter.drawText(chip, Qt::AlignCenter, warpOperationWord(warpOperations[i]));
    }
}

void StridePicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    const Hover hover = isScreen ? m_hover : Hover();
    const Layout layout = layoutFor(rect);
    paintHead(painter, layout, theme);
    if (m_access) {
        const QColor write = theme.series(0);
        paintLanes(painter, layout, theme, hover);
        if (layout.source)
            paintStrip(painter, *layout.source, theme, theme.predicted, {},
                       false); // arrows stand there
        paintStrip(painter, layout.strip, theme, m_walk.operation == Operation::Read ? theme.predicted : write, hover,
                   true);
    } else {
        painter.setFont(plotFont());
        painter.setPen(theme.textDim);
        painter.drawText(rect.adjusted(20, 30, -20, -40), Qt::AlignCenter | Qt::TextWordWrap, m_problem);
    }
    paintFoot(painter, layout, theme, isScreen);
}

} // namespace memscape

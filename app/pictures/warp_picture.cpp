// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/warp_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiments/stride.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>

#include <algorithm>
#include <array>
#include <cmath>

namespace memscape {

namespace {

constexpr std::array<Operation, 3> operations{Operation::Read, Operation::Write, Operation::Copy};

QString operationWord(Operation operation)
{
    switch (operation) {
    case Operation::Read:
        return WarpPicture::tr("read");
    case Operation::Write:
        return WarpPicture::tr("write");
    case Operation::Copy:
        break;
    }
    return WarpPicture::tr("copy");
}

void paintArrow(QPainter& painter, QPointF tip, QPointF from, double size)
{
    const double angle = std::atan2(tip.y() - from.y(), tip.x() - from.x());
    QPainterPath path(tip);
    path.lineTo(tip - QPointF(size * std::cos(angle - 0.45), size * std::sin(angle - 0.45)));
    path.lineTo(tip - QPointF(size * std::cos(angle + 0.45), size * std::sin(angle + 0.45)));
    path.closeSubpath();
    painter.fillPath(path, painter.pen().color());
}

} // namespace

struct WarpPicture::Layout
{
    QRectF head, foot;
    LaneRow lanes;
    QRectF laneArea;
    std::optional<WarpStrip> source; ///< above the lanes, of a copy
    WarpStrip strip; ///< below them
    std::array<QRectF, operations.size()> chips;
};

WarpPicture::WarpPicture(QWidget* parent)
    : Picture(parent)
{
    setAccessibleName(tr("Lanes and memory"));
}

void WarpPicture::setState(const Experiment&, const Device& device, const Parameters& parameters,
                           const Prediction*, const Measurement*)
{
    m_gpu = device.isGpu();
    m_deviceName = device.name;
    m_element = QString::fromStdString(parameters.choice("element"));
    m_access.reset();
    const auto walk = strideCase(parameters);
    if (!walk) {
        m_problem = QString::fromStdString(walk.error().text());
    } else {
        m_walk = *walk;
        // A host fetches whole cache lines; its groups are pages.
        const GranuleSizes sizes = m_gpu
            ? GranuleSizes{static_cast<std::uint64_t>(device.sectorBytes),
                           static_cast<std::uint64_t>(device.lineBytes)}
            : GranuleSizes{static_cast<std::uint64_t>(device.lineBytes), 4096};
        const auto access = firstRequest(m_walk, sizes);
        if (access)
            m_access = *access;
        else
            m_problem = QString::fromStdString(access.error().text());
    }
    m_hover = {};
    setAccessibleDescription(summary());
    update();
}

QString WarpPicture::title() const
{
    const QString subject = m_gpu ? tr("One warp") : tr("One core, 32 accesses");
    switch (m_walk.pattern) {
    case Pattern::Contiguous:
        return tr("%1, neighbours (%2)").arg(subject, m_element);
    case Pattern::Random:
        return tr("%1, random elements (%2)").arg(subject, m_element);
    case Pattern::Misaligned:
        return tr("%1, neighbours from byte %3 on (%2)")
            .arg(subject, m_element)
            .arg(m_walk.offsetBytes);
    case Pattern::Aos:
        return tr("%1, one field of structures of %3 (%2)")
            .arg(subject, m_element)
            .arg(m_walk.stride);
    case Pattern::Soa:
        return tr("%1, one field of %3, each in its own array (%2)")
            .arg(subject, m_element)
            .arg(m_walk.stride);
    case Pattern::Strided:
        break;
    }
    return tr("%1, stride %3 (%2)").arg(subject, m_element).arg(m_walk.stride);
}

QString WarpPicture::summary() const
{
    if (!m_access)
        return m_problem;
    return tr("%1: %2 fetched, %3 used, %4 wasted, efficiency %5, in %6 pieces of %7 bytes.")
        .arg(title(), bytes(static_cast<double>(m_access->fetchedBytes)),
             bytes(static_cast<double>(m_access->usedBytes)),
             bytes(static_cast<double>(m_access->fetchedBytes - m_access->usedBytes)),
             QString::fromStdString(percentText(m_access->efficiency(), 3)))
        .arg(m_access->sectors.size())
        .arg(m_access->sizes.sector);
}

QSize WarpPicture::sizeHint() const
{
    return {static_cast<int>(840 * plotUnit()), static_cast<int>(206 * plotUnit())};
}

QSize WarpPicture::minimumSizeHint() const
{
    return {static_cast<int>(420 * plotUnit()), static_cast<int>(176 * plotUnit())};
}

QString WarpPicture::bytes(double value) const
{
    if (value < 10000)
        return tr("%1 bytes").arg(value);
    return QString::fromStdString(quantityText(value, Unit::Byte, byteStyle()));
}

WarpPicture::Layout WarpPicture::layoutFor(const QRectF& rect) const
{
    Layout layout;
    const double u = plotUnit();
    layout.head = QRectF(rect.left() + 8 * u, rect.top() + 4 * u, rect.width() - 16 * u, 24 * u);
    layout.foot =
        QRectF(rect.left() + 8 * u, rect.bottom() - 34 * u, rect.width() - 16 * u, 28 * u);
    const QRectF middle(rect.left() + 16 * u, layout.head.bottom() + 6 * u, rect.width() - 32 * u,
                        layout.foot.top() - layout.head.bottom() - 12 * u);
    const double laneHeight = 20 * u;
    const double offsets = 14 * u; // room for addresses under the strip
    if (m_access && m_walk.operation == Operation::Copy) {
        const double strip = std::clamp(middle.height() * 0.19, 12 * u, 40 * u);
        layout.laneArea = QRectF(middle.left(), middle.center().y() - laneHeight / 2 - offsets / 2,
                                 middle.width(), laneHeight);
        layout.source =
            layoutStrip(*m_access, QRectF(middle.left(), middle.top(), middle.width(), strip));
        layout.strip = layoutStrip(
            *m_access,
            QRectF(middle.left(), middle.bottom() - offsets - strip, middle.width(), strip));
    } else if (m_access) {
        const double strip = std::clamp(middle.height() * 0.36, 14 * u, 60 * u);
        layout.laneArea = QRectF(middle.left(), middle.top(), middle.width(), laneHeight);
        layout.strip = layoutStrip(
            *m_access,
            QRectF(middle.left(), middle.bottom() - offsets - strip, middle.width(), strip));
    }
    if (m_access)
        layout.lanes = layoutLanes(m_access->lanes.size(), layout.laneArea);
    const QFontMetricsF metrics(plotFont(0.88));
    double right = layout.foot.right() - 4 * u;
    for (std::size_t i = operations.size(); i-- > 0;) {
        const double width = metrics.horizontalAdvance(operationWord(operations[i])) + 28 * u;
        layout.chips[i] = QRectF(right - width, layout.foot.top() + 2 * u, width, 23 * u);
        right -= width + 6 * u;
    }
    return layout;
}

void WarpPicture::paintHead(QPainter& painter, const Layout& layout, const Theme& theme) const
{
    const QFont bold = plotFont(1.1, true);
    painter.setFont(bold);
    painter.setPen(theme.text);
    painter.drawText(layout.head, Qt::AlignLeft | Qt::AlignVCenter, title());
    if (!m_access)
        return;
    const QString caption = m_gpu ? tr("each cell = %1-byte sector · each group = %2-byte line")
                                        .arg(m_access->sizes.sector)
                                        .arg(m_access->sizes.line)
                                  : tr("each cell = %1-byte cache line · each group = 4 KiB page")
                                        .arg(m_access->sizes.sector);
    const QFont small = plotFont(0.85);
    const double room =
        layout.head.width() - QFontMetricsF(bold).horizontalAdvance(title()) - 24 * plotUnit();
    painter.setFont(small);
    painter.setPen(theme.textDim);
    painter.drawText(layout.head, Qt::AlignRight | Qt::AlignVCenter,
                     QFontMetricsF(small).elidedText(caption, Qt::ElideRight, std::max(0.0, room)));
}

void WarpPicture::paintCell(QPainter& painter, const WarpCell& cell, const Theme& theme,
                            const QColor& colour) const
{
    const double u = plotUnit();
    const QRectF box = cell.rect.adjusted(0.8, 0, -0.8, 0);
    if (cell.kind == WarpCell::Kind::Gap) {
        painter.setPen(theme.textFaint);
        painter.setFont(plotFont(0.85));
        painter.drawText(cell.rect, Qt::AlignCenter, QStringLiteral("…"));
        return;
    }
    const bool touched = cell.kind == WarpCell::Kind::Touched;
    painter.setPen(QPen(theme.border, 1, touched ? Qt::SolidLine : Qt::DotLine));
    painter.setBrush(touched ? QBrush(mix(theme.background, theme.empty, 0.55))
                             : QBrush(Qt::NoBrush));
    painter.drawRoundedRect(box, 2.5 * u, 2.5 * u);
    if (!touched)
        return;
    const double inner = box.height() - 8 * u;
    const auto sector = static_cast<double>(m_access->sizes.sector);
    const auto part = [&](double begin, double end) {
        const double left = box.left() + 1.5 + begin / sector * (box.width() - 3);
        const double right = box.left() + 1.5 + end / sector * (box.width() - 3);
        const double seam = right - left > 3 ? 0.5 : 0;
        return QRectF(left + seam, box.top() + 4 * u, std::max(0.8, right - left - 2 * seam),
                      inner);
    };
    // Slots of one element each: what was fetched for nothing; of a structure, its other fields.
    const auto width = static_cast<double>(m_walk.elementBytes);
    const bool fields = m_walk.pattern == Pattern::Aos && m_walk.stride > 1 && m_walk.stride <= 8;
    painter.setPen(Qt::NoPen);
    const double first = std::fmod(static_cast<double>(m_walk.offsetBytes), width);
    if (box.width() * width / sector >= 2.5 || fields) {
        for (double begin = first > 0 ? first - width : 0; begin < sector; begin += width) {
            QColor slot = theme.empty;
            if (fields) {
                const double at = static_cast<double>(cell.address) + begin
                    - static_cast<double>(m_walk.offsetBytes);
                const auto field =
                    static_cast<int>(std::llround(at / width)) % static_cast<int>(m_walk.stride);
                slot =
                    field == 0 ? theme.empty : mix(theme.background, theme.series(field - 1), 0.38);
            }
            painter.fillRect(part(std::max(0.0, begin), std::min(sector, begin + width)), slot);
        }
    }
    // Neighbouring elements are drawn apart while there is room to see it.
    const bool apart = box.width() * width / sector >= 4;
    for (const ByteRange& used : m_access->sectors[cell.sector].used) {
        const auto begin = static_cast<double>(used.begin);
        const auto end = static_cast<double>(used.end);
        if (!apart) {
            painter.fillRect(part(begin, end), colour);
            continue;
        }
        for (double at = begin; at < end;) {
            const double next = first + (std::floor((at - first) / width + 1e-9) + 1) * width;
            painter.fillRect(part(at, std::min(next, end)), colour);
            at = next;
        }
    }
}

void WarpPicture::paintStrip(QPainter& painter, const WarpStrip& strip, const Theme& theme,
                             const QColor& colour, const Hover& hover, bool labelled) const
{
    const double u = plotUnit();
    const QFont font = plotFont(0.75);
    const QFontMetricsF metrics(font);
    double labelEnd = -1e9;
    for (std::size_t i = 0; i < strip.cells.size(); ++i) {
        const WarpCell& cell = strip.cells[i];
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
            : QString::fromStdString(
                quantityText(static_cast<double>(cell.address), Unit::Byte, byteStyle(), 3));
        const double room = strip.cells.back().rect.right() - cell.rect.left();
        if (labelled && cell.rect.left() > labelEnd && metrics.horizontalAdvance(address) <= room) {
            painter.setFont(font);
            painter.drawText(
                QPointF(cell.rect.left() + 2, cell.rect.bottom() + 4 * u + metrics.ascent()),
                address);
            labelEnd = cell.rect.left() + metrics.horizontalAdvance(address) + 10 * u;
        }
    }
}

void WarpPicture::paintLanes(QPainter& painter, const Layout& layout, const Theme& theme,
                             const Hover& hover) const
{
    const double u = plotUnit();
    const QColor readColour = theme.predicted;
    const QColor writeColour = theme.series(0);
    const double radius = layout.lanes.radius;
    const auto connect = [&](const WarpStrip& strip, bool above, bool writes, std::size_t lane) {
        const QPointF centre = layout.lanes.centres[lane];
        const QRectF row = strip.cells.front().rect;
        const QPointF element(strip.targets[lane], above ? row.bottom() + 1 : row.top() - 1);
        const QPointF edge = centre + QPointF(0, above ? -radius : radius);
        const bool lit = static_cast<int>(lane) == hover.lane;
        QColor colour =
            lit ? theme.highlight : mix(theme.background, writes ? writeColour : readColour, 0.6);
        painter.setPen(QPen(colour, lit ? 1.8 : 1.0));
        painter.drawLine(edge, element);
        writes ? paintArrow(painter, element, edge, 5 * u)
               : paintArrow(painter, edge, element, 5 * u);
    };
    for (std::size_t lane = 0; lane < layout.lanes.centres.size(); ++lane) {
        if (layout.source)
            connect(*layout.source, true, false, lane);
        connect(layout.strip, false, m_walk.operation != Operation::Read, lane);
    }
    QFont font = plotFont(0.72, true);
    font.setPixelSize(std::max(5, std::min(font.pixelSize(), static_cast<int>(radius * 1.05))));
    painter.setFont(font);
    for (std::size_t lane = 0; lane < layout.lanes.centres.size(); ++lane) {
        const QPointF centre = layout.lanes.centres[lane];
        const bool lit = static_cast<int>(lane) == hover.lane;
        painter.setPen(Qt::NoPen);
        painter.setBrush(lit                                        ? theme.highlightFill
                             : m_walk.operation == Operation::Write ? writeColour
                                                                    : readColour);
        painter.drawEllipse(centre, radius, radius);
        painter.setPen(lit ? theme.onHighlight : theme.onAccent);
        if (radius >= 5)
            painter.drawText(
                QRectF(centre - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius)),
                Qt::AlignCenter, QString::number(lane));
    }
}

// What was fetched for nothing, in as many words as there is room for.
QString WarpPicture::wasteText(const Layout& layout, const QFontMetricsF& metrics,
                               double room) const
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

void WarpPicture::paintFoot(QPainter& painter, const Layout& layout, const Theme& theme) const
{
    const double u = plotUnit();
    double x = layout.foot.left() + 8 * u;
    const double end = layout.chips[0].left() - 12 * u;
    const auto say = [&](const QString& text, const QColor& colour, bool bold) {
        const QFont font = plotFont(0.9, bold);
        const QFontMetricsF metrics(font);
        painter.setFont(font);
        painter.setPen(colour);
        const QRectF room(x, layout.foot.top(), std::max(0.0, end - x), layout.foot.height());
        painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                         metrics.elidedText(text, Qt::ElideRight, room.width()));
        x += metrics.horizontalAdvance(text) + 18 * u;
    };
    if (m_access) {
        say(tr("%1 fetched").arg(bytes(static_cast<double>(m_access->fetchedBytes))), theme.text,
            true);
        say(tr("%1 used").arg(bytes(static_cast<double>(m_access->usedBytes))), theme.predictedText,
            true);
        const QString rest = wasteText(layout, QFontMetricsF(plotFont(0.9)), end - x);
        say(rest, theme.textDim, false);
    }
    painter.setFont(plotFont(0.88));
    for (std::size_t i = 0; i < operations.size(); ++i) {
        const bool chosen = operations[i] == m_walk.operation;
        const QRectF chip = layout.chips[i];
        painter.setPen(QPen(chosen ? theme.predicted : theme.border, 1.2));
        painter.setBrush(chosen ? theme.raised : theme.background);
        painter.drawRoundedRect(chip, chip.height() / 2, chip.height() / 2);
        painter.setPen(chosen ? theme.text : theme.textDim);
        painter.drawText(chip, Qt::AlignCenter, operationWord(operations[i]));
    }
}

void WarpPicture::paint(QPainter& painter, const QRectF& rect, const Theme& theme,
                        const Hover& hover) const
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect, theme.background);
    const Layout layout = layoutFor(rect);
    paintHead(painter, layout, theme);
    if (m_access) {
        const QColor write = theme.series(0);
        paintLanes(painter, layout, theme, hover);
        if (layout.source)
            paintStrip(painter, *layout.source, theme, theme.predicted, {},
                       false); // arrows stand there
        paintStrip(painter, layout.strip, theme,
                   m_walk.operation == Operation::Read ? theme.predicted : write, hover, true);
    } else {
        painter.setFont(plotFont());
        painter.setPen(theme.textDim);
        painter.drawText(rect.adjusted(20, 30, -20, -40), Qt::AlignCenter | Qt::TextWordWrap,
                         m_problem);
    }
    paintFoot(painter, layout, theme);
    painter.restore();
}

void WarpPicture::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    paint(painter, rect, theme, {});
}

void WarpPicture::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    paint(painter, QRectF(rect()), currentTheme(), m_hover);
    paintFocusRing(painter, currentTheme());
}

QString WarpPicture::hoverDescription(const Hover& hover) const
{
    if (!m_access)
        return {};
    if (hover.lane >= 0) {
        const LaneAccess& lane = m_access->lanes[static_cast<std::size_t>(hover.lane)];
        return tr("%1 %2: bytes %3 to %4, %5 %6, %7 %8")
            .arg(m_gpu ? tr("lane") : tr("access"))
            .arg(hover.lane)
            .arg(lane.address)
            .arg(lane.address + m_access->width - 1)
            .arg(m_gpu ? tr("sector") : tr("cache line"))
            .arg(lane.address / m_access->sizes.sector)
            .arg(m_gpu ? tr("line") : tr("page"))
            .arg(lane.address / m_access->sizes.line);
    }
    if (hover.cell < 0)
        return {};
    const WarpStrip strip = layoutFor(QRectF(rect())).strip;
    const WarpCell& cell = strip.cells[static_cast<std::size_t>(hover.cell)];
    const QString word = m_gpu ? tr("sector") : tr("cache line");
    if (cell.kind == WarpCell::Kind::Gap)
        return tr("%1 that nobody asks for").arg(bytes(static_cast<double>(cell.bytes)));
    const QString place = tr("%1 at byte %2").arg(word).arg(cell.address);
    if (cell.kind == WarpCell::Kind::Skipped)
        return tr("%1: not fetched").arg(place);
    const std::uint64_t used = m_access->sectors[cell.sector].usedBytes();
    return tr("%1: %2 of %3 bytes used").arg(place).arg(used).arg(m_access->sizes.sector);
}

void WarpPicture::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_access)
        return;
    const Layout layout = layoutFor(QRectF(rect()));
    const QPointF at = event->position();
    Hover hover;
    for (std::size_t i = 0; i < layout.lanes.centres.size(); ++i) {
        const QPointF d = at - layout.lanes.centres[i];
        if (std::hypot(d.x(), d.y()) <= layout.lanes.radius + 1)
            hover.lane = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < layout.strip.cells.size(); ++i) {
        if (layout.strip.cells[i].rect.contains(at))
            hover.cell = static_cast<int>(i);
    }
    const bool chip = std::any_of(layout.chips.begin(), layout.chips.end(),
                                  [&](const QRectF& c) { return c.contains(at); });
    setCursor(chip ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (hover == m_hover)
        return;
    m_hover = hover;
    const QString text = hoverDescription(hover);
    emit hoverText(text);
    QToolTip::showText(event->globalPosition().toPoint(), text, this);
    update();
}

void WarpPicture::mousePressEvent(QMouseEvent* event)
{
    const Layout layout = layoutFor(QRectF(rect()));
    for (std::size_t i = 0; i < operations.size(); ++i) {
        if (layout.chips[i].contains(event->position()))
            chooseOperation(static_cast<int>(i));
    }
}

void WarpPicture::chooseOperation(int index)
{
    const int count = static_cast<int>(operations.size());
    const Operation chosen = operations[static_cast<std::size_t>((index + count) % count)];
    if (chosen == m_walk.operation)
        return;
    const std::string_view word = operationText(chosen);
    emit parameterEdited(QStringLiteral("operation"),
                         QString::fromUtf8(word.data(), static_cast<qsizetype>(word.size())));
}

void WarpPicture::leaveEvent(QEvent*)
{
    m_hover = {};
    emit hoverText({});
    update();
}

void WarpPicture::keyPressEvent(QKeyEvent* event)
{
    const auto now = static_cast<int>(
        std::find(operations.begin(), operations.end(), m_walk.operation) - operations.begin());
    if (event->key() == Qt::Key_Left)
        chooseOperation(now - 1);
    else if (event->key() == Qt::Key_Right)
        chooseOperation(now + 1);
    else
        Picture::keyPressEvent(event);
}

} // namespace memscape

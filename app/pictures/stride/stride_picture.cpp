// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture shows and what a hand does to it.
#include "app/pictures/stride/stride_picture_private.h"

#include "app/plots/plot_style.h"
#include "core/experiments/stride/stride.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

QString warpOperationWord(Operation operation)
{
    switch (operation) {
    case Operation::Read: return StridePicture::tr("read");
    case Operation::Write: return StridePicture::tr("write");
    case Operation::Copy: return StridePicture::tr("copy");
    case Operation::Triad: break;
    }
    return StridePicture::tr("triad");
}

StridePicture::StridePicture(QWidget* parent)
    : Picture({206, 176}, parent)
{
    setAccessibleName(tr("Lanes and memory"));
}

void StridePicture::read(const PictureValues& values)
{
    m_gpu = values.device.isGpu();
    m_deviceName = values.device.name;
    m_element = QString::fromStdString(values.parameters.choice("element"));
    m_access.reset();
    const auto walk = strideCase(values.parameters);
    if (!walk) {
        m_problem = QString::fromStdString(walk.error().text());
    } else {
        m_walk = *walk;
        // A host fetches whole cache lines; its groups are pages.
        const GranuleSizes sizes = m_gpu ? GranuleSizes{static_cast<std::uint64_t>(values.device.sectorBytes),
                                                        static_cast<std::uint64_t>(values.device.lineBytes)}
                                         : GranuleSizes{static_cast<std::uint64_t>(values.device.lineBytes), 4096};
        const auto access = firstRequest(m_walk, sizes);
        if (access)
            m_access = *access;
        else
            m_problem = QString::fromStdString(access.error().text());
    }
    m_hover = {};
}

QString StridePicture::title() const
{
    const QString subject = m_gpu ? tr("One warp") : tr("One core, 32 accesses");
    switch (m_walk.pattern) {
    case Pattern::Contiguous: return tr("%1, neighbours (%2)").arg(subject, m_element);
    case Pattern::Random: return tr("%1, random elements (%2)").arg(subject, m_element);
    case Pattern::Misaligned:
        return tr("%1, neighbours from byte %3 on (%2)").arg(subject, m_element).arg(m_walk.offsetBytes);
    case Pattern::Aos: return tr("%1, one field of structures of %3 (%2)").arg(subject, m_element).arg(m_walk.stride);
    case Pattern::Soa:
        return tr("%1, one field of %3, each in its own array (%2)").arg(subject, m_element).arg(m_walk.stride);
    case Pattern::Strided: break;
    }
    return tr("%1, stride %3 (%2)").arg(subject, m_element).arg(m_walk.stride);
}

QString StridePicture::summary() const
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

QString StridePicture::bytes(double value) const
{
    if (value < 10000)
        return tr("%1 bytes").arg(value);
    return QString::fromStdString(quantityText(value, Unit::Byte, byteStyle()));
}

StridePicture::Layout StridePicture::layoutFor(const QRectF& rect) const
{
    Layout layout;
    const double u = plotUnit();
    layout.head = QRectF(rect.left() + 8 * u, rect.top() + 4 * u, rect.width() - 16 * u, 24 * u);
    layout.foot = QRectF(rect.left() + 8 * u, rect.bottom() - 34 * u, rect.width() - 16 * u, 28 * u);
    const QRectF middle(rect.left() + 16 * u, layout.head.bottom() + 6 * u, rect.width() - 32 * u,
                        layout.foot.top() - layout.head.bottom() - 12 * u);
    const double laneHeight = 20 * u;
    const double offsets = 14 * u; // room for addresses under the strip
    if (m_access && m_walk.operation == Operation::Copy) {
        const double strip = std::clamp(middle.height() * 0.19, 12 * u, 40 * u);
        layout.laneArea =
            QRectF(middle.left(), middle.center().y() - laneHeight / 2 - offsets / 2, middle.width(), laneHeight);
        layout.source = layoutStrip(*m_access, QRectF(middle.left(), middle.top(), middle.width(), strip));
        layout.strip =
            layoutStrip(*m_access, QRectF(middle.left(), middle.bottom() - offsets - strip, middle.width(), strip));
    } else if (m_access) {
        const double strip = std::clamp(middle.height() * 0.36, 14 * u, 60 * u);
        layout.laneArea = QRectF(middle.left(), middle.top(), middle.width(), laneHeight);
        layout.strip =
            layoutStrip(*m_access, QRectF(middle.left(), middle.bottom() - offsets - strip, middle.width(), strip));
    }
    if (m_access)
        layout.lanes = layoutLanes(m_access->lanes.size(), layout.laneArea);
    const QFontMetricsF metrics(plotFont(0.88));
    double right = layout.foot.right() - 4 * u;
    for (std::size_t i = warpOperations.size(); i-- > 0;) {
        const double width = metrics.horizontalAdvance(warpOperationWord(warpOperations[i])) + 28 * u;
        layout.chips[i] = QRectF(right - width, layout.foot.top() + 2 * u, width, 23 * u);
        right -= width + 6 * u;
    }
    return layout;
}

StridePicture::Hover StridePicture::hoverAt(QPointF at) const
{
    const Layout layout = layoutFor(QRectF(rect()));
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
    return hover;
}

QString StridePicture::toolTipAt(QPointF at) const
{
    if (!m_access)
        return {};
    const Hover hover = hoverAt(at);
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
    const StrideStrip strip = layoutFor(QRectF(rect())).strip;
    const StrideCell& cell = strip.cells[static_cast<std::size_t>(hover.cell)];
    const QString word = m_gpu ? tr("sector") : tr("cache line");
    if (cell.kind == StrideCell::Kind::Gap)
        return tr("%1 that no lane accesses").arg(bytes(static_cast<double>(cell.bytes)));
    const QString place = tr("%1 at byte %2").arg(word).arg(cell.address);
    if (cell.kind == StrideCell::Kind::Skipped)
        return tr("%1: not fetched").arg(place);
    const std::uint64_t used = m_access->sectors[cell.sector].usedBytes();
    return tr("%1: %2 of %3 bytes used").arg(place).arg(used).arg(m_access->sizes.sector);
}

void StridePicture::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_access)
        return;
    const Layout layout = layoutFor(QRectF(rect()));
    const QPointF at = event->position();
    const Hover hover = hoverAt(at);
    const bool chip = std::ranges::any_of(layout.chips, [&](const QRectF& c) { return c.contains(at); });
    setCursor(chip ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (hover == m_hover)
        return;
    m_hover = hover;
    tell(*event);
    update();
}

void StridePicture::mousePressEvent(QMouseEvent* event)
{
    const Layout layout = layoutFor(QRectF(rect()));
    for (std::size_t i = 0; i < warpOperations.size(); ++i) {
        if (layout.chips[i].contains(event->position()))
            chooseOperation(static_cast<int>(i));
    }
}

void StridePicture::chooseOperation(int index)
{
    const int count = static_cast<int>(warpOperations.size());
    const Operation chosen = warpOperations[static_cast<std::size_t>((index + count) % count)];
    if (chosen == m_walk.operation)
        return;
    const std::string_view word = operationText(chosen);
    emit parameterEdited(QStringLiteral("operation"),
                         QString::fromUtf8(word.data(), static_cast<qsizetype>(word.size())));
}

void StridePicture::leaveEvent(QEvent* event)
{
    m_hover = {};
    update();
    Picture::leaveEvent(event);
}

void StridePicture::keyPressEvent(QKeyEvent* event)
{
    const auto now = static_cast<int>(std::ranges::find(warpOperations, m_walk.operation) - warpOperations.begin());
    if (event->key() == Qt::Key_Left)
        chooseOperation(now - 1);
    else if (event->key() == Qt::Key_Right)
        chooseOperation(now + 1);
    else
        Picture::keyPressEvent(event);
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture shows and what a hand does to it.
#include "app/pictures/roofline/roofline_picture.h"

#include "app/pictures/common/json_values.h"
#include "app/plots/plot_style.h"
#include "core/experiment/experiment.h"

#include <QKeyEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// "key=value" of a record's point.
ParameterChanges changesOf(const Json& point)
{
    ParameterChanges changes;
    const Json& assignments = member(point, "assignments");
    for (std::size_t i = 0; assignments.is_array() && i < std::min<std::size_t>(assignments.size(), 64); ++i) {
        if (!assignments[i].is_string())
            continue;
        const std::string text = assignments[i].get<std::string>();
        const std::size_t equals = text.find('=');
        if (equals != std::string::npos)
            changes.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return changes;
}

void addMarks(const Outcome* outcome, bool isMeasured, std::vector<RooflineMark>& marks)
{
    if (outcome == nullptr)
        return;
    const Json& points = member(outcome->detail, "points");
    for (std::size_t i = 0; points.is_array() && i < std::min<std::size_t>(points.size(), 256); ++i) {
        const Json& point = points[i];
        RooflineMark mark{textOf(point, "id"),
                          textOf(point, "label"),
                          textOf(point, "experiment"),
                          textOf(point, "format"),
                          textOf(point, "level"),
                          textOf(point, "bound"),
                          changesOf(point),
                          number(point, "intensity"),
                          number(point, "rate"),
                          number(point, "roof"),
                          isMeasured};
        if (mark.intensity > 0 && mark.rate > 0)
            marks.push_back(std::move(mark));
    }
}

} // namespace

QString RooflinePicture::rateText(double rate, Unit unit)
{
    return QString::fromStdString(quantityText(rate, unit));
}

RooflinePicture::RooflinePicture(QWidget* parent)
    : Picture({300, 220}, parent)
{
    setAccessibleName(tr("Kernels under the device's ceilings"));
}

void RooflinePicture::read(const PictureValues& values)
{
    m_state = {};
    m_state.device = QString::fromStdString(values.device.name);
    m_state.intensity = values.parameters.number("intensity");
    if (values.predicted) {
        const Json& levels = member(values.predicted->detail, "levels");
        for (std::size_t i = 0; levels.is_array() && i < levels.size(); ++i)
            m_state.levels.push_back({textOf(levels[i], "id"), number(levels[i], "bandwidth", 0), false});
        const Json& formats = member(values.predicted->detail, "formats");
        for (std::size_t i = 0; formats.is_array() && i < formats.size(); ++i)
            m_state.formats.push_back({textOf(formats[i], "label"), number(formats[i], "rate", 0),
                                       textOf(formats[i], "key").toStdString() == values.parameters.choice("format")});
    }
    addMarks(values.predicted, false, m_state.marks);
    addMarks(values.measured, true, m_state.marks);
}

QString RooflinePicture::title() const
{
    return tr("Under the ceilings of %1").arg(m_state.device);
}

QString RooflinePicture::summary() const
{
    QStringList words;
    for (const RooflineMark& mark : m_state.marks)
        words << tr("%1 %2: %3 at %4 FLOP/B, %5")
                     .arg(mark.label, mark.isMeasured ? tr("measured") : tr("predicted"),
                          rateText(mark.rate, Unit::FlopPerSecond), rateText(mark.intensity, Unit::One), mark.bound);
    return title() + QStringLiteral(". ") + words.join(QStringLiteral("; "));
}

QString RooflinePicture::hint() const
{
    return tr("A click on a kernel opens its experiment. A drag moves your own intensity. Point at a mark to read it.");
}

QPointF RooflinePicture::placeOf(const RooflineMark& mark, const QRectF& rect) const
{
    return rooflineScales(m_state, rect).at(mark.intensity, mark.rate);
}

const RooflineMark* RooflinePicture::markAt(const QPointF& at) const
{
    const RooflineMark* nearest = nullptr;
    double best = 9 * plotUnit();
    for (const RooflineMark& mark : m_state.marks) {
        const QPointF d = placeOf(mark, QRectF(rect())) - at;
        if (const double distance = std::hypot(d.x(), d.y()); distance < best) {
            best = distance;
            nearest = &mark;
        }
    }
    return nearest;
}

QString RooflinePicture::toolTipAt(QPointF at) const
{
    const RooflineMark* mark = markAt(at);
    return mark ? tr("%1, %2: %3 of %4 possible, %5 FLOP/B, %6")
                      .arg(mark->label, mark->isMeasured ? tr("measured") : tr("predicted"),
                           rateText(mark->rate, Unit::FlopPerSecond), rateText(mark->roof, Unit::FlopPerSecond),
                           rateText(mark->intensity, Unit::One), mark->bound)
                : QString();
}

void RooflinePicture::openMark(const RooflineMark& mark)
{
    emit experimentWanted(mark.experiment, mark.changes, tr("Open %1").arg(mark.label));
}

void RooflinePicture::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton)
        return;
    if (const RooflineMark* mark = markAt(event->position()))
        return openMark(RooflineMark(*mark)); // this page may go
    if (!rooflineScales(m_state, QRectF(rect())).area.contains(event->position()))
        return;
    hold();
    mouseMoveEvent(event);
}

void RooflinePicture::mouseMoveEvent(QMouseEvent* event)
{
    if (isHeld()) {
        const double intensity =
            std::clamp(rooflineScales(m_state, QRectF(rect())).intensityAt(event->position().x()), 0.001, 1e6);
        const double step = std::pow(10, std::floor(std::log10(intensity)) - 2);
        emit parameterEdited(QStringLiteral("intensity"), QString::number(std::round(intensity / step) * step, 'g', 4));
        return;
    }
    const RooflineMark* mark = markAt(event->position());
    const QString id = mark ? mark->id : QString();
    setCursor(mark ? Qt::PointingHandCursor : Qt::SizeHorCursor);
    if (id == m_hovered)
        return;
    m_hovered = id;
    tell(*event);
    update();
}

void RooflinePicture::keyPressEvent(QKeyEvent* event)
{
    const int count = int(m_state.marks.size());
    if (count > 0 && (event->key() == Qt::Key_Right || event->key() == Qt::Key_Left)) {
        m_focused = (m_focused + (event->key() == Qt::Key_Right ? 1 : count - 1) + count) % count;
        m_hovered = m_state.marks[std::size_t(m_focused)].id;
        update();
    } else if (count > 0 && m_focused >= 0 && m_focused < count
               && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)) {
        openMark(RooflineMark(m_state.marks[std::size_t(m_focused)]));
    } else {
        Picture::keyPressEvent(event);
    }
}

} // namespace memscape

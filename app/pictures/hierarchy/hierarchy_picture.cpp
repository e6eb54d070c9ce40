// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/hierarchy/hierarchy_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/experiment.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int frameMilliseconds = 34; // under 30 frames a second
constexpr double goldenRatio = 0.6180339887498949;

// A working set that a person would type: two binary digits.
double rounded(double bytes)
{
    const double power = std::exp2(std::floor(std::log2(std::max(bytes, 1.0))) - 2);
    return std::max(1.0, std::round(bytes / power) * power);
}

/// What was measured at that working set, not at another one of the same sweep.
std::optional<double> measuredLatency(const Measurement* measured, double workingSet)
{
    const Series* series = measured ? measured->findSeries("latency") : nullptr;
    if (series == nullptr || series->x.key != "working_set")
        return std::nullopt;
    for (std::size_t i = 0; i < series->x.values.size() && i < series->y.size(); ++i) {
        if (series->x.values[i] == workingSet && std::isfinite(series->y[i]))
            return series->y[i];
    }
    return std::nullopt;
}

} // namespace

HierarchyPicture::HierarchyPicture(QWidget* parent)
    : Picture({236, 200}, parent)
{
    setAccessibleName(tr("Levels of memory"));
    m_frames.setInterval(frameMilliseconds);
    connect(&m_frames, &QTimer::timeout, this, &HierarchyPicture::nextFrame);
}

void HierarchyPicture::read(const PictureValues& values)
{
    const std::string& operation = values.parameters.choice("operation");
    const int asked = static_cast<int>(values.parameters.integer("threads"));
    const int all = values.device.isGpu() ? values.device.units : std::max(1, values.device.threads);
    m_state = hierarchyState(values.device, values.parameters.number("working_set"),
                             operation == "triad" ? Operation::Copy : operationOf(operation),
                             asked == 0 || values.device.isGpu() ? all : std::min(asked, all));
    if (const ParameterSpec* spec = findParameter(values.experiment.schema(), "working_set")) {
        m_least = spec->minimum;
        m_most = spec->maximum;
    }
    if (const Figure* latency = values.predicted ? findFigure(values.predicted->figures, "latency") : nullptr)
        m_state.latency = latency->number();
    m_state.measured = measuredLatency(values.measured, m_state.workingSet);
    m_goal = std::min(m_goal, m_state.levels.empty() ? 0 : m_state.levels.size() - 1);
    updateMotion();
}

HierarchyState HierarchyPicture::state() const
{
    HierarchyState state = m_state;
    state.bytes = byteStyle();
    return state;
}

HierarchyLayout HierarchyPicture::layoutNow() const
{
    return layoutHierarchy(state(), QRectF(rect()), title());
}

QString HierarchyPicture::title() const
{
    return m_state.gpu ? tr("Distance of each level on this GPU") : tr("Distance of each level on this CPU");
}

QString HierarchyPicture::summary() const
{
    const HierarchyLayout layout = layoutNow();
    QString text = title() + QStringLiteral(": ");
    QStringList parts;
    for (const LevelBox& box : layout.boxes)
        parts << tr("%1 %2, %3").arg(box.nameText, box.capacityText, box.latencyText);
    return text + parts.join(QStringLiteral("; ")) + QStringLiteral(". ") + layout.calloutText + layout.measuredText
        + QLatin1Char('.');
}

void HierarchyPicture::paintTexts(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const
{
    painter.setFont(plotFont(1.1, true));
    painter.setPen(theme.text);
    painter.drawText(layout.title, Qt::AlignLeft | Qt::AlignVCenter, title());
    painter.setFont(plotFont(0.85));
    painter.setPen(theme.textDim);
    if (!layout.caption.isEmpty())
        painter.drawText(layout.caption, Qt::AlignRight | Qt::AlignVCenter,
                         tr("across: latency · height: capacity · line: bandwidth (all logarithmic)"));
    painter.drawText(layout.seconds, Qt::AlignLeft | Qt::AlignVCenter, layout.secondsText);
    const QFont bold = plotFont(0.85, true);
    const QFontMetricsF metrics(bold);
    painter.setFont(bold);
    painter.setPen(theme.highlightText);
    const QString text = metrics.elidedText(layout.calloutText, Qt::ElideRight, layout.callout.width());
    painter.drawText(layout.callout, Qt::AlignLeft | Qt::AlignVCenter, text);
    painter.setPen(theme.measuredText);
    painter.drawText(layout.callout.adjusted(metrics.horizontalAdvance(text), 0, 0, 0),
                     Qt::AlignLeft | Qt::AlignVCenter, layout.measuredText);
}

void HierarchyPicture::paintLevels(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const
{
    const double u = plotUnit();
    const double f = layout.fontFactor;
    for (const Road& road : layout.roads)
        painter.fillRect(road.rect, mix(theme.background, theme.textFaint, 0.55));
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
        const LevelBox& box = layout.boxes[i];
        const bool served = m_state.levels[i].onPath && m_state.levels[i].share > 5e-4;
        const QColor edge = box.unknown   ? theme.textFaint
            : i <= m_state.home || served ? theme.predicted
                                          : theme.border;
        painter.setPen(QPen(edge, 1.5));
        painter.setBrush(theme.raised);
        painter.drawRoundedRect(box.box, 5 * u, 5 * u);
        if (box.unknown) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(QBrush(theme.textFaint, Qt::BDiagPattern));
            painter.drawRoundedRect(box.box.adjusted(2, 2, -2, -2), 4 * u, 4 * u);
        }
        if (box.filled > 0) {
            QRectF inner = box.box.adjusted(3 * u, 3 * u, -3 * u, -3 * u);
            inner.setTop(inner.bottom() - std::max(2.0, inner.height() * box.filled));
            painter.setPen(Qt::NoPen);
            painter.setBrush(theme.fill);
            painter.drawRoundedRect(inner, 3 * u, 3 * u);
        }
        const auto label = [&](const QRectF& place, const QString& text, const QFont& font, const QColor& colour) {
            painter.setFont(font);
            painter.setPen(colour);
            painter.drawText(place, Qt::AlignCenter,
                             QFontMetricsF(font).elidedText(text, Qt::ElideRight, place.width() + 1));
        };
        label(box.name, box.nameText, plotFont(0.9 * f, true), theme.text);
        label(box.capacity, box.capacityText, plotFont(0.85 * f), theme.textDim);
        label(box.latency, box.latencyText, plotFont(0.85 * f, true),
              std::isfinite(m_state.levels[i].latency) ? theme.predictedText : theme.textFaint);
    }
    painter.setFont(plotFont(0.8 * f));
    painter.setPen(theme.textFaint);
    for (const Road& road : layout.roads)
        painter.drawText(road.label, Qt::AlignCenter, road.text);
}

void HierarchyPicture::paintHandle(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const
{
    if (layout.handle.isEmpty())
        return;
    const double u = plotUnit();
    const QPointF centre = layout.handle.center();
    painter.setPen(QPen(theme.highlight, 1.2, Qt::DotLine));
    painter.drawLine(QPointF(centre.x(), layout.callout.bottom() + 1), centre);
    painter.setPen(QPen(theme.background, 1.5));
    painter.setBrush(theme.highlightFill);
    painter.drawEllipse(centre, 6 * u, 6 * u);
}

void HierarchyPicture::paintTraveller(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const
{
    if (m_goal >= layout.boxes.size())
        return;
    const double u = plotUnit();
    const double y = layout.ground - 8 * u;
    const double start = layout.boxes.front().box.left();
    const double end = layout.boxes[m_goal].box.center().x();
    // Out and back; the far end is where it waits.
    const double way = m_phase < 0.45 ? m_phase / 0.45 : m_phase < 0.55 ? 1 : (1 - m_phase) / 0.45;
    const QPointF at(start + (end - start) * way, y);
    painter.setPen(Qt::NoPen);
    QColor glow = theme.highlightFill;
    glow.setAlphaF(0.3F);
    painter.setBrush(glow);
    painter.drawEllipse(at, 8 * u, 8 * u);
    painter.setBrush(theme.highlightFill);
    painter.drawEllipse(at, 4 * u, 4 * u);
}

void HierarchyPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    const HierarchyLayout layout = layoutHierarchy(state(), rect, title());
    if (layout.boxes.empty()) {
        painter.setFont(plotFont());
        painter.setPen(theme.textDim);
        painter.drawText(rect, Qt::AlignCenter, tr("The levels of memory of this device are not known."));
        return;
    }
    paintLevels(painter, layout, theme);
    paintTexts(painter, layout, theme);
    if (isScreen && motionAllowed()) {
        if (!m_paused || m_phase > 0)
            paintTraveller(painter, layout, theme);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.textFaint);
        const QRectF sign = layout.pause.adjusted(4, 4, -4, -4);
        if (m_paused) {
            painter.drawPolygon(QPolygonF({sign.topLeft(), {sign.right(), sign.center().y()}, sign.bottomLeft()}));
        } else {
            painter.drawRect(QRectF(sign.left(), sign.top(), sign.width() * 0.35, sign.height()));
            painter.drawRect(
                QRectF(sign.right() - sign.width() * 0.35, sign.top(), sign.width() * 0.35, sign.height()));
        }
    }
    paintHandle(painter, layout, theme);
}

void HierarchyPicture::setPaused(bool paused)
{
    m_paused = paused;
    updateMotion();
    update();
}

void HierarchyPicture::updateMotion()
{
    const bool move = isVisible() && !m_paused && motionAllowed() && !m_state.levels.empty();
    if (move && !m_frames.isActive()) {
        m_clock.start();
        m_frames.start();
    } else if (!move) {
        m_frames.stop();
    }
}

void HierarchyPicture::nextFrame()
{
    if (!motionAllowed() || m_goal >= m_state.levels.size()) {
        m_goal = 0;
        updateMotion();
        return;
    }
    const double latency = m_state.levels[m_goal].latency;
    const double decades = std::isfinite(latency) ? std::max(0.0, std::log10(latency / 1e-9)) : 1.0;
    const double trip = 700 + 700 * decades; // ms, there and back
    m_phase += static_cast<double>(m_clock.restart()) / trip;
    if (m_phase >= 1) {
        // The next trip goes where the shares say: a low-discrepancy walk through [0, 1).
        m_phase = 0;
        double at = std::fmod(++m_trip * goldenRatio, 1.0);
        m_goal = m_state.home;
        for (std::size_t i = 0; i < m_state.levels.size(); ++i) {
            at -= m_state.levels[i].share;
            if (m_state.levels[i].share > 0 && at < 0) {
                m_goal = i;
                break;
            }
        }
    }
    const HierarchyLayout layout = layoutNow();
    const int reach = static_cast<int>(9 * plotUnit());
    update(QRect(0, static_cast<int>(layout.ground - 8 * plotUnit()) - reach, width(), 2 * reach));
}

void HierarchyPicture::showEvent(QShowEvent* event)
{
    Picture::showEvent(event);
    updateMotion();
}

void HierarchyPicture::hideEvent(QHideEvent* event)
{
    Picture::hideEvent(event);
    m_frames.stop();
}

void HierarchyPicture::editWorkingSet(double bytes)
{
    const double value = std::clamp(rounded(bytes), m_least, m_most);
    if (value != m_state.workingSet)
        emit parameterEdited(QStringLiteral("working_set"), QString::fromStdString(numberText(value)));
}

bool HierarchyPicture::isHandle(QPointF at) const
{
    return layoutNow().handle.adjusted(-6, -6, 6, 6).contains(at);
}

QString HierarchyPicture::toolTipAt(QPointF at) const
{
    if (isHandle(at))
        return tr("drag to change the working set");
    const HierarchyLayout layout = layoutNow();
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
        const LevelBox& box = layout.boxes[i];
        if (!box.box.united(box.latency).contains(at))
            continue;
        const PictureLevel& level = m_state.levels[i];
        QString text = tr("%1: %2, latency %3").arg(box.nameText, box.capacityText, box.latencyText);
        if (std::isfinite(level.bandwidth))
            text += tr(", %1").arg(QString::fromStdString(quantityText(level.bandwidth, Unit::BytePerSecond)));
        if (level.share > 0)
            text += tr(", serves %1 of the accesses").arg(QString::fromStdString(percentText(level.share)));
        return text;
    }
    return {};
}

void HierarchyPicture::mousePressEvent(QMouseEvent* event)
{
    if (layoutNow().pause.contains(event->position()))
        setPaused(!m_paused);
    else if (isHandle(event->position()))
        hold();
}

void HierarchyPicture::mouseMoveEvent(QMouseEvent* event)
{
    const HierarchyLayout layout = layoutNow();
    if (isHeld())
        return editWorkingSet(workingSetAt(m_state, layout, event->position().x()));
    setCursor(isHandle(event->position())                    ? Qt::SizeHorCursor
                  : layout.pause.contains(event->position()) ? Qt::PointingHandCursor
                                                             : Qt::ArrowCursor);
    tell(*event);
}

void HierarchyPicture::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Space)
        setPaused(!m_paused);
    else if (event->key() == Qt::Key_Right)
        editWorkingSet(m_state.workingSet * 2);
    else if (event->key() == Qt::Key_Left)
        editWorkingSet(m_state.workingSet / 2);
    else
        Picture::keyPressEvent(event);
}

} // namespace memscape

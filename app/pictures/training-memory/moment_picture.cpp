// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture shows and what hands do to it.
#include "app/pictures/training-memory/moment_picture.h"

#include "app/plots/plot_style.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double zoomStep = 0.8;
constexpr double clickRoom = 4; ///< pixels that a click may wander

} // namespace

bool isCursorKey(int key)
{
    return key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Home || key == Qt::Key_End || key == Qt::Key_P;
}

MomentPicture::MomentPicture(QWidget* parent)
    : Picture({560, 200, 330}, parent)
    , m_search(new QLineEdit(this))
{
    setFocusPolicy(Qt::WheelFocus); // keys act on what the wheel has zoomed
    setAccessibleName(tr("The tensors of one training step"));
    m_search->setObjectName(QStringLiteral("searchTensors"));
    m_search->setPlaceholderText(tr("search tensors  /"));
    m_search->setAccessibleName(tr("Search tensors and modules"));
    m_search->setToolTip(
        tr("Part of the name of a module, a tensor or a category: matches stay, the rest fades. Esc ends the search."));
    m_search->setClearButtonEnabled(true);
    m_search->installEventFilter(this);
    connect(m_search, &QLineEdit::textChanged, this, &MomentPicture::search);
}

void MomentPicture::read(const PictureValues& values)
{
    m_search->setVisible(values.predicted != nullptr);
    if (values.predicted != nullptr)
        return; // what is alive comes with setMoment()
    m_state.step.reset();
    setMoment({}, false);
}

void MomentPicture::setTimeline(const MemoryTimeline& timeline)
{
    m_state.timeline = timeline;
    changed();
}

void MomentPicture::setMoment(MemoryMoment moment, bool isPeak)
{
    m_state.moment = std::move(moment);
    m_state.isPeak = isPeak;
    m_state.firstRow = std::clamp(m_state.firstRow, 0, std::max(0, int(m_state.moment.live.size()) - 1));
    setAccessibleDescription(summary());
    m_layout.reset();
    m_canvas = {};
    update();
}

void MomentPicture::setStep(std::shared_ptr<const StepBlocks> step)
{
    const StepView before = m_state.whole();
    m_state.step = std::move(step);
    m_state.pending = false;
    const StepView now = m_state.whole();
    if (now.left != before.left || now.right != before.right)
        m_view = now; // another step: the zoom was for other events
    setView(m_view);
    changed();
}

void MomentPicture::setPending(bool pending)
{
    m_state.pending = pending;
}

void MomentPicture::setMeasured(Curve measured)
{
    m_measured = std::move(measured);
    m_canvas = {};
    update();
}

void MomentPicture::setView(const StepView& view)
{
    const StepGrip middle{(view.left + view.right) / 2, (view.bottom + view.top) / 2};
    m_view = zoomed(view, m_state.whole(), middle, 1, 1);
    if (m_state.step)
        m_view = withMemory(m_view, *m_state.step);
    changed();
}

void MomentPicture::search(const QString& words)
{
    m_state.words = words.trimmed();
    changed();
    setAccessibleDescription(summary());
    emit hoverText(words.trimmed().isEmpty() ? QString() : foundText(chartNow()));
}

void MomentPicture::changed()
{
    m_layout.reset();
    m_chart.reset();
    m_flame.reset();
    m_canvas = {};
    update();
}

void MomentPicture::changeEvent(QEvent* event)
{
    Picture::changeEvent(event);
    changed(); // fonts and palettes
}

void MomentPicture::resizeEvent(QResizeEvent* event)
{
    Picture::resizeEvent(event);
    changed();
    m_search->setGeometry(layoutNow().search.toRect());
}

MomentLayout MomentPicture::layoutIn(const QRectF& rect, const QString& found) const
{
    m_state.bytes = byteStyle();
    return layoutMoment(m_state, rect, found);
}

const MomentLayout& MomentPicture::layoutNow() const
{
    if (!m_layout || m_state.bytes != byteStyle()) {
        m_chart.reset();
        m_canvas = {};
        m_layout = layoutIn(QRectF(rect()), {});
        if (!m_state.words.isEmpty())
            m_layout = layoutIn(QRectF(rect()), foundText(chartNow()));
    }
    return *m_layout;
}

const StepChart& MomentPicture::chartNow() const
{
    static const StepBlocks none;
    if (!m_chart) {
        const QRectF area = m_layout ? m_layout->chart : layoutIn(QRectF(rect()), {}).chart;
        m_chart = layoutChart(m_state.step ? *m_state.step : none, m_view, area, m_state.words, byteStyle());
    }
    return *m_chart;
}

QString MomentPicture::foundText(const StepChart& chart) const
{
    if (m_state.words.isEmpty())
        return {};
    if (chart.matches == 0)
        return tr("no match");
    return tr("%1 found, up to %2 at once").arg(chart.matches).arg(memoryText(chart.matchedBytes, byteStyle()));
}

QString MomentPicture::title() const
{
    return tr("One training step, tensor by tensor");
}

QString MomentPicture::hint() const
{
    return tr(
        "Click to see the tensors alive there. Wheel zooms, drag pans, double click or Esc shows all. / searches.");
}

QString MomentPicture::shortcuts()
{
    return tr(
        "← → move the cursor event by event, with Shift in larger steps, Home and End to the ends, P to the peak; "
        "+ − zoom, 0 or Esc shows all; / searches, Esc ends it; ↑ ↓ scroll the list. The wheel zooms (Ctrl: events "
        "only, Shift: bytes only), a drag pans, a click on a module shows it alone.");
}

QString MomentPicture::summary() const
{
    QStringList parts;
    for (std::size_t i = 0; i < std::min<std::size_t>(m_state.moment.live.size(), 8); ++i) {
        const LiveTensor& tensor = m_state.moment.live[i];
        parts << placeText({}, tensor.module, tensor.name) + u' ' + memoryText(tensor.bytes, byteStyle());
    }
    QString text = tr("Event %1, %2: %3 allocated. %4")
                       .arg(m_state.moment.event)
                       .arg(placeText(m_state.moment.phase, m_state.moment.module, m_state.moment.name),
                            memoryText(m_state.moment.allocated, byteStyle()), parts.join(QStringLiteral("; ")));
    if (!m_state.words.isEmpty() && m_state.step)
        text += QStringLiteral(". ") + foundText(chartNow());
    return text;
}

void MomentPicture::scroll(int rows)
{
    const MomentLayout& layout = layoutNow();
    m_state.firstRow = std::clamp(m_state.firstRow + rows, 0, std::max(0, layout.rowsInAll - int(layout.rows.size())));
    m_layout.reset();
    m_canvas = {};
    update();
}

/// About a place in the chart; without one about the cursor, or the middle when that is out of sight.
void MomentPicture::zoomAbout(double xFactor, double yFactor, std::optional<QPointF> place)
{
    StepGrip grip{double(m_state.moment.event)};
    if (place)
        grip = chartNow().gripAt(*place);
    else if (grip.event < m_view.left || grip.event > m_view.right)
        grip.event = (m_view.left + m_view.right) / 2;
    setView(zoomed(m_view, m_state.whole(), grip, xFactor, yFactor));
}

const FlameBox* MomentPicture::boxAt(QPointF at) const
{
    if (!m_flame)
        return nullptr;
    const auto found =
        std::find_if(m_flame->begin(), m_flame->end(), [&](const FlameBox& box) { return box.rect.contains(at); });
    return found == m_flame->end() ? nullptr : &*found;
}

QString MomentPicture::toolTipAt(QPointF at) const
{
    const MomentState& state = m_state;
    if (!state.step)
        return {};
    if (const FlameBox* box = boxAt(at)) {
        const StepSpan& span = state.step->spans[std::size_t(box->span)];
        const auto begin = state.step->totals.begin() + (span.begin - state.step->first);
        const auto end = state.step->totals.begin() + (span.end - state.step->first);
        return tr("%1: %2 events, up to %3 allocated. A click shows it alone.")
            .arg(span.path)
            .arg(span.end - span.begin)
            .arg(memoryText(*std::max_element(begin, end), state.bytes));
    }
    if (const StepShape* shape = chartNow().at(at))
        return shapeText(*state.step, *shape, state.bytes);
    for (const LiveRow& row : layoutNow().rows) {
        if (!row.rect.contains(at) || std::size_t(row.live) >= state.moment.live.size())
            continue;
        const LiveTensor& tensor = state.moment.live[std::size_t(row.live)];
        return tr("%1: %2, %n tensor(s), %3", nullptr, tensor.count)
            .arg(placeText({}, tensor.module, tensor.name), memoryText(tensor.bytes, state.bytes),
                 QString(tensor.category).replace(u'_', u' '));
    }
    return {};
}

/// Esc in the search ends it.
bool MomentPicture::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_search && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Escape || key == Qt::Key_Return || key == Qt::Key_Enter) {
            if (key == Qt::Key_Escape)
                m_search->clear();
            setFocus(Qt::ShortcutFocusReason);
            return true;
        }
    }
    return Picture::eventFilter(watched, event);
}

void MomentPicture::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton)
        return Picture::mousePressEvent(event);
    setFocus(Qt::MouseFocusReason);
    m_pointer = event->position();
    m_pressed = event->position();
    m_pressedView = m_view;
    m_isPanning = false;
}

void MomentPicture::mouseMoveEvent(QMouseEvent* event)
{
    m_pointer = event->position();
    if (m_pressed && m_state.step) {
        const QPointF way = m_pointer - *m_pressed;
        const QRectF& area = chartNow().area;
        m_isPanning |= std::hypot(way.x(), way.y()) > clickRoom * plotUnit();
        const bool isIn = area.contains(*m_pressed) || layoutNow().flame.contains(*m_pressed);
        if (m_isPanning && isIn) {
            setCursor(Qt::ClosedHandCursor);
            return setView(panned(m_pressedView, m_state.whole(), -way.x() / area.width(), way.y() / area.height()));
        }
    }
    setCursor(boxAt(m_pointer)                          ? Qt::PointingHandCursor
                  : chartNow().area.contains(m_pointer) ? Qt::CrossCursor
                                                        : Qt::ArrowCursor);
    emit hoverText(toolTipAt(m_pointer));
    update();
}

void MomentPicture::mouseReleaseEvent(QMouseEvent* event)
{
    if (m_pressed && !std::exchange(m_isPanning, false))
        click(event->position());
    m_pressed.reset();
    update();
}

void MomentPicture::click(QPointF at)
{
    if (!m_state.step)
        return;
    if (const FlameBox* box = boxAt(at)) {
        const StepSpan& span = m_state.step->spans[std::size_t(box->span)];
        const double room = 0.02 * (span.end - span.begin);
        return setView({span.begin - room, span.end + room, m_view.bottom, m_view.top});
    }
    if (chartNow().area.contains(at))
        emit cursorWanted(std::floor(chartNow().eventAt(at.x())));
}

void MomentPicture::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (chartNow().area.contains(event->position()) || layoutNow().flame.contains(event->position()))
        setView(m_state.whole());
}

void MomentPicture::leaveEvent(QEvent* event)
{
    m_pointer = {-1, -1};
    update();
    Picture::leaveEvent(event);
}

void MomentPicture::wheelEvent(QWheelEvent* event)
{
    const QPointF at = event->position();
    // A touchpad may turn Shift+wheel into a sideways one.
    const int delta = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
    event->accept();
    if (layoutNow().list.contains(at))
        return scroll(delta > 0 ? -3 : 3);
    const bool isFlame = layoutNow().flame.contains(at);
    if (delta == 0 || !m_state.step || (!isFlame && !chartNow().area.contains(at)))
        return;
    const double factor = std::pow(zoomStep, delta / 120.0);
    const bool xOnly = isFlame || event->modifiers() & Qt::ControlModifier,
               yOnly = event->modifiers() & Qt::ShiftModifier;
    zoomAbout(yOnly && !isFlame ? 1 : factor, xOnly ? 1 : factor, at);
}

void MomentPicture::keyPressEvent(QKeyEvent* event)
{
    if (isCursorKey(event->key())) {
        emit cursorKey(event->key(), event->modifiers());
        return;
    }
    switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Down: return scroll(event->key() == Qt::Key_Up ? -1 : 1);
    case Qt::Key_PageUp:
    case Qt::Key_PageDown: {
        const int page = std::max(1, int(layoutNow().rows.size()) - 1);
        return scroll(event->key() == Qt::Key_PageUp ? -page : page);
    }
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomAbout(zoomStep, 1);
    case Qt::Key_Minus: return zoomAbout(1 / zoomStep, 1);
    case Qt::Key_0:
    case Qt::Key_Escape: return setView(m_state.whole());
    case Qt::Key_Slash: return m_search->setFocus(Qt::ShortcutFocusReason);
    default: Picture::keyPressEvent(event);
    }
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/plot_view.h"

#include "app/plots/plot_private.h"

#include <QAccessible>
#include <QEvent>
#include <QVBoxLayout>
#include <QWindow>

#include <algorithm>

namespace memscape {

namespace {

constexpr int frameMilliseconds = 16;
constexpr int restMilliseconds = 250; // without a change, after which the plot says what it shows

} // namespace

PlotView::Private::Private(PlotView* owner)
    : view(owner)
    , scene(owner)
{
    scene.state().emptyText = PlotView::tr("Nothing to show yet. Change a parameter or press Measure.");
    scene.setOverlay([this](QPainter& painter) { paintOverlay(painter); });
    frame.setSingleShot(true);
    sinceFrame.start();
    rest.setSingleShot(true);
    rest.setInterval(restMilliseconds);
}

void PlotView::Private::describe()
{
    rest.stop();
    view->setAccessibleDescription(view->summary());
}

void PlotView::Private::updateNote()
{
    const QString text = noteFor(scene.state().cleaned);
    if (text == note)
        return;
    note = text;
    emit view->noteChanged(note);
}

void PlotView::Private::setCrosshair(const Sample& sample, QPointF pointer)
{
    crosshair = {sample, pointer};
    const QString text = readoutText(scene.state(), sample);
    scene.replotOverlay();
    if (text == readout)
        return;
    readout = text;
    emit view->readoutChanged(text);
    if (byKeyboard) {
        QAccessibleEvent event(view, QAccessible::DescriptionChanged);
        QAccessible::updateAccessibility(&event);
    }
}

PlotView::PlotView(QWidget* parent)
    : QWidget(parent)
    , m_d(std::make_unique<Private>(this))
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_d->scene.widget());
    m_d->scene.widget()->installEventFilter(this);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Plot"));
    connect(&m_d->frame, &QTimer::timeout, this, [this] {
        m_d->sinceFrame.restart();
        m_d->ensureRanges();
        m_d->scene.setPixelRatio(devicePixelRatioF());
        m_d->scene.replot();
        m_d->rest.start();
    });
    connect(&m_d->rest, &QTimer::timeout, this, [this] { m_d->describe(); });
}

PlotView::~PlotView()
{
    // A canvas that goes away sends a last Leave, when half of what would answer it is gone.
    m_d->scene.widget()->removeEventFilter(this);
    m_d->frame.stop();
    m_d->rest.stop();
}

void PlotView::setTitle(const QString& title)
{
    if (m_d->scene.state().title == title)
        return;
    m_d->scene.state().title = title;
    setAccessibleName(title.isEmpty() ? tr("Plot") : title);
    scheduleReplot();
}

QString PlotView::title() const
{
    return m_d->scene.state().title;
}

void PlotView::setAxes(const AxisSpec& x, const AxisSpec& y)
{
    if (m_d->specX == x && m_d->specY == y)
        return;
    const auto other = [](const AxisSpec& a, const AxisSpec& b) {
        return a.label != b.label || a.unit != b.unit || a.names != b.names || a.log != b.log;
    };
    // Another quantity: what was zoomed and chosen for the old one does not carry over.
    if (other(m_d->specX, x)) {
        m_d->logX = -1;
        m_d->following = true;
    }
    if (other(m_d->specY, y)) {
        m_d->logY = -1;
        m_d->following = true;
    }
    m_d->specX = x;
    m_d->specY = y;
    m_d->applyAxes();
    scheduleReplot();
}

const AxisSpec& PlotView::xAxis() const
{
    return m_d->scene.state().x;
}

const AxisSpec& PlotView::yAxis() const
{
    return m_d->scene.state().y;
}

void PlotView::setCurves(std::vector<Curve> curves)
{
    for (Curve& curve : curves) {
        if (m_d->hiddenByHand.contains(curve.key))
            curve.visible = false;
    }
    if (curves == m_d->scene.state().curves)
        return;
    const Crosshair before = std::exchange(m_d->crosshair, {}); // its indices are of the old points
    m_d->scene.setCurves(std::move(curves));
    m_d->rangesDirty = true;
    if (!m_d->following && !m_d->scene.state().empty() && !m_d->inSight()) {
        m_d->following = true;
        emit rangeChanged();
    }
    if (before.sample.found)
        showCrosshairAt(before.sample.x);
    m_d->updateNote();
    scheduleReplot();
}

const std::vector<Curve>& PlotView::curves() const
{
    return m_d->scene.state().curves;
}

void PlotView::setMarkers(std::vector<Marker> markers)
{
    if (markers == m_d->scene.state().markers)
        return;
    m_d->scene.state().markers = std::move(markers);
    scheduleReplot();
}

const std::vector<Marker>& PlotView::markers() const
{
    return m_d->scene.state().markers;
}

void PlotView::setLines(std::vector<HorizontalLine> lines)
{
    if (lines == m_d->scene.state().lines)
        return;
    m_d->scene.state().lines = std::move(lines);
    m_d->rangesDirty = true;
    scheduleReplot();
}

void PlotView::setBands(std::vector<Band> bands)
{
    if (bands == m_d->scene.state().bands)
        return;
    m_d->scene.state().bands = std::move(bands);
    scheduleReplot();
}

void PlotView::setPhases(std::vector<Band> phases)
{
    if (phases == m_d->scene.state().phases)
        return;
    m_d->scene.state().phases = std::move(phases);
    scheduleReplot();
}

void PlotView::setCallouts(std::vector<Callout> callouts)
{
    if (callouts == m_d->scene.state().callouts)
        return;
    m_d->scene.state().callouts = std::move(callouts);
    scheduleReplot();
}

void PlotView::setEmptyText(const QString& text)
{
    m_d->scene.state().emptyText = text;
    scheduleReplot();
}

void PlotView::scheduleReplot()
{
    if (m_d->frame.isActive() || !isVisible())
        return; // when it is shown, event() draws it
    const auto since = static_cast<int>(std::min<qint64>(m_d->sinceFrame.elapsed(), frameMilliseconds));
    m_d->frame.start(frameMilliseconds - since);
}

int PlotView::replotCount() const
{
    return m_d->scene.replots();
}

void PlotView::setPen(bool on)
{
    m_d->pen = on;
}

void PlotView::setRubberBand(bool on)
{
    m_d->rubberBand = on;
    m_d->scene.widget()->setCursor(on ? Qt::CrossCursor : Qt::ArrowCursor);
}

void PlotView::setCrosshairEnabled(bool on)
{
    m_d->crosshairOn = on;
    if (!on)
        hideCrosshair();
}

void PlotView::showCrosshairAt(double x)
{
    m_d->ensureRanges();
    const PlotState& state = m_d->scene.state();
    const Sample sample = nearestSample(state.curves, state.cleaned, state.xRange, state.xRange.toShare(x));
    const PlotMapper map = m_d->scene.mapper();
    m_d->setCrosshair(sample, QPointF(map.toX(sample.x), map.rect.center().y()));
}

void PlotView::hideCrosshair()
{
    m_d->byKeyboard = false;
    m_d->setCrosshair({}, {});
}

QString PlotView::readout() const
{
    return m_d->readout;
}

QString PlotView::note() const
{
    return m_d->note;
}

QString PlotView::summary() const
{
    const PlotState& state = m_d->scene.state();
    QString text = summaryText(state.title, state.x, state.y, state.curves);
    if (!m_d->note.isEmpty())
        text += QLatin1Char(' ') + m_d->note + QLatin1Char('.');
    return text;
}

QSize PlotView::sizeHint() const
{
    return {static_cast<int>(760 * plotUnit()), static_cast<int>(440 * plotUnit())};
}

QSize PlotView::minimumSizeHint() const
{
    return {static_cast<int>(280 * plotUnit()), static_cast<int>(110 * plotUnit())};
}

void PlotView::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    const auto type = event->type();
    if (type == QEvent::PaletteChange || type == QEvent::FontChange || type == QEvent::StyleChange) {
        m_d->scene.setTheme(currentTheme());
        scheduleReplot();
    }
}

bool PlotView::event(QEvent* event)
{
    switch (event->type()) {
    case QEvent::Show:
        m_d->ensureRanges();
        m_d->scene.setPixelRatio(devicePixelRatioF());
        m_d->scene.setTheme(currentTheme());
        if (QWindow* handle = window()->windowHandle()) // the new screen may be of another density
            connect(handle, &QWindow::screenChanged, this, &PlotView::scheduleReplot, Qt::UniqueConnection);
        m_d->frame.start(0);
        break;
    case QEvent::ToolTip:
    case QEvent::QueryWhatsThis: break;
    case QEvent::FocusIn:
    case QEvent::FocusOut: {
        const auto reason = static_cast<QFocusEvent*>(event)->reason();
        m_d->keyboardFocus = event->type() == QEvent::FocusIn
            && (reason == Qt::TabFocusReason || reason == Qt::BacktabFocusReason || reason == Qt::ShortcutFocusReason);
        m_d->describe();
        m_d->scene.replotOverlay();
        break;
    }
    default: break;
    }
    return QWidget::event(event);
}

} // namespace memscape

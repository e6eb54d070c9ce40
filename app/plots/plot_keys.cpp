// SPDX-License-Identifier: GPL-3.0-or-later
// The keys of a plot, which are those of Wireshark's graphs, and its context menu.
#include "app/plots/plot_private.h"

#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double keyZoom = 0.8;

} // namespace

void PlotView::Private::stepCrosshair(int direction)
{
    ensureRanges();
    const PlotState& state = scene.state();
    double next = std::nan("");
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const auto& x = state.cleaned[c].x;
        if (!state.curves[c].visible || x.empty())
            continue;
        auto it = direction > 0 ? std::ranges::upper_bound(x, crosshair.sample.x)
                                : std::ranges::lower_bound(x, crosshair.sample.x);
        if (direction > 0 ? it == x.end() : it == x.begin())
            continue;
        const double candidate = direction > 0 ? *it : *(it - 1);
        const bool nearer = direction > 0 ? candidate < next : candidate > next;
        if (std::isnan(next) || nearer)
            next = candidate;
    }
    byKeyboard = true;
    if (std::isfinite(next))
        view->showCrosshairAt(next);
}

void PlotView::Private::toggleLog(bool xAxis)
{
    const AxisSpec& now = xAxis ? scene.state().x : scene.state().y;
    const AxisSpec& spec = xAxis ? specX : specY;
    const int base = now.log != 0 ? 0 : spec.log != 0 ? spec.log : spec.unit == Unit::Byte ? 2 : 10;
    xAxis ? view->setLogX(base) : view->setLogY(base);
}

bool PlotView::Private::panKey(QKeyEvent& event)
{
    const bool shift = event.modifiers() & Qt::ShiftModifier;
    const bool alt = event.modifiers() & Qt::AltModifier;
    const QRectF rect = scene.mapper().rect;
    const double pixels = shift ? 1 : 100;
    const double stepX = shift || alt ? pixels / std::max(1.0, rect.width()) : 0.1;
    const double stepY = shift || alt ? pixels / std::max(1.0, rect.height()) : 0.1;
    switch (event.key()) {
    case Qt::Key_Left:
    case Qt::Key_Right: {
        const int direction = event.key() == Qt::Key_Left ? -1 : 1;
        byKeyboard ? stepCrosshair(direction) : view->pan(direction * stepX, 0);
        return true;
    }
    case Qt::Key_Up: view->pan(0, stepY); return true;
    case Qt::Key_Down: view->pan(0, -stepY); return true;
    default: return false;
    }
}

void PlotView::Private::toggleKeyboardCrosshair()
{
    if (byKeyboard) {
        view->hideCrosshair();
        return;
    }
    byKeyboard = true;
    const auto& markers = scene.state().markers;
    view->showCrosshairAt(markers.empty() ? scene.state().xRange.fromShare(0.5) : markers.front().x);
}

bool PlotView::Private::key(QKeyEvent& event)
{
    const bool shift = event.modifiers() & Qt::ShiftModifier;
    if (event.modifiers() & (Qt::ControlModifier | Qt::MetaModifier))
        return false;
    switch (event.key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: view->zoom(keyZoom, keyZoom); return true;
    case Qt::Key_Minus: view->zoom(1 / keyZoom, 1 / keyZoom); return true;
    case Qt::Key_X: view->zoom(shift ? 1 / keyZoom : keyZoom, 1); return true;
    case Qt::Key_Y: view->zoom(1, shift ? 1 / keyZoom : keyZoom); return true;
    case Qt::Key_0:
    case Qt::Key_Home: view->resetView(); return true;
    case Qt::Key_Space: toggleKeyboardCrosshair(); return true;
    case Qt::Key_Z: view->setRubberBand(!rubberBand); return true;
    case Qt::Key_L: toggleLog(shift); return true;
    case Qt::Key_Escape:
        if (!byKeyboard && !rubberBand && drag == Drag::None)
            return false;
        drag = Drag::None;
        view->setRubberBand(false);
        view->hideCrosshair();
        return true;
    default: return panKey(event);
    }
}

void PlotView::keyPressEvent(QKeyEvent* event)
{
    if (event->matches(QKeySequence::Copy))
        copyImage();
    else if (!m_d->key(*event))
        QWidget::keyPressEvent(event);
}

void PlotView::contextMenuEvent(QContextMenuEvent* event)
{
    QMenu menu(this);
    fillMenu(menu);
    menu.exec(event->globalPos());
}

void PlotView::fillMenu(QMenu& menu)
{
    menu.addAction(tr("Copy plot as image"), this, &PlotView::copyImage);
    menu.addAction(tr("Copy data"), this, &PlotView::copyData);
    menu.addAction(tr("Export…"), this, &PlotView::exportRequested);
    menu.addSeparator();
    const auto toggle = [&](const QString& text, bool checked, auto slot) {
        QAction* action = menu.addAction(text);
        action->setCheckable(true);
        action->setChecked(checked);
        connect(action, &QAction::triggered, this, slot);
        return action;
    };
    QAction* logX = toggle(tr("Logarithmic x axis (L)"), xAxis().log != 0, [this] { m_d->toggleLog(true); });
    logX->setEnabled(xAxis().names.isEmpty());
    toggle(tr("Logarithmic y axis (l)"), yAxis().log != 0, [this] { m_d->toggleLog(false); });
    toggle(tr("Zoom with a rectangle (z)"), m_d->rubberBand, [this] { setRubberBand(!m_d->rubberBand); });
    toggle(tr("Crosshair"), m_d->crosshairOn, [this] { setCrosshairEnabled(!m_d->crosshairOn); });
    menu.addSeparator();
    QAction* reset = menu.addAction(tr("Show everything (0)"), this, &PlotView::resetView);
    reset->setEnabled(!m_d->following);
}

QString PlotView::shortcuts()
{
    return tr("Wheel: zoom (Ctrl: x only, Shift: y only) · drag: pan, on an axis that axis alone · "
              "double click, 0 or Home: show everything\n"
              "+ −: zoom · x X, y Y: one axis · arrows: pan (Shift: 1 pixel, Alt: 100) · "
              "z: zoom with a rectangle\n"
              "Space: crosshair, then ← → from point to point · l, L: logarithmic y, x axis · "
              "Ctrl+C: copy the plot");
}

} // namespace memscape

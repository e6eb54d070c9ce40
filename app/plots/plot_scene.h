// SPDX-License-Identifier: GPL-3.0-or-later
// The QCustomPlot behind a PlotView: axes, grid, tickers and one graph per curve; everything around
// them is painted by plot_paint.h on layers of it. A second scene with another theme and size makes
// the exports, so the one on screen is never disturbed.
#pragma once

#include "app/plots/plot_paint.h"
#include "app/plots/ticks.h"

#include <QSize>

#include <functional>
#include <memory>

class QPaintDevice;
class QWidget;

namespace memscape {

class PlotScene
{
public:
    explicit PlotScene(QWidget* parent = nullptr);
    ~PlotScene();

    QWidget* widget() const;
    const PlotState& state() const { return m_state; }
    PlotState& state() { return m_state; }

    void setTheme(const Theme& theme);
    const Theme& theme() const { return *m_theme; }
    /// Takes curves over: cleans them, hands changed data to the graphs. Axes must be set before.
    void setCurves(std::vector<Curve> curves);
    /// After the logarithm of an axis changed: what can be shown may have changed.
    void cleanAgain();
    void setOverlay(std::function<void(QPainter&)> paint) { m_overlay = std::move(paint); }
    void setHoveredLegend(int curve) { m_hoveredLegend = curve; }

    void replot();
    void replotOverlay();
    void setPixelRatio(double ratio);
    int replots() const { return m_replots; }
    PlotMapper mapper() const; ///< as of the last replot
    const PlotHeader& header() const { return m_header; }

    /// Draws everything, as lines and text where the device has them.
    void render(QPaintDevice& device, QSize size, double scale, bool vectors);

private:
    class Graphs;

    bool isUnderPill(const Tick& tick) const; ///< of the x axis

    /// `columns`: how many pixels stand side by side; only a device without pixels has others.
    void prepare(QSize size, double columns);
    void updateGraph(std::size_t index, bool dataChanged);
    void styleGraph(std::size_t index, double columns);

    PlotState m_state;
    const Theme* m_theme;
    PlotHeader m_header;
    std::function<void(QPainter&)> m_overlay;
    std::unique_ptr<Graphs> m_graphs;
    int m_hoveredLegend = -1;
    int m_replots = 0;
};

} // namespace memscape

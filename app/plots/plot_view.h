// SPDX-License-Identifier: GPL-3.0-or-later
// A plot: curves on two axes with a crosshair, markers to drag, zoom, pan and export. The only door
// to QCustomPlot, which is forward-declared here because including it costs nine seconds a file.
//
// Everything that changes calls scheduleReplot(); however many changes there were since the last
// frame, the plot is drawn once. Points that are not finite, and zeros or negatives on a
// logarithmic axis, are left out as gaps and counted in note(). The view follows its data until the
// person zooms or pans; resetView() lets it follow again.
//
// Mouse: wheel zooms (Ctrl: x only, Shift: y only), a drag pans, a drag on an axis pans that axis,
// a double click resets. Keys: see shortcuts().
#pragma once

#include "app/plots/plot_types.h"
#include "app/settings/theme.h"
#include "core/base/result.h"

#include <QWidget>

#include <memory>

class QCustomPlot;
class QMenu;

namespace memscape {

enum class ExportTheme { Light, Dark, AsOnScreen };

struct PlotExport
{
    QSize size{960, 600}; ///< logical; the layout follows it
    double scale = 2;     ///< PNG pixels per logical pixel
    ExportTheme theme = ExportTheme::Light;
    QString title = {};       ///< replaces the plot's own title in the file
    QString description = {}; ///< metadata: parameters, device
};

/// What is on screen, for saving with a study and for a history of views.
struct PlotRange
{
    double xLow = 0, xHigh = 1, yLow = 0, yHigh = 1;

    bool operator==(const PlotRange&) const = default;
};

class PlotView : public QWidget
{
    Q_OBJECT

public:
    explicit PlotView(QWidget* parent = nullptr);
    ~PlotView() override;

    void setTitle(const QString& title);
    QString title() const;
    void setAxes(const AxisSpec& x, const AxisSpec& y);
    const AxisSpec& xAxis() const;
    const AxisSpec& yAxis() const;
    /// Curves in drawing order. What stayed the same is left alone. Zoom is kept, unless it shows
    /// none of the new points; a curve that was hidden by the legend stays hidden under its key.
    void setCurves(std::vector<Curve> curves);
    const std::vector<Curve>& curves() const;
    void setMarkers(std::vector<Marker> markers);
    const std::vector<Marker>& markers() const;
    void setLines(std::vector<HorizontalLine> lines);
    void setBands(std::vector<Band> bands);
    /// Named stretches under the x axis, in place of its numbers ("forward", "backward").
    void setPhases(std::vector<Band> phases);
    void setCallouts(std::vector<Callout> callouts);
    /// Shown in the middle while there is nothing to draw.
    void setEmptyText(const QString& text);

    /// Logarithmic axes by hand (base 0, 2 or 10); setAxes() sets them back when the spec changes.
    void setLogX(int base);
    void setLogY(int base);

    /// One replot per frame, however often it is called.
    void scheduleReplot();
    int replotCount() const; ///< since construction, for tests and benchmarks

    void resetView();
    bool following() const; ///< the view follows its data
    PlotRange range() const;
    void setRange(const PlotRange& range);     ///< stops following
    void zoom(double xFactor, double yFactor); ///< about the middle; below 1 is nearer
    void pan(double xShare, double yShare);    ///< by shares of what is visible
    void setRubberBand(bool on);               ///< a drag selects the rectangle to zoom to
    void setPen(bool on);                      ///< a drag inside of the axes draws: penMoved() instead of a pan

    void setCrosshairEnabled(bool on);
    /// As if the pointer were at x: draws the crosshair and gives the readout.
    void showCrosshairAt(double x);
    void hideCrosshair();
    QString readout() const;
    QString note() const;    ///< "3 points are not shown: …", empty when all are
    QString summary() const; ///< what the plot shows, in words, for screen readers

    /// Writes .png, .svg or .pdf by the path's ending. Errors: export.format, export.write.
    Result<void> exportTo(const QString& path, const PlotExport& options = {});
    QImage image(const PlotExport& options = {});
    /// Draws the plot into a rectangle, as vectors where the painter has them: for pages and PDFs.
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme);
    /// A table of the curves: x, then per curve y and its band. RFC 4180 quoting for ','.
    QString dataText(QChar separator, bool visibleRangeOnly) const;
    void copyImage();
    void copyData();

    /// Adds the plot's own actions (copy, export, log axes, reset); also its context menu.
    void fillMenu(QMenu& menu);
    /// "+ − zoom, x X y Y one axis, …": for the help and the tooltip of the hint line.
    static QString shortcuts();

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void markerDragged(const QString& key, double x);  ///< while it moves
    void markerReleased(const QString& key, double x); ///< once, at the end
    void readoutChanged(const QString& text);
    void noteChanged(const QString& text);
    void curveClicked(const QString& key);
    /// Instead: curves of one point that stand together there, the one on top first.
    void pointsClicked(const QStringList& keys, const QPoint& globalPlace);
    void penMoved(QPointF from, QPointF to); ///< a stroke's next piece, in values of the axes
    void penLifted();                        ///< a stroke has ended
    void rangeChanged();                     ///< zoom, pan or reset by a person
    void exportRequested();                  ///< "Export…" in the context menu
    void failed(const QString& message);     ///< an export from the menu went wrong

protected:
    void changeEvent(QEvent* event) override;
    bool event(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    class Private;
    std::unique_ptr<Private> m_d;
};

} // namespace memscape

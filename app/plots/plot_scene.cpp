// SPDX-License-Identifier: GPL-3.0-or-later
// Three measured facts shape this file. A wide or dashed pen over a hundred thousand noisy points
// costs seconds, a solid one of width 1 with fast polylines milliseconds: dense curves are drawn
// thin. QCustomPlot walks over every visible point of a frame: long curves are given to it by the
// column of pixels (plot_dense.h). And it labels base-2 axes wrongly: ticks and texts are ours
// (ticks.h).
#include "app/plots/plot_scene.h"

#include "app/plots/plot_dense.h"

#include <QFontMetricsF>
#include <qcustomplot.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace memscape {

namespace {

constexpr std::ptrdiff_t denseCurve = 4000; // visible points from which on a curve is drawn thin
constexpr std::size_t longCurve = 20000;    // points from which on a frame gets only what it shows
constexpr double crowded = 5;               // columns of pixels that a dot on a line needs for itself

// A layer's worth of plain painting.
class PaintLayer : public QCPLayerable
{
public:
    PaintLayer(QCustomPlot* plot, const QString& layer, std::function<void(QPainter&)> paint)
        : QCPLayerable(plot, layer)
        , m_paint(std::move(paint))
    { }

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
    void draw(QCPPainter* painter) override { m_paint(*painter); }

private:
    std::function<void(QPainter&)> m_paint;
};

class UnitTicker : public QCPAxisTicker
{
public:
    AxisSpec axis;
    int wanted = 6;
    std::function<bool(const Tick&)> isCovered; ///< by what stands on the axis: its text is left out

    void generate(const QCPRange& range, const QLocale&, QChar, int, QVector<double>& ticks, QVector<double>* subTicks,
                  QVector<QString>* labels) override
    {
        ticks.clear();
        if (labels)
            labels->clear();
        for (const Tick& tick : majorTicks(axis, range.lower, range.upper, wanted)) {
            ticks.append(tick.value);
            if (labels)
                labels->append(isCovered && isCovered(tick) ? QString() : tick.text);
        }
        if (subTicks) {
            const auto minor = minorTicks(axis, range.lower, range.upper, wanted);
            *subTicks = QVector<double>(minor.begin(), minor.end());
        }
    }
};

/// `rim`: dots over areas are set off by a line around them.
QCPScatterStyle scatterOf(const CurveStyle& style, const QColor& background, bool dense, bool rim)
{
    if (style.size <= 0)
        return QCPScatterStyle::ssNone;
    if (dense)
        return QCPScatterStyle(QCPScatterStyle::ssDisc, QPen(style.colour), QBrush(style.colour), 2.5);
    const bool open = style.hollow || isOfStrokes(style.shape);
    const QPen pen(rim && !open ? background : style.colour, open ? 1.5 : rim ? 1.2 : 1.0);
    const QBrush brush(style.hollow ? background : style.colour);
    switch (style.shape) {
    case MarkerShape::Square: return {QCPScatterStyle::ssSquare, pen, brush, style.size * 0.88};
    case MarkerShape::Diamond: return {QCPScatterStyle::ssDiamond, pen, brush, style.size * 1.2};
    case MarkerShape::Triangle: return {QCPScatterStyle::ssTriangle, pen, brush, style.size * 1.1};
    case MarkerShape::Cross: return {QCPScatterStyle::ssCross, pen, QBrush(), style.size};
    case MarkerShape::TriangleDown: return {QCPScatterStyle::ssTriangleInverted, pen, brush, style.size * 1.1};
    case MarkerShape::Plus: return {QCPScatterStyle::ssPlus, pen, QBrush(), style.size};
    default: return {QCPScatterStyle::ssCircle, pen, brush, style.size};
    }
}

void setUpAxis(QCPAxis& axis, const QSharedPointer<UnitTicker>& ticker)
{
    axis.setTicker(ticker);
    axis.setBasePen(Qt::NoPen);
    axis.setTickPen(Qt::NoPen);
    axis.setSubTickPen(Qt::NoPen);
    axis.setTickLengthIn(0);
    axis.setTickLengthOut(0);
    axis.setSubTickLength(0);
    axis.setTickLabelPadding(8);
    axis.grid()->setZeroLinePen(Qt::NoPen);
}

} // namespace

// Private to this file.
class PlotScene::Graphs
{
public:
    explicit Graphs(QWidget* parent)
        : plot(new QCustomPlot(parent))
        , xTicker(new UnitTicker)
        , yTicker(new UnitTicker)
    {
        plot->setPlottingHints(QCP::phFastPolylines | QCP::phCacheLabels);
        plot->setNoAntialiasingOnDrag(false);
        plot->setFocusPolicy(Qt::NoFocus);
        plot->addLayer(QStringLiteral("below"), plot->layer(QStringLiteral("grid")));
        plot->addLayer(QStringLiteral("above"), plot->layer(QStringLiteral("legend")));
        setUpAxis(*plot->xAxis, xTicker);
        setUpAxis(*plot->yAxis, yTicker);
    }

    QPointer<QCustomPlot> plot;
    QSharedPointer<UnitTicker> xTicker, yTicker;
    std::vector<QCPGraph*> graphs;                  // as many as curves
    std::vector<std::optional<ExtremesTree>> trees; // as many as curves, of the long ones
};

namespace {

/// `cloud`: dots as short lines, which are drawn ten times as fast; a full column is one of them.
QVector<QCPGraphData> graphData(const std::vector<DensePoint>& points, bool cloud)
{
    QVector<QCPGraphData> data;
    data.reserve(qsizetype(points.size()) * (cloud ? 3 : 1));
    for (const DensePoint& point : points) {
        if (cloud && !point.joined) {
            data.append(QCPGraphData(point.x, std::numeric_limits<double>::quiet_NaN()));
            data.append(QCPGraphData(point.x, point.y)); // a dot alone is a line to itself
        }
        data.append(QCPGraphData(point.x, point.y));
    }
    return data;
}

/// Of a line over categories: a level at each, with gaps between them.
QVector<QCPGraphData> levelData(const CleanCurve& curve)
{
    QVector<QCPGraphData> data;
    data.reserve(qsizetype(curve.x.size()) * 3);
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
        data.append(QCPGraphData(curve.x[i] - levelReach, curve.y[i]));
        data.append(QCPGraphData(curve.x[i] + levelReach, curve.y[i]));
        data.append(QCPGraphData(curve.x[i] + levelReach, std::numeric_limits<double>::quiet_NaN()));
    }
    return data;
}

} // namespace

PlotScene::PlotScene(QWidget* parent)
    : m_theme(&currentTheme())
    , m_graphs(std::make_unique<Graphs>(parent))
{
    QCustomPlot* plot = m_graphs->plot;
    plot->setMinimumSize(1, 1); // of no size there would be nothing to draw on, and it draws whenever it is resized
    // The plot owns these; they live as long as it does.
    new PaintLayer(plot, QStringLiteral("below"),
                   [this](QPainter& painter) { paintBelow(painter, m_state, mapper(), *m_theme); });
    new PaintLayer(plot, QStringLiteral("above"), [this](QPainter& painter) {
        paintAbove(painter, m_state, mapper(), *m_theme);
        paintHeader(painter, m_state, m_header, *m_theme, m_hoveredLegend);
    });
    new PaintLayer(plot, QStringLiteral("overlay"), [this](QPainter& painter) {
        if (m_overlay)
            m_overlay(painter);
    });
    QObject::connect(plot, &QCustomPlot::beforeReplot, plot, [this] {
        QCustomPlot* canvas = m_graphs->plot;
        prepare(canvas->size(), canvas->width() * canvas->bufferDevicePixelRatio());
        // Ticks are made before the margins of their frame: once through for the margins, then the ticks know
        // where the pills will stand.
        for (const auto phase :
             {QCPLayoutElement::upPreparation, QCPLayoutElement::upMargins, QCPLayoutElement::upLayout})
            canvas->plotLayout()->update(phase);
    });
    QObject::connect(plot, &QCustomPlot::afterReplot, plot, [this] { ++m_replots; });
    m_graphs->xTicker->isCovered = [this](const Tick& tick) { return isUnderPill(tick); };
    setTheme(currentTheme());
}

bool PlotScene::isUnderPill(const Tick& tick) const
{
    constexpr double nextTo = 8; // px between a text and a pill
    const PlotMapper map = mapper();
    const QFontMetricsF metrics(m_graphs->plot->xAxis->tickLabelFont());
    const QSizeF size = metrics.size(0, tick.text);
    const QRectF text(map.toX(tick.value) - size.width() / 2, map.rect.bottom() + 8, size.width(), size.height());
    for (std::size_t i = 0; i < m_state.markers.size(); ++i) {
        const QRectF pill = markerPill(m_state, i, map);
        if (!pill.isEmpty() && pill.adjusted(-nextTo, 0, nextTo, 0).intersects(text))
            return true;
    }
    return false;
}

PlotScene::~PlotScene()
{
    delete m_graphs->plot;
}

QWidget* PlotScene::widget() const
{
    return m_graphs->plot;
}

void PlotScene::setTheme(const Theme& theme)
{
    m_theme = &theme;
    QCustomPlot* plot = m_graphs->plot;
    plot->setBackground(theme.background);
    for (QCPAxis* axis : {plot->xAxis, plot->yAxis}) {
        axis->setTickLabelFont(plotFont(0.88));
        axis->setTickLabelColor(theme.textDim);
        axis->setLabelFont(plotFont(0.88));
        axis->setLabelColor(theme.textFaint);
        QPen grid(theme.grid, 1);
        grid.setDashPattern({2, 4});
        axis->grid()->setPen(grid);
        QColor faint = theme.grid;
        faint.setAlphaF(0.45F);
        axis->grid()->setSubGridPen(QPen(faint, 1));
    }
    for (std::size_t i = 0; i < m_graphs->graphs.size(); ++i)
        updateGraph(i, false);
}

void PlotScene::setCurves(std::vector<Curve> curves)
{
    const bool sameKeys = curves.size() == m_state.curves.size()
        && std::equal(curves.begin(), curves.end(), m_state.curves.begin(),
                      [](const Curve& a, const Curve& b) { return a.key == b.key; });
    if (!sameKeys) {
        m_graphs->plot->clearGraphs();
        m_graphs->graphs.clear();
        m_graphs->trees.assign(curves.size(), std::nullopt);
        for (std::size_t i = 0; i < curves.size(); ++i)
            m_graphs->graphs.push_back(m_graphs->plot->addGraph());
        m_state.cleaned.assign(curves.size(), {});
    }
    const std::vector<Curve> before = sameKeys ? std::move(m_state.curves) : std::vector<Curve>{};
    m_state.curves = std::move(curves);
    for (std::size_t i = 0; i < m_state.curves.size(); ++i) {
        const Curve& now = m_state.curves[i];
        const bool same = sameKeys && before[i].x == now.x && before[i].y == now.y && before[i].low == now.low
            && before[i].high == now.high;
        if (!same)
            m_state.cleaned[i] = clean(now, m_state.x.log != 0, m_state.y.log != 0);
        updateGraph(i, !same);
    }
}

void PlotScene::cleanAgain()
{
    for (std::size_t i = 0; i < m_state.curves.size(); ++i) {
        m_state.cleaned[i] = clean(m_state.curves[i], m_state.x.log != 0, m_state.y.log != 0);
        updateGraph(i, true);
    }
}

void PlotScene::updateGraph(std::size_t index, bool dataChanged)
{
    QCPGraph* graph = m_graphs->graphs[index];
    const CleanCurve& clean = m_state.cleaned[index];
    graph->setVisible(m_state.curves[index].visible && m_state.curves[index].role != CurveRole::Area);
    if (!dataChanged || m_state.curves[index].role == CurveRole::Area) // areas are painted by us
        return;
    m_graphs->trees[index].reset();
    if (m_state.hasLevels(index, *m_theme)) {
        graph->data()->set(levelData(clean), true);
        return;
    }
    if (clean.x.size() > longCurve) {
        m_graphs->trees[index].emplace(clean.y); // styleGraph() hands over what a frame shows
        return;
    }
    std::vector<DensePoint> points(clean.x.size());
    for (std::size_t i = 0; i < points.size(); ++i)
        points[i] = {clean.x[i], clean.y[i]};
    graph->data()->set(graphData(points, false), true);
}

void PlotScene::prepare(QSize size, double columns)
{
    QCustomPlot* plot = m_graphs->plot;
    const double u = plotUnit();
    m_header = layoutHeader(m_state, size.width(), size.height());
    plot->axisRect()->setAutoMargins(QCP::msLeft | QCP::msBottom);
    plot->axisRect()->setMinimumMargins(QMargins(static_cast<int>(58 * u), 0, 0, static_cast<int>(26 * u)));
    plot->axisRect()->setMargins(QMargins(0, static_cast<int>(m_header.height), static_cast<int>(26 * u), 0));

    const auto setUp = [](QCPAxis& axis, UnitTicker& ticker, const AxisSpec& spec, const AxisRange& range, double room,
                          double perTick) {
        axis.setScaleType(range.log ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
        axis.setRange(range.low, range.high);
        ticker.axis = spec;
        ticker.wanted = std::clamp(static_cast<int>(room / perTick), 2, 24);
        axis.grid()->setSubGridVisible(range.log);
    };
    setUp(*plot->xAxis, *m_graphs->xTicker, m_state.x, m_state.xRange, size.width() - 84 * u, 72 * u);
    setUp(*plot->yAxis, *m_graphs->yTicker, m_state.y, m_state.yRange, size.height() - m_header.height - 40 * u,
          42 * u);
    const bool phases = !m_state.phases.empty() && !m_state.empty();
    plot->xAxis->setLabel(phases ? QString() : m_state.x.label);
    plot->xAxis->setTickLabels(!phases && m_state.hasAxes());
    plot->yAxis->setTickLabels(m_state.hasAxes());

    for (std::size_t i = 0; i < m_graphs->graphs.size(); ++i)
        styleGraph(i, columns);
}

void PlotScene::styleGraph(std::size_t index, double columns)
{
    QCPGraph* graph = m_graphs->graphs[index];
    const CleanCurve& curve = m_state.cleaned[index];
    const CurveStyle style = styleOf(m_state.curves[index], *m_theme);
    const auto visible = visibleCount(curve, m_state.xRange);
    const bool dense = visible > denseCurve;
    const bool level = m_state.hasLevels(index, *m_theme);
    const bool line = style.pen.style() != Qt::NoPen && (level || m_state.x.names.isEmpty());
    const auto& tree = m_graphs->trees[index];
    if (tree && m_state.curves[index].visible)
        graph->data()->set(dense ? graphData(densePoints(curve, *tree, m_state.xRange, int(columns), !line), !line)
                                 : graphData(visiblePoints(curve, m_state.xRange), false),
                           true);
    const bool cloud = tree && dense && !line;
    graph->setLineStyle(line || cloud ? QCPGraph::lsLine : QCPGraph::lsNone);
    graph->setPen(cloud ? QPen(style.colour, 2) : dense ? QPen(style.colour, 1) : style.pen);
    graph->setAntialiased(!dense);
    CurveStyle dots = style;
    if (line && !level && curve.x.size() == 1)
        dots.size = std::max(dots.size, 6.0);                   // a line of one point would not be seen
    if (cloud || (line && double(visible) * crowded > columns)) // the line says it
        dots.size = 0;
    const bool rim =
        std::ranges::any_of(m_state.curves, [](const Curve& other) { return other.role == CurveRole::Area; });
    graph->setScatterStyle(scatterOf(dots, m_theme->background, dense, rim));
}

void PlotScene::replot()
{
    m_graphs->plot->replot();
}

void PlotScene::replotOverlay()
{
    m_graphs->plot->layer(QStringLiteral("overlay"))->replot();
}

void PlotScene::setPixelRatio(double ratio)
{
    if (m_graphs->plot->bufferDevicePixelRatio() != ratio)
        m_graphs->plot->setBufferDevicePixelRatio(ratio);
}

PlotMapper PlotScene::mapper() const
{
    return {QRectF(m_graphs->plot->axisRect()->rect()), m_state.xRange, m_state.yRange};
}

void PlotScene::render(QPaintDevice& device, QSize size, double scale, bool vectors)
{
    QCustomPlot* plot = m_graphs->plot;
    plot->resize(size);
    QCPPainter painter(&device);
    if (!painter.isActive())
        return;
    painter.setMode(vectors ? QCPPainter::pmVectorized : QCPPainter::pmDefault);
    painter.setMode(QCPPainter::pmNoCaching, true);
    painter.scale(scale, scale);
    // Paper is printed finer than it is counted.
    prepare(size, size.width() * (vectors ? 2 : scale));
    // Margins follow from the labels, and labels from the margins: twice is enough.
    for (int pass = 0; pass < 2; ++pass)
        plot->axisRect()->update(QCPLayoutElement::upMargins);
    plot->toPainter(&painter, size.width(), size.height());
}

} // namespace memscape

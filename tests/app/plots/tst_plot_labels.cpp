// SPDX-License-Identifier: GPL-3.0-or-later
// Words inside a plot keep away from the curves, from each other and from what stands there
// already, at every size a window may have.
#include "app/plots/plot_paint.h"
#include "app/settings/theme.h"

#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

Curve peaked(CurveRole role, double scale)
{
    Curve curve;
    curve.key = curve.name = QStringLiteral("allocated %1").arg(scale);
    curve.role = role;
    for (int i = 0; i <= 1000; ++i) {
        curve.x.push_back(i);
        curve.y.push_back(scale * (1 - std::fabs(i - 300) / 900.0));
    }
    return curve;
}

PlotState stateOf(std::vector<Curve> curves)
{
    PlotState state;
    for (const Curve& curve : curves)
        state.cleaned.push_back(clean(curve, false, false));
    state.curves = std::move(curves);
    state.xRange = {0, 1000, false};
    state.yRange = {0, 1.1, false};
    return state;
}

PlotMapper mapperOf(const PlotState& state, QSize size)
{
    return {QRectF(60, 40, size.width() - 80, size.height() - 80), state.xRange, state.yRange};
}

std::vector<PlotLabel> labelsOf(const PlotState& state, const PlotMapper& map)
{
    return layoutLabels(state, map, lightTheme());
}

} // namespace

class TestPlotLabels : public QObject
{
    Q_OBJECT

private slots:
    void aLowPlotKeepsItsCurves()
    {
        PlotState state = stateOf(
            {peaked(CurveRole::Predicted, 1), peaked(CurveRole::Measured, 0.5), peaked(CurveRole::Variant, 0.3)});
        state.title = QStringLiteral("One training step, byte by byte");
        state.y.label = QStringLiteral("allocated");
        const PlotHeader tall = layoutHeader(state, 400, 420), low = layoutHeader(state, 400, 130);
        QCOMPARE(tall.legend.size(), std::size_t(3));
        QVERIFY(!tall.yLabel.isEmpty());
        QVERIFY(low.legend.empty() && low.yLabel.isEmpty());
        QVERIFY(low.height < 0.35 * 130);
    }

    void aLowPlotShortensTheNamesOfItsLegend()
    {
        PlotState state = stateOf(
            {peaked(CurveRole::Predicted, 1), peaked(CurveRole::Measured, 0.5), peaked(CurveRole::Variant, 0.3)});
        state.title = QStringLiteral("Bandwidth");
        state.curves[1].name = QStringLiteral("a workstation with a name that would fill the row alone, and more");
        state.curves[2].name = QStringLiteral("short");
        const PlotHeader header = layoutHeader(state, 500, 170);
        QCOMPARE(header.legend.size(), std::size_t(3));
        double right = 0;
        for (const LegendEntry& entry : header.legend) {
            QCOMPARE(entry.rect.top(), header.legend.front().rect.top());
            QVERIFY(entry.rect.left() >= right && !entry.rect.intersects(header.title));
            right = entry.rect.right();
        }
        QVERIFY(right <= 500);
        QVERIFY(header.height < 0.4 * 170);
        // Only the long name is shortened.
        const PlotHeader wide = layoutHeader(state, 1500, 420);
        QCOMPARE(header.legend[2].rect.width(), wide.legend[2].rect.width());
        QVERIFY(header.legend[1].rect.width() < wide.legend[1].rect.width());
    }

    /// A little more height gives the names rows of their own.
    void aPlotOfSomeHeightKeepsTheNamesOfItsLegend()
    {
        PlotState state = stateOf(
            {peaked(CurveRole::Predicted, 1), peaked(CurveRole::Measured, 0.5), peaked(CurveRole::Variant, 0.3)});
        state.title = QStringLiteral("Bandwidth");
        state.curves[1].name = QStringLiteral("a workstation with a name that would fill the row alone, and more");
        const PlotHeader wide = layoutHeader(state, 1500, 420);
        for (int height = 130; height <= 420; height += 10) {
            const PlotHeader header = layoutHeader(state, 500, height);
            QVERIFY2(header.height < 0.5 * height, qPrintable(QString::number(height)));
            if (height >= 210)
                QCOMPARE(header.legend[1].rect.width(), wide.legend[1].rect.width());
        }
    }

    /// Schedules around their front: names beside their points, none on the front, a point or another name.
    void namesOfPointsKeepOffTheCurve_data()
    {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(520, 260), QSize(740, 300), QSize(1500, 560)})
            QTest::addRow("%d wide", size.width()) << size;
    }
    void namesOfPointsKeepOffTheCurve()
    {
        QFETCH(QSize, size);
        Curve front;
        front.key = front.name = QStringLiteral("front");
        front.role = CurveRole::Predicted;
        for (int i = 160; i <= 1000; i += 20) {
            front.x.push_back(i);
            front.y.push_back(0.15 + 60.0 / i);
        }
        std::vector<Curve> curves{front};
        const std::pair<const char*, QPointF> points[] = {{"every 1, Revolve, …", {560, 0.48}},
                                                          {"every 2", {360, 0.43}},
                                                          {"every 4", {320, 0.36}},
                                                          {"every 8", {420, 0.31}},
                                                          {"every 16", {700, 0.31}},
                                                          {"√n", {460, 0.31}},
                                                          {"store everything", {1000, 0.21}},
                                                          {"mixed, optimal", {560, 0.257}}};
        for (const auto& [name, at] : points) {
            Curve curve;
            curve.key = curve.name = QString::fromUtf8(name);
            curve.role = CurveRole::Predicted;
            curve.shape = MarkerShape::Circle;
            curve.x = {at.x()};
            curve.y = {at.y()};
            curve.labelled = true;
            curves.push_back(curve);
        }
        PlotState state = stateOf(curves);
        state.xRange = {0, 1040, false};
        state.yRange = {0.1, 0.6, false};
        const PlotMapper map = mapperOf(state, size);
        const auto labels = labelsOf(state, map);
        QVERIFY2(labels.size() >= 7, qPrintable(QString::number(labels.size())));
        for (const PlotLabel& label : labels) {
            int covered = 0;
            for (double x = 160; x <= 1000; x += 1) {
                const QPointF p(map.toX(x), map.toY(0.15 + 60.0 / x));
                covered += label.box.adjusted(1, 3, -1, -3).contains(p);
            }
            QVERIFY2(covered == 0, qPrintable(label.text));
            for (const PlotLabel& other : labels)
                QVERIFY2(&other == &label || !other.box.intersects(label.box), qPrintable(label.text + other.text));
        }
    }

    void aLimitsNameCoversNoCurve_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<double>("limit");
        for (const QSize size : {QSize(420, 260), QSize(740, 380), QSize(1500, 900)}) {
            for (const double limit : {0.3, 0.5, 0.7, 0.95})
                QTest::addRow("%d wide, at %g", size.width(), limit) << size << limit;
        }
    }
    void aLimitsNameCoversNoCurve()
    {
        QFETCH(QSize, size);
        QFETCH(double, limit);
        PlotState state = stateOf({peaked(CurveRole::Predicted, 1)});
        state.lines = {{limit, QStringLiteral("141 GiB for PyTorch on this device"), true}};
        const PlotMapper map = mapperOf(state, size);
        const auto labels = labelsOf(state, map);
        QCOMPARE(labels.size(), std::size_t(1));
        QVERIFY(map.rect.contains(labels[0].box));
        const double away = std::min(std::fabs(labels[0].box.top() - map.toY(limit)),
                                     std::fabs(labels[0].box.bottom() - map.toY(limit)));
        QVERIFY2(away < 3, "it stands at its line");
        for (int i = 0; i <= 1000; ++i) {
            const QPointF point(map.toX(i), map.toY(state.curves[0].y[std::size_t(i)]));
            QVERIFY2(!labels[0].box.contains(point), qPrintable(QString::number(i)));
        }
    }

    void namesKeepApart()
    {
        Curve variant = peaked(CurveRole::Variant, 0.8);
        variant.labelled = true;
        PlotState state = stateOf({peaked(CurveRole::Predicted, 1), variant});
        state.bands = {{40, 40, QStringLiteral("L1")},
                       {900, 900, QStringLiteral("L2")},
                       {905, 905, QStringLiteral("L2 far")},
                       {990, 990, QStringLiteral("L3")}};
        state.lines = {{0.3, QStringLiteral("datasheet 4.8 TB/s")},
                       {0.31, QStringLiteral("141 GiB on this device"), true}};
        state.markers = {{QStringLiteral("x"), 895, QStringLiteral("24 MiB")}};
        state.callouts = {{120, 0.3, QStringLiteral("Out of memory here"), QStringLiteral("to")}};
        const PlotMapper map = mapperOf(state, {740, 380});
        const auto labels = labelsOf(state, map);
        QCOMPARE(labels.size(), std::size_t(7));
        for (std::size_t i = 0; i < labels.size(); ++i) {
            QVERIFY2(!labels[i].box.intersects(markerPill(state, 0, map)), qPrintable(labels[i].text));
            QVERIFY2(!labels[i].box.intersects(calloutCard(state.callouts[0], map)), qPrintable(labels[i].text));
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY2(!labels[i].box.intersects(labels[j].box),
                         qPrintable(labels[i].text + " on " + labels[j].text));
        }
        for (std::size_t i = 0; i < state.bands.size(); ++i) // its line does not cross it
            QVERIFY2(std::fabs(labels[i].box.center().x() - map.toX(state.bands[i].from)) > labels[i].box.width() / 2,
                     qPrintable(labels[i].text));
    }

    void namesOfLinesThatStandCloseDoNotMeet()
    {
        PlotState state = stateOf({peaked(CurveRole::Predicted, 1)});
        state.bands = {{400, 400, QStringLiteral("L2")}, {480, 480, QStringLiteral("L2 far")}};
        state.markers = {{QStringLiteral("x"), 520, QStringLiteral("64 MiB")}};
        for (const int width : {300, 340, 400, 900}) {
            const auto labels = labelsOf(state, mapperOf(state, {width, 220}));
            QVERIFY2(labels.size() >= 2 && !labels[0].box.intersects(labels[1].box),
                     qPrintable(QString::number(width)));
        }
    }

    void pillsCoverNoCurveAndCardsStayInside()
    {
        PlotState state = stateOf({peaked(CurveRole::Predicted, 1)});
        const PlotMapper map = mapperOf(state, {420, 260});
        for (const double x : {0.0, 3.0, 500.0, 1000.0}) {
            state.markers = {{QStringLiteral("batch"), x, QStringLiteral("1024 tokens")}};
            const QRectF pill = markerPill(state, 0, map);
            QVERIFY(pill.left() >= map.rect.left() && pill.right() <= map.rect.right());
            QVERIFY(!pill.intersects(map.rect)); // it is on the axis
            state.phases = {{0, 1000, QStringLiteral("forward")}};
            QVERIFY(map.rect.contains(markerPill(state, 0, map))); // the axis has names
            state.phases.clear();
            state.markers.push_back({QStringLiteral("event"), x + 1, QStringLiteral("request 897")});
            QVERIFY(!markerPill(state, 1, map).intersects(pill));
            QVERIFY(map.rect.contains(markerPill(state, 1, map)));
            for (const double y : {0.0, 0.05, 0.5, 1.1}) {
                const QRectF card =
                    calloutCard({x, y, QStringLiteral("Out of memory here"), QStringLiteral("to")}, map);
                QVERIFY(map.rect.contains(card));
                QVERIFY2(!card.intersects(pill), qPrintable(QString::number(y)));
            }
        }
    }

    void aCurveWithoutRoomForItsNameHasNone()
    {
        std::vector<Curve> curves;
        for (int i = 0; i < 9; ++i) {
            curves.push_back(peaked(CurveRole::Variant, 1 - 0.01 * i));
            curves.back().name = QStringLiteral("few pages at a time, %1").arg(i);
            curves.back().labelled = true;
        }
        const PlotState state = stateOf(std::move(curves));
        const auto labels = labelsOf(state, mapperOf(state, {300, 140}));
        QVERIFY(!labels.empty());
        for (std::size_t i = 0; i < labels.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY2(!labels[i].box.intersects(labels[j].box),
                         qPrintable(labels[i].text + " on " + labels[j].text));
        }
    }

    void pointsOfACrowdAreLabelledWhereThereIsRoom()
    {
        std::vector<Curve> points;
        for (int i = 0; i < 40; ++i) {
            Curve point;
            point.key = point.name = QStringLiteral("strategy %1").arg(i);
            point.x = {500 + 0.1 * i}; // within some pixels of each other
            point.y = {0.5 - 0.001 * i};
            point.labelled = true;
            points.push_back(point);
        }
        const PlotState state = stateOf(std::move(points));
        const PlotMapper map = mapperOf(state, QSize(600, 300));
        const auto labels = labelsOf(state, map);
        QVERIFY(!labels.empty());
        for (std::size_t i = 0; i < labels.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY2(!labels[i].box.intersects(labels[j].box),
                         qPrintable(labels[i].text + " on " + labels[j].text));
        }
    }
};

QTEST_MAIN(TestPlotLabels)
#include "tst_plot_labels.moc"

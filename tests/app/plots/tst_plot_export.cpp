// SPDX-License-Identifier: GPL-3.0-or-later
// Exports open as what they claim to be, say what the plot says, look the same whatever is on
// screen, and answer when they fail. The files stay in the build folder (samples/) to be looked at.
#include "app/plots/plot_view.h"

#include <QApplication>
#include <QFile>
#include <QImage>
#include <QPainter>
#include <QSvgGenerator>
#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

std::unique_ptr<PlotView> hierarchyPlot()
{
    auto view = std::make_unique<PlotView>();
    AxisSpec x;
    x.label = QStringLiteral("working set");
    x.unit = Unit::Byte;
    x.log = 2;
    AxisSpec y;
    y.label = QStringLiteral("latency of one read");
    y.unit = Unit::Second;
    y.log = 10;
    Curve huge, small, dots, dotsSmall;
    huge.key = QStringLiteral("p");
    huge.name = QStringLiteral("predicted, huge pages");
    small.key = QStringLiteral("p4");
    small.name = QStringLiteral("predicted, 4 KiB pages");
    small.role = CurveRole::Variant;
    huge.labelled = small.labelled = true;
    dots.key = QStringLiteral("m");
    dots.name = QStringLiteral("measured");
    dots.role = CurveRole::Measured;
    dotsSmall.key = QStringLiteral("m4");
    dotsSmall.name = QStringLiteral("measured, 4 KiB pages");
    dotsSmall.role = CurveRole::MeasuredVariant;
    const auto step = [](double lx, double at) { return 1 / (1 + std::exp(-4 * (lx - at))); };
    for (double lx = 12; lx <= 31; lx += 0.125) {
        const double y0 = 1.1 + 2.8 * step(lx, 15.1) + 8 * step(lx, 20) + 93 * step(lx, 24.6);
        const double y4 = y0 + 75 * step(lx, 24.8);
        huge.x.push_back(std::exp2(lx));
        huge.y.push_back(y0 * 1e-9);
        small.x.push_back(std::exp2(lx));
        small.y.push_back(y4 * 1e-9);
        if (std::fmod(lx, 1.0) == 0) {
            const double wobble = 1 + 0.04 * std::sin(lx * 5);
            dots.x.push_back(std::exp2(lx));
            dots.y.push_back(y0 * wobble * 1e-9);
            dots.low.push_back(y0 * wobble * 0.94e-9);
            dots.high.push_back(y0 * wobble * 1.09e-9);
            dotsSmall.x.push_back(std::exp2(lx));
            dotsSmall.y.push_back(y4 * wobble * 1e-9);
        }
    }
    view->setTitle(QStringLiteral("Latency of a random read, by working set"));
    view->setAxes(x, y);
    view->setCurves({huge, small, dots, dotsSmall});
    view->setBands({{32768, 32768, QStringLiteral("L1")},
                    {1048576, 1048576, QStringLiteral("L2")},
                    {33554432, 33554432, QStringLiteral("L3")}});
    view->setMarkers({{QStringLiteral("working_set"), 24e6, QStringLiteral("24 MB")}});
    return view;
}

std::unique_ptr<PlotView> stridePlot()
{
    auto view = std::make_unique<PlotView>();
    AxisSpec x;
    x.label = QStringLiteral("stride (elements)");
    x.log = 2;
    AxisSpec y;
    y.label = QStringLiteral("useful bandwidth");
    y.unit = Unit::BytePerSecond;
    y.fromZero = true;
    Curve predicted, measured, pinned;
    predicted.key = predicted.name = QStringLiteral("predicted");
    measured.key = QStringLiteral("m");
    measured.name = QStringLiteral("measured on H200");
    measured.role = CurveRole::Measured;
    pinned.key = QStringLiteral("pin");
    pinned.name = QStringLiteral("A100, before");
    pinned.role = CurveRole::Pinned;
    for (int s = 1; s <= 128; s *= 2) {
        const double y0 = 4.3e12 / std::min(s, 8) * (s > 32 ? 32.0 / s * 0.7 + 0.3 : 1);
        predicted.x.push_back(s);
        predicted.y.push_back(y0);
        measured.x.push_back(s);
        measured.y.push_back(y0 * 0.98);
        measured.low.push_back(y0 * 0.98 - 1e11);
        measured.high.push_back(y0 * 0.98 + 9e10);
        pinned.x.push_back(s);
        pinned.y.push_back(y0 * 0.4);
    }
    view->setTitle(QStringLiteral("Effective bandwidth by stride"));
    view->setAxes(x, y);
    view->setCurves({predicted, measured, pinned});
    view->setLines({{4.8e12, QStringLiteral("datasheet 4.8 TB/s")}});
    view->setMarkers({{QStringLiteral("stride"), 4, QStringLiteral("stride 4")}});
    return view;
}

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

class TestPlotExport : public QObject
{
    Q_OBJECT

    QString sample(const char* name) const { return QStringLiteral(SAMPLES "/") + QLatin1String(name); }

private slots:
    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }

    void png()
    {
        auto view = hierarchyPlot();
        PlotExport options;
        options.size = {800, 500};
        options.scale = 2;
        options.description = QStringLiteral("working_set=24MB");
        const QString path = sample("latency-light.png");
        const auto written = view->exportTo(path, options);
        QVERIFY2(written, written ? "" : written.error().text().c_str());
        const QImage image(path);
        QCOMPARE(image.size(), QSize(1600, 1000));
        QCOMPARE(image.text(QStringLiteral("Title")), view->title());
        QCOMPARE(image.text(QStringLiteral("Description")), options.description);
        // Light, although the window is dark.
        QCOMPARE(image.pixelColor(2, 2), lightTheme().background);
        options.theme = ExportTheme::AsOnScreen;
        QCOMPARE(view->image(options).pixelColor(2, 2), darkTheme().background);
        QVERIFY(view->exportTo(sample("latency-dark.png"), options));
    }

    void sameFileWhateverTheScreen()
    {
        auto view = stridePlot();
        const QImage hidden = view->image({});
        view->resize(333, 222);
        view->show();
        QVERIFY(QTest::qWaitForWindowExposed(view.get()));
        QTest::qWait(40);
        QCOMPARE(view->image({}), hidden);
    }

    void svg()
    {
        auto view = stridePlot();
        const QString path = sample("stride.svg");
        QVERIFY(view->exportTo(path));
        const QByteArray text = contentOf(path);
        QVERIFY(text.contains("<svg"));
        QVERIFY(text.contains("Effective bandwidth by stride"));
        QVERIFY(text.contains(">measured on H200<") || text.contains("measured on H200"));
        QVERIFY(text.contains("datasheet 4.8 TB/s"));
        QVERIFY(text.count("<text") > 15); // text stays text
        QVERIFY(!text.contains("<image"));
        QVERIFY(text.contains("viewBox=\"0 0 960 600\""));
    }

    void pdf()
    {
        auto view = stridePlot();
        const QString path = sample("stride.pdf");
        QVERIFY(view->exportTo(path));
        const QByteArray bytes = contentOf(path);
        QVERIFY(bytes.startsWith("%PDF-"));
        QVERIFY(bytes.trimmed().endsWith("%%EOF"));
        QVERIFY(bytes.contains("/MediaBox [0 0 720 450]") || bytes.contains("720"));
    }

    void errorsAreAnswers()
    {
        auto view = stridePlot();
        const auto format = view->exportTo(QStringLiteral("plot.xyz"));
        QVERIFY(!format);
        QCOMPARE(format.error().code, std::string("export.format"));
        QVERIFY(!format.error().hint.empty());
        for (const char* name : {"/nowhere/at/all/plot.png", "/nowhere/plot.svg", "/nowhere/plot.pdf"}) {
            const auto missing = view->exportTo(QString::fromLatin1(name));
            QVERIFY2(!missing, name);
            QVERIFY(!missing.error().message.empty());
        }
    }

    void data()
    {
        auto view = stridePlot();
        const QStringList lines = view->dataText(',', false).trimmed().split('\n');
        QCOMPARE(lines.size(), 9);
        QVERIFY(lines[0].startsWith("stride (elements),predicted [B/s],measured on H200 [B/s]"));
        QCOMPARE(lines[1].split(',')[1], QString("4300000000000"));
        view->setRange({1.5, 9, 0, 5e12});
        QCOMPARE(view->dataText(',', true).trimmed().split('\n').size(), 4); // header, 2, 4, 8
    }

    void paintsIntoPages()
    {
        auto view = stridePlot();
        QImage page(1000, 800, QImage::Format_ARGB32_Premultiplied);
        page.fill(Qt::red);
        QPainter painter(&page);
        view->paintTo(painter, QRectF(100, 100, 800, 600), lightTheme());
        painter.end();
        QCOMPARE(page.pixelColor(50, 50), QColor(Qt::red));
        QCOMPARE(page.pixelColor(102, 102), lightTheme().background);
        QSvgGenerator svg;
        svg.setFileName(sample("page.svg"));
        svg.setSize({1000, 800});
        svg.setViewBox(QRect(0, 0, 1000, 800));
        painter.begin(&svg);
        view->paintTo(painter, QRectF(100, 100, 800, 600), lightTheme());
        painter.end();
        QVERIFY(contentOf(sample("page.svg")).contains("datasheet 4.8 TB/s"));
    }

    // Not checks but pictures to look at: the plot on screen with its crosshair, narrow, and empty.
    void looks()
    {
        for (const char* theme : {"dark", "light"}) {
            applyTheme(*qApp, QLatin1String(theme));
            int number = 0;
            for (const auto& make : {hierarchyPlot, stridePlot}) {
                auto view = make();
                for (const int width : {1100, 460}) {
                    view->resize(width, 460);
                    view->show();
                    QVERIFY(QTest::qWaitForWindowExposed(view.get()));
                    QTest::qWait(40);
                    view->showCrosshairAt(number < 2 ? 2e7 : 4);
                    QVERIFY(view->grab().save(
                        sample("") + QStringLiteral("plot-%1-%2.png").arg(QLatin1String(theme)).arg(number++)));
                }
            }
            PlotView empty;
            empty.resize(600, 300);
            empty.show();
            QTest::qWait(40);
            QVERIFY(empty.grab().save(sample("") + QStringLiteral("plot-%1-empty.png").arg(QLatin1String(theme))));
        }
    }
};

QTEST_MAIN(TestPlotExport)
#include "tst_plot_export.moc"

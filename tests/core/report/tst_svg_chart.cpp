// SPDX-License-Identifier: Apache-2.0
#include "core/report/svg_chart.h"

#include "golden.h"
#include "sample_record.h"

#include <QXmlStreamReader>

#include <limits>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

QStringList elements(const std::string& svg, QString* error)
{
    QXmlStreamReader reader(bytes(svg));
    QStringList names;
    while (!reader.atEnd())
        if (reader.readNext() == QXmlStreamReader::StartElement)
            names << reader.name().toString();
    if (reader.hasError())
        *error = reader.errorString();
    return names;
}

QVector<double> vectorOf(const std::vector<double>& values)
{
    return {values.begin(), values.end()};
}

} // namespace

class TestSvgChart : public QObject
{
    Q_OBJECT

private slots:
    void predictionAndMeasurementAreGolden()
    {
        const Record record = sampleRecord();
        const Chart chart = chartOf(&record.predicted->series[0], &record.measured->series[0]);
        QVERIFY(sameAsGolden("chart.svg", svgChart(chart)));
    }

    void ticks_data()
    {
        QTest::addColumn<int>("scale");
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::addColumn<int>("atMost");
        QTest::addColumn<QVector<double>>("expected");
        const auto scale = [](ChartScale s) { return static_cast<int>(s); };
        using V = QVector<double>;
        QTest::newRow("linear from zero")
            << scale(ChartScale::Linear) << 0.0 << 100.0 << 5 << V{0, 20, 40, 60, 80, 100};
        QTest::newRow("linear below zero") << scale(ChartScale::Linear) << -1.0 << 1.0 << 4 << V{-1, -0.5, 0, 0.5, 1};
        QTest::newRow("log2 all") << scale(ChartScale::Log2) << 1.0 << 16.0 << 9 << V{1, 2, 4, 8, 16};
        QTest::newRow("log2 thinned") << scale(ChartScale::Log2) << 1.0 << 256.0 << 5 << V{1, 4, 16, 64, 256};
        QTest::newRow("log2 between powers") << scale(ChartScale::Log2) << 3.0 << 9.0 << 9 << V{4, 8};
        QTest::newRow("log10 decades") << scale(ChartScale::Log10) << 1.0 << 1000.0 << 6 << V{1, 10, 100, 1000};
        QTest::newRow("log10 close up") << scale(ChartScale::Log10) << 1.0 << 20.0 << 6 << V{1, 2, 5, 10, 20};
        QTest::newRow("categories") << scale(ChartScale::Category) << -0.5 << 2.5 << 9 << V{0, 1, 2};
        QTest::newRow("nothing between") << scale(ChartScale::Linear) << 1.0 << 1.0 << 5 << V{};
        QTest::newRow("infinite") << scale(ChartScale::Linear) << 0.0 << inf << 5 << V{};
        QTest::newRow("log of zero") << scale(ChartScale::Log2) << 0.0 << 8.0 << 5 << V{};
    }
    void ticks()
    {
        QFETCH(int, scale);
        QFETCH(double, low);
        QFETCH(double, high);
        QFETCH(int, atMost);
        QFETCH(QVector<double>, expected);
        const auto actual = vectorOf(chartTicks(static_cast<ChartScale>(scale), low, high, atMost));
        QCOMPARE(actual.size(), expected.size());
        for (qsizetype i = 0; i < actual.size(); ++i)
            QVERIFY2(std::abs(actual[i] - expected[i]) < 1e-9, qPrintable(QString::number(actual[i])));
    }

    void byteAxisIsLabelledInPowersOfTwo()
    {
        const Record record = sampleRecord();
        const std::string svg = svgChart(chartOf(&record.predicted->series[0], nullptr));
        for (const char* label : {">1 KiB<", ">2 KiB<", ">4 KiB<", ">100 GB/s<"})
            QVERIFY2(svg.find(label) != std::string::npos, label);
    }

    /// What a student drew is no prediction: a solid line, without dots.
    void aDrawnCurveIsASolidLine()
    {
        Chart chart;
        chart.curves.push_back({"drawn", ChartRole::Drawn, {1, 2, 3}, {1, 4, 9}, {}, {}});
        const QString svg = QString::fromStdString(svgChart(chart));
        const QString line = svg.mid(svg.lastIndexOf("<path class=\"drawn\""));
        QCOMPARE(line.left(line.indexOf("/>")).count('L'), 2);
        QVERIFY(!svg.contains("stroke-dasharray") && !svg.contains("<circle"));
    }

    void yIsLogarithmicBeyondTwoDecades()
    {
        Series series = speedSeries({1e9, 2e9, 150e9});
        QVERIFY(chartOf(&series, nullptr).y.scale == ChartScale::Log10);
        series.y[0] = 50e9;
        QVERIFY(chartOf(&series, nullptr).y.scale == ChartScale::Linear);
        series.y[0] = 0; // zero has no place on a logarithmic axis, and must not vanish
        series.y[1] = 1;
        QVERIFY(chartOf(&series, nullptr).y.scale == ChartScale::Linear);
    }

    void oddDataStillDraws_data()
    {
        QTest::addColumn<QVector<double>>("y");
        QTest::addColumn<int>("dots");
        const double nan = std::nan("");
        QTest::newRow("empty") << QVector<double>{} << 0;
        QTest::newRow("one point") << QVector<double>{5} << 1;
        QTest::newRow("all nan") << QVector<double>{nan, nan, nan} << 0;
        QTest::newRow("infinities") << QVector<double>{inf, 3, -inf} << 1;
        QTest::newRow("huge") << QVector<double>{1e300, 1, 2} << 2;
        QTest::newRow("equal") << QVector<double>{7, 7, 7} << 3;
        QTest::newRow("zeros") << QVector<double>{0, 0, 0} << 3;
        QTest::newRow("negative") << QVector<double>{-4, -2, -1} << 3;
        QTest::newRow("more y than x") << QVector<double>{1, 2, 3, 4, 5} << 3;
    }
    void oddDataStillDraws()
    {
        QFETCH(QVector<double>, y);
        QFETCH(int, dots);
        const Series series = speedSeries({y.begin(), y.end()});
        const std::string svg = svgChart(chartOf(nullptr, &series));
        QString error;
        // One circle is the legend's.
        QCOMPARE(elements(svg, &error).count("circle"), dots + 1);
        QCOMPARE(error, QString());
        QVERIFY(svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos);
    }

    void aGapBreaksTheLine()
    {
        const Series series = speedSeries({1, std::nan(""), 3});
        const std::string svg = svgChart(chartOf(&series, nullptr));
        const auto line = svg.rfind("class=\"predicted\"");
        const std::string path = svg.substr(line, svg.find("fill", line) - line);
        QCOMPARE(std::ranges::count(path, 'M'), 2);
        QCOMPARE(std::ranges::count(path, 'L'), 0);
    }

    /// Nothing lies between two categories: a level stands at each, and the band at each dot is its own.
    void categoriesAreNotJoined()
    {
        Series predicted = speedSeries({1, 2, 3}), measured = predicted;
        predicted.x =
            measured.x = {"kind", "kind", Unit::One, AxisScale::Category, {0, 1, 2}, {"read", "write", "copy"}};
        measured.low = {0.9, 1.9, 2.9};
        measured.high = {1.1, 2.1, 3.1};
        const QString svg = QString::fromStdString(svgChart(chartOf(&predicted, &measured)));
        const QString line = svg.mid(svg.lastIndexOf("<path class=\"predicted\"")).section("/>", 0, 0);
        QCOMPARE(line.count('M'), 3);
        QCOMPARE(line.count('H'), 3);
        QVERIFY(!line.contains('L'));
        QCOMPARE(svg.count("class=\"band\""), 3);
    }

    void categoriesAreNamed()
    {
        Series series = speedSeries({1, 2, 3});
        series.x = {"kind", "kind", Unit::One, AxisScale::Category, {0, 1, 2}, {"read", "write", "copy"}};
        const std::string svg = svgChart(chartOf(&series, nullptr));
        for (const char* name : {">read<", ">write<", ">copy<"})
            QVERIFY2(svg.find(name) != std::string::npos, name);
    }

    void hostileTextStaysText()
    {
        const Record record = hostileRecord();
        QString error;
        const auto names = elements(svgChart(chartOf(&record.predicted->series[0], nullptr)), &error);
        QCOMPARE(error, QString());
        const QStringList allowed{"svg", "title", "g", "path", "circle", "text"};
        for (const QString& name : names)
            QVERIFY2(allowed.contains(name), qPrintable(name));
    }
};

QTEST_APPLESS_MAIN(TestSvgChart)
#include "tst_svg_chart.moc"

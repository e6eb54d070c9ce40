// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/figures_model.h"

#include "app/settings/theme.h"

#include <QAbstractItemModelTester>
#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

Figure figure(const char* key, std::variant<double, std::string> value, Unit unit = Unit::Second)
{
    return {key, key, unit, std::move(value)};
}

/// A measured outcome with one series at x = 1, 2, 4.
Outcome measuredOutcome()
{
    Outcome outcome;
    outcome.figures = {figure("latency", 1e-9), figure("level", std::string("L1"))};
    Series series;
    series.key = "latency";
    series.x.key = "size";
    series.x.values = {1, 2, 4};
    series.y = {1e-9, 2e-9, std::nan("")};
    series.low = {0.9e-9, 1.9e-9, std::nan("")};
    series.high = {1.1e-9, 2.1e-9, std::nan("")};
    series.yUnit = Unit::Second;
    outcome.series = {series};
    return outcome;
}

} // namespace

class TestFiguresModel : public QObject
{
    Q_OBJECT

private slots:
    void errorsAreRelativeToWhatWasMeasured()
    {
        Outcome predicted;
        predicted.figures = {figure("latency", 1.2e-9), figure("level", std::string("L1"))};
        const Outcome measured = measuredOutcome();
        const auto rows = figureRows(&predicted, &measured, 1.0, true);
        QCOMPARE(rows.size(), std::size_t(2));
        QVERIFY(std::abs(rows[0].error - 0.2) < 1e-12);
        QVERIFY(!rows[0].agree);
        QVERIFY(rows[1].agree); // equal words
        QVERIFY(std::isnan(rows[1].error));
    }

    // The same error has one colour, however wide the band of the measurement is; the noise is a sign beside it.
    void theColourFollowsTheErrorAndNotTheNoise()
    {
        const auto cell = [](double predicted, std::optional<double> low, std::optional<double> high, int role) {
            Outcome ours, theirs;
            ours.figures = {figure("latency", predicted)};
            theirs.figures = {figure("latency", 1e-9)};
            theirs.figures[0].low = low;
            theirs.figures[0].high = high;
            FiguresModel model;
            model.setRows(figureRows(&ours, &theirs, 1.0, true), ByteStyle::Binary);
            return model.index(0, FiguresModel::ErrorColumn).data(role);
        };
        const Theme& theme = currentTheme();
        QCOMPARE(cell(1.05e-9, {}, {}, Qt::ForegroundRole).value<QColor>(), theme.good);
        QCOMPARE(cell(1.2e-9, {}, {}, Qt::ForegroundRole).value<QColor>(), theme.warning);
        QCOMPARE(cell(1.54e-9, {}, {}, Qt::ForegroundRole).value<QColor>(), theme.bad);
        QCOMPARE(cell(1.54e-9, 0.5e-9, 2e-9, Qt::ForegroundRole).value<QColor>(), theme.bad);
        QCOMPARE(cell(1.54e-9, {}, {}, Qt::DisplayRole).toString(), QStringLiteral("+54 %"));
        QCOMPARE(cell(1.54e-9, 0.5e-9, 2e-9, Qt::DisplayRole).toString(), QStringLiteral("≈ +54 %"));
        QCOMPARE(cell(0.9e-9, {}, {}, Qt::DisplayRole).toString(), QStringLiteral("−10 %"));
    }

    /// Nothing was hidden: of a measured 0 there is no share, and nothing is bad about that.
    void anErrorThatCannotBeSaidIsFaint()
    {
        Outcome ours, theirs;
        ours.figures = {figure("hidden_time", 1e-3)};
        theirs.figures = {figure("hidden_time", 0.0)};
        FiguresModel model;
        model.setRows(figureRows(&ours, &theirs, 1.0, true), ByteStyle::Binary);
        const QModelIndex error = model.index(0, FiguresModel::ErrorColumn);
        QCOMPARE(error.data().toString(), QStringLiteral("–"));
        QCOMPARE(error.data(Qt::ForegroundRole).value<QColor>(), currentTheme().textFaint);
    }

    /// Below its name, where nothing measured needs the room; then in the tooltip alone.
    void aBandIsShown()
    {
        Outcome predicted;
        predicted.figures = {figure("step_time", 2.2)};
        predicted.figures[0].low = 1.99;
        predicted.figures[0].high = 2.67;
        FiguresModel model;
        model.setRows(figureRows(&predicted, nullptr, {}, true), ByteStyle::Binary);
        const QModelIndex label = model.index(0, FiguresModel::LabelColumn);
        QCOMPARE(label.data().toString(), QString("step_time\n1.99 to 2.67 s"));
        const QString tip = model.index(0, FiguresModel::PredictedColumn).data(Qt::ToolTipRole).toString();
        QVERIFY2(tip.contains("1.99 to 2.67 s"), qPrintable(tip));
        model.setBrief(true);
        QCOMPARE(label.data().toString(), QString("step_time"));
    }

    void whatIsCountedIsNotCompared()
    {
        Outcome predicted, measured;
        predicted.figures = {figure("sectors_per_request", 16.0, Unit::One)};
        predicted.figures[0].isCounted = true;
        measured.figures = {figure("sectors_per_request", 16.0, Unit::One)};
        FiguresModel model;
        model.setRows(figureRows(&predicted, &measured, 1.0, true), ByteStyle::Binary);
        const QModelIndex error = model.index(0, FiguresModel::ErrorColumn);
        QCOMPARE(error.data().toString(), QStringLiteral("counted"));
        QCOMPARE(error.data(Qt::ForegroundRole).value<QColor>(), currentTheme().textFaint);
    }

    void operationsAreShortAndTheirDigitsAreInTheTooltip()
    {
        Outcome predicted;
        predicted.figures = {figure("standard_flops", 120259084288.0, Unit::One),
                             figure("parameter_count", 6738415616.0, Unit::One)};
        FiguresModel model;
        model.setRows(figureRows(&predicted, nullptr, {}, true), ByteStyle::Binary);
        const QModelIndex flops = model.index(0, FiguresModel::PredictedColumn);
        QCOMPARE(flops.data().toString(), QString("120 GFLOP"));
        const QString exact = flops.data(Qt::ToolTipRole).toString();
        QCOMPARE(QString(exact).remove(QChar(0x202f)), QString("120259084288 floating-point operations"));
        QVERIFY(model.text().contains("standard_flops\t1\t120259084288\t")); // what is copied keeps them
        QCOMPARE(model.index(1, FiguresModel::PredictedColumn).data().toString().remove(QChar(0x202f)),
                 QString("6738415616"));
    }

    void longCountsMayBeBrief()
    {
        Outcome predicted;
        predicted.figures = {figure("elements", 120259084288.0, Unit::One), figure("ridge", 16.25, Unit::One),
                             figure("bytes", 3e12, Unit::Byte)};
        FiguresModel model;
        model.setRows(figureRows(&predicted, nullptr, {}, false), ByteStyle::Decimal);
        const auto shown = [&](int row) { return model.index(row, FiguresModel::PredictedColumn).data().toString(); };
        QVERIFY(shown(0).endsWith("288"));
        model.setBrief(true);
        QCOMPARE(shown(0), "120.3 G");
        QCOMPARE(shown(1), "16.2"); // only what is long
        QCOMPARE(shown(2), "3 TB");
        QVERIFY(model.text().contains("120259084288")); // what is copied is whole
    }

    void nothingIsInterpolated_data()
    {
        QTest::addColumn<double>("x");
        QTest::addColumn<bool>("found");
        QTest::newRow("measured") << 2.0 << true;
        QTest::newRow("between") << 1.5 << false;
        QTest::newRow("outside") << 8.0 << false;
        QTest::newRow("point without value") << 4.0 << false;
    }
    void nothingIsInterpolated()
    {
        QFETCH(double, x);
        QFETCH(bool, found);
        Outcome predicted;
        predicted.figures = {figure("latency", 2e-9)};
        const Outcome measured = measuredOutcome();
        const auto rows = figureRows(&predicted, &measured, x, false);
        QCOMPARE(rows[0].measured.has_value(), found);
        if (found) {
            QCOMPARE(rows[0].measured->number(), 2e-9);
            QCOMPARE(*rows[0].measured->low, 1.9e-9);
            QVERIFY(rows[0].withinNoise);
        }
    }

    void withoutMeasurementThereIsNoError()
    {
        Outcome predicted;
        predicted.figures = {figure("latency", 2e-9)};
        const auto rows = figureRows(&predicted, nullptr, 1.0, false);
        QVERIFY(std::isnan(rows[0].error));
        QVERIFY(!rows[0].measured);
        QVERIFY(figureRows(nullptr, nullptr, 1.0, false).empty());
    }

    void figuresAreWrittenForPeople()
    {
        Outcome predicted;
        predicted.figures = {{"fits", "fits", Unit::One, 0.0},
                             {"feasible", "feasible", Unit::One, 1.0},
                             {"efficiency", "efficiency", Unit::One, 0.25},
                             {"parameters", "parameters", Unit::One, 6738415616.0},
                             {"stride", "stride", Unit::One, 4096.0}};
        FiguresModel model;
        model.setRows(figureRows(&predicted, nullptr, {}, false), ByteStyle::Binary);
        QStringList shown;
        for (int row = 0; row < model.rowCount(); ++row)
            shown << model.index(row, FiguresModel::PredictedColumn).data().toString();
        QCOMPARE(shown.join(" | ").replace(QChar(0x202f), '_'),
                 QStringLiteral("no | yes | 25 % | 6_738_415_616 | 4096"));
    }

    void theModelIsSoundAndAccessible()
    {
        FiguresModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        Outcome predicted;
        predicted.figures = {figure("latency", 1e-9), figure("bytes", 1073741824.0, Unit::Byte)};
        const Outcome measured = measuredOutcome();
        model.setRows(figureRows(&predicted, &measured, 1.0, true), ByteStyle::Binary);
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.index(0, 1).data().toString(), "1 ns");
        QCOMPARE(model.index(1, 1).data().toString(), "1 GiB");
        QCOMPARE(model.index(1, 2).data().toString(), "–");
        model.setRows(figureRows(&predicted, &measured, 1.0, true), ByteStyle::Decimal);
        QCOMPARE(model.index(1, 1).data().toString(), "1.07 GB");
        model.setRows({}, ByteStyle::Binary);
        QCOMPARE(model.rowCount(), 0);
    }

    void copiedTextHoldsBaseUnits()
    {
        FiguresModel model;
        Outcome predicted;
        predicted.figures = {figure("latency", 2e-9)};
        const Outcome measured = measuredOutcome();
        model.setRows(figureRows(&predicted, &measured, 1.0, true), ByteStyle::Binary);
        QCOMPARE(model.text(),
                 "figure\tunit\tpredicted\tmeasured\terror\n"
                 "latency\ts\t2e-09\t1e-09\t1\n");
    }

    void theBaselineStandsBesideWhatIsOfItsKind()
    {
        Outcome predicted;
        predicted.figures = {figure("latency", 2e-9), figure("level", std::string("L2")),
                             figure("bytes", 300.0, Unit::Byte)};
        const Outcome measured = measuredOutcome(); // 1 ns, L1
        Outcome oldPredicted = predicted;
        oldPredicted.figures[2].value = 400.0;
        Outcome oldMeasured = measured;
        oldMeasured.figures[0].value = 0.8e-9;
        auto rows = figureRows(&predicted, &measured, 1.0, true);
        addBaseline(rows, &oldPredicted, &oldMeasured, 1.0, true);
        FiguresModel model;
        model.setRows(rows, ByteStyle::Binary);
        const auto cell = [&](int row) { return model.index(row, FiguresModel::BaselineColumn).data().toString(); };
        QCOMPARE(cell(0), QString("+25 %")); // measured against measured, not 2 ns against 2 ns
        QCOMPARE(cell(1), QString("="));     // words: L1 in both measurements
        QCOMPARE(cell(2), QString("−25 %")); // only predicted, on both sides
        QVERIFY(model.index(0, FiguresModel::BaselineColumn).data(Qt::ToolTipRole).toString().startsWith("Measured"));
        QVERIFY(model.index(2, FiguresModel::BaselineColumn).data(Qt::ToolTipRole).toString().startsWith("Predicted"));
        QVERIFY2(model.text().contains("latency\ts\t2e-09\t1e-09\t1\t8e-10\t0.25"), qPrintable(model.text()));
    }

    void theBaselineIsReadAtThePointShownOrNotAtAll()
    {
        Outcome predicted;
        predicted.figures = {figure("latency", 3e-9)};
        const Outcome measured = measuredOutcome();
        Outcome before = measured;
        before.series.front().y = {1e-9, 4e-9, 8e-9};
        const auto difference = [&](double x) {
            auto rows = figureRows(&predicted, &measured, x, false);
            addBaseline(rows, nullptr, &before, x, false);
            FiguresModel model;
            model.setRows(rows, ByteStyle::Binary);
            return model.index(0, FiguresModel::BaselineColumn).data().toString();
        };
        QCOMPARE(difference(2), QString("−50 %"));
        QCOMPARE(difference(3), QString("–")); // nothing is interpolated
        QCOMPARE(difference(4), QString("–")); // measured in the baseline alone
    }

    void countedFiguresAreComparedAsSuch()
    {
        Outcome predicted, before;
        Figure operations = figure("operations", 4e9, Unit::One);
        operations.isCounted = true;
        predicted.figures = {operations};
        operations.value = 2e9;
        before.figures = {operations};
        auto rows = figureRows(&predicted, nullptr, std::nullopt, true);
        addBaseline(rows, &before, nullptr, std::nullopt, true);
        FiguresModel model;
        model.setRows(rows, ByteStyle::Binary);
        const QModelIndex cell = model.index(0, FiguresModel::BaselineColumn);
        QCOMPARE(cell.data().toString(), QString("+100 %"));
        QVERIFY2(cell.data(Qt::ToolTipRole).toString().contains("counted"),
                 qPrintable(cell.data(Qt::ToolTipRole).toString()));
    }
};

QTEST_MAIN(TestFiguresModel)
#include "tst_figures_model.moc"

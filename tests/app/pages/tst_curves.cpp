// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/curves.h"

#include "app/pages/basis_predictions.h"
#include "app/plots/plot_style.h"

#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

Series series(const char* key, Unit unit, std::vector<double> y)
{
    Series one;
    one.key = key;
    one.label = key;
    one.yLabel = key;
    one.yUnit = unit;
    one.x.key = "size";
    one.x.label = "size";
    one.x.unit = Unit::Byte;
    one.x.scale = AxisScale::Log2;
    one.x.values = {1024, 65536, 1048576};
    one.y = std::move(y);
    return one;
}

Outcome outcome()
{
    Outcome result;
    result.series = {series("latency", Unit::Second, {1e-9, 1e-8, 1e-7}),
                     series("latency_4k", Unit::Second, {1e-9, 2e-8, 2e-7}),
                     series("latency_huge", Unit::Second, {1e-9, 1e-8, 1e-7}),
                     series("bandwidth", Unit::BytePerSecond, {4e11, 2e11, 1e11}),
                     series("efficiency", Unit::One, {1, 1, 1}),
                     series("count", Unit::One, {4, 4, 4})};
    return result;
}

} // namespace

class TestCurves : public QObject
{
    Q_OBJECT

    static void lookDifferent(const std::vector<Curve>& curves)
    {
        for (std::size_t i = 0; i < curves.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const CurveStyle a = styleOf(curves[i], darkTheme());
                const CurveStyle b = styleOf(curves[j], darkTheme());
                const QString both = curves[i].name + " and " + curves[j].name;
                const bool pinned = (curves[i].role == CurveRole::Pinned) != (curves[j].role == CurveRole::Pinned);
                QVERIFY2(!pinned || a.colour != b.colour, qPrintable(both));
                const bool sameDots = (a.size > 0) == (b.size > 0) && a.shape == b.shape && a.hollow == b.hollow;
                QVERIFY2(a.colour != b.colour || a.pen != b.pen || !sameDots, qPrintable(both));
            }
        }
    }

private slots:
    void seriesOfOneUnitShareAPlotButCountsDoNot()
    {
        const auto groups = seriesGroups(outcome());
        QCOMPARE(groups.size(), std::size_t(4));
        QCOMPARE(groups[0].series.size(), std::size_t(3));
        QCOMPARE(groups[1].key, "bandwidth");
        QCOMPARE(groups[2].key, "efficiency");
        QCOMPARE(groups[3].key, "count");
    }

    void rolesFollowTheMeaning()
    {
        const Outcome both = outcome();
        CurveInput input;
        input.predicted = &both;
        input.measured = &both;
        const auto curves = makeCurves(seriesGroups(both)[0], input);
        // The huge-page variant equals the first curve and is left out.
        QCOMPARE(curves.size(), std::size_t(4));
        QCOMPARE(curves[0].role, CurveRole::Predicted);
        QCOMPARE(curves[1].role, CurveRole::Variant);
        QCOMPARE(curves[2].role, CurveRole::Measured);
        QCOMPARE(curves[3].role, CurveRole::MeasuredVariant);
    }

    void whatIsNothingIsNoLine()
    {
        Outcome predicted = outcome();
        CurveInput input;
        input.predicted = &predicted;
        const auto count = [&] { return makeCurves(seriesGroups(predicted)[0], input).size(); };
        QCOMPARE(count(), std::size_t(2));
        predicted.series[1].y = {0, 0, 0}; // a step that is not there
        QCOMPARE(count(), std::size_t(1));
        predicted.series[1].y = {0, 0, 1e-9};
        QCOMPARE(count(), std::size_t(2));
        predicted.series[1].y = {1e-9, 1e-8 * (1 + 1e-12), 1e-7}; // the first but for rounding
        QCOMPARE(count(), std::size_t(1));
        predicted.series[0].y = {0, 0, 0}; // the question itself is always drawn
        QCOMPARE(makeCurves(seriesGroups(predicted)[0], input)[0].role, CurveRole::Predicted);
    }

    void aMeasuredVariantIsCalledAsItsPrediction()
    {
        const Outcome predicted = outcome();
        Outcome measured = predicted; // an older record, in older words
        measured.series[1].label = "latency, windows";
        CurveInput input;
        input.predicted = &predicted;
        input.measured = &measured;
        const auto curves = makeCurves(seriesGroups(predicted)[0], input);
        QCOMPARE(curves[3].name, curves[1].name + ", measured");
        input.predicted = nullptr; // nothing else knows a name
        QVERIFY(makeCurves(seriesGroups(predicted)[0], input)[1].name.contains("windows"));
    }

    void otherBasesAreDrawnUnderThePredictionAndTheLegendSaysWhich()
    {
        const Outcome both = outcome();
        Outcome silent = both; // a sheet that has no latency
        for (double& y : silent.series[0].y)
            y = std::nan("");
        CurveInput input;
        input.predicted = &both;
        input.basis = "calibrated";
        input.others = {{"datasheet", CurveRole::Datasheet, &silent}, {"catalogue", CurveRole::Uncalibrated, &both}};
        const auto latency = makeCurves(seriesGroups(both)[0], input);
        QCOMPARE(latency[0].name, "catalogue");
        QCOMPARE(latency[0].role, CurveRole::Uncalibrated);
        QCOMPARE(latency[1].name, "predicted (calibrated)");
        const auto bandwidth = makeCurves(seriesGroups(both)[1], input);
        QCOMPARE(bandwidth[0].name, "datasheet");
        QCOMPARE(bandwidth.size(), std::size_t(3));
    }

    void whatARunProbedIsALineInItsBand()
    {
        const Outcome both = outcome();
        Outcome probed = both;
        probed.series[0].low = probed.series[0].high = probed.series[0].y;
        for (double& y : probed.series[0].high)
            y *= 1.5;
        CurveInput input;
        input.predicted = &both;
        input.others = {{"probed in the run", CurveRole::Probed, &probed}};
        const Curve same = makeCurves(seriesGroups(both)[0], input)[0];
        QCOMPARE(same.role, CurveRole::Probed);
        QCOMPARE(same.high, probed.series[0].high);
        // Curves of the other group depend on no link: they are not in it.
        probed.series.erase(probed.series.begin() + 1, probed.series.end());
        for (const Curve& curve : makeCurves(seriesGroups(both)[1], input))
            QVERIFY(curve.role != CurveRole::Probed);
    }

    void probedLinksAreNamedWithWhatTheyAre()
    {
        ProbedRun run;
        run.links = {{"pipe", "pipe", 39e-6, 2.4e9, 0.9, 1.1, 9}};
        QCOMPARE(probedName(run), QString("probed in the run: pipe, α 39 µs, β 2.4 GB/s"));
    }

    void measuredWithOtherParametersIsHollow()
    {
        const Outcome both = outcome();
        CurveInput input;
        input.predicted = &both;
        input.measured = &both;
        input.measuredElsewhere = true;
        for (const Curve& curve : makeCurves(seriesGroups(both)[1], input))
            QVERIFY(curve.role != CurveRole::Measured);
    }

    void wideTimesAreLogarithmicAndRatesStartAtZero()
    {
        const Outcome both = outcome();
        CurveInput input;
        input.predicted = &both;
        const auto groups = seriesGroups(both);
        QCOMPARE(yAxisOf(groups[0], input, ByteStyle::Binary).log, 10);
        const AxisSpec rate = yAxisOf(groups[1], input, ByteStyle::Binary);
        QCOMPARE(rate.log, 0);
        QVERIFY(rate.fromZero);
        QCOMPARE(xAxisOf(both, seriesGroups(both).front(), ByteStyle::Binary).log, 2);
    }

    /// A step that is not there takes 0 s, which has no place on a logarithmic axis; it is not drawn and decides
    /// nothing.
    void whatIsNotDrawnDoesNotDecideTheAxis()
    {
        Outcome both = outcome();
        both.series[2].y = {0, 0, 0};
        CurveInput input;
        input.predicted = &both;
        QCOMPARE(yAxisOf(seriesGroups(both)[0], input, ByteStyle::Binary).log, 10);
    }

    // Colour, dash, shape and hollowness together: no two curves of a plot may share them all, and a
    // pinned record may have no other curve's colour.
    void curvesOfAPlotLookDifferent()
    {
        const Device device = *findDevice("nvidia-h200");
        for (const Experiment* experiment : experiments()) {
            const auto parameters = resolve(experiment->schema(), std::vector<std::string>{});
            const auto predicted = experiment->predict(device, *parameters);
            if (!predicted)
                continue;
            CurveInput input;
            input.predicted = input.measured = &*predicted;
            input.pinned = {{"one", 0, &*predicted, nullptr}, {"two", 1, &*predicted, nullptr}};
            for (const bool elsewhere : {false, true}) {
                input.measuredElsewhere = elsewhere;
                for (const SeriesGroup& group : seriesGroups(*predicted))
                    lookDifferent(makeCurves(group, input));
            }
        }
    }

    /// A record names a choice as the command line does, an axis as the form.
    void categoriesAreCalledAsInTheForm()
    {
        const Experiment& inference = **findExperiment("inference-memory");
        const Device device = *findDevice("nvidia-rtx-4090");
        const std::vector<std::string> asked{"model=gpt2", "context=1024", "weight_precision=awq,q4_k_m"};
        const auto predicted = inference.predict(device, *resolve(inference.schema(), asked));
        QVERIFY(predicted);
        const SeriesGroup group = seriesGroups(*predicted).front();
        QCOMPARE(axisOf(*predicted, group)->names, (std::vector<std::string>{"awq", "q4_k_m"}));
        QCOMPARE(xAxisOf(*predicted, group, ByteStyle::Binary, inference.schema()).names,
                 (QStringList{"AWQ 4 bit", "GGUF Q4_K_M"}));
    }

    void nothingGivesNothing()
    {
        const Outcome none;
        QVERIFY(seriesGroups(none).empty());
        QVERIFY(makeCurves({}, {}).empty());
        QCOMPARE(xAxisOf(none, {}, ByteStyle::Binary).log, 0);
    }

    void everyExperimentPredictsSomethingThatCanBeDrawn()
    {
        for (const Experiment* experiment : experiments()) {
            for (const Device& device : catalogue()) {
                const auto parameters = resolve(experiment->schema(), std::vector<std::string>{});
                const auto predicted = experiment->predict(device, *parameters);
                if (!predicted)
                    continue; // refused with a reason: tested with the experiment
                CurveInput input;
                input.predicted = &*predicted;
                for (const SeriesGroup& group : seriesGroups(*predicted)) {
                    for (const Curve& curve : makeCurves(group, input)) {
                        QCOMPARE(curve.x.size(), curve.y.size());
                        QVERIFY(!curve.name.isEmpty());
                    }
                }
                const auto& axis = predicted->series.front().x;
                for (const Band& band : capacityBands(device, axis))
                    QVERIFY(band.from > axis.values.front() && band.to < axis.values.back());
            }
        }
    }

    void curvesOfItsKindAreToldAgainstTheBaseline()
    {
        const Outcome one = outcome();
        const SeriesGroup group = seriesGroups(one).front();
        CurveInput input;
        input.predicted = &one;
        input.measured = &one;
        const auto against = [&] {
            QStringList keys;
            for (const Curve& curve : makeCurves(group, input)) {
                if (!curve.against.isEmpty())
                    keys << curve.key + u'<' + curve.against;
            }
            return keys;
        };
        input.pinned = {{"a", 0, &one, &one, false}, {"b", 1, &one, nullptr, false}};
        QCOMPARE(against(), QStringList());
        input.pinned[0].isBaseline = true;
        QCOMPARE(against(), QStringList{"measured.latency<pinned0.latency"});
        input.pinned[0].isBaseline = false;
        input.pinned[1].isBaseline = true;
        QCOMPARE(against(), QStringList{"predicted.latency<pinned1.latency"});
    }

    void aPinnedPredictionIsALineWithoutDots()
    {
        const Outcome one = outcome();
        CurveInput input;
        input.pinned = {{"measured", 0, &one, &one, false}, {"predicted", 1, &one, nullptr, false}};
        const auto curves = makeCurves(seriesGroups(one).front(), input);
        QCOMPARE(curves.size(), std::size_t(2));
        QVERIFY(styleOf(curves[0], darkTheme()).size > 0);
        QCOMPARE(styleOf(curves[0], darkTheme()).pen.style(), Qt::SolidLine);
        QCOMPARE(styleOf(curves[1], darkTheme()).size, 0.0);
        QVERIFY(styleOf(curves[1], darkTheme()).pen.style() != Qt::SolidLine);
    }
};

QTEST_GUILESS_MAIN(TestCurves)
#include "tst_curves.moc"

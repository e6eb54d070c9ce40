// SPDX-License-Identifier: Apache-2.0
// A roofline measured by experiments of the test's own making: every kernel is asked for at the point of
// its prediction, what cannot be measured is left out with a note, Stop and a lost device end the run.
#include "kernels/programs/roofline/roofline_run.h"

#include "core/device/catalogue.h"
#include "core/experiments/roofline/roofline.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

class Sink : public RunSink
{
public:
    void progress(int done, int total, const std::string&) override
    {
        ++steps;
        last = total - done;
    }
    void point(const std::string&, const Point&) override { ++points; }
    void note(const std::string&, const std::string& code, const std::string& text) override
    {
        notes.push_back(code + ": " + text);
    }
    bool cancelled() const override { return isStopped; }

    int steps = 0, points = 0, last = 0;
    bool isStopped = false;
    std::vector<std::string> notes;
};

const Device& gpu()
{
    static const Device device = *findDevice("nvidia-h200");
    return device;
}

/// A machine on which everything takes twice as long as predicted.
Result<MeasuredRun> halfAsFast(const Experiment& experiment, const Parameters& parameters, RunSink& sink)
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(figures, experiment.predictPoint(gpu(), own));
    for (Figure& figure : figures) {
        const bool isTime = figure.unit == Unit::Second;
        if (figure.isNumber() && (isTime || figure.unit == Unit::BytePerSecond))
            figure.value = figure.number() * (isTime ? 2 : 0.5);
    }
    sink.progress(1, 2, "of its own");
    sink.point("x", {});
    MeasuredRun run;
    run.measurement.figures = std::move(figures);
    run.provenance.quality = {experiment.id() == "stride" ? 'C' : 'A', "as told"};
    return run;
}

} // namespace

class TestRooflineRun : public QObject
{
    Q_OBJECT

private slots:
    void everyKernelIsAPoint()
    {
        Sink sink;
        const auto run = runRoofline(gpu(), sink, halfAsFast);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        const auto kernels = rooflineKernels(gpu());
        const Json& points = run->measurement.detail["points"];
        QCOMPARE(points.size(), kernels.size());
        QCOMPARE(sink.steps, int(kernels.size())); // a step each, whatever the experiments say
        QCOMPARE(sink.points, 0);
        for (const RooflineKernel& kernel : kernels) {
            const Figure* rate = findFigure(run->measurement.figures, kernel.id + "_rate");
            QVERIFY2(rate != nullptr, kernel.id.c_str());
            const auto own = rooflineParameters(kernel);
            Parameters parameters = *own;
            parameters.setSweep({});
            const auto predicted = (*findExperiment(kernel.experiment))->predictPoint(gpu(), parameters);
            const auto point = rooflinePoint(kernel, *predicted);
            QVERIFY2(std::fabs(rate->number() / (point->rate() / 2) - 1) < 1e-9, kernel.id.c_str());
        }
        QCOMPARE(run->provenance.quality->grade, 'C'); // the worst of them
        QVERIFY(run->provenance.quality->reason.find("stride") != std::string::npos);
    }

    void whatCannotBeMeasuredIsNamed()
    {
        Sink sink;
        const auto noProducts = [](const Experiment& experiment, const Parameters& parameters, RunSink& quiet) {
            return experiment.id() == "precision"
                ? Result<MeasuredRun>(fail("run.skipped", "there are no products here"))
                : halfAsFast(experiment, parameters, quiet);
        };
        const auto run = runRoofline(gpu(), sink, noProducts);
        QVERIFY(run.has_value() && run->complete);
        const auto kernels = rooflineKernels(gpu());
        const auto products = std::ranges::count_if(
            kernels, [](const RooflineKernel& kernel) { return kernel.experiment == "precision"; });
        QVERIFY(products > 0);
        QCOMPARE(std::ptrdiff_t(sink.notes.size()), products);
        QVERIFY(sink.notes.front().find("there are no products here") != std::string::npos);
        QCOMPARE(run->measurement.detail["points"].size(), kernels.size() - std::size_t(products));
        const auto none = runRoofline(gpu(), sink, [](const Experiment&, const Parameters&, RunSink&) {
            return Result<MeasuredRun>(fail("run.skipped", "nothing"));
        });
        QCOMPARE(none.error().code, std::string("run.failed"));
    }

    /// No device counts the traffic of attention, so no measurement of it has that figure.
    void bytesThatNoMachineCountsAreTheModels()
    {
        Sink sink;
        const auto uncounted = [](const Experiment& experiment, const Parameters& parameters, RunSink& quiet) {
            auto run = halfAsFast(experiment, parameters, quiet);
            if (run)
                std::erase_if(run->measurement.figures,
                              [](const Figure& figure) { return figure.key.ends_with("hbm_bytes"); });
            return run;
        };
        const auto run = runRoofline(gpu(), sink, uncounted);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY2(sink.notes.empty(), sink.notes.empty() ? "" : sink.notes.front().c_str());
        const auto counted = runRoofline(gpu(), sink, halfAsFast);
        QCOMPARE(run->measurement.detail["points"].dump(), counted->measurement.detail["points"].dump());
        QVERIFY(findFigure(run->measurement.figures, "attention_flash_rate") != nullptr);
    }

    void aNoteIsReportedOnce()
    {
        Sink sink;
        const auto talks = [](const Experiment& experiment, const Parameters& parameters, RunSink& quiet) {
            quiet.note("info", "library.missing", "there is no library");
            if (experiment.id() == "stride") {
                quiet.note("warning", "run.skipped", "at its one point: no strides here");
                return Result<MeasuredRun>(fail("run.skipped", "no strides here"));
            }
            return halfAsFast(experiment, parameters, quiet);
        };
        QVERIFY(runRoofline(gpu(), sink, talks).has_value());
        QCOMPARE(sink.notes,
                 (std::vector<std::string>{"library.missing: there is no library",
                                           "run.skipped: reading with stride 1: no strides here",
                                           "run.skipped: reading with stride 16: no strides here"}));
    }

    void stopAndLossEndIt()
    {
        Sink sink;
        int asked = 0;
        const auto stopped = runRoofline(gpu(), sink, [&](const Experiment& e, const Parameters& p, RunSink& quiet) {
            sink.isStopped = ++asked == 3;
            return quiet.cancelled() ? Result<MeasuredRun>(fail("run.cancelled", "stopped")) : halfAsFast(e, p, quiet);
        });
        QVERIFY(stopped.has_value() && !stopped->complete);
        QCOMPARE(stopped->measurement.detail["points"].size(), std::size_t(2));
        sink.isStopped = false;
        asked = 0;
        const auto lost = runRoofline(gpu(), sink, [&](const Experiment&, const Parameters&, RunSink&) {
            ++asked;
            return Result<MeasuredRun>(fail("run.sticky", "the context is lost"));
        });
        QCOMPARE(lost.error().code, std::string("run.sticky"));
        QCOMPARE(asked, 1);
    }
};

QTEST_GUILESS_MAIN(TestRooflineRun)
#include "tst_roofline_run.moc"

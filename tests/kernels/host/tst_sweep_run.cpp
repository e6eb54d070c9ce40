// SPDX-License-Identifier: Apache-2.0
// A sweep over a measurement that answers what the test says, on a machine that does what the test
// says: which faults reach the record, under which name, and what is kept.
#include "kernels/host/measurement.h"

#include "core/experiment/experiment.h"
#include "tests/support/devices.h"
#include "tests/support/host_fakes.h"

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <QTest>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::host;
using namespace memscape::test;

namespace {

const std::vector<double> quiet(6, 1e-3);

/// Samples of a point in a pass, as the test says; the time and the bandwidth made from them.
class FakeMeasurement : public HostMeasurement
{
public:
    using Answer = std::function<Result<std::vector<double>>(double stride, int pass)>;

    explicit FakeMeasurement(Answer answer)
        : m_answer(std::move(answer))
    { }
    Result<void> check() override
    {
        return wrongKernel ? Result<void>(fail("check.failed", "a kernel is wrong")) : Result<void>();
    }
    Result<SampleSets> visit(const Parameters& point, int pass) override
    {
        const auto stride = static_cast<double>(point.integer("stride"));
        visits.emplace_back(pass, stride);
        MEMSCAPE_TRY(samples, m_answer(stride, pass));
        return SampleSets{{"time", std::move(samples)}};
    }
    Result<Figures> figures(const Parameters&, const MergedSamples& samples) override
    {
        const Summary seconds = summarize(samples.at("time").merged());
        return Figures{rateFigure("useful_bandwidth", "useful bandwidth", 1e6, seconds),
                       timeFigure("time", "time", seconds, false)};
    }
    Json method() const override { return {{"how", "as the test said"}}; }

    bool wrongKernel = false;
    std::vector<std::pair<int, double>> visits; ///< pass and stride

private:
    Answer m_answer;
};

/// The stride experiment over three strides.
struct Swept
{
    Swept(FakeMeasurement::Answer answer, Instruments instruments = steadyMachine({1e-3}))
        : session(device, listener, std::move(instruments))
        , measurement(std::move(answer))
    { }
    Result<MeasuredRun> run(const std::string& assignment = "stride=1,2,4")
    {
        const Experiment& stride = **findExperiment("stride");
        auto parameters = resolve(stride.schema(), {assignment});
        return runSweep(stride, *parameters, measurement, session);
    }

    Device device = twoCores();
    Listener listener;
    HostSession session;
    FakeMeasurement measurement;
};

/// The detail of the point at that stride.
Json pointAt(const MeasuredRun& run, double stride)
{
    for (const Json& point : run.measurement.detail["points"]) {
        if (point["x"] == stride)
            return point;
    }
    return {};
}

std::string gradeOf(const Json& point)
{
    return point.value("grade", std::string());
}

} // namespace

class TestSweepRun : public QObject
{
    Q_OBJECT
private slots:
    void everyPointInEveryPass()
    {
        Swept sweep([](double, int) { return quiet; });
        const auto run = sweep.run();
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        QCOMPARE(sweep.measurement.visits.size(), std::size_t{9});
        for (std::size_t i = 0; i < 9; ++i)
            QCOMPARE(sweep.measurement.visits[i].first, static_cast<int>(i / 3)); // a pass, then the next
        const std::set<std::pair<int, double>> once(sweep.measurement.visits.begin(), sweep.measurement.visits.end());
        QCOMPARE(once.size(), std::size_t{9});
        QCOMPARE(sweep.listener.points.size(), std::size_t{9}); // each again as it refines
        QCOMPARE(sweep.listener.steps.size(), std::size_t{10}); // the last says that all is done
        QCOMPARE(sweep.listener.lastTotal, 9);
    }

    // A clock that only the visits move: strides of 16 elements and more take three seconds each.
    void aPagesOwnSweepEndsInTime()
    {
        struct SetClock : Clock
        {
            double now() const override { return seconds; }
            double seconds = 0;
        };
        const auto clock = std::make_shared<SetClock>();
        Instruments machine = steadyMachine({1e-3});
        machine.clock = clock;
        const auto answer = [clock](double stride, int) {
            clock->seconds += stride >= 16 ? 3 : 0.01;
            return quiet;
        };
        Swept sweep(answer, machine);
        const auto run = sweep.run("stride=4"); // no sweep of the user's
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        QCOMPARE(run->provenance.budget, std::optional(sweepBudget));
        double slowest = 0;
        for (const Json& point : run->measurement.detail["points"]) {
            const bool slow = point["x"].get<double>() >= 16;
            const int passes = point["samples"]["time"]["passes"];
            if (slow)
                QVERIFY2(passes >= 1 && passes < sweepPasses, point.dump().c_str());
            else
                QCOMPARE(passes, sweepPasses); // what is quick still fits in
            slowest += slow ? 3 : 0;
        }
        QVERIFY(slowest > 0);
        QVERIFY(clock->seconds <= std::max(slowest, sweepBudget) + 1);
        int last = 0;
        for (const int step : sweep.listener.progressed) {
            QVERIFY(step >= last);
            last = step;
        }

        clock->seconds = 0;
        Swept named(answer, machine); // named values get every pass
        const auto whole = named.run("stride=1,16,64");
        QVERIFY(!whole->provenance.budget);
        for (const Json& point : whole->measurement.detail["points"])
            QCOMPARE(point["samples"]["time"]["passes"].get<int>(), sweepPasses);
    }

    void aQuietMachineIsGradeA()
    {
        Swept sweep([](double stride, int) { return std::vector<double>(6, 1e-3 * stride); });
        const auto run = sweep.run();
        QCOMPARE(run->provenance.quality->grade, 'A');
        QVERIFY(sweep.listener.notes.empty());
        for (const double stride : {1.0, 2.0, 4.0})
            QCOMPARE(gradeOf(pointAt(*run, stride)), std::string("A"));
        const auto& series = run->measurement.series.front();
        QCOMPARE(series.key, std::string("useful_bandwidth"));
        QCOMPARE(series.y, (std::vector<double>{1e9, 0.5e9, 0.25e9}));
    }

    void rawSamplesAreKept()
    {
        Swept sweep([](double stride, int pass) { return std::vector<double>(6, stride + 0.001 * pass); });
        const auto run = sweep.run();
        const Json& samples = run->provenance.samples;
        QCOMPARE(samples.size(), std::size_t{3});
        for (const Json& one : samples) {
            QCOMPARE(one["values"].size(), std::size_t{18});
            QCOMPARE(one["values"][6].get<double>(), one["x"].get<double>() + 0.001);
        }
        QCOMPARE(run->provenance.machine["clock_hz"].get<double>(), 4e9);
        QCOMPARE(run->provenance.method["how"].get<std::string>(), std::string("as the test said"));
    }

    // What the samples of stride 2 are like, and what the record then says of it and of its neighbours.
    void badSamples_data()
    {
        QTest::addColumn<QVector<double>>("samples");
        QTest::addColumn<QString>("grade");
        QTest::addColumn<QString>("says");
        const double nan = std::numeric_limits<double>::quiet_NaN();
        QTest::newRow("steady") << QVector<double>(6, 1e-3) << "A"
                                << "18 samples";
        QTest::newRow("noisy by 2 %") << QVector<double>{1, 1, 1.01, 1.01, 1.02, 1.02} << "B"
                                      << "within";
        QTest::newRow("noisy by a half") << QVector<double>{1, 1, 1, 1.5, 1.5, 1.5} << "D"
                                         << "within 40 %";
        QTest::newRow("one outlier") << QVector<double>{1, 1, 1, 1, 1, 900} << "A"
                                     << "18 samples";
        QTest::newRow("one sample a pass") << QVector<double>{1} << "D"
                                           << "only 3 samples";
        QTest::newRow("none") << QVector<double>{} << "D"
                              << "no samples";
        QTest::newRow("not numbers") << QVector<double>(6, nan) << "D"
                                     << "finite";
        QTest::newRow("some not numbers") << QVector<double>{1, 1, 1, 1, 1, nan} << "A"
                                          << "3 samples were not numbers";
    }
    void badSamples()
    {
        QFETCH(const QVector<double>, samples);
        QFETCH(const QString, grade);
        QFETCH(const QString, says);
        Swept sweep([&](double stride, int) {
            return stride == 2 ? std::vector<double>(samples.begin(), samples.end()) : quiet;
        });
        const auto run = sweep.run();
        QVERIFY(run.has_value());
        const Json point = pointAt(*run, 2);
        QCOMPARE(QString::fromStdString(gradeOf(point)), grade);
        QVERIFY2(QString::fromStdString(point["reason"]).contains(says), point["reason"].dump().c_str());
        QCOMPARE(gradeOf(pointAt(*run, 1)), std::string("A"));
        QCOMPARE(QString(QLatin1Char(run->provenance.quality->grade)), grade); // of all, the worst
    }

    // Passes that disagree are said, not averaged.
    void passesThatDiffer_data()
    {
        QTest::addColumn<double>("third");
        QTest::addColumn<QString>("grade");
        QTest::addColumn<int>("notes");
        QTest::newRow("by 2 %") << 1.02e-3 << "B" << 0;
        QTest::newRow("by 5 %") << 1.05e-3 << "C" << 0;
        QTest::newRow("by half") << 1.5e-3 << "D" << 1;
    }
    void passesThatDiffer()
    {
        QFETCH(const double, third);
        QFETCH(const QString, grade);
        QFETCH(const int, notes);
        Swept sweep(
            [&](double stride, int pass) { return stride == 2 && pass == 2 ? std::vector<double>(6, third) : quiet; });
        const auto run = sweep.run();
        QCOMPARE(QString::fromStdString(gradeOf(pointAt(*run, 2))), grade);
        QCOMPARE(sweep.listener.count("pass.disagrees"), notes);
        if (grade != "B")
            QVERIFY(pointAt(*run, 2)["reason"].get<std::string>().find("drifted") != std::string::npos);
    }

    // The machine around perfect samples. A canary is read before and after each of nine visits.
    void disturbedMachine_data()
    {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("grade");
        QTest::addColumn<QString>("says");
        QTest::newRow("the clock drops by a third") << "clock"
                                                    << "C"
                                                    << "the clock fell to 67 %";
        QTest::newRow("the clock drops for one visit") << "dip"
                                                       << "C"
                                                       << "the clock fell to 67 %";
        QTest::newRow("the hypervisor takes time") << "steal"
                                                   << "C"
                                                   << "the hypervisor took 5 %";
        QTest::newRow("another process on the core") << "preempt"
                                                     << "C"
                                                     << "context switches";
        QTest::newRow("the canary is dead") << "dead"
                                            << "A"
                                            << "every point";
    }
    void disturbedMachine()
    {
        QFETCH(const QString, fault);
        QFETCH(const QString, grade);
        QFETCH(const QString, says);
        int readings = 0;
        SystemTicks ticks;
        Instruments machine = steadyMachine({1e-3});
        machine.canary = [&](const Clock&) {
            ++readings;
            const bool slow = (fault == "clock" && readings > 1) || (fault == "dip" && readings == 9);
            return fault == "dead" ? CanaryReading{} : CanaryReading{slow ? 4e9 / 1.5 : 4e9, 1e-9};
        };
        machine.ticks = [&] {
            ticks.total += 100;
            ticks.steal += fault == "steal" ? 5 : 0;
            ticks.preemptions += fault == "preempt" ? 50 : 0;
            return ticks;
        };
        Swept sweep([](double, int) { return quiet; }, machine);
        const auto run = sweep.run();
        QCOMPARE(readings, 18);
        QCOMPARE(QString(QLatin1Char(run->provenance.quality->grade)), grade);
        const QString reason = QString::fromStdString(run->provenance.quality->reason);
        QVERIFY2(reason.contains(says), qPrintable(reason));
        int worse = 0; // a dip is of one point only
        for (const Json& point : run->measurement.detail["points"])
            worse += gradeOf(point) != "A";
        QCOMPARE(worse, grade == "A" ? 0 : (fault == "dip" ? 1 : 3));
    }

    void aWrongKernelIsNotTimed()
    {
        Swept sweep([](double, int) { return quiet; });
        sweep.measurement.wrongKernel = true;
        QCOMPARE(sweep.run().error().code, std::string("check.failed"));
        QVERIFY(sweep.measurement.visits.empty());
    }

    void onePointThatDoesNotFitLeavesTheOthers()
    {
        Swept sweep([](double stride, int) -> Result<std::vector<double>> {
            if (stride == 4)
                return fail("run.memory", "the arrays would take too much", "choose fewer bytes");
            return quiet;
        });
        const auto run = sweep.run();
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        QCOMPARE(sweep.measurement.visits.size(), std::size_t{7}); // it was tried once
        QCOMPARE(sweep.listener.count("run.memory"), 1);
        const Json point = pointAt(*run, 4);
        QCOMPARE(point["error"].get<std::string>(), std::string("run.memory"));
        QVERIFY(point["reason"].get<std::string>().find("choose fewer bytes") != std::string::npos);
        const auto& y = run->measurement.series.front().y;
        QCOMPARE(y[0], 1e9);
        QVERIFY(std::isnan(y[2]));
        QCOMPARE(run->provenance.quality->grade, 'A'); // of what was measured
        for (const Json& samples : run->provenance.samples)
            QVERIFY(samples["x"] != 4.0);
    }

    void thePointThatWasAskedForComesFirstAndMustFit()
    {
        // stride=64 alone: the curve around it is a supplement.
        Swept sweep([](double stride, int) -> Result<std::vector<double>> {
            if (stride == 64)
                return fail("run.memory", "the arrays would take too much", "choose fewer bytes");
            return quiet;
        });
        const auto run = sweep.run("stride=64");
        QCOMPARE(run.error().code, std::string("run.memory"));
        QCOMPARE(sweep.measurement.visits, (std::vector<std::pair<int, double>>{{0, 64}}));

        Swept other([](double stride, int) -> Result<std::vector<double>> {
            if (stride == 64)
                return fail("run.memory", "the arrays would take too much", "choose fewer bytes");
            return quiet;
        });
        const auto run2 = other.run("stride=4");
        QVERIFY(run2.has_value());
        QCOMPARE(findFigure(run2->measurement.figures, "useful_bandwidth")->number(), 1e9);
        QCOMPARE(other.listener.count("run.memory"), 1);
    }

    void aPointThatFailsLaterIsNotShownAsMeasured()
    {
        // In the second pass another program has taken the memory.
        Swept sweep([](double stride, int pass) -> Result<std::vector<double>> {
            if (stride == 4 && pass > 0)
                return fail("run.memory", "the system refused an array");
            return quiet;
        });
        const auto run = sweep.run();
        QVERIFY(run.has_value());
        QCOMPARE(pointAt(*run, 4)["error"].get<std::string>(), std::string("run.memory"));
        QVERIFY(std::isnan(run->measurement.series.front().y[2]));
    }

    void nothingFits()
    {
        Swept sweep([](double, int) -> Result<std::vector<double>> {
            return fail("run.memory", "the arrays would take too much", "choose fewer bytes");
        });
        const auto run = sweep.run();
        QCOMPARE(run.error().code, std::string("run.memory"));
        QCOMPARE(run.error().hint, std::string("choose fewer bytes"));
    }

    void stoppedAfterSomePointsIsARunThatIsNotComplete()
    {
        int visits = 0;
        Swept sweep([&](double, int) -> Result<std::vector<double>> {
            if (++visits > 4)
                return fail("run.cancelled", "the measurement was stopped");
            return quiet;
        });
        const auto run = sweep.run();
        QVERIFY(run.has_value());
        QVERIFY(!run->complete);
        QCOMPARE(run->measurement.detail["points"].size(), std::size_t{3});
        std::size_t kept = 0;
        for (const Json& samples : run->provenance.samples)
            kept += samples["values"].size();
        QCOMPARE(kept, 4 * quiet.size());
    }

    void stoppedBeforeAnyPointIsAnError()
    {
        Swept sweep([](double, int) -> Result<std::vector<double>> {
            return fail("run.cancelled", "the measurement was stopped");
        });
        QCOMPARE(sweep.run().error().code, std::string("run.cancelled"));
    }

    void figuresFromSamples()
    {
        const Summary seconds = summarize(std::vector<double>{1, 2, 3, 4, 5});
        const Figure fastest = timeFigure("latency", "latency", seconds, true);
        QCOMPARE(fastest.number(), 1.0);
        const Figure typical = timeFigure("time", "time", seconds, false);
        QCOMPARE(typical.number(), 3.0);
        QCOMPARE(*typical.low, 1.0);
        QCOMPARE(*typical.high, 4.0);
        const Figure rate = rateFigure("bandwidth", "bandwidth", 12, seconds);
        QCOMPARE(rate.number(), 4.0);
        QCOMPARE(*rate.low, 3.0); // the slow end of time is the low end of a rate
        QCOMPARE(*rate.high, 12.0);
        QVERIFY(std::isnan(timeFigure("time", "time", {}, false).number()));
        QVERIFY(std::isnan(rateFigure("bandwidth", "bandwidth", 12, {}).number()));
    }
};

QTEST_GUILESS_MAIN(TestSweepRun)
#include "tst_sweep_run.moc"

// SPDX-License-Identifier: Apache-2.0
// Small real measurements: what is asserted is their form and their manners, not their speed.
#include "kernels/measure/backend.h"
#include "tests/support/waiting.h"

#include <cmath>

#include <QElapsedTimer>
#include <QTest>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

class HostBackendListener : public RunSink
{
public:
    HostBackendListener() { m_timer.start(); }
    void progress(int, int, const std::string& label) override
    {
        ++progressed;
        labels.push_back(label);
    }
    void point(const std::string&, const Point& point) override { points.push_back(point); }
    void note(const std::string&, const std::string& code, const std::string&) override { notes.push_back(code); }
    bool cancelled() const override { return m_timer.elapsed() >= cancelAfter; }
    qint64 elapsed() const { return m_timer.elapsed(); }

    int progressed = 0;
    qint64 cancelAfter = 1'000'000; ///< ms
    std::vector<Point> points;
    std::vector<std::string> notes;
    std::vector<std::string> labels; ///< of the progress

private:
    QElapsedTimer m_timer;
};

Parameters parametersOf(const Experiment& experiment, const std::vector<std::string>& assignments)
{
    auto parameters = resolve(experiment.schema(), assignments);
    if (!parameters)
        qFatal("%s", parameters.error().text().c_str());
    return *parameters;
}

} // namespace

class TestHostBackend : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase()
    {
        m_backend = makeHostBackend();
        m_device = m_backend->devices().at(0);
    }

    void theHostIsAlwaysThere()
    {
        QCOMPARE(m_device.id, std::string("cpu"));
        QVERIFY(m_device.missing.empty());
        QVERIFY(!m_device.device.levels.empty());
    }

    void measuresTheFiguresThatArePredicted_data()
    {
        QTest::addColumn<QString>("experiment");
        QTest::addColumn<QStringList>("assignments");
        QTest::newRow("stride") << "stride" << QStringList{"stride=1,16", "bytes=256KiB", "cache=warm"};
        QTest::newRow("copy, one thread")
            << "stride" << QStringList{"stride=3,5", "bytes=64KiB", "operation=copy", "threads=1"};
        QTest::newRow("random") << "stride" << QStringList{"pattern=random", "bytes=64KiB,1MiB"};
        QTest::newRow("hierarchy") << "hierarchy" << QStringList{"working_set=4KiB,256KiB"};
        QTest::newRow("hierarchy, threads")
            << "hierarchy" << QStringList{"threads=1,2", "working_set=64KiB", "operation=triad"};
        QTest::newRow("hierarchy, small pages")
            << "hierarchy" << QStringList{"working_set=16KiB,64KiB", "pages=4k", "operation=copy"};
    }
    void measuresTheFiguresThatArePredicted()
    {
        QFETCH(const QString, experiment);
        QFETCH(const QStringList, assignments);
        const Experiment& asked = **findExperiment(experiment.toStdString());
        std::vector<std::string> words;
        for (const QString& word : assignments)
            words.push_back(word.toStdString());
        const Parameters parameters = parametersOf(asked, words);
        HostBackendListener listener;
        const auto run = m_backend->measure(asked, m_device, parameters, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        QCOMPARE(listener.points.size(), std::size_t{6}); // two points in three passes
        QCOMPARE(listener.progressed, 7);
        const ParameterSpec* swept = findParameter(asked.schema(), parameters.sweep()->key);
        QCOMPARE(listener.labels.back(), std::string()); // the end
        listener.labels.pop_back();
        for (const std::string& label : listener.labels) { // as the form calls it: 192 MiB
            const auto& values = parameters.sweep()->values;
            QVERIFY2(std::ranges::any_of(values,
                                         [&](const ParameterValue& value) {
                                             return label.starts_with(swept->label + " " + valueLabel(*swept, value));
                                         }),
                     label.c_str());
        }

        const auto predicted =
            asked.predictPoint(m_device.device, parameters.at(parameters.sweep()->key, parameters.sweep()->values[0]));
        QVERIFY(predicted.has_value());
        for (const Figure& figure : *predicted) {
            const Figure* const measured = findFigure(run->measurement.figures, figure.key);
            if (!measured && figure.key == "lines_read")
                continue; // this processor has no counter
            QVERIFY2(measured, figure.key.c_str());
            QCOMPARE(measured->isNumber(), figure.isNumber());
            QCOMPARE(measured->unit, figure.unit);
            if (measured->isNumber())
                QVERIFY2(std::isfinite(measured->number()) && measured->number() > 0, figure.key.c_str());
            if (measured->low && measured->high)
                QVERIFY(*measured->low <= measured->number() && measured->number() <= *measured->high);
        }
        for (const char* const key : {"sectors_per_request", "lines_per_request", "efficiency", "peak_memory"}) {
            if (const Figure* const counted = findFigure(*predicted, key))
                QCOMPARE(findFigure(run->measurement.figures, key)->number(), counted->number());
        }
        const std::string grade = run->measurement.detail["quality"]["grade"];
        QVERIFY(grade.size() == 1 && grade >= "A" && grade <= "D");
        QVERIFY(!run->measurement.detail["quality"]["reason"].get<std::string>().empty());
        QCOMPARE(run->measurement.detail["points"].size(), std::size_t{2});
        QVERIFY(run->provenance.samples.size() >= 2);
        QVERIFY(!run->provenance.samples[0]["values"].empty());
        const Json written = provenanceToJson(run->provenance, run->complete);
        for (const char* const key : {"backend", "processor", "kernel", "governor", "time", "grade", "method"})
            QVERIFY2(written.contains(key), key);
    }

    void stopsWhenAsked_data()
    {
        QTest::addColumn<QString>("experiment");
        QTest::addColumn<QString>("assignment");
        QTest::addColumn<int>("after");
        QTest::newRow("while linking a chain") << "hierarchy"
                                               << "working_set=512MiB,256MiB" << 60;
        QTest::newRow("while touching arrays") << "stride"
                                               << "bytes=1GiB" << 60;
        QTest::newRow("while measuring") << "stride"
                                         << "bytes=8MiB" << 300;
        QTest::newRow("at once") << "hierarchy"
                                 << "working_set=4KiB,8KiB" << 0;
    }
    void stopsWhenAsked()
    {
        QFETCH(const QString, experiment);
        QFETCH(const QString, assignment);
        QFETCH(const int, after);
        const Experiment& asked = **findExperiment(experiment.toStdString());
        HostBackendListener listener;
        listener.cancelAfter = after;
        const auto run = m_backend->measure(asked, m_device, parametersOf(asked, {assignment.toStdString()}), listener);
        QVERIFY2(listener.elapsed() - after < test::notStuck, qPrintable(QString::number(listener.elapsed())));
        if (run)
            QVERIFY(!run->complete);
        else
            QCOMPARE(run.error().code, std::string("run.cancelled"));
    }

    void tooMuchMemoryIsRefusedWithARemedy()
    {
        for (const auto& [experiment, assignment] :
             {std::pair{"stride", "bytes=1TiB"}, std::pair{"hierarchy", "working_set=1TiB"}}) {
            const Experiment& asked = **findExperiment(experiment);
            HostBackendListener listener;
            const auto run =
                m_backend->measure(asked, m_device, parametersOf(asked, {assignment, "threads=1"}), listener);
            QVERIFY(!run);
            QCOMPARE(run.error().code, std::string("run.memory"));
            QVERIFY(!run.error().hint.empty());
        }
    }

    void selftestPasses()
    {
        HostBackendListener listener;
        const auto lines = m_backend->selftest(m_device, listener);
        QVERIFY(lines.size() > 100);
        for (const SelftestLine& line : lines)
            QVERIFY2(line.passed && !line.skipped, (line.kernel + ": " + line.detail).c_str());
    }

    void calibrationStops()
    {
        HostBackendListener listener;
        listener.cancelAfter = 300;
        const auto device = m_backend->calibrate(m_device, listener);
        QVERIFY(!device);
        QCOMPARE(device.error().code, std::string("run.cancelled"));
        QVERIFY2(listener.elapsed() < 300 + test::notStuck, qPrintable(QString::number(listener.elapsed())));
    }

private:
    std::unique_ptr<Backend> m_backend;
    BackendDevice m_device;
};

QTEST_GUILESS_MAIN(TestHostBackend)
#include "tst_host_backend.moc"

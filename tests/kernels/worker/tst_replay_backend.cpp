// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/backend.h"

#include "core/experiment/record.h"

#include <fstream>

#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

class Listener : public RunSink
{
public:
    void progress(int, int, const std::string&) override { }
    void point(const std::string& key, const Point& point) override
    {
        keys.push_back(key);
        points.push_back(point);
    }
    void note(const std::string&, const std::string&, const std::string&) override { }
    bool cancelled() const override { return points.size() >= cancelAfter; }

    std::vector<std::string> keys;
    std::vector<Point> points;
    std::size_t cancelAfter = 1000;
};

/// A record of `stride` with three measured points, in a file.
std::string recordedFile(const QTemporaryDir& folder)
{
    const Experiment& experiment = **findExperiment("stride");
    Record record;
    record.experiment = "stride";
    record.parameters = *resolve(experiment.schema(), std::vector<std::string>{"stride=1,2,4"});
    record.device.id = "cuda:0";
    record.device.name = "a recorded GPU";
    record.device.kind = DeviceKind::Gpu;
    MemoryLevel level;
    level.id = "DRAM";
    level.label = "memory";
    level.kind = LevelKind::Dram;
    level.capacity = {8e10, Evidence::Specified, "a test"};
    level.bandwidth = {4e12, Evidence::Specified, "a test"};
    record.device.levels = {level};
    std::vector<Point> points;
    for (const double x : {1.0, 2.0, 4.0}) {
        Figure figure{"useful_bandwidth", "useful bandwidth", Unit::BytePerSecond};
        figure.value = 4e12 / x;
        figure.low = 3e12 / x;
        figure.high = 5e12 / x;
        points.push_back({x, std::to_string(static_cast<int>(x)), {figure}, {}});
    }
    record.measured = outcomeFromPoints(experiment, record.device, record.parameters, points);
    record.provenance = {{"backend", "cuda"}, {"driver", "580"}};
    const std::string path = folder.filePath("run.json").toStdString();
    if (!writeRecord(path, record))
        qFatal("the record could not be written");
    return path;
}

} // namespace

class TestReplayBackend : public QObject
{
    Q_OBJECT
private slots:
    void playsWhatWasRecorded()
    {
        const QTemporaryDir folder;
        const std::string path = recordedFile(folder);
        auto backend = makeReplayBackend(path);
        QVERIFY2(backend.has_value(), backend ? "" : backend.error().text().c_str());
        const auto devices = (*backend)->devices();
        QCOMPARE(devices.size(), std::size_t{1});
        QCOMPARE(devices[0].id, std::string("replay:cuda:0"));

        const Experiment& experiment = **findExperiment("stride");
        Listener listener;
        const auto run = (*backend)->measure(
            experiment, devices[0], *resolve(experiment.schema(), std::vector<std::string>{"stride=1,2,4"}), listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        QCOMPARE(listener.points.size(), std::size_t{3});
        QCOMPARE(listener.keys.front(), std::string("stride"));
        QCOMPARE(findFigure(listener.points[2].figures, "useful_bandwidth")->number(), 1e12);
        QCOMPARE(run->measurement.findSeries("useful_bandwidth")->y, (std::vector<double>{4e12, 2e12, 1e12}));
        QVERIFY(run->provenance.machine["replayed"].get<bool>());
        QCOMPARE(run->provenance.machine["replayed_from"].get<std::string>(), path);
        QCOMPARE(run->provenance.machine["driver"].get<std::string>(), std::string("580"));
    }

    void cancelLeavesTheRest()
    {
        const QTemporaryDir folder;
        auto backend = makeReplayBackend(recordedFile(folder));
        const Experiment& experiment = **findExperiment("stride");
        Listener listener;
        listener.cancelAfter = 1;
        const auto run =
            (*backend)->measure(experiment, (*backend)->devices()[0],
                                *resolve(experiment.schema(), std::vector<std::string>{"stride=1,2,4"}), listener);
        QVERIFY(!run->complete);
        QCOMPARE(listener.points.size(), std::size_t{1});
    }

    void otherQuestionsAreRefusedWithWhatThereIs()
    {
        const QTemporaryDir folder;
        auto backend = makeReplayBackend(recordedFile(folder));
        Listener listener;
        const BackendDevice device = (*backend)->devices()[0];
        const Experiment& stride = **findExperiment("stride");
        const auto other = (*backend)->measure(
            stride, device, *resolve(stride.schema(), std::vector<std::string>{"element=int8"}), listener);
        QCOMPARE(other.error().code, std::string("run.skipped"));
        QVERIFY2(QString::fromStdString(other.error().hint).contains("element=float32"), other.error().hint.c_str());
        const Experiment& hierarchy = **findExperiment("hierarchy");
        const auto none =
            (*backend)->measure(hierarchy, device, *resolve(hierarchy.schema(), std::vector<std::string>{}), listener);
        QCOMPARE(none.error().code, std::string("run.skipped"));
        QCOMPARE((*backend)->calibrate(device, listener).error().code, std::string("run.skipped"));
    }

    void filesThatAreNoRuns_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("no JSON") << QByteArray("hello");
        QTest::newRow("foreign") << QByteArray("{\"model_type\": \"llama\"}");
        QTest::newRow("a study without measurements")
            << QByteArray("{\"format\":\"memscape-study\",\"version\":1,\"records\":[]}");
    }
    void filesThatAreNoRuns()
    {
        QFETCH(const QByteArray, content);
        const QTemporaryDir folder;
        const std::string path = folder.filePath("file.json").toStdString();
        std::ofstream(path) << content.toStdString();
        const auto backend = makeReplayBackend(path);
        QVERIFY(!backend);
        QVERIFY(!backend.error().message.empty());
    }

    void missingFile() { QVERIFY(!makeReplayBackend("/nowhere/run.json")); }
};

QTEST_APPLESS_MAIN(TestReplayBackend)
#include "tst_replay_backend.moc"

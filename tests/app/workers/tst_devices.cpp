// SPDX-License-Identifier: GPL-3.0-or-later
// The list that the device picker shows, and how a device leads to its worker.
#include "app/workers/devices.h"
#include "core/base/file.h"
#include "tests/support/sample_study.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace memscape;

namespace {

WorkerOptions fake(const QString& mode)
{
    WorkerOptions options;
    options.command = QStringList{QStringLiteral(FAKE_WORKER), mode};
    return options;
}

QString command(const char* mode)
{
    return QStringLiteral("\"%1\" %2").arg(QStringLiteral(FAKE_WORKER), QLatin1String(mode));
}

} // namespace

class TestDevices : public QObject
{
    Q_OBJECT
private slots:
    void thisMachineCanBePredictedBeforeItsWorkerIsUp()
    {
        const DeviceDirectory directory(fake(QStringLiteral("ok")));
        const DeviceEntry* cpu = directory.find("cpu");
        QVERIFY(cpu);
        QVERIFY(cpu->source == DeviceSource::Live);
        QVERIFY(!cpu->measurable());
        QVERIFY(!cpu->device.levels.empty());
        QCOMPARE(directory.preferred(), cpu);
        QVERIFY(!directory.find("no-such-device"));
    }

    void liveDevicesSayWhyTheyAreMissing()
    {
        DeviceDirectory directory(fake(QStringLiteral("ok")));
        QSignalSpy changed(&directory, &DeviceDirectory::changed);
        directory.startAll();
        QTRY_VERIFY(directory.find("cpu")->measurable());
        QVERIFY(!changed.isEmpty());
        const DeviceEntry* gpu = directory.find("cuda:0");
        QVERIFY(gpu);
        QVERIFY(!gpu->measurable());
        QCOMPARE(gpu->missing, QStringLiteral("no driver"));
        QCOMPARE(directory.run("stride", "cuda:0", sample::parameters()).error().code, std::string("device.missing"));
        QCOMPARE(directory.run("stride", "telepathy", sample::parameters()).error().code,
                 std::string("device.unknown"));
    }

    void workersByCommandAreDevicesUnderTheirName()
    {
        DeviceDirectory directory(fake(QStringLiteral("ok")));
        directory.setWorkers({{QStringLiteral("lab-gpu"), command("ok")}, {QStringLiteral("broken"), command("exit")}});
        QTRY_VERIFY(directory.find("lab-gpu/cpu")
                    && directory.find("lab-gpu/cpu")->worker == QStringLiteral("lab-gpu"));
        QVERIFY(directory.find("lab-gpu/cpu")->label.contains(QStringLiteral("lab-gpu")));
        QCOMPARE(directory.find("lab-gpu/cpu")->workerDevice, std::string("cpu"));
        QTRY_VERIFY(directory.find("broken/?")
                    && directory.find("broken/?")->missing.contains(QStringLiteral("publickey")));

        // One that stays is not restarted; one that goes takes its devices along.
        WorkerClient* lab = directory.worker(QStringLiteral("lab-gpu"));
        const qint64 pid = lab->processId();
        directory.setWorkers({{QStringLiteral("lab-gpu"), command("ok")}});
        QCOMPARE(directory.worker(QStringLiteral("lab-gpu")), lab);
        QCOMPARE(lab->processId(), pid);
        QVERIFY(!directory.find("broken/?"));
        QVERIFY(!directory.worker(QStringLiteral("broken")));
        directory.setWorkers({});
        QVERIFY(!directory.find("lab-gpu/cpu"));
        QVERIFY(directory.find("cpu"));
    }

    void runsGoToTheirWorkerAndComeBackThroughTheDirectory()
    {
        DeviceDirectory directory(fake(QStringLiteral("failed")));
        directory.setWorkers({{QStringLiteral("lab"), command("failed")}});
        std::vector<FinishedRun> runs;
        connect(&directory, &DeviceDirectory::finished, this, [&](const FinishedRun& run) { runs.push_back(run); });
        const auto first = directory.run("stride", "cpu", sample::parameters()); // starts its worker
        QVERIFY(first);
        QTRY_COMPARE(runs.size(), 1u);
        QCOMPARE(runs[0].id, *first);
        QCOMPARE(runs[0].request.workerDevice, std::string("cpu"));
        QCOMPARE(runs[0].error->code, std::string("run.memory"));
    }

    void aCalibrationIsUsedAfterARefresh()
    {
        QTemporaryDir data;
        qputenv("XDG_DATA_HOME", data.path().toUtf8());
        DeviceDirectory directory(fake(QStringLiteral("ok")));
        QVERIFY(!directory.find("cpu")->calibrated());
        Device calibrated = directory.find("cpu")->device;
        calibrated.basis = "calibrated";
        calibrated.calibration.emplace();
        calibrated.calibration->time = "2026-01-01T00:00:00Z";
        calibrated.calibration->grade = "A";
        const auto path = calibrationPath("cpu");
        QVERIFY(std::filesystem::create_directories(path.parent_path()));
        QVERIFY(writeFileAtomically(path, jsonText(deviceToJson(calibrated))));
        directory.refresh();
        QVERIFY(directory.find("cpu")->calibrated());
        QVERIFY(directory.find("cpu")->uncalibrated); // what it would be predicted as without
        QVERIFY(!directory.find("cpu")->uncalibrated->calibration);
        const DeviceDirectory fresh(fake(QStringLiteral("ok"))); // calibrated from its first moment
        QVERIFY(fresh.find("cpu")->calibrated() && fresh.find("cpu")->uncalibrated);
        QVERIFY(!fresh.find("nvidia-h200")->uncalibrated);
        qunsetenv("XDG_DATA_HOME");
    }

    /// A worker reports its devices when it starts; calibrations removed later are unknown to it.
    void aForgottenCalibrationIsNotUsedThoughTheWorkerToldOfIt()
    {
        QTemporaryDir folder;
        qputenv("XDG_DATA_HOME", folder.path().toUtf8());
        Device calibrated = describeHost();
        calibrated.basis = "calibrated";
        calibrated.calibration.emplace();
        calibrated.calibration->grade = "A";
        const std::string text = jsonText(deviceToJson(calibrated));
        const auto path = calibrationPath("cpu");
        QVERIFY(std::filesystem::create_directories(path.parent_path()));
        QVERIFY(writeFileAtomically(path, text));
        const QString told = folder.filePath(QStringLiteral("told.json"));
        QVERIFY(writeFileAtomically(told.toStdString(), deviceToJson(calibrated).dump()));
        WorkerOptions options;
        options.command = QStringList{QStringLiteral(FAKE_WORKER), QStringLiteral("result"), told};
        DeviceDirectory directory(options);
        directory.startAll();
        QTRY_VERIFY(directory.find("cpu")->measurable());
        QVERIFY(directory.find("cpu")->calibrated());
        QVERIFY(std::filesystem::remove(path));
        directory.refresh();
        QVERIFY(!directory.find("cpu")->calibrated());
        QVERIFY(directory.find("cpu")->measurable());
        qunsetenv("XDG_DATA_HOME");
    }

    void deviceFilesAreListedAndBrokenOnesToldOf()
    {
        QTemporaryDir folder;
        const QString good = folder.filePath(QStringLiteral("good.json"));
        const QString bad = folder.filePath(QStringLiteral("bad.json"));
        QVERIFY(writeFileAtomically(good.toStdString(), jsonText(deviceToJson(sample::device()))));
        QVERIFY(writeFileAtomically(bad.toStdString(), "{\"format\": \"memscape-dev"));
        DeviceDirectory directory(fake(QStringLiteral("ok")));
        const std::size_t problems = directory.problems().size();
        directory.setDeviceFiles({good, bad, folder.filePath(QStringLiteral("gone.json"))});
        const DeviceEntry* entry = directory.find(good.toStdString());
        QVERIFY(entry);
        QVERIFY(entry->source == DeviceSource::File);
        QVERIFY(!entry->measurable());
        QVERIFY(!entry->missing.isEmpty());
        QCOMPARE(directory.problems().size(), problems + 2);
    }

    void ofRecordsOnlyMachinesThatAreNotElsewhereAreListed()
    {
        DeviceDirectory directory(fake(QStringLiteral("ok")));
        std::vector<Device> recorded;
        for (const char* id :
             {"cpu", "cuda:3", "pytorch:cpu", "pytorch:cuda:0", "nvidia-h200", "lab/pytorch:cpu", "mine"}) {
            recorded.emplace_back();
            recorded.back().id = id;
        }
        directory.setRecorded(recorded);
        QStringList listed;
        for (const DeviceEntry& entry : directory.entries()) {
            if (entry.source == DeviceSource::Record)
                listed << QString::fromStdString(entry.id);
        }
        QCOMPARE(listed, QStringList{QStringLiteral("mine")});
    }

    void recordsOfTheStudyAndOfALabAreListedBeside()
    {
        DeviceDirectory directory(fake(QStringLiteral("ok")));
        Device mine, theirs;
        mine.id = "mine";
        theirs.id = "theirs";
        directory.setRecorded({mine});
        directory.setRecorded({theirs}, QStringLiteral("lab"));
        QVERIFY(directory.find("mine") && directory.find("theirs"));
        directory.setRecorded({});
        QVERIFY(!directory.find("mine") && directory.find("theirs"));
    }

    void catalogueDevicesAreForPredictions()
    {
        const DeviceDirectory directory(fake(QStringLiteral("ok")));
        for (const DeviceEntry& entry : directory.entries()) {
            if (entry.source != DeviceSource::Catalogue)
                continue;
            QVERIFY(!entry.measurable());
            QVERIFY(!entry.missing.isEmpty());
            QVERIFY(!directory.workerFor(entry.id));
        }
    }

    void commandsAreChecked_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("line");
        QTest::addColumn<QStringList>("words");
        QTest::newRow("ssh") << "lab-gpu"
                             << "ssh lab-gpu memscape-cli worker"
                             << QStringList{QStringLiteral("ssh"), QStringLiteral("lab-gpu"),
                                            QStringLiteral("memscape-cli"), QStringLiteral("worker")};
        QTest::newRow("nothing reaches a shell")
            << "x"
            << "w '; rm -rf $HOME' && `date`"
            << QStringList{QStringLiteral("w"),     QStringLiteral("';"),     QStringLiteral("rm"),
                           QStringLiteral("-rf"),   QStringLiteral("$HOME'"), QStringLiteral("&&"),
                           QStringLiteral("`date`")};
        QTest::newRow("quotes") << "x"
                                << "\"/my tools/w\" worker"
                                << QStringList{QStringLiteral("/my tools/w"), QStringLiteral("worker")};
        QTest::newRow("open quote") << "x"
                                    << "\"/my tools/w worker" << QStringList{};
        QTest::newRow("empty command") << "x"
                                       << "  " << QStringList{};
        QTest::newRow("empty name") << " "
                                    << "w" << QStringList{};
        QTest::newRow("slash in the name") << "a/b"
                                           << "w" << QStringList{};
        QTest::newRow("taken") << "taken"
                               << "w" << QStringList{};
    }
    void commandsAreChecked()
    {
        QFETCH(QString, name);
        QFETCH(QString, line);
        QFETCH(QStringList, words);
        const auto checked = checkWorkerCommand({name, line}, {{QStringLiteral("taken"), QStringLiteral("w")}});
        QCOMPARE(checked.value_or(QStringList{}), words);
        if (!checked)
            QVERIFY(QByteArray::fromStdString(checked.error().code).startsWith("worker."));
    }
};

QTEST_GUILESS_MAIN(TestDevices)
#include "tst_devices.moc"

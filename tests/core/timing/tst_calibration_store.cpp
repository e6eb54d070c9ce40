// SPDX-License-Identifier: Apache-2.0
// What a new calibration may replace, and what is refused as no machine at all.
#include "core/base/file.h"
#include "core/device/catalogue.h"
#include "core/timing/calibration_check.h"
#include "core/timing/calibration_store.h"
#include "tests/support/devices.h"

#include <QTemporaryDir>
#include <QtTest>

using namespace memscape;

namespace {

Sourced measured(double value)
{
    return {value, Evidence::Measured, "a test", {}};
}

Device calibrated(const std::string& grade = "B")
{
    Device device = test::twoCores("tested");
    const double latencies[] = {1.1e-9, 3.9e-9, 12e-9, 105e-9};
    const double bandwidths[] = {400e9, 200e9, 90e9, 30e9};
    for (std::size_t i = 0; i < device.levels.size(); ++i) {
        device.levels[i].latency = measured(latencies[i]);
        device.levels[i].bandwidth = measured(bandwidths[i]);
    }
    device.tlbs = {{"far", 4096, measured(3072), measured(60e-9)}, {"far", 0x1p21, measured(1024), measured(20e-9)}};
    device.basis = "calibrated";
    device.calibration.emplace();
    device.calibration->time = "2026-01-01T00:00:00Z";
    device.calibration->grade = grade;
    device.notes = {"calibration grade " + grade + ": bandwidth: a typical probe's middle half lies within 14 %"};
    return device;
}

std::string refusalOf(const Device& device)
{
    const auto possible = checkPossible(device);
    return possible ? "" : possible.error().text();
}

} // namespace

class TestCalibrationStore : public QObject
{
    Q_OBJECT

    QTemporaryDir m_home;

    static std::string gradeInUse()
    {
        const auto found = findDevice(calibrationPath("cpu").string());
        return found && found->calibration ? found->calibration->grade : "";
    }

private slots:
    void init()
    {
        qputenv("XDG_DATA_HOME", m_home.path().toUtf8());
        std::filesystem::remove_all(calibrationPath("cpu").parent_path());
    }

    void aGoodOneIsKept()
    {
        const auto kept = keepCalibration("cpu", calibrated("C"), Keep::WhenGood);
        QVERIFY2(kept.has_value(), kept ? "" : kept.error().text().c_str());
        QCOMPARE(*kept, calibrationPath("cpu"));
        QCOMPARE(gradeInUse(), std::string("C"));
    }

    void gradeDReplacesNothingUnlessForced()
    {
        QVERIFY(keepCalibration("cpu", calibrated("B"), Keep::WhenGood));
        const auto refused = keepCalibration("cpu", calibrated("D"), Keep::WhenGood);
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, std::string("run.grade"));
        for (const char* words : {"2026-01-01", "(grade B) stays in use", "grade D: bandwidth", "anyway"})
            QVERIFY2(refused.error().text().find(words) != std::string::npos
                         || refused.error().hint.find(words) != std::string::npos,
                     refused.error().text().c_str());
        QCOMPARE(gradeInUse(), std::string("B"));
        QVERIFY(keepCalibration("cpu", calibrated("D"), Keep::Anyway));
        QCOMPARE(gradeInUse(), std::string("D"));
    }

    void gradeDDoesNotReplaceTheDescriptionEither()
    {
        const auto refused = keepCalibration("cpu", calibrated("D"), Keep::WhenGood);
        QVERIFY(!refused);
        QVERIFY(refused.error().message.find("without a calibration") != std::string::npos);
        QVERIFY(!std::filesystem::exists(calibrationPath("cpu")));
    }

    void whatNoMachineDoesIsNeverKept()
    {
        Device wrong = calibrated("A");
        wrong.levels[3].latency = measured(8e-9);
        QCOMPARE(keepCalibration("cpu", wrong, Keep::Anyway).error().code, std::string("run.impossible"));
        QVERIFY(!std::filesystem::exists(calibrationPath("cpu")));
    }

    void itCanBeForgotten()
    {
        QVERIFY(keepCalibration("cpu", calibrated(), Keep::WhenGood));
        QCOMPARE(*forgetCalibration("cpu"), true);
        QCOMPARE(gradeInUse(), std::string());
        QCOMPARE(*forgetCalibration("cpu"), false);
    }

    void aMachineIsPossible()
    {
        QCOMPARE(refusalOf(calibrated()), std::string());
        // As near as noise: two levels that answer alike, a far one a little quicker than the first.
        Device close = calibrated();
        close.levels[2].latency = measured(close.levels[1].latency.value * 0.97);
        close.levels[1].bandwidth = measured(close.levels[0].bandwidth.value * 1.05);
        QCOMPARE(refusalOf(close), std::string());
        // What is only described is held against nothing.
        Device described = calibrated();
        described.levels[3].latency = {2e-9, Evidence::Unverified, "typical", {}};
        QCOMPARE(refusalOf(described), std::string());
    }

    void theCatalogueIsPossible()
    {
        for (const Device& device : catalogue())
            QVERIFY2(refusalOf(device).empty(), (device.id + ": " + refusalOf(device)).c_str());
    }

    void farLevelsAreNotQuicker()
    {
        Device wrong = calibrated();
        wrong.levels[2].latency = measured(2e-9);
        QVERIFY2(refusalOf(wrong).find("the latency of L3 is 2 ns, that of L2 before it 3.9 ns") != std::string::npos,
                 refusalOf(wrong).c_str());
    }

    void farLevelsGiveNoMoreThanTheFirst()
    {
        Device wrong = calibrated();
        wrong.levels[3].bandwidth = measured(500e9);
        QVERIFY2(refusalOf(wrong).find("L1 before it only 400 GB/s") != std::string::npos, refusalOf(wrong).c_str());
    }

    void hugePagesAreNotSlower()
    {
        Device wrong = calibrated();
        wrong.tlbs[1].entries = measured(2);
        wrong.tlbs[1].missPenalty = measured(90e-9);
        QVERIFY2(refusalOf(wrong).find("huge pages") != std::string::npos, refusalOf(wrong).c_str());
    }
};

QTEST_APPLESS_MAIN(TestCalibrationStore)
#include "tst_calibration_store.moc"

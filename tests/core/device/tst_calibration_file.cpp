// SPDX-License-Identifier: Apache-2.0
// The saved calibration of a live device: used when it fits, ignored with a reason when it does
// not.
#include "core/base/file.h"
#include "core/device/catalogue.h"

#include <QTemporaryDir>
#include <QtTest>

#include <filesystem>

using namespace memscape;

class TestCalibrationFile : public QObject
{
    Q_OBJECT

    static void save(const std::string& id, const std::string& text)
    {
        std::filesystem::create_directories(calibrationPath(id).parent_path());
        QVERIFY(writeFileAtomically(calibrationPath(id), text).has_value());
    }

    QTemporaryDir m_home;

private slots:
    void init()
    {
        qputenv("XDG_DATA_HOME", m_home.path().toUtf8());
        std::filesystem::remove_all(calibrationPath("cpu").parent_path());
    }

    void where_it_is_kept()
    {
        const std::string data = m_home.path().toStdString();
        QCOMPARE(calibrationPath("cpu").string(), data + "/memscape/devices/cpu.json");
        QCOMPARE(calibrationPath("cuda:0").string(), data + "/memscape/devices/cuda-0.json");
        QCOMPARE(calibrationPath("../../x").parent_path().string(), data + "/memscape/devices");
        qputenv("XDG_DATA_HOME", "relative");
        QVERIFY(calibrationPath("cpu").string().find("/.local/share/memscape/devices/cpu.json") != std::string::npos);
    }

    void it_replaces_the_description()
    {
        Device device = describeHost();
        device.basis = "calibrated";
        device.levels.front().latency.value = 1.25e-9;
        save("cpu", jsonText(deviceToJson(device)));
        const Device found = *findDevice("cpu");
        QCOMPARE(found.basis, std::string("calibrated"));
        QCOMPARE(found.levels.front().latency.value, 1.25e-9);
    }

    void of_another_machine()
    {
        Device device = describeHost();
        device.basis = "calibrated";
        device.name = "Some other CPU";
        save("cpu", jsonText(deviceToJson(device)));
        const Device found = *findDevice("cpu");
        QCOMPARE(found.basis, std::string("described"));
        QVERIFY(found.notes.back().find("Some other CPU") != std::string::npos);
    }

    /// A virtual machine says "AMD EPYC" of several processors, and may be given more cores tomorrow.
    void of_another_machine_of_the_same_name()
    {
        const Device here = describeHost();
        Device device = here;
        device.units *= 2;
        QVERIFY(!isSameProcessor(device, here));
        device = here;
        for (MemoryLevel& level : device.levels)
            if (level.kind == LevelKind::Dram)
                level.capacity.value /= 2; // what the system keeps for itself changes from boot to boot
        QVERIFY(isSameProcessor(device, here));
        device.basis = "calibrated";
        for (MemoryLevel& level : device.levels)
            if (level.kind == LevelKind::Cache)
                level.capacity = {3 * 65536.0, Evidence::Specified, "another processor", {}};
        if (const MemoryLevel* cache = here.lastCache(); !cache || !cache->capacity.known())
            QSKIP("this machine does not say what its caches hold");
        save("cpu", jsonText(deviceToJson(device)));
        const Device found = *findDevice("cpu");
        QCOMPARE(found.basis, std::string("described"));
        QVERIFY2(found.notes.back().find("192 KiB of") != std::string::npos, found.notes.back().c_str());
    }

    void broken_data()
    {
        QTest::addColumn<QString>("text");
        QTest::newRow("empty") << "";
        QTest::newRow("truncated") << "{\"format\": \"memscape-dev";
        QTest::newRow("foreign") << "{\"format\": \"memscape-study\", \"version\": 1}";
        QTest::newRow("nested") << QString(100'000, '[');
        QTest::newRow("binary") << QString("\x01\x02\x03");
    }

    void broken()
    {
        QFETCH(QString, text);
        save("cpu", text.toStdString());
        const auto found = findDevice("cpu");
        QVERIFY(found.has_value());
        QCOMPARE(found->basis, std::string("described"));
        QVERIFY(found->notes.back().find("not used") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestCalibrationFile)
#include "tst_calibration_file.moc"

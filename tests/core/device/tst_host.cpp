// SPDX-License-Identifier: Apache-2.0
// This machine as a device, from trees of /sys and /proc kept as text under tests/data/sysfs: one
// recorded on a real virtual machine, the others written by hand for what machines can do to us.
#include "core/device/catalogue.h"
#include "core/device/host_facts.h"

#include <QtTest>

#include <filesystem>

using namespace memscape;

namespace {

Device described(const char* machine)
{
    return describeHost(std::filesystem::path(TEST_DATA) / "sysfs" / machine);
}

bool mentions(const Device& device, std::string_view text)
{
    for (const std::string& note : device.notes) {
        if (note.find(text) != std::string::npos)
            return true;
    }
    return false;
}

} // namespace

class TestHost : public QObject
{
    Q_OBJECT

private slots:
    void a_recorded_virtual_machine()
    {
        const Device host = described("zen4-vm");
        QCOMPARE(host.id, std::string("cpu"));
        QCOMPARE(host.basis, std::string("described"));
        QCOMPARE(host.units, 2);
        QCOMPARE(host.architecture, std::string("Zen 4"));
        QCOMPARE(host.level("L1")->capacity.value, 32768.0);
        QCOMPARE(host.level("L1")->ways.value, 8.0);
        QCOMPARE(host.level("L1")->instances, 2);
        QCOMPARE(host.level("L2")->capacity.value, 1048576.0);
        QCOMPARE(host.level("L3")->capacity.value, 33554432.0);
        QCOMPARE(host.level("L3")->ways.value, 16.0);
        QCOMPARE(host.level("L3")->instances, 1);
        QCOMPARE(host.dram()->capacity.value, 24684096.0 * 1024);
        QCOMPARE(host.lineBytes, 64.0);
        QVERIFY(mentions(host, "virtual machine"));
        QVERIFY(mentions(host, "madvise"));
        QVERIFY(host.links.empty());
    }

    void its_clock_is_not_the_nominal_one()
    {
        const Device host = described("zen4-vm");
        QVERIFY(host.clock.value > 3.5e9); // /proc/cpuinfo says 2.6 GHz
        QVERIFY(host.clock.evidence == Evidence::Derived);
        const double clocks = host.level("L1")->latency.value * host.clock.value;
        QVERIFY(std::abs(clocks - 4) < 0.1); // documented: 4
    }

    void a_recorded_zen_5()
    {
        const Device host = described("zen5-vm");
        QCOMPARE(host.architecture, std::string("Zen 5"));
        QCOMPARE(host.level("L1")->capacity.value, 49152.0);
        QCOMPARE(host.level("L1")->ways.value, 12.0);
        QCOMPARE(host.level("L2")->ways.value, 16.0);
        QVERIFY(host.clock.value > 4e9); // /proc/cpuinfo says 2.6 GHz
        const double clocks = host.level("L1")->latency.value * host.clock.value;
        QVERIFY(std::abs(clocks - 4) < 0.1); // documented: 4
        QVERIFY(host.rates.at("bf16").flops.value == 2 * host.rates.at("fp32").flops.value);
    }

    void what_the_system_tells_and_what_is_taken_from_elsewhere()
    {
        const Device host = described("zen4-vm");
        QVERIFY(host.level("L1")->capacity.evidence == Evidence::Specified);
        QVERIFY(host.level("L1")->capacity.source.find("/sys/devices") != std::string::npos);
        QVERIFY(host.level("L1")->latency.evidence == Evidence::Derived);
        QVERIFY(host.level("L1")->latency.source.find("amd-epyc-zen4-vm") != std::string::npos);
        QVERIFY(host.tlbs.size() == 4);
    }

    void twelve_ways_and_threads()
    {
        const Device host = described("sapphire-rapids");
        QCOMPARE(host.architecture, std::string("Sapphire Rapids"));
        QCOMPARE(host.units, 2);
        QCOMPARE(host.threads, 4);
        QCOMPARE(host.level("L1")->capacity.value, 49152.0);
        QCOMPARE(host.level("L1")->ways.value, 12.0);
        QCOMPARE(host.level("L3")->ways.value, 15.0);
        QCOMPARE(host.clock.value, 3.8e9);
        QVERIFY(host.clock.evidence == Evidence::Specified);
        // Two cores of 56 do not reach the bandwidth of the whole socket.
        const Device whole = *findDevice("intel-xeon-8480plus");
        QVERIFY(host.dram()->bandwidth.value < 0.2 * whole.dram()->bandwidth.value);
        QCOMPARE(host.dram()->latency.value, whole.dram()->latency.value);
        QCOMPARE(host.level("L1")->bandwidth.value, whole.level("L1")->bandwidth.value * 2 / 56);
    }

    void cores_of_two_kinds()
    {
        const Device host = described("hybrid");
        QCOMPARE(host.units, 4);
        QCOMPARE(host.threads, 6);
        QCOMPARE(host.level("L1")->capacity.value, 49152.0);
        QCOMPARE(host.level("L1")->instances, 4);
        QCOMPARE(host.level("L2")->instances, 3);
        QVERIFY(mentions(host, "cores differ"));
        QVERIFY(mentions(host, "L1 32 KiB"));
        QVERIFY(mentions(host, "not in the catalogue"));
        QCOMPARE(host.clock.value, 4.7e9);
        QVERIFY(host.level("L1")->latency.evidence == Evidence::Unverified);
    }

    void no_cache_folders()
    {
        const Device host = described("no-cache");
        QCOMPARE(host.units, 3);
        QVERIFY(mentions(host, "does not list its caches"));
        QCOMPARE(host.level("L1")->capacity.value, 49152.0); // of the catalogue's host
        QVERIFY(host.level("L1")->capacity.evidence == Evidence::Derived);
        QVERIFY(host.level("L1")->capacity.source.find("intel-xeon-8480plus") != std::string::npos);
    }

    void another_architecture()
    {
        const Device host = described("arm");
        QCOMPARE(host.architecture, std::string("unknown"));
        QCOMPARE(host.level("L1")->capacity.value, 65536.0);
        QVERIFY(!host.level("L3")); // the system lists its caches, and there is none
        QVERIFY(host.clock.evidence == Evidence::Unverified);
        QVERIFY(!host.name.empty());
    }

    void broken_numbers()
    {
        const Device host = described("broken");
        QCOMPARE(host.units, 1);
        QVERIFY(mentions(host, "garbage"));
        QVERIFY(mentions(host, "level is not 1 to 4"));
        QVERIFY(host.name.find('\x1b') == std::string::npos);
        QVERIFY(host.level("L1"));
        QVERIFY(host.dram());
    }

    void nothing_there_at_all()
    {
        const Device host = described("no such machine");
        QCOMPARE(host.units, 1);
        QVERIFY(host.level("L1"));
        QVERIFY(host.level("L1")->capacity.evidence == Evidence::Unverified);
    }

    void every_description_is_a_valid_document_data()
    {
        QTest::addColumn<QString>("machine");
        for (const char* machine :
             {"zen4-vm", "sapphire-rapids", "hybrid", "no-cache", "arm", "broken", "no such machine"})
            QTest::newRow(machine) << machine;
    }

    void every_description_is_a_valid_document()
    {
        QFETCH(QString, machine);
        const Device host = described(machine.toUtf8().constData());
        const Json json = deviceToJson(host);
        const auto again = deviceFromJson(json);
        QVERIFY2(again.has_value(), again ? "" : again.error().text().c_str());
        QCOMPARE(jsonText(deviceToJson(*again)), jsonText(json));
        for (const MemoryLevel& level : host.levels) {
            QVERIFY2(level.latency.known(), level.id.c_str());
            QVERIFY2(level.bandwidth.known(), level.id.c_str());
        }
    }

    void this_machine_has_cores()
    {
        const auto host = findDevice("cpu");
        QVERIFY(host.has_value());
        QVERIFY(host->units >= 1);
    }

    void cpu_lists_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("count");
        QTest::newRow("one") << "0" << 1;
        QTest::newRow("ranges") << "0-3,8,10-11" << 7;
        QTest::newRow("empty") << "" << 0;
        QTest::newRow("backwards") << "3-0" << 0;
        QTest::newRow("huge") << "0-99999999999" << 0;
        QTest::newRow("many ranges") << QString("0-65535,").repeated(100) + "0" << 0;
        QTest::newRow("words") << "all" << 0;
        QTest::newRow("minus") << "-1" << 0;
    }

    void cpu_lists()
    {
        QFETCH(QString, text);
        QFETCH(int, count);
        QCOMPARE(static_cast<int>(parseCpuList(text.toStdString()).size()), count);
    }
};

QTEST_APPLESS_MAIN(TestHost)
#include "tst_host.moc"

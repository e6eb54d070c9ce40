// SPDX-License-Identifier: Apache-2.0
// A device document there and back, what this program does not know kept, and everything that can be
// wrong with one refused by its place.
#include "core/device/recorded_kernels.h"

#include <QtTest>

using namespace memscape;

namespace {

Json smallDevice()
{
    return *parseJson(R"({
        "format": "memscape-device", "version": 1, "id": "toy", "name": "Toy", "kind": "host",
        "units": 2, "clock": {"value": 3e9, "kind": "specified", "source": "the box"},
        "levels": [
            {"id": "L1", "kind": "cache", "capacity": {"value": 32768, "kind": "specified"},
             "latency": {"value": 1e-9, "kind": "measured", "method": "chase"}},
            {"id": "L2", "kind": "cache", "capacity": {"value": 1048576, "kind": "specified"}},
            {"id": "DRAM", "kind": "dram", "bandwidth": {"value": 5e10, "kind": "specified"}}
        ],
        "derating": {"read": {"value": 0.9}, "write": {"value": 0.5}, "copy": {"value": 0.6}}
    })");
}

} // namespace

class TestDeviceJson : public QObject
{
    Q_OBJECT

private slots:
    void there_and_back()
    {
        const Device device = *deviceFromJson(smallDevice());
        QCOMPARE(device.units, 2);
        QVERIFY(device.level("L1")->latency.evidence == Evidence::Measured);
        QVERIFY(!device.level("L2")->latency.known());
        QVERIFY(!device.level("L2")->bandwidthKnee.has_value()); // as in every older document
        Json streams = smallDevice();
        streams["levels"][1]["bandwidth_knee"] = {{"begin", 0.2}, {"end", 0.5}};
        const Device second = *deviceFromJson(deviceToJson(*deviceFromJson(streams)));
        QCOMPARE(second.level("L2")->bandwidthKnee->end, 0.5);
        QCOMPARE(second.level("L2")->knee.end, Knee{}.end);
        const std::string once = jsonText(deviceToJson(device));
        QCOMPARE(jsonText(deviceToJson(*deviceFromJson(*parseJson(once)))), once);
    }

    void a_calibration_comes_back()
    {
        Device device = *deviceFromJson(smallDevice());
        Calibration calibration;
        calibration.time = "2026-01-02T03:04:05Z";
        calibration.grade = "B";
        calibration.lineRates = {{Operation::Copy, 128, 1.5e9}};
        calibration.randomRates = {{Operation::Read, 1e9, 2e7}};
        calibration.issueRates = {{Operation::Write, 8, true, 3e9}};
        calibration.walkRates = {{"tiles 4", 2, 65536, 3e-10}};
        calibration.raw = {{"chase", {1, 2.5, nullptr}}};
        device.calibration = calibration;
        const Json json = deviceToJson(device);
        const Device again = *deviceFromJson(*parseJson(jsonText(json)));
        QVERIFY(again.calibration.has_value());
        QVERIFY(again.calibration->lineRates.front().operation == Operation::Copy);
        QCOMPARE(again.calibration->issueRates.front().elementsPerSecond, 3e9);
        QCOMPARE(again.calibration->walkRates.front().kind, std::string("tiles 4"));
        QCOMPARE(again.calibration->walkRates.front().seconds, 3e-10);
        QCOMPARE(jsonText(deviceToJson(again)), jsonText(json));
    }

    void the_rates_of_links_come_back()
    {
        Json json = smallDevice();
        json["links"] = Json::array({{{"id", "host"}, {"bandwidth", {{"value", 26e9}}}, {"pageable", {{"value", 8e9}}}},
                                     {{"id", "pipe"},
                                      {"latency", {{"value", 2e-6}}},
                                      {"far_bandwidth", {{"value", 1e9}}},
                                      {"own_bandwidth", {{"value", 2e9}}}}});
        const Device device = *deviceFromJson(deviceToJson(*deviceFromJson(json)));
        QCOMPARE(device.link("host")->pageable->value, 8e9);
        QVERIFY(!device.link("host")->farBandwidth);
        QCOMPARE(device.link("pipe")->farBandwidth->value, 1e9);
        QCOMPARE(device.link("pipe")->ownBandwidth->value, 2e9);
        QCOMPARE(device.link("pipe")->latency.value, 2e-6);
        QVERIFY(!device.link("peer"));
        QVERIFY(!deviceToJson(device)["links"][1].contains("pageable"));
        json["links"][0]["pageable"] = {{"value", -1}};
        QCOMPARE(deviceFromJson(json).error().place, std::string("device.links[0].pageable.value"));
    }

    void the_framework_comes_back()
    {
        Json json = smallDevice();
        QVERIFY(!deviceFromJson(json)->framework.has_value());
        QVERIFY(!deviceToJson(*deviceFromJson(json)).contains("framework"));
        json["framework"] = {{"name", "pytorch"}, {"version", "2.9.1+cpu"}};
        const Device device = *deviceFromJson(deviceToJson(*deviceFromJson(json)));
        QCOMPARE(device.framework->name, std::string("pytorch"));
        QCOMPARE(device.framework->version, std::string("2.9.1+cpu"));
        json["framework"] = {{"version", "2.9.1"}}; // of what?
        QVERIFY(!deviceFromJson(json));
        json["framework"] = "pytorch";
        QVERIFY(!deviceFromJson(json));
    }

    void the_fastest_kernels_come_back()
    {
        Json json = smallDevice();
        QCOMPARE(recordedVersion(*deviceFromJson(json), "attention.forward"), 0);
        QVERIFY(!deviceToJson(*deviceFromJson(json)).contains("kernels"));
        json["kernels"]["attention.forward"] = {{"version", 8}, {"source", "a record"}};
        const Device device = *deviceFromJson(deviceToJson(*deviceFromJson(json)));
        QCOMPARE(recordedVersion(device, "attention.forward"), 8);
        QCOMPARE(recordedVersion(device, "attention.backward"), 0);
        json["kernels"]["attention.forward"].erase("source"); // a choice without evidence is none
        QCOMPARE(deviceFromJson(json).error().place, std::string("device.kernels.attention.forward.source"));
        json["kernels"]["attention.forward"] = {{"version", "8"}, {"source", "a record"}};
        QCOMPARE(deviceFromJson(json).error().code, std::string("json.type"));
    }

    void unknown_keys_are_kept_at_any_depth()
    {
        Json json = smallDevice();
        json["future"] = {{"a", 1}};
        json["levels"][1]["colour"] = "green";
        json["levels"][0]["latency"]["percentile"] = 50;
        Device device = *deviceFromJson(json);
        device.name = "Renamed";
        const Json written = deviceToJson(device);
        QCOMPARE(written["future"]["a"].get<int>(), 1);
        QCOMPARE(written["levels"][1]["colour"].get<std::string>(), std::string("green"));
        QCOMPARE(written["levels"][0]["latency"]["percentile"].get<int>(), 50);
        QCOMPARE(written["name"].get<std::string>(), std::string("Renamed"));
    }

    void unknown_keys_of_a_level_that_is_gone_are_dropped()
    {
        Json json = smallDevice();
        json["levels"][1]["colour"] = "green";
        Device device = *deviceFromJson(json);
        device.levels.erase(device.levels.begin());
        QVERIFY(jsonText(deviceToJson(device)).find("green") == std::string::npos);
    }

    void bandwidth_of_dram_is_derated_once()
    {
        Device device = *deviceFromJson(smallDevice());
        const auto bandwidth = [&](Operation o) { return levelBandwidth(device, *device.dram(), o).value; };
        QCOMPARE(bandwidth(Operation::Read), 4.5e10);
        QCOMPARE(bandwidth(Operation::Copy), 3e10);
        device.levels.back().bandwidth.evidence = Evidence::Measured; // already what streams reach
        QCOMPARE(bandwidth(Operation::Read), 5e10);
        QCOMPARE(bandwidth(Operation::Write), 5e10 * 0.5 / 0.9);
        device.levels.back().copyBandwidth = Sourced{4e10, Evidence::Measured, "", ""};
        QCOMPARE(bandwidth(Operation::Copy), 4e10);
        device.derating = {};
        QCOMPARE(bandwidth(Operation::Write), 5e10);
        QVERIFY(!levelBandwidth(device, *device.level("L1"), Operation::Read).known());
    }

    void lookups()
    {
        const Device device = *deviceFromJson(smallDevice());
        QVERIFY(device.level("L9") == nullptr);
        QCOMPARE(device.lastCache()->id, std::string("L2"));
        QCOMPARE(device.dram()->id, std::string("DRAM"));
        QVERIFY(Device().dram() == nullptr);
        QVERIFY(Device().lastCache() == nullptr);
    }

    void wrong_data()
    {
        QTest::addColumn<QString>("pointer");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("place");
        const auto row = [](const char* name, const char* pointer, const char* value, const char* place) {
            QTest::newRow(name) << pointer << value << place;
        };
        row("another format", "/format", R"("memscape-record")", "device.format");
        row("newer", "/version", "7", "device.version");
        row("version text", "/version", R"("one")", "device.version");
        row("no id", "/id", R"("")", "device.id");
        row("id number", "/id", "5", "device.id");
        row("kind", "/kind", R"("toaster")", "device.kind");
        row("half a core", "/units", "1.5", "device.units");
        row("no cores", "/units", "0", "device.units");
        row("10^300 cores", "/units", "1e300", "device.units");
        row("clock text", "/clock/value", R"("3 GHz")", "device.clock.value");
        row("clock bare", "/clock", "3e9", "device.clock");
        row("negative", "/clock/value", "-1", "device.clock.value");
        row("evidence", "/clock/kind", R"("guessed")", "device.clock.kind");
        row("no levels", "/levels", "[]", "device.levels");
        row("levels word", "/levels", R"("many")", "device.levels");
        row("level word", "/levels/1", R"("L2")", "device.levels[1]");
        row("level twice", "/levels/1/id", R"("L1")", "device.levels[1].id");
        row("10^300 B", "/levels/0/capacity/value", "1e300", "device.levels[0].capacity.value");
        row("zero latency", "/levels/0/latency/value", "0", "device.levels[0].latency.value");
        row("shrinking", "/levels/1/capacity/value", "100", "device.levels[1].capacity");
        row("knee", "/levels/0/knee", R"({"begin": 2, "end": 1})", "device.levels[0].knee.end");
        row("knee of streams", "/levels/0/bandwidth_knee", R"({"begin": 2, "end": 1})",
            "device.levels[0].bandwidth_knee.end");
        row("share", "/derating/read/value", "96", "device.derating.read.value");
        row("notes", "/notes", "[1]", "device.notes[0]");
        row("rate", "/rates", R"({"fp32": 3})", "device.rates.fp32");
        row("operation", "/calibration", R"({"line_rates": [{"operation": "think"}]})",
            "device.calibration.line_rates[0].operation");
    }

    void wrong()
    {
        QFETCH(QString, pointer);
        QFETCH(QString, value);
        QFETCH(QString, place);
        Json json = smallDevice();
        json[Json::json_pointer(pointer.toStdString())] = Json::parse(value.toStdString());
        const auto device = deviceFromJson(json);
        QVERIFY(!device);
        QCOMPARE(QString::fromStdString(device.error().place), place);
        QVERIFY(device.error().code.rfind("json.", 0) == 0);
        QVERIFY(exitCodeFor(device.error()) == ExitCode::BadInput);
    }

    void not_even_an_object()
    {
        for (const char* text : {"null", "3", "[]", "\"device\"", "true"})
            QVERIFY(!deviceFromJson(*parseJson(text)));
        QVERIFY(!deviceFromJson(*parseJson("{}")));
    }

    void not_a_number_is_unknown_on_writing()
    {
        Device device = *deviceFromJson(smallDevice());
        device.clock.value = std::numeric_limits<double>::quiet_NaN();
        const Json json = deviceToJson(device);
        QVERIFY(json["clock"]["value"].is_null());
        QVERIFY(!deviceFromJson(json)->clock.known());
    }

    void too_many_of_anything()
    {
        Json json = smallDevice();
        for (int i = 0; i < 100; ++i)
            json["tlbs"].push_back({{"id", "TLB"}});
        const auto device = deviceFromJson(json);
        QVERIFY(!device);
        QCOMPARE(device.error().place, std::string("device.tlbs"));
    }

    void deep_nesting_is_refused_before_it_is_built()
    {
        const std::string deep =
            R"({"format": "memscape-device", "extra": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
        QVERIFY(!parseJson(deep));
    }
};

QTEST_APPLESS_MAIN(TestDeviceJson)
#include "tst_device_json.moc"

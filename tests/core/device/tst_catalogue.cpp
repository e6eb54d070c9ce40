// SPDX-License-Identifier: Apache-2.0
// The catalogue: every file is whole and in the form the program writes; dense rates follow from
// units × FMA × 2 × clock; bandwidths are those of the specification table, which is repeated here
// by hand so that a slip in a file does not pass.
#include "core/base/file.h"
#include "core/device/catalogue.h"

#include <QtTest>

#include <set>

using namespace memscape;

namespace {

struct Specified
{
    const char* id;
    int units;
    double dramGigabytes; ///< per second
    double l2MiB;
    double dramGiB;    ///< as CUDA reports it where that is published, else of the name
    double fp32, fp16; ///< TFLOP/s, dense, fp32 accumulation
};

// Vendor datasheets and the table of stas00/ml-engineering, typed in independently of the files.
const std::vector<Specified> table = {
    {"nvidia-t4", 40, 320, 4, 14.56, 8.1, 65},
    {"nvidia-v100-sxm2", 80, 900, 6, 16160. / 1024, 15.7, 125},
    {"nvidia-a100-40gb", 108, 1555, 40, 39.5, 19.5, 312},
    {"nvidia-a100-80gb", 108, 2039, 40, 79.25, 19.5, 312},
    {"nvidia-rtx-3090", 82, 936, 6, 23.7, 35.6, 71},
    {"nvidia-a10", 72, 600, 6, 21.99, 31.2, 125},
    {"nvidia-a40", 84, 696, 6, 48, 37.4, 149.7},
    {"nvidia-rtx-a6000", 84, 768, 6, 48670. / 1024, 38.7, 154.8},
    {"nvidia-rtx-3060", 28, 360, 3, 11.76, 12.74, 25.48},
    {"nvidia-jetson-agx-orin-64gb", 16, 204.8, 4, 64, 5.3, 42.6},
    {"nvidia-rtx-4060-laptop", 24, 256, 32, 8, 14.56, 29.12},
    {"nvidia-rtx-4070", 46, 504, 36, 12, 29.15, 58.29},
    {"nvidia-rtx-4090", 128, 1008, 72, 23.64, 82.6, 165.2},
    {"nvidia-l4", 58, 300, 48, 24, 30.3, 121},
    {"nvidia-l40s", 142, 864, 96, 44.53, 91.6, 362},
    {"nvidia-rtx-5070-ti", 70, 896, 48, 16, 43.94, 87.88},
    {"nvidia-rtx-5090", 170, 1792, 96, 31.37, 104.8, 209.5},
    {"nvidia-h100-pcie", 114, 2039, 50, 80, 51.2, 756},
    {"nvidia-h100-sxm", 132, 3350, 50, 79.11, 66.9, 989},
    {"nvidia-h100-96gb", 132, 2400, 50, 96, 66.9, 989},
    {"nvidia-h200", 132, 4800, 50, 143156. / 1024, 66.9, 989},
    {"nvidia-b200", 148, 8000, 126, 178.35, 80, 2250},
    {"amd-mi300x", 304, 5300, 4, 196592. / 1024, 163.4, 1307},
    {"apple-m1", 8, 68.25, 0.75, 16, 2.617, 2.617},
    {"apple-m2-max", 38, 400, 1, 96, 13.6, 13.6},
};

// The rates that the formula does not give within 0.6 %; each file says why.
const std::set<std::string> exceptions = {"nvidia-l4/tf32", "nvidia-l40s/fp16", "nvidia-l40s/bf16", "nvidia-b200/fp32"};

double relative(double a, double b)
{
    return std::abs(a / b - 1);
}

} // namespace

class TestCatalogue : public QObject
{
    Q_OBJECT

private slots:
    void every_file_is_read()
    {
        std::vector<Error> problems;
        const auto devices = catalogue(&problems);
        for (const Error& error : problems)
            qWarning("%s", error.text().c_str());
        QCOMPARE(problems.size(), std::size_t(0));
        QCOMPARE(devices.size(), table.size() + 4);
    }

    void files_are_as_the_program_writes_them()
    {
        for (const Device& device : catalogue()) {
            const auto path = resourcesFolder() / "devices" / (device.id + ".json");
            const auto text = readFile(path);
            QVERIFY2(text.has_value(), device.id.c_str());
            QCOMPARE(QString::fromStdString(jsonText(deviceToJson(device))), QString::fromStdString(*text));
            QVERIFY2(device.extra.is_null(), device.id.c_str());
        }
    }

    void specification_data()
    {
        QTest::addColumn<int>("row");
        for (std::size_t i = 0; i < table.size(); ++i)
            QTest::newRow(table[i].id) << static_cast<int>(i);
    }

    void specification()
    {
        QFETCH(int, row);
        const Specified& expected = table[static_cast<std::size_t>(row)];
        const auto device = findDevice(expected.id);
        QVERIFY2(device.has_value(), expected.id);
        QVERIFY(device->isGpu());
        QCOMPARE(device->basis, std::string("catalogue"));
        QCOMPARE(device->units, expected.units);
        QVERIFY(device->dram());
        QVERIFY(relative(device->dram()->bandwidth.value, expected.dramGigabytes * 1e9) < 0.02);
        QVERIFY(relative(device->dram()->capacity.value, expected.dramGiB * 0x1p30) < 1e-9); // whole bytes
        const MemoryLevel* far = device->level("L2 far");
        QCOMPARE((far ? far : device->level("L2"))->capacity.value, expected.l2MiB * 0x1p20);
        QVERIFY(relative(device->rates.at("fp32").flops.value, expected.fp32 * 1e12) < 0.001);
        QVERIFY(relative(device->rates.at("fp16").flops.value, expected.fp16 * 1e12) < 0.001);
    }

    void dense_rates_follow_from_units_and_clock()
    {
        std::set<std::string> named;
        for (const Device& device : catalogue()) {
            for (const auto& [type, rate] : device.rates) {
                const double clock =
                    rate.atTensorClock ? device.tensorClock.valueOr(device.clock.value) : device.clock.value;
                const double formula = device.units * rate.fmaPerClockPerUnit * 2 * clock;
                const std::string key = device.id + "/" + type;
                const double error = relative(formula, rate.flops.value);
                const bool exceptional = exceptions.count(key) > 0;
                QVERIFY2(exceptional || error < 0.006, (key + " is off").c_str());
                QVERIFY2(exceptional == !rate.exception.empty(), key.c_str());
                if (key != "nvidia-b200/fp32")
                    QVERIFY2(error < 0.02, key.c_str());
                if (!rate.exception.empty())
                    named.insert(key);
            }
        }
        QCOMPARE(named, exceptions);
    }

    void every_known_value_says_where_it_comes_from()
    {
        for (const Device& device : catalogue()) {
            for (const MemoryLevel& level : device.levels) {
                for (const Sourced* value : {&level.capacity, &level.line, &level.latency, &level.bandwidth}) {
                    QVERIFY2(value->known(), (device.id + " " + level.id).c_str());
                    QVERIFY2(!value->source.empty(), (device.id + " " + level.id).c_str());
                    if (value->evidence == Evidence::Measured)
                        QVERIFY2(!value->method.empty(), (device.id + " " + level.id).c_str());
                }
            }
        }
    }

    void levels_get_slower_outwards()
    {
        for (const Device& device : catalogue()) {
            double latency = 0, bandwidth = 1e18;
            for (const MemoryLevel& level : device.levels) {
                if (level.kind == LevelKind::Scratchpad)
                    continue;
                QVERIFY2(level.latency.value >= latency, (device.id + " " + level.id).c_str());
                const double read = levelBandwidth(device, level, Operation::Read).value;
                QVERIFY2(read <= bandwidth, (device.id + " " + level.id).c_str());
                latency = level.latency.value;
                bandwidth = read;
            }
        }
    }

    void the_link_of_a_shared_memory_is_that_memory()
    {
        std::set<std::string> shared;
        for (const Device& device : catalogue()) {
            if (!device.sharesHostMemory)
                continue;
            shared.insert(device.id);
            QCOMPARE(device.links.size(), std::size_t(1));
            QCOMPARE(device.links.front().id, std::string("host"));
            QCOMPARE(device.links.front().bandwidth.value, device.dram()->bandwidth.value);
        }
        QCOMPARE(shared, (std::set<std::string>{"apple-m1", "apple-m2-max", "nvidia-jetson-agx-orin-64gb"}));
    }

    // recommendedMaxWorkingSetSize as Metal reports it on these machines: two thirds of 16 GB, three quarters of 96 GB.
    void macos_keeps_a_part_of_the_memory()
    {
        QVERIFY(std::abs(findDevice("apple-m1")->gpuMemory.value / 0x1p20 - 10922.67) < 0.005);
        QCOMPARE(findDevice("apple-m2-max")->gpuMemory.value, 73728 * 0x1p20);
        for (const Device& device : catalogue())
            QVERIFY(!device.gpuMemory.known()
                    || (device.sharesHostMemory && device.gpuMemory.value < device.dram()->capacity.value));
    }

    void units_have_the_word_of_their_vendor()
    {
        QCOMPARE(findDevice("nvidia-h200")->unitWord(), std::string("SMs"));
        QCOMPARE(findDevice("amd-mi300x")->unitWord(), std::string("compute units"));
        QCOMPARE(findDevice("apple-m1")->unitWord(), std::string("GPU cores"));
        QCOMPARE(findDevice("intel-xeon-8480plus")->unitWord(), std::string("cores"));
    }

    void the_h200_is_not_a_gh200()
    {
        const Device h200 = *findDevice("nvidia-h200");
        const Sourced copy = levelBandwidth(h200, *h200.dram(), Operation::Copy);
        QVERIFY(relative(copy.value, 4.11e12) < 0.01); // measured on a real H200
        QVERIFY(h200.dram()->bandwidth.value > 4.7e12);
        QCOMPARE(h200.tensorClock.value, 1830e6);
        QCOMPARE(h200.clock.value, 1980e6);
    }

    void unknown_names_list_the_near_ones()
    {
        const auto device = findDevice("nvidia-h20");
        QVERIFY(!device);
        QCOMPARE(device.error().code, std::string("device.unknown"));
        QVERIFY(device.error().text().find("nvidia-h200") != std::string::npos);
        QVERIFY(exitCodeFor(device.error()) == ExitCode::NoDevice);
    }

    void a_live_gpu_is_not_looked_up_here()
    {
        const auto device = findDevice("cuda:0");
        QVERIFY(!device);
        QCOMPARE(device.error().code, std::string("device.missing"));
    }

    void hostile_names()
    {
        for (const std::string& name :
             {std::string(), std::string("\0\n\x1b[2J", 6), std::string("..%2f..%2fetc"), std::string(100'000, 'x')}) {
            const auto device = findDevice(name);
            QVERIFY(!device);
            QCOMPARE(device.error().code, std::string("device.unknown"));
            QVERIFY(device.error().message.size() < 200);
        }
        QVERIFY(!findDevice("../nothing/here.json"));
        QVERIFY(!findDevice("/"));
    }
};

QTEST_APPLESS_MAIN(TestCatalogue)
#include "tst_catalogue.moc"

// SPDX-License-Identifier: Apache-2.0
// A live GPU from what its driver says: of the catalogue, a slice of one, and one we have never
// heard of.
#include "core/device/catalogue.h"

#include <QtTest>

using namespace memscape;

namespace {

GpuAttributes h200()
{
    GpuAttributes gpu;
    gpu.name = "NVIDIA H200";
    gpu.major = 9;
    gpu.minor = 0;
    gpu.multiprocessors = 132;
    gpu.clockHz = 1980e6;
    gpu.memoryClockHz = 3201e6;
    gpu.memoryBusBits = 6144;
    gpu.memoryBytes = 150e9;
    gpu.l2Bytes = 62914560;
    gpu.sharedBytesPerUnit = 233472;
    gpu.registersPerUnit = 65536;
    gpu.maxThreadsPerUnit = 2048;
    gpu.maxBlocksPerUnit = 32;
    return gpu;
}

/// Compute capability 8.9, a name that is not in the catalogue (an RTX 4070 is like this).
GpuAttributes unlistedAda(const std::string& name)
{
    GpuAttributes gpu;
    gpu.name = name;
    gpu.major = 8;
    gpu.minor = 9;
    gpu.multiprocessors = 46;
    gpu.clockHz = 2475e6;
    gpu.memoryClockHz = 10501e6;
    gpu.memoryBusBits = 192;
    gpu.memoryBytes = 12.6e9;
    gpu.l2Bytes = 36 << 20;
    return gpu;
}

bool near(double a, double b, double tolerance = 0.01)
{
    return std::abs(a / b - 1) < tolerance;
}

} // namespace

class TestAttributes : public QObject
{
    Q_OBJECT

private slots:
    void a_product_of_the_catalogue()
    {
        const Device device = deviceFromAttributes(h200(), "cuda:0");
        const Device listed = *findDevice("nvidia-h200");
        QCOMPARE(device.id, std::string("cuda:0"));
        QCOMPARE(device.name, listed.name);
        QCOMPARE(device.basis, std::string("catalogue"));
        QCOMPARE(device.dram()->bandwidth.value, listed.dram()->bandwidth.value);
        QCOMPARE(device.dram()->capacity.value, 150e9);
        QCOMPARE(device.lastCache()->capacity.value, 62914560.0); // what the driver says wins
        QCOMPARE(device.rates.at("fp16").flops.value, listed.rates.at("fp16").flops.value);
    }

    void a_slice_of_it()
    {
        GpuAttributes slice = h200();
        slice.name = "NVIDIA H200 MIG 3g.71gb";
        slice.multiprocessors = 60;
        slice.memoryBytes = 75e9;
        slice.l2Bytes = 0;
        const Device device = deviceFromAttributes(slice, "cuda:0");
        const Device listed = *findDevice("nvidia-h200");
        QCOMPARE(device.units, 60);
        QVERIFY(near(device.rates.at("fp16").flops.value,
                     listed.rates.at("fp16").flops.value * 60 / 132));
        QVERIFY(device.rates.at("fp16").flops.evidence == Evidence::Derived);
        QVERIFY(device.dram()->bandwidth.value < 0.6 * listed.dram()->bandwidth.value);
        QVERIFY(near(device.level("L1")->bandwidth.value,
                     listed.level("L1")->bandwidth.value * 60 / 132));
        QCOMPARE(device.level("L1")->latency.value, listed.level("L1")->latency.value);
    }

    void a_lower_clock_slows_what_is_on_chip()
    {
        GpuAttributes slow = h200();
        slow.clockHz = 990e6;
        const Device device = deviceFromAttributes(slow, "cuda:0");
        const Device listed = *findDevice("nvidia-h200");
        QVERIFY(near(device.level("L1")->latency.value, 2 * listed.level("L1")->latency.value));
        QVERIFY(near(device.level("L2")->bandwidth.value, listed.level("L2")->bandwidth.value / 2));
        QCOMPARE(device.dram()->latency.value, listed.dram()->latency.value);
        QCOMPARE(device.dram()->bandwidth.value, listed.dram()->bandwidth.value);
    }

    void the_name_decides_and_not_a_part_of_it()
    {
        GpuAttributes other = h200();
        other.name = "NVIDIA H200 NVL";
        QCOMPARE(deviceFromAttributes(other, "cuda:0").basis, std::string("derived"));
        other.name = "nvidia h200";
        QCOMPARE(deviceFromAttributes(other, "cuda:0").basis, std::string("catalogue"));
    }

    void a_gpu_that_is_not_listed_is_derived()
    {
        const Device device =
            deviceFromAttributes(unlistedAda("NVIDIA GeForce RTX 4070"), "cuda:0");
        QCOMPARE(device.basis, std::string("derived"));
        QCOMPARE(device.name, std::string("NVIDIA GeForce RTX 4070"));
        QCOMPARE(device.units, 46);
        QVERIFY(near(device.dram()->bandwidth.value, 504e9)); // the vendor's number
        QVERIFY(near(device.rates.at("fp32").flops.value, 29.15e12)); // the vendor's number
        QVERIFY(near(device.rates.at("fp16").flops.value, 46 * 256 * 2 * 2475e6)); // GeForce: half
        QCOMPARE(device.lastCache()->capacity.value, double(36 << 20));
        for (const auto& [type, rate] : device.rates)
            QVERIFY2(rate.flops.evidence == Evidence::Derived, type.c_str());
        for (const MemoryLevel& level : device.levels) {
            for (const Sourced* value : {&level.latency, &level.bandwidth, &level.capacity}) {
                QVERIFY2(value->evidence == Evidence::Derived
                             || value->evidence == Evidence::Unverified,
                         level.id.c_str());
            }
        }
    }

    void a_workstation_card_of_the_same_chip_has_the_full_tensor_rate()
    {
        const Device game = deviceFromAttributes(unlistedAda("NVIDIA GeForce RTX 4070"), "cuda:0");
        const Device work = deviceFromAttributes(unlistedAda("NVIDIA RTX 4000 Ada"), "cuda:0");
        QVERIFY(near(work.rates.at("fp16").flops.value, 2 * game.rates.at("fp16").flops.value));
        QVERIFY(near(work.rates.at("fp32").flops.value, game.rates.at("fp32").flops.value));
    }

    void an_unknown_compute_capability_has_no_tensor_rates()
    {
        GpuAttributes future = unlistedAda("NVIDIA Z1000");
        future.major = 15;
        future.minor = 3;
        const Device device = deviceFromAttributes(future, "cuda:0");
        QCOMPARE(device.rates.count("fp16"), std::size_t(0));
        QVERIFY(device.notes.size() == 2);
        QVERIFY(device.notes.back().find("15.3") != std::string::npos);
        QVERIFY(device.level("L2")->latency.known());
    }

    void nothing_reported()
    {
        const Device device = deviceFromAttributes({}, "cuda:0");
        QVERIFY(!device.name.empty());
        QVERIFY(!device.dram()->bandwidth.known());
        QVERIFY(deviceFromJson(deviceToJson(device)).has_value());
    }

    void no_catalogue()
    {
        const QByteArray before = qgetenv("MEMSCAPE_RESOURCES");
        qputenv("MEMSCAPE_RESOURCES", "/nowhere");
        const Device device = deviceFromAttributes(h200(), "cuda:0");
        qputenv("MEMSCAPE_RESOURCES", before);
        QCOMPARE(device.units, 132);
        QVERIFY(near(device.dram()->bandwidth.value, 2 * 3201e6 * 6144 / 8));
        QVERIFY(deviceFromJson(deviceToJson(device)).has_value());
    }
};

QTEST_APPLESS_MAIN(TestAttributes)
#include "tst_attributes.moc"

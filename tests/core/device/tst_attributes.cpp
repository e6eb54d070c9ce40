// SPDX-License-Identifier: Apache-2.0
// A live GPU from what its driver says: of the catalogue, a slice of one, and one we have never
// heard of.
#include "core/device/catalogue.h"

#include <QtTest>

using namespace memscape;

namespace {

GpuAttributes h200()
{
    return {.name = "NVIDIA H200",
            .major = 9,
            .minor = 0,
            .multiprocessors = 132,
            .clockHz = 1980e6,
            .memoryClockHz = 3201e6,
            .memoryBusBits = 6144,
            .memoryBytes = 150e9,
            .l2Bytes = 62914560,
            .sharedBytesPerUnit = 233472,
            .registersPerUnit = 65536,
            .maxThreadsPerUnit = 2048,
            .maxBlocksPerUnit = 32};
}

/// What deviceQuery prints for an RTX 3060 of 12 GB.
GpuAttributes rtx3060()
{
    return {.name = "NVIDIA GeForce RTX 3060",
            .major = 8,
            .minor = 6,
            .multiprocessors = 28,
            .clockHz = 1777e6,
            .memoryClockHz = 7501e6,
            .memoryBusBits = 192,
            .memoryBytes = 12.6e9};
}

/// What it prints for a Jetson AGX Orin of 64 GB; the memory clock is not that of the LPDDR5.
GpuAttributes orin()
{
    return {.name = "Orin",
            .major = 8,
            .minor = 7,
            .multiprocessors = 16,
            .clockHz = 1300e6,
            .memoryClockHz = 612e6,
            .memoryBusBits = 256,
            .memoryBytes = 65893269504};
}

/// Compute capability 8.9, as an RTX 4070 is, by a name that is not in the catalogue.
GpuAttributes unlistedAda(const std::string& name)
{
    return {.name = name,
            .major = 8,
            .minor = 9,
            .multiprocessors = 46,
            .clockHz = 2475e6,
            .memoryClockHz = 10501e6,
            .memoryBusBits = 192,
            .memoryBytes = 12.6e9,
            .l2Bytes = 36 << 20};
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
        QVERIFY(near(device.rates.at("fp16").flops.value, listed.rates.at("fp16").flops.value * 60 / 132));
        QVERIFY(device.rates.at("fp16").flops.evidence == Evidence::Derived);
        QVERIFY(device.dram()->bandwidth.value < 0.6 * listed.dram()->bandwidth.value);
        QVERIFY(near(device.level("L1")->bandwidth.value, listed.level("L1")->bandwidth.value * 60 / 132));
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
        const Device device = deviceFromAttributes(unlistedAda("NVIDIA GeForce RTX 4075"), "cuda:0");
        QCOMPARE(device.basis, std::string("derived"));
        QCOMPARE(device.name, std::string("NVIDIA GeForce RTX 4075"));
        QCOMPARE(device.units, 46);
        QVERIFY(near(device.dram()->bandwidth.value, 504e9));                      // the vendor's number
        QVERIFY(near(device.rates.at("fp32").flops.value, 29.15e12));              // the vendor's number
        QVERIFY(near(device.rates.at("fp16").flops.value, 46 * 256 * 2 * 2475e6)); // GeForce: half
        QCOMPARE(device.lastCache()->capacity.value, double(36 << 20));
        for (const auto& [type, rate] : device.rates)
            QVERIFY2(rate.flops.evidence == Evidence::Derived, type.c_str());
        for (const MemoryLevel& level : device.levels) {
            for (const Sourced* value : {&level.latency, &level.bandwidth, &level.capacity}) {
                QVERIFY2(value->evidence == Evidence::Derived || value->evidence == Evidence::Unverified,
                         level.id.c_str());
            }
        }
    }

    void a_workstation_card_of_the_same_chip_has_the_full_tensor_rate()
    {
        const Device game = deviceFromAttributes(unlistedAda("NVIDIA GeForce RTX 4075"), "cuda:0");
        const Device work = deviceFromAttributes(unlistedAda("NVIDIA RTX 4000 Ada"), "cuda:0");
        QVERIFY(near(work.rates.at("fp16").flops.value, 2 * game.rates.at("fp16").flops.value));
        QVERIFY(near(work.rates.at("fp32").flops.value, game.rates.at("fp32").flops.value));
    }

    void a_card_of_the_same_name_with_other_memory_is_derived()
    {
        QCOMPARE(deviceFromAttributes(rtx3060(), "cuda:0").basis, std::string("catalogue"));
        GpuAttributes small = rtx3060();
        small.memoryBusBits = 128;
        small.memoryBytes = 8.6e9;
        const Device device = deviceFromAttributes(small, "cuda:0");
        QCOMPARE(device.basis, std::string("derived"));
        QVERIFY(near(device.dram()->bandwidth.value, 240e9)); // the vendor's number
        QVERIFY(near(device.rates.at("fp16").flops.value, 28 * 256 * 2 * 1777e6));
        small.memoryClockHz = 0; // nothing to judge by: the name decides
        QCOMPARE(deviceFromAttributes(small, "cuda:0").basis, std::string("catalogue"));
    }

    void a_laptop_is_as_fast_as_its_power_limit_lets_it()
    {
        GpuAttributes laptop = unlistedAda("NVIDIA GeForce RTX 4060 Laptop GPU");
        laptop.multiprocessors = 24;
        laptop.clockHz = 1890e6;
        laptop.memoryClockHz = 8001e6;
        laptop.memoryBusBits = 128;
        const Device device = deviceFromAttributes(laptop, "cuda:0");
        const Device listed = *findDevice("nvidia-rtx-4060-laptop");
        QCOMPARE(device.basis, std::string("catalogue"));
        QVERIFY(near(device.rates.at("fp32").flops.value, 11.61e12)); // published for 1890 MHz
        QVERIFY(near(device.level("L2")->bandwidth.value, listed.level("L2")->bandwidth.value * 1890 / 2370));
        QCOMPARE(device.dram()->bandwidth.value, listed.dram()->bandwidth.value);
    }

    void a_jetson_is_told_by_its_memory()
    {
        GpuAttributes saving = orin();
        saving.multiprocessors = 8; // a lower power mode
        const Device agx = deviceFromAttributes(saving, "cuda:0");
        QCOMPARE(agx.basis, std::string("catalogue"));
        QVERIFY(agx.sharesHostMemory);
        QCOMPARE(agx.dram()->bandwidth.value, 204.8e9); // not 2 × 612 MHz × 256 bit / 8
        QVERIFY(near(agx.rates.at("fp16").flops.value, 8 * 1024 * 2 * 1300e6));

        GpuAttributes nx = orin();
        nx.multiprocessors = 8;
        nx.clockHz = 918e6;
        nx.memoryBusBits = 64;
        nx.memoryBytes = 16136011776;
        const Device other = deviceFromAttributes(nx, "cuda:0");
        QCOMPARE(other.basis, std::string("derived"));
        QVERIFY(other.sharesHostMemory);
        QVERIFY(!other.dram()->bandwidth.known());
        QVERIFY(other.links.empty());
        QVERIFY(near(other.rates.at("fp16").flops.value, 8 * 1024 * 2 * 918e6));
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

// SPDX-License-Identifier: Apache-2.0
// NCCL's choice and its time against times that others published of it (tests/data/nccl), against lines of its own log,
// and against vLLM's times of its own kernels.
#include "core/device/catalogue.h"
#include "core/timing/nccl.h"
#include "core/timing/token_kernels.h"

#include <QtTest>

#include <cmath>
#include <fstream>
#include <numeric>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

constexpr double kibi = 1024, mebi = kibi * kibi, gibi = kibi * mebi;

Device boardOf(const nlohmann::json& run)
{
    Device device = findDevice(run.at("device").get<std::string>()).value();
    if (run.contains("link")) {
        std::erase_if(device.links, [](const Link& link) { return link.id.starts_with("peer"); });
        device.links.push_back({"peer", "PCIe", {run.at("link").get<double>(), Evidence::Specified, {}, {}}, {}});
    }
    return device;
}

double microseconds(const nlohmann::json& run, double payload)
{
    const Device device = boardOf(run);
    const int machines = run.value("machines", 1), ranks = run.at("ranks").get<int>();
    const Collective one{"", CollectiveKind::AllReduce, payload, 1, ranks};
    const Machines where{machines > 1 ? ranks / machines : 0, run.value("network", 0.0)};
    return 1e6 * ncclSeconds(one, device.link("peer")->bandwidth.value, where, ncclLink(device));
}

nlohmann::json published()
{
    std::ifstream file(TEST_DATA "/nccl/all-reduce.json");
    return nlohmann::json::parse(file).at("runs");
}

NcclChoice choiceAmong(const char* device, int ranks, double payload)
{
    const Device board = findDevice(device).value();
    const Collective one{"", CollectiveKind::AllReduce, payload, 1, ranks};
    return ncclChoiceOf(one, board.link("peer")->bandwidth.value, {}, ncclLink(board)).value();
}

} // namespace

class TestNccl : public QObject
{
    Q_OBJECT

private slots:
    void publishedTimesAreMet()
    {
        std::vector<double> errors;
        for (const nlohmann::json& run : published()) {
            std::vector<double> own;
            for (const nlohmann::json& time : run.at("times")) {
                const double error = microseconds(run, time[0].get<double>()) / time[1].get<double>() - 1;
                own.push_back(std::fabs(error));
                qInfo("%12.0f B %10.2f us %+6.1f %%", time[0].get<double>(), time[1].get<double>(), 100 * error);
            }
            errors.insert(errors.end(), own.begin(), own.end());
            const double mean = std::accumulate(own.begin(), own.end(), 0.0) / double(own.size());
            qInfo("%s: %d times, mean error %.1f %%", run.at("title").get<std::string>().c_str(), int(own.size()),
                  100 * mean);
            QVERIFY2(mean < 0.3, run.at("title").get<std::string>().c_str());
        }
        const double mean = std::accumulate(errors.begin(), errors.end(), 0.0) / double(errors.size());
        qInfo("all: %d times, mean error %.1f %%", int(errors.size()), 100 * mean);
        QVERIFY(errors.size() > 100);
        QVERIFY(mean < 0.15);
    }

    // "Pattern 4, crossNic 0, nChannels 12, bw 30" of an H100 and "nChannels 12, bw 20" of an A100 in NCCL's log
    // (NVIDIA/nccl, issue 1197); 24 channels of an A100 (NVIDIA/nccl-tests, issue 100).
    void channelsAreThoseOfItsLog()
    {
        const auto ofHopper = ncclChannels(18 * 20.6e9, NcclLink::Generation::Hopper, true);
        QCOMPARE(ofHopper.count, 12);
        QCOMPARE(ofHopper.bandwidth, 30e9);
        const auto ofAmpere = ncclChannels(12 * 20e9, NcclLink::Generation::Ampere, true);
        QCOMPARE(ofAmpere.count, 12);
        QCOMPARE(ofAmpere.bandwidth, 20e9);
        QCOMPARE(ncclBlocks(ofAmpere), 24);
    }

    void smallPayloadsGoByLLAndLargeOnesBySimple()
    {
        QCOMPARE(choiceAmong("nvidia-a100-80gb", 8, 4 * kibi).text(), std::string("ring, LL"));
        QCOMPARE(choiceAmong("nvidia-a100-80gb", 8, 4 * mebi).text(), std::string("ring, LL128"));
        QCOMPARE(choiceAmong("nvidia-a100-80gb", 8, gibi).text(), std::string("ring, Simple"));
        QCOMPARE(choiceAmong("nvidia-h100-sxm", 8, gibi).text(), std::string("NVLS, Simple"));
        QCOMPARE(choiceAmong("nvidia-h100-sxm", 2, gibi).text(), std::string("ring, Simple")); // vLLM, issue 9699
    }

    // Peaks that NCCL's authors name (NVIDIA/nccl-tests, issues 149 and 212): 230 GB/s of bus bandwidth on A100, 480 by
    // NVLink SHARP and 370 by a ring on H100.
    void largePayloadsReachTheNamedPeaks()
    {
        const auto bus = [](const char* device, CollectiveKind kind) {
            const Device board = findDevice(device).value();
            const Collective one{"", kind, 8 * gibi, 1, 8};
            const double factor = kind == CollectiveKind::AllReduce ? 2 * 7 / 8.0 : 7 / 8.0;
            return factor * one.payload / ncclSeconds(one, board.link("peer")->bandwidth.value, {}, ncclLink(board));
        };
        QVERIFY(std::fabs(bus("nvidia-a100-80gb", CollectiveKind::AllReduce) / 230e9 - 1) < 0.05);
        QVERIFY(std::fabs(bus("nvidia-h100-sxm", CollectiveKind::AllReduce) / 480e9 - 1) < 0.05);
        QVERIFY(std::fabs(bus("nvidia-h100-sxm", CollectiveKind::AllGather) / 370e9 - 1) < 0.05);
    }

    // vLLM's kernel of one stage among four H100 (its pull request 24111): ms of 0.5 MB.
    void anEnginesOwnKernelTakesAFewMicroseconds()
    {
        const Device h100 = findDevice("nvidia-h100-sxm").value();
        const auto own = [&](double payload, int ranks) {
            const Collective one{"", CollectiveKind::AllReduce, payload, 1, ranks};
            return 1e6
                * ownReduceSeconds(one, ownReduceStart(h100), linkPassSeconds, h100.link("peer")->bandwidth.value, {},
                                   ncclLink(h100));
        };
        qInfo("one stage among four H100: %.1f us of 0.5 MB, %.1f of 0.25", own(512 * kibi, 4), own(256 * kibi, 4));
        QVERIFY(std::fabs(own(512 * kibi, 4) / 10 - 1) < 0.2);
        QVERIFY(std::fabs(own(kibi, 2) / 6 - 1) < 0.3); // NVIDIA/nccl, issue 1259: an H100's in a graph
        QVERIFY(std::isnan(own(16 * mebi, 4)));         // which NCCL does
    }

    void callsAreCountedEach()
    {
        const Device a100 = findDevice("nvidia-a100-80gb").value();
        const NcclLink link = ncclLink(a100);
        Collective one{"", CollectiveKind::AllReduce, 64 * mebi, 3, 8};
        const double whole = ncclSeconds(one, 300e9, {}, link);
        one.calls = 4;
        const Collective quarter{"", CollectiveKind::AllReduce, 16 * mebi, 1, 8};
        QVERIFY(std::fabs(ncclSeconds(one, 300e9, {}, link) / (12 * ncclSeconds(quarter, 300e9, {}, link)) - 1) < 1e-9);
        QVERIFY(ncclSeconds(one, 300e9, {}, link) > whole);
        one.degree = 1;
        QCOMPARE(ncclSeconds(one, 300e9, {}, link), 0.0);
    }
};

QTEST_GUILESS_MAIN(TestNccl)
#include "tst_nccl.moc"

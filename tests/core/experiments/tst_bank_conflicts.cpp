// SPDX-License-Identifier: Apache-2.0
// Wavefronts as time on real GPUs of the catalogue: published counts and rates, what a CPU answers, what
// a cure changes, and what is refused.
#include "core/device/catalogue.h"
#include "core/experiments/bank-conflicts/bank_conflicts.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment bankConflicts{"bank-conflicts"};

double bankFigure(const std::vector<std::string>& assignments, const char* key, const char* device = "nvidia-h200")
{
    const auto prediction = bankConflicts.predict(assignments, device);
    return prediction ? numberIn(*prediction, key) : NAN;
}

const Claim* claimAbout(const std::vector<Claim>& claims, std::string_view words)
{
    for (const Claim& claim : claims) {
        if (claim.quote.find(words) != std::string::npos)
            return &claim;
    }
    return nullptr;
}

std::vector<Claim> claims(const std::vector<std::string>& assignments, const char* device = "nvidia-h200")
{
    return bankConflicts->claims(*findDevice(device), bankConflicts.with(assignments));
}

} // namespace

class TestBankConflicts : public QObject
{
    Q_OBJECT

private slots:
    /// The transposition of NVIDIA's guides: float tile[32][32], its columns 32-way, [32][33] cured.
    void aTransposedTile()
    {
        QCOMPARE(bankFigure({"pattern=row"}, "wavefronts"), 1.0);
        QCOMPARE(bankFigure({"pattern=column"}, "degree"), 32.0);
        QCOMPARE(bankFigure({"pattern=column"}, "conflicts"), 31.0);
        QCOMPARE(bankFigure({"pattern=column", "padding=1"}, "wavefronts"), 1.0);
        QCOMPARE(bankFigure({"pattern=column", "swizzle=xor"}, "wavefronts"), 1.0);
        QCOMPARE(bankFigure({"pattern=row", "swizzle=xor"}, "wavefronts"), 1.0);
        QCOMPARE(bankFigure({"pattern=column", "operation=write"}, "wavefronts"), 32.0);
        QCOMPARE(bankFigure({"pattern=column"}, "tile_bytes"), 4096.0);
        QCOMPARE(bankFigure({"pattern=column", "padding=1"}, "tile_bytes"), 4224.0);
        QCOMPARE(bankFigure({"pattern=column", "swizzle=xor"}, "tile_bytes"), 4096.0);
    }

    void wideAccessesTakeTheirPhases()
    {
        QCOMPARE(bankFigure({"stride=1", "width=8"}, "wavefronts"), 2.0);
        QCOMPARE(bankFigure({"stride=1", "width=16"}, "wavefronts"), 4.0);
        QCOMPARE(bankFigure({"stride=1", "width=16"}, "degree"), 1.0);
        QCOMPARE(bankFigure({"stride=1", "width=16"}, "conflicts"), 0.0);
        QCOMPARE(bankFigure({"stride=8", "width=16"}, "wavefronts"), 32.0);
        QCOMPARE(bankFigure({"stride=1", "width=2"}, "wavefronts"), 1.0); // two lanes share a word
        // ldmatrix: eight rows of 128 bytes, chunk by chunk; the swizzle of flash attention.
        QCOMPARE(bankFigure({"pattern=column", "width=16", "columns=8"}, "wavefronts"), 32.0);
        QCOMPARE(bankFigure({"pattern=column", "width=16", "columns=8", "swizzle=xor16"}, "wavefronts"), 4.0);
    }

    /// 128 bytes a cycle and multiprocessor: 33.4 TB/s on the 132 multiprocessors of an H200 at 1980 MHz.
    void aWavefrontIsACycleOn128Bytes()
    {
        const auto free = bankConflicts.predict({"stride=1"}), eight = bankConflicts.predict({"stride=8"});
        QVERIFY(free && eight);
        QCOMPARE(numberIn(*free, "cycles"), 1.0);
        QCOMPARE(numberIn(*eight, "cycles"), 8.0);
        QVERIFY(std::fabs(132 * numberIn(*free, "bandwidth") / 33.45e12 - 1) < 0.001);
        QVERIFY(std::fabs(numberIn(*free, "bandwidth") / numberIn(*eight, "bandwidth") - 8) < 1e-9);
        // A broadcast gives every lane its four bytes from one word.
        QCOMPARE(bankFigure({"stride=0"}, "bandwidth"), numberIn(*free, "bandwidth"));
    }

    /// A calibrated device has its measured clock; its banks go with it.
    void cyclesStayWhenTheClockSinks()
    {
        Device slow = *findDevice("nvidia-h200");
        slow.clock.value *= 0.8;
        const auto parameters = resolve(bankConflicts->schema(), std::vector<std::string>{"stride=2"});
        const auto prediction = bankConflicts->predict(slow, *parameters);
        QCOMPARE(numberIn(*prediction, "cycles"), 2.0);
        QVERIFY(std::fabs(numberIn(*prediction, "bandwidth") / (128 * 0.8 * 1.98e9 / 2) - 1) < 1e-9);
    }

    void latencyGrowsByTheWavefronts()
    {
        // 30 cycles on an H100 (mt4g), and 31 more wavefronts behind the first.
        QVERIFY(std::fabs(bankFigure({"stride=1"}, "latency_cycles") - 30) < 0.01);
        QVERIFY(std::fabs(bankFigure({"stride=32"}, "latency_cycles") - 61) < 0.01);
        QVERIFY(std::isnan(bankFigure({"operation=write"}, "latency_cycles")));
        QVERIFY(std::isnan(bankFigure({"width=2"}, "latency_cycles")));
    }

    /// NVIDIA's engineer: a uniform LDS.128 takes 2 requests in place of 4 on compute capability 7.0 to 7.5.
    void uniformVectorsOnTuring()
    {
        const std::vector<std::string> uniform{"stride=0", "width=16"};
        QCOMPARE(bankFigure(uniform, "wavefronts", "nvidia-t4"), 2.0);
        QCOMPARE(bankFigure(uniform, "wavefronts", "nvidia-v100-sxm2"), 2.0);
        QCOMPARE(bankFigure(uniform, "wavefronts", "nvidia-h200"), 4.0);
        QCOMPARE(bankFigure({"stride=0", "width=16", "operation=write"}, "wavefronts", "nvidia-t4"), 4.0);
    }

    void theCombOfTheTextbooks()
    {
        const auto prediction = bankConflicts.predict({});
        QVERIFY(prediction.has_value());
        const Series* cycles = prediction->findSeries("cycles");
        const Series* rule = prediction->findSeries("gcd_wavefronts");
        QVERIFY(cycles && rule);
        QCOMPARE(int(cycles->y.size()), 65);
        QCOMPARE(cycles->yLabel, rule->yLabel); // one plot
        for (std::size_t stride = 1; stride <= 64; ++stride) {
            double expected = 1;
            while (expected < 32 && stride % std::size_t(2 * expected) == 0)
                expected *= 2; // the largest power of two in it, up to the banks
            QCOMPARE(cycles->y[stride], expected);
            QCOMPARE(rule->y[stride], expected);
        }
        QCOMPARE(cycles->y[0], 1.0);
        QCOMPARE(rule->y[0], 32.0);
        QVERIFY(!bankConflicts.predict({"width=2"})->findSeries("gcd_wavefronts")); // the rule is for words
        QVERIFY(!bankConflicts.predict({"pattern=random"})->findSeries("gcd_wavefronts"));
    }

    void aPaddingSweepFindsItsCure()
    {
        const auto prediction = bankConflicts.predict({"pattern=column"});
        QVERIFY(prediction.has_value());
        const Series* cycles = prediction->findSeries("cycles");
        QCOMPARE(cycles->x.key, std::string("padding"));
        const double expected[] = {32, 1, 2, 1, 4, 1, 2, 1, 8};
        for (std::size_t i = 0; i < std::size(expected); ++i)
            QCOMPARE(cycles->y[i], expected[i]);
    }

    void aCpuCountsAndSaysWhatItLacks()
    {
        const auto prediction = bankConflicts.predict({"stride=32"}, "cpu");
        QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
        QCOMPARE(numberIn(*prediction, "wavefronts"), 32.0);
        QVERIFY(!findFigure(prediction->figures, "cycles"));
        QVERIFY(!findFigure(prediction->figures, "bandwidth"));
        const auto words = prediction->detail["not_here"].get<std::string>();
        QVERIFY2(words.find("no shared memory in banks") != std::string::npos
                     && words.find("choose") != std::string::npos,
                 words.c_str());
        QVERIFY(!bankConflicts.predict({})->detail.contains("not_here"));
    }

    void aWaveOf64Lanes()
    {
        // An MI300X asks with 64 lanes, 32 words at a time.
        QCOMPARE(bankFigure({"stride=1"}, "wavefronts", "amd-mi300x"), 2.0);
        QCOMPARE(bankFigure({"stride=2"}, "wavefronts", "amd-mi300x"), 4.0);
        QCOMPARE(bankFigure({"stride=1", "lanes=32"}, "wavefronts", "amd-mi300x"), 1.0);
    }

    void detailHoldsWhatThePicturePlays()
    {
        const auto prediction = bankConflicts.predict({"stride=2", "width=8"});
        const Json& lanes = prediction->detail["lanes"];
        QCOMPARE(int(lanes.size()), 32);
        QCOMPARE(lanes[3]["address"].get<int>(), 48);
        QCOMPARE(lanes[3]["bank"].get<int>(), 12);
        QCOMPARE(lanes[3]["words"].get<int>(), 2);
        QCOMPARE(lanes[8]["bank"].get<int>(), 0);
        QCOMPARE(lanes[8]["wavefront"].get<int>(), 1); // behind lane 0
        QCOMPARE(lanes[16]["phase"].get<int>(), 1);
        QCOMPARE(lanes[16]["wavefront"].get<int>(), 2);
        int served = 0;
        for (const Json& phase : prediction->detail["phases"])
            served += phase["lanes"].get<int>();
        QCOMPARE(served, 32);
    }

    void curesAreThoseOfTheirParameters()
    {
        for (const std::vector<std::string>& given : {std::vector<std::string>{"pattern=column"},
                                                      {"stride=16", "width=8"},
                                                      {"pattern=column", "width=2", "columns=64"},
                                                      {"stride=6"}}) {
            const auto prediction = bankConflicts.predict(given);
            QVERIFY(int(prediction->detail["cures"].size()) >= 3);
            for (const Json& cure : prediction->detail["cures"]) {
                auto cured = given;
                for (const auto& [key, value] : cure["parameters"].items())
                    cured.push_back(key + "=" + value.get<std::string>());
                QCOMPARE(bankFigure(cured, "wavefronts"), cure["wavefronts"].get<double>());
                QCOMPARE(bankFigure(cured, "tile_bytes"), cure["bytes"].get<double>());
            }
        }
        const auto odd = bankConflicts.predict({"pattern=column", "columns=33"}); // no swizzle exchanges 33 elements
        for (const Json& cure : odd->detail["cures"])
            QVERIFY(cure["key"].get<std::string>().rfind("xor", 0) != 0);
    }

    void claimsAgainstPublishedNumbers()
    {
        const auto column = claims({"pattern=column"});
        // C = AAᵀ of the Best Practices Guide: 97 wavefronts against 66, 199.4 / 140.2 GB/s were measured.
        const Claim* kernel = claimAbout(column, "32 times");
        QVERIFY(kernel && kernel->ours.find("97 wavefronts, 66 padded, 1.47 times") != std::string::npos);
        QVERIFY(std::fabs((97.0 / 66) / (199.4 / 140.2) - 1) < 0.04);
        QCOMPARE(claimAbout(column, "padded")->verdict, std::string("holds here"));
        QVERIFY(claimAbout(claims({"pattern=column", "columns=31"}), "padded")->verdict.find("the padding makes")
                != std::string::npos);
        QVERIFY(claimAbout(claims({"pattern=column", "width=2", "columns=64"}), "padded")->verdict.find("does not hold")
                == 0);
        QCOMPARE(claimAbout(claims({"stride=12"}), "gcd")->verdict, std::string("holds here"));
        QVERIFY(claimAbout(claims({"stride=0"}), "gcd")->verdict.find("broadcast") != std::string::npos);
        const auto strided = claims({"stride=32"});
        const Claim* slower = claimAbout(strided, "n times slower");
        QVERIFY2(slower->ours.find("32 times the banks' time") != std::string::npos, slower->ours.c_str());
        QVERIFY2(slower->ours.find("61 against 30 cycles") != std::string::npos, slower->ours.c_str());
        QVERIFY(claimAbout(column, "1-32 cycles")->ours.find("30 cycles without") != std::string::npos);
        QVERIFY(claimAbout(claims({}, "cpu"), "1-32 cycles") != nullptr);
    }

    void badInput_data()
    {
        QTest::addColumn<QStringList>("given");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* assignments, const char* code) {
            QTest::newRow(assignments) << QString::fromUtf8(assignments).split(' ') << code;
        };
        row("stride=-1", "parameter.range");
        row("stride=1e300", "parameter.range");
        row("stride=nan", "parameter.range");
        row("stride=129", "parameter.range");
        row("width=3", "parameter.choice");
        row("width=0", "parameter.choice");
        row("columns=0", "parameter.range");
        row("padding=-1", "parameter.range");
        row("swizzle=yes", "parameter.choice");
        row("lanes=33", "banks.lanes");
        row("swizzle=xor columns=33", "banks.columns");
        row("pattern=column columns=1024 width=16", "banks.capacity");
    }
    void badInput()
    {
        QFETCH(QStringList, given);
        QFETCH(QString, code);
        std::vector<std::string> assignments;
        for (const QString& one : given)
            assignments.push_back(one.toStdString());
        const auto prediction = bankConflicts.predict(assignments);
        QVERIFY(!prediction.has_value());
        QCOMPARE(QString::fromStdString(prediction.error().code), code);
        QVERIFY(!prediction.error().hint.empty());
    }

    void everyGpuOfTheCatalogueAnswers()
    {
        for (const Device& device : catalogue()) {
            const auto prediction = bankConflicts.predict({"pattern=column"}, device.id.c_str());
            QVERIFY2(prediction.has_value(), device.id.c_str());
            QCOMPARE(findFigure(prediction->figures, "cycles") != nullptr, device.isGpu());
            if (device.isGpu() && device.warp == 32)
                QVERIFY2(std::fabs(numberIn(*prediction, "cycles") / 32 - 1) < 0.01, device.id.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestBankConflicts)
#include "tests/support/asked_experiment.h"
#include "tst_bank_conflicts.moc"

// SPDX-License-Identifier: Apache-2.0
// The experiment `attention` as its callers see it: the figures of the contract, memory as the
// papers give it, claims with numbers, the walk's detail, and what wrong input is answered with.
#include "core/device/catalogue.h"
#include "core/experiments/attention/attention.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment attention{"attention"};

} // namespace

class TestAttentionExperiment : public QObject
{
    Q_OBJECT

private slots:
    void figuresKeepTheContract()
    {
        for (const char* device : {"nvidia-h200", "nvidia-a100-80gb", "amd-epyc-zen4-vm"}) {
            const auto prediction = attention.predict({"sequence=1024"}, device);
            QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
            for (const char* kind : {"standard_", "flash_"}) {
                for (const char* key : {"flops", "hbm_bytes", "extra_peak", "saved_for_backward", "time"})
                    QVERIFY2(numberIn(*prediction, std::string(kind) + key) > 0, key);
            }
            QVERIFY(numberIn(*prediction, "speedup") > 0);
            QVERIFY(prediction->findSeries("flash_time") != nullptr);
        }
    }

    void oneImplementationHasItsFiguresOnly()
    {
        const auto flash = attention.predict({"implementation=flash", "pass=forward"});
        QVERIFY(flash.has_value());
        QVERIFY(findFigure(flash->figures, "standard_time") == nullptr);
        QVERIFY(findFigure(flash->figures, "speedup") == nullptr);
        QCOMPARE(numberIn(*flash, "flash_extra_peak"), numberIn(*flash, "flash_saved_for_backward"));
    }

    void savedGrowsWithTheSquareAndWithTheSequence()
    {
        const auto at = [](const char* sequence) { return *attention.predict({sequence}); };
        const Prediction one = at("sequence=2048"), two = at("sequence=4096");
        QCOMPARE(numberIn(two, "standard_saved_for_backward"), 4 * numberIn(one, "standard_saved_for_backward"));
        QCOMPARE(numberIn(two, "flash_saved_for_backward"), 2 * numberIn(one, "flash_saved_for_backward"));
        // bf16: N² · 2 B against N · 4 B.
        QCOMPARE(numberIn(two, "standard_saved_for_backward") / numberIn(two, "flash_saved_for_backward"), 2048.0);
    }

    void theExtraMemoryOfTable21()
    {
        // Dao et al. 2022, table 21, batch 16, 8 heads of 64, fp16, forward and backward with dropout
        // and mask: PyTorch's memory grows by 4 arrays of scores, flash attention's with the sequence
        // alone (17,024 MiB and 836 MiB at 4096). Ours: three arrays, for there is no dropout mask.
        const std::vector<std::string> setup{"batch=16", "heads=8", "head_dim=64", "dtype=float16"};
        const auto peak = [&](const char* sequence, const char* key) {
            auto all = setup;
            all.emplace_back(sequence);
            return numberIn(*attention.predict(all), key);
        };
        const double scores = 16.0 * 8 * 4096 * 4096 * 2;
        QCOMPARE(peak("sequence=4096", "standard_extra_peak"), 3 * scores);
        QVERIFY(peak("sequence=4096", "standard_extra_peak") < 17024.0 * 1048576);
        QVERIFY(peak("sequence=4096", "standard_extra_peak") > 0.7 * 17024 * 1048576);
        QVERIFY(peak("sequence=4096", "flash_extra_peak") < 836.0 * 1048576);
        QCOMPARE(peak("sequence=8192", "flash_extra_peak"), 2 * peak("sequence=4096", "flash_extra_peak"));
    }

    void everyFigureSaysWhy()
    {
        const auto prediction = attention.predict({});
        for (const Figure& one : prediction->figures) {
            QVERIFY2(one.why && !one.why->formula.empty() && !one.why->with.empty() && !one.why->source.empty(),
                     one.key.c_str());
        }
    }

    void whatDoesNotFitIsSaidBefore()
    {
        // 16 heads, bf16: three arrays of 64k × 64k scores are 384 GiB, an H200 has 141 GB.
        const auto fits = [](const char* sequence, const char* key) {
            return findFigure(attention.predict({sequence})->figures, key)->why->with;
        };
        QVERIFY(fits("sequence=65536", "standard_total_bytes").ends_with("it does not fit"));
        QVERIFY(fits("sequence=65536", "flash_total_bytes").ends_with("it fits"));
        QVERIFY(fits("sequence=8192", "standard_total_bytes").ends_with("it fits"));
    }

    void theDetailDescribesTheWalk()
    {
        const auto prediction = attention.predict({"sequence=1024", "head_dim=128", "causal=true"});
        const Json& detail = prediction->detail;
        QCOMPARE(detail["shape"]["keys"].get<int>(), 1024);
        QVERIFY(detail["shape"]["causal"].get<bool>());
        const double tileKeys = detail["flash"]["tile"]["keys"].get<double>();
        QVERIFY(tileKeys >= 1);
        // The recurrence ends where the plain softmax of the same scores would: the maximum never
        // falls.
        const auto maxima = detail["softmax"]["maximum"].get<std::vector<double>>();
        const auto factors = detail["softmax"]["rescale"].get<std::vector<double>>();
        QVERIFY(std::is_sorted(maxima.begin(), maxima.end()));
        QCOMPARE(factors.front(), 0.0);
        for (std::size_t i = 1; i < maxima.size(); ++i)
            QVERIFY(std::abs(factors[i] - std::exp(maxima[i - 1] - maxima[i])) < 1e-12);
        QVERIFY(detail["on_chip"]["tiles"].get<double>() <= detail["on_chip"]["bytes"].get<double>());
        double bytes = 0;
        for (const Json& step : detail["standard"]["steps"])
            bytes += step["bytes"].get<double>();
        QCOMPARE(bytes, numberIn(*prediction, "standard_hbm_bytes"));
        QVERIFY(!detail["versions"]["flash"].empty());
    }

    /// A device's file names the fastest kernel that a run has shown; without one Hopper's own is not chosen.
    void theBestVersionIsTheOneThatTheDeviceNames()
    {
        const auto versionOn = [&](const char* id, int recorded, int backward = 0, const char* pass = "pass=both") {
            Json file = deviceToJson(*findDevice(id));
            if (recorded > 0)
                file["kernels"]["attention.forward"] = {{"version", recorded}, {"source", "a record"}};
            if (backward > 0)
                file["kernels"]["attention.backward"] = {{"version", backward}, {"source", "a record"}};
            const Json detail =
                attention->predict(*deviceFromJson(file), attention.with({"implementation=flash", pass}))->detail;
            return detail.at("flash").at("version").get<int>();
        };
        QCOMPARE(versionOn("nvidia-h200", 0), 7);
        QCOMPARE(versionOn("nvidia-h200", 8), 8);
        QCOMPARE(versionOn("nvidia-h200", 6), 6);
        QCOMPARE(versionOn("nvidia-a100-80gb", 8), 7); // which has no such instructions
        // The backward may have another winner than the forward.
        QCOMPARE(versionOn("nvidia-h200", 8, 9, "pass=backward"), 9);
        QCOMPARE(versionOn("nvidia-h200", 8, 9, "pass=forward"), 8);
        QCOMPARE(versionOn("nvidia-h200", 8, 9, "pass=both"), 8);
        QCOMPARE(versionOn("nvidia-h200", 8, 0, "pass=backward"), 8);
        // Which can run where is in the list of versions.
        const auto missing = [&](const char* id) {
            return attention.predict({}, id)->detail.at("versions").at("flash").at(7).contains("missing");
        };
        QVERIFY(!missing("nvidia-h200"));
        QVERIFY(missing("nvidia-a100-80gb"));
        const auto help =
            std::find_if(attention->schema().begin(), attention->schema().end(), [](const ParameterSpec& spec) {
                return spec.key == "version";
            })->help;
        QVERIFY2(help.find("8 Hopper's copy engine and warpgroups (one thread") != std::string::npos, help.c_str());
        QVERIFY2(help.find("last bits change from run to run") != std::string::npos, help.c_str()); // version 9
    }

    void claimsCarryNumbers()
    {
        for (const char* device : {"nvidia-h200", "amd-epyc-zen4-vm"}) {
            const auto claims = attention->claims(*findDevice(device), attention.with({}));
            QVERIFY(claims.size() >= 8);
            for (const Claim& claim : claims) {
                QVERIFY(!claim.quote.empty() && !claim.source.empty());
                QVERIFY2(claim.verdict.starts_with("holds") || claim.verdict.starts_with("does not hold"),
                         claim.verdict.c_str());
                QVERIFY2(claim.ours.find_first_of("0123456789") != std::string::npos, claim.ours.c_str());
            }
        }
    }

    void theNotesTwoGigabytesAreElements()
    {
        const auto prediction = attention.predict({"batch=8", "heads=16", "sequence=4096", "dtype=float16"});
        QCOMPARE(numberIn(*prediction, "standard_saved_for_backward"), 4294967296.0); // 2^31 elements
        const auto claims = attention->claims(*findDevice("nvidia-h200"), attention.with({}));
        const auto found = std::find_if(claims.begin(), claims.end(), [](const Claim& claim) {
            return claim.quote.find("2GB") != std::string::npos;
        });
        QVERIFY(found != claims.end());
        QVERIFY(found->verdict.starts_with("does not hold"));
        QVERIFY2(found->ours.find("4.29 GB") != std::string::npos, found->ours.c_str());
    }

    void crossoverIsWhereTheCurvesCross()
    {
        for (const char* device : {"nvidia-h200", "amd-epyc-zen4-vm"}) {
            const auto prediction = attention.predict({"dtype=float16"}, device);
            const double crossover = numberIn(*prediction, "crossover");
            const auto speedup = [&](double sequence) {
                return numberIn(*attention.predict({"dtype=float16", "sequence=" + numberText(sequence)}, device),
                                "speedup");
            };
            QVERIFY(crossover >= 16);
            QVERIFY(speedup(crossover) > 1);
            if (crossover > 16)
                QVERIFY(speedup(crossover / 2) <= 1);
        }
    }

    void wrongInputNamesTheParameter_data()
    {
        QTest::addColumn<QString>("assignment");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        QTest::addColumn<QString>("hint");
        QTest::newRow("head dimension") << "head_dim=72"
                                        << "attention.unsupported"
                                        << "head_dim"
                                        << "choose head_dim=64";
        QTest::newRow("kv heads") << "kv_heads=5"
                                  << "attention.heads"
                                  << "kv_heads"
                                  << "choose kv_heads=4";
        QTest::newRow("version") << "version=99"
                                 << "attention.version"
                                 << "version"
                                 << "or 0 for the best";
    }
    void wrongInputNamesTheParameter()
    {
        QFETCH(QString, assignment);
        QFETCH(QString, code);
        QFETCH(QString, place);
        QFETCH(QString, hint);
        const auto prediction = attention.predict({assignment.toStdString()});
        QVERIFY(!prediction);
        QCOMPARE(QString::fromStdString(prediction.error().code), code);
        QCOMPARE(QString::fromStdString(prediction.error().place), place);
        QVERIFY2(QString::fromStdString(prediction.error().hint).contains(hint), prediction.error().hint.c_str());
    }
};

QTEST_APPLESS_MAIN(TestAttentionExperiment)
#include "tests/support/asked_experiment.h"
#include "tst_attention.moc"

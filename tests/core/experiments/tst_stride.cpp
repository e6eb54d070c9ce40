// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/experiments/stride/stride.h"

#include <QtTest>

#include <cmath>
#include <set>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment stride{"stride"};

} // namespace

class TestStride : public QObject
{
    Q_OBJECT

private slots:
    void sectorsEqualBruteForce()
    {
        const auto device = *findDevice("nvidia-h200");
        const std::vector<std::pair<const char*, std::uint64_t>> elements{
            {"int8", 1}, {"float16", 2}, {"float32", 4}, {"float64", 8}, {"float4", 16}};
        for (const auto& [name, size] : elements) {
            for (std::uint64_t step = 0; step <= 64; ++step) {
                for (std::uint64_t offset = 0; offset < 128; offset += (size > 4 ? 4 : size)) {
                    std::set<std::uint64_t> sectors, lines;
                    for (std::uint64_t lane = 0; lane < 32; ++lane) {
                        for (std::uint64_t byte = 0; byte < size; ++byte) {
                            const std::uint64_t address = offset + lane * step * size + byte;
                            sectors.insert(address / 32);
                            lines.insert(address / 128);
                        }
                    }
                    Parameters parameters = stride.with({"element=" + std::string(name)});
                    parameters.set("stride", double(step));
                    parameters.set("offset", double(offset));
                    const auto figures = stride->predictPoint(device, parameters);
                    QVERIFY(figures.has_value());
                    QCOMPARE(numberIn(*figures, "sectors_per_request"), double(sectors.size()));
                    QCOMPARE(numberIn(*figures, "lines_per_request"), double(lines.size()));
                }
            }
        }
    }

    void figuresOfTheDrawing()
    {
        // A warp that reads every fourth float uses 128 of 512 fetched bytes.
        const auto figures = stride->predictPoint(*findDevice("nvidia-h200"), stride.with({"stride=4"}));
        QCOMPARE(numberIn(*figures, "sectors_per_request"), 16.0);
        QCOMPARE(numberIn(*figures, "efficiency"), 0.25);
        QCOMPARE(numberIn(*figures, "useful_bandwidth") / numberIn(*figures, "moved_bandwidth"), 0.25);
        QVERIFY(findFigure(*figures, "useful_bandwidth")->why.has_value());
    }

    void patternsDifferAsTheyShould()
    {
        const auto device = *findDevice("nvidia-a100-80gb");
        const auto useful = [&](const std::string& pattern) {
            return numberIn(*stride->predictPoint(device, stride.with({"stride=8", "pattern=" + pattern})),
                            "useful_bandwidth");
        };
        QVERIFY(useful("soa") > 5 * useful("aos"));
        QCOMPARE(useful("aos"), useful("strided"));
        QVERIFY(useful("contiguous") > 5 * useful("random"));
    }

    void everyCombinationAnswers()
    {
        for (const char* id : {"nvidia-h200", "cpu"}) {
            const auto device = *findDevice(id);
            for (const ChoiceValue& pattern : findParameter(stride->schema(), "pattern")->choices) {
                for (const ChoiceValue& operation : findParameter(stride->schema(), "operation")->choices) {
                    for (const ChoiceValue& element : findParameter(stride->schema(), "element")->choices) {
                        for (const char* step : {"0", "1", "7", "1048576"}) {
                            const auto prediction =
                                stride->predict(device,
                                                stride.with({"pattern=" + pattern.key, "operation=" + operation.key,
                                                             "element=" + element.key, std::string("stride=") + step}));
                            QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
                            for (const Figure& figure : prediction->figures)
                                QVERIFY2(std::isfinite(figure.number()) && figure.number() > 0, figure.key.c_str());
                            const double efficiency = numberIn(prediction->figures, "efficiency");
                            QVERIFY(efficiency <= 1 + 1e-12);
                        }
                    }
                }
            }
        }
    }

    void theAxisFollowsThePattern()
    {
        const auto device = *findDevice("nvidia-h200");
        const auto axis = [&](const std::vector<std::string>& assignments) {
            return QString::fromStdString(stride->predict(device, stride.with(assignments))->series[0].x.key);
        };
        QCOMPARE(axis({}), QString("stride"));
        QCOMPARE(axis({"pattern=misaligned"}), QString("offset"));
        QCOMPARE(axis({"pattern=random"}), QString("bytes"));
        QCOMPARE(axis({"pattern=random", "element=int8,float4"}), QString("element"));
        const auto prediction = stride->predict(device, stride.with({"stride=5"}));
        QVERIFY(std::find(prediction->series[0].x.values.begin(), prediction->series[0].x.values.end(), 5.0)
                != prediction->series[0].x.values.end());
    }

    void copyCountsBothWays()
    {
        const auto read = strideCase(stride.with({"bytes=1MiB", "stride=1"}));
        const auto copy = strideCase(stride.with({"bytes=1MiB", "stride=1", "operation=copy"}));
        QCOMPARE(copy->usefulBytes(), 2 * read->usefulBytes());
        QCOMPARE(copy->memoryBytes(), 2.0 * (1 << 20));
        QCOMPARE(read->accesses, std::uint64_t(1 << 18));
    }

    void anOffsetPastTheArrayIsRefused()
    {
        const auto refused = strideCase(stride.with({"bytes=4096", "offset=4095", "element=float4"}));
        QVERIFY(!refused.has_value());
        QCOMPARE(refused.error().code, std::string("access.bytes"));
    }
};

QTEST_GUILESS_MAIN(TestStride)
#include "tests/support/asked_experiment.h"
#include "tst_stride.moc"

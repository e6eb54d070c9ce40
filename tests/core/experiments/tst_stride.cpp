// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/experiments/stride/stride.h"

#include <QtTest>

#include <cmath>
#include <set>

using namespace memscape;

class TestStride : public QObject
{
    Q_OBJECT

private slots:
    void sectorsEqualBruteForce();
    void figuresOfTheDrawing();
    void patternsDifferAsTheyShould();
    void everyCombinationAnswers();
    void theAxisFollowsThePattern();
    void copyCountsBothWays();
    void anOffsetPastTheArrayIsRefused();
};

namespace {

const Experiment& stride()
{
    return **findExperiment("stride");
}

Parameters strideWith(const std::vector<std::string>& assignments)
{
    return *resolve(stride().schema(), assignments);
}

double value(const Figures& figures, std::string_view key)
{
    return findFigure(figures, key)->number();
}

} // namespace

void TestStride::sectorsEqualBruteForce()
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
                Parameters parameters = strideWith({"element=" + std::string(name)});
                parameters.set("stride", double(step));
                parameters.set("offset", double(offset));
                const auto figures = stride().predictPoint(device, parameters);
                QVERIFY(figures.has_value());
                QCOMPARE(value(*figures, "sectors_per_request"), double(sectors.size()));
                QCOMPARE(value(*figures, "lines_per_request"), double(lines.size()));
            }
        }
    }
}

void TestStride::figuresOfTheDrawing()
{
    // A warp that reads every fourth float uses 128 of 512 fetched bytes.
    const auto figures = stride().predictPoint(*findDevice("nvidia-h200"), strideWith({"stride=4"}));
    QCOMPARE(value(*figures, "sectors_per_request"), 16.0);
    QCOMPARE(value(*figures, "efficiency"), 0.25);
    QCOMPARE(value(*figures, "useful_bandwidth") / value(*figures, "moved_bandwidth"), 0.25);
    QVERIFY(findFigure(*figures, "useful_bandwidth")->why.has_value());
}

void TestStride::patternsDifferAsTheyShould()
{
    const auto device = *findDevice("nvidia-a100-80gb");
    const auto useful = [&](const std::string& pattern) {
        return value(*stride().predictPoint(device, strideWith({"stride=8", "pattern=" + pattern})),
                     "useful_bandwidth");
    };
    QVERIFY(useful("soa") > 5 * useful("aos"));
    QCOMPARE(useful("aos"), useful("strided"));
    QVERIFY(useful("contiguous") > 5 * useful("random"));
}

void TestStride::everyCombinationAnswers()
{
    for (const char* id : {"nvidia-h200", "cpu"}) {
        const auto device = *findDevice(id);
        for (const ChoiceValue& pattern : findParameter(stride().schema(), "pattern")->choices) {
            for (const ChoiceValue& operation : findParameter(stride().schema(), "operation")->choices) {
                for (const ChoiceValue& element : findParameter(stride().schema(), "element")->choices) {
                    for (const char* step : {"0", "1", "7", "1048576"}) {
                        const auto prediction =
                            stride().predict(device,
                                             strideWith({"pattern=" + pattern.key, "operation=" + operation.key,
                                                         "element=" + element.key, std::string("stride=") + step}));
                        QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
                        for (const Figure& figure : prediction->figures)
                            QVERIFY2(std::isfinite(figure.number()) && figure.number() > 0, figure.key.c_str());
                        const double efficiency = value(prediction->figures, "efficiency");
                        QVERIFY(efficiency <= 1 + 1e-12);
                    }
                }
            }
        }
    }
}

void TestStride::theAxisFollowsThePattern()
{
    const auto device = *findDevice("nvidia-h200");
    const auto axis = [&](const std::vector<std::string>& assignments) {
        return QString::fromStdString(stride().predict(device, strideWith(assignments))->series[0].x.key);
    };
    QCOMPARE(axis({}), QString("stride"));
    QCOMPARE(axis({"pattern=misaligned"}), QString("offset"));
    QCOMPARE(axis({"pattern=random"}), QString("bytes"));
    QCOMPARE(axis({"pattern=random", "element=int8,float4"}), QString("element"));
    const auto prediction = stride().predict(device, strideWith({"stride=5"}));
    QVERIFY(std::find(prediction->series[0].x.values.begin(), prediction->series[0].x.values.end(), 5.0)
            != prediction->series[0].x.values.end());
}

void TestStride::copyCountsBothWays()
{
    const auto read = strideCase(strideWith({"bytes=1MiB", "stride=1"}));
    const auto copy = strideCase(strideWith({"bytes=1MiB", "stride=1", "operation=copy"}));
    QCOMPARE(copy->usefulBytes(), 2 * read->usefulBytes());
    QCOMPARE(copy->memoryBytes(), 2.0 * (1 << 20));
    QCOMPARE(read->accesses, std::uint64_t(1 << 18));
}

void TestStride::anOffsetPastTheArrayIsRefused()
{
    const auto refused = strideCase(strideWith({"bytes=4096", "offset=4095", "element=float4"}));
    QVERIFY(!refused.has_value());
    QCOMPARE(refused.error().code, std::string("access.bytes"));
}

QTEST_GUILESS_MAIN(TestStride)
#include "tst_stride.moc"

// SPDX-License-Identifier: Apache-2.0
// Batches of several lengths: what they leave reserved, and how their lengths are drawn.
#include "core/experiments/training-memory/training_memory.h"
#include "tests/support/devices.h"
#include "tests/support/training_case.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

/// GPT-2 on batches of `shortest` to 512 tokens.
Result<Prediction> predicted(const std::string& batch, const std::string& shortest,
                             const std::string& accumulation = "1")
{
    return trainingMemory().predict(
        h200(),
        trainingWith({"model=gpt2", "sequence=512", "precision=bf16", "attention=flash", "advice=none",
                      "batch=" + batch, "shortest_sequence=" + shortest, "accumulation=" + accumulation}));
}

Json lengthsOf(const std::string& batch, const std::string& shortest, const std::string& accumulation = "1")
{
    return predicted(batch, shortest, accumulation)->detail["lengths"];
}

} // namespace

class TestVaryingLengths : public QObject
{
    Q_OBJECT

private slots:
    void batchesOfSeveralLengthsReserveMore()
    {
        const auto several = predicted("4", "64"), same = predicted("4", "512"), fixed = predicted("4", "0");
        QVERIFY(several && same && fixed);
        QVERIFY(predictedValue(*several, "reserved_steady")
                > predictedValue(*same, "reserved_steady")); // a history of one length needs less
        QCOMPARE(predictedValue(*same, "reserved_first"), predictedValue(*same, "peak_reserved"));
        QVERIFY(!findFigure(fixed->figures, "reserved_steady"));
        QCOMPARE(predictedValue(*several, "peak_reserved"), predictedValue(*fixed, "peak_reserved"));
        const auto wrong = predicted("4", "1024");
        QVERIFY(!wrong);
        QCOMPARE(wrong.error().place, std::string("shortest_sequence"));
    }

    /// The longest of n even numbers from a to b lies n / (n + 1) of the way up, give or take √(n / (n + 2)) / (n + 1).
    void lengthsAreDrawnEvenlyAndIndependently()
    {
        const auto draws = lengthsOf("4", "64");
        QCOMPARE(draws.size(), std::size_t(9));
        double sum = 0;
        std::size_t batches = 0, same = 0;
        for (const Json& draw : draws) {
            QCOMPARE(draw.size(), std::size_t(32));
            for (std::size_t i = 0; i < draw.size(); ++i) {
                const auto length = draw[i]["length"].get<std::int64_t>();
                QVERIFY(length >= 64 && length <= 512);
                QVERIFY(i == 0 || draw[i]["reserved"] >= draw[i - 1]["reserved"]);
                sum += double(length);
                ++batches;
                same += std::size_t(&draw != &draws[0] && draw[i]["length"] == draws[0][i]["length"]);
            }
        }
        const double range = 512 - 64, spread = range * std::sqrt(4.0 / 6) / 5;
        QVERIFY(std::abs(sum / double(batches) - (64 + range * 4 / 5)) < 4 * spread / std::sqrt(double(batches)));
        QVERIFY(same < 16); // of 8 × 32; by chance, long ones being likely, about two
    }

    void theBandOfSeveralLengthsHoldsEveryDraw()
    {
        const Prediction several = predicted("4", "64").value();
        for (const char* const key : {"reserved_first", "reserved_steady"}) {
            const Figure* const figure = findFigure(several.figures, key);
            QVERIFY(figure && figure->low && figure->high);
            const bool isFirst = std::string(key) == "reserved_first";
            std::size_t below = 0, above = 0;
            bool meetsLow = false, meetsHigh = false;
            for (const Json& draw : several.detail["lengths"]) {
                const auto reserved = (isFirst ? draw.front() : draw.back())["reserved"].get<double>();
                QVERIFY(reserved >= *figure->low && reserved <= *figure->high);
                meetsLow |= reserved == *figure->low;
                meetsHigh |= reserved == *figure->high;
                below += std::size_t(reserved < figure->number());
                above += std::size_t(reserved > figure->number());
            }
            QVERIFY(meetsLow && meetsHigh);
            QVERIFY(below <= 4 && above <= 4); // the median
            QVERIFY(*figure->low < *figure->high);
        }
        const Prediction same = predicted("4", "512").value();
        for (const char* const key : {"reserved_first", "reserved_steady"}) {
            const Figure* const figure = findFigure(same.figures, key);
            QVERIFY(figure && figure->low && figure->high);
            QCOMPARE(*figure->low, figure->number());
            QCOMPARE(*figure->high, figure->number());
        }
    }

    /// Each micro-batch has its own length, and a draw ends with a step.
    void microBatchesDifferInLength()
    {
        QCOMPARE(lengthsOf("1", "64", "5")[0].size(), std::size_t(35));
        QCOMPARE(lengthsOf("1", "64", "16")[0].size(), std::size_t(32));
        const auto many = lengthsOf("1", "64", "100");
        QCOMPARE(many[0].size(), std::size_t(32));
        QVERIFY(many[0][0]["length"] != many[0][1]["length"]);
    }
};

QTEST_GUILESS_MAIN(TestVaryingLengths)
#include "tst_varying_lengths.moc"

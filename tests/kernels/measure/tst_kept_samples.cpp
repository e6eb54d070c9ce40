// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/kept_samples.h"

#include "core/experiment/parameter.h"
#include "core/protocol/message.h"
#include "kernels/measure/statistics.h"

#include <QtTest>

#include <algorithm>
#include <numeric>

using namespace memscape;

namespace {

std::vector<double> counted(std::size_t size)
{
    std::vector<double> values(size);
    std::iota(values.begin(), values.end(), 1.0);
    return values;
}

} // namespace

class TestKeptSamples : public QObject
{
    Q_OBJECT

private slots:
    void fewStayAsTheyAre()
    {
        QCOMPARE(thinned({3, 1, 2}, 3), (std::vector<double>{3, 1, 2}));
        QVERIFY(thinned({}, 3).empty());
    }

    void manyAreCutToTheLimitInTheirOrder()
    {
        for (const std::size_t size : {4u, 1001u, 72'715u}) {
            const auto kept = thinned(counted(size), 3);
            QCOMPARE(kept.size(), std::size_t(3));
            QVERIFY(std::ranges::is_sorted(kept));
            QCOMPARE(std::ranges::adjacent_find(kept), kept.end()); // none twice
        }
    }

    void theDistributionStays()
    {
        // The ranks of 1,000 of 72,715 equally likely values: quartiles within four standard errors,
        // 4 · 72715 · sqrt(0.25 · 0.75 / 1000) ≈ 3983.
        const Summary kept = summarize(thinned(counted(72'715), 1000));
        QVERIFY(std::abs(kept.q1 - 0.25 * 72'715) < 3983);
        QVERIFY(std::abs(kept.median - 0.50 * 72'715) < 4600);
        QVERIFY(std::abs(kept.q3 - 0.75 * 72'715) < 3983);
    }

    void theCountIsOfAll()
    {
        const Json set = keptSamples("time", counted(5000), keptPerSet(2));
        QCOMPARE(set["key"].get<std::string>(), std::string("time"));
        QCOMPARE(set["count"].get<int>(), 5000);
        QCOMPARE(set["values"].size(), std::size_t(1000));
    }

    void theLargestRunFitsItsMessage()
    {
        // A sweep at its limit of points with two sets each, of values with all their digits.
        const std::size_t sets = 2 * sweepLimit;
        const std::size_t bytesOfValue = jsonLine(Json(1.2345678901234567e-05)).size() + 1;
        QVERIFY(sets * keptPerSet(sets) * bytesOfValue < protocol::lineLimit / 4); // the rest is for its points
        QCOMPARE(keptPerSet(1), std::size_t(1000));
    }
};

QTEST_GUILESS_MAIN(TestKeptSamples)
#include "tst_kept_samples.moc"

// SPDX-License-Identifier: Apache-2.0
// Which sizes of which links a run probes at its visits, and what becomes of those that cannot be had.
#include "kernels/host/link_prober.h"

#include <QtTest>

#include <algorithm>

using namespace memscape;
using namespace memscape::host;

namespace {

/// Notes each size that is asked of it.
LinkPlan notedPlan(std::vector<double>& asked, std::size_t sizes, const std::string& id = "pipe")
{
    LinkPlan plan{{id, id, {}}, {}, {}};
    for (std::size_t i = 0; i < sizes; ++i)
        plan.sizes.push_back(double(i + 1));
    plan.measure = [&asked](double bytes, const StoppingOptions&) -> Result<std::vector<double>> {
        asked.push_back(bytes);
        return std::vector<double>{bytes, bytes};
    };
    return plan;
}

LinkPlan failingPlan(const char* code)
{
    return {{"file", "file", {}}, {1, 2}, [code](double, const StoppingOptions&) -> Result<std::vector<double>> {
                return fail(code, "not here");
            }};
}

} // namespace

class TestLinkProber : public QObject
{
    Q_OBJECT

private slots:
    void threeVisitsOfAPointProbeEverySize()
    {
        std::vector<double> asked;
        LinkProber prober;
        QVERIFY(prober.take()); // nothing to do
        prober.add(notedPlan(asked, 9));
        for (int visit = 0; visit < 3; ++visit)
            QVERIFY(prober.take());
        QVERIFY(!std::ranges::is_sorted(asked)); // what drifts does not look like a slope
        std::ranges::sort(asked);
        QCOMPARE(asked, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
        QCOMPARE(prober.samples()[0].seconds.size(), std::size_t(9));
    }

    void afterThatSizesComeInTurn()
    {
        std::vector<double> asked;
        LinkProber prober;
        prober.add(notedPlan(asked, 3));
        for (int visit = 0; visit < 4; ++visit)
            QVERIFY(prober.take());
        QCOMPARE(asked.size(), std::size_t(9)); // three, then two at each visit
        for (const auto& [bytes, seconds] : prober.samples()[0].seconds)
            QCOMPARE(seconds, std::vector<double>(6, bytes));
    }

    void aLinkIsProbedOnce()
    {
        std::vector<double> pipe, again, shared;
        LinkProber prober;
        prober.add(notedPlan(pipe, 2));
        prober.add(notedPlan(again, 2));
        prober.add(notedPlan(shared, 2, "shared"));
        for (int visit = 0; visit < 4; ++visit)
            QVERIFY(prober.take());
        QVERIFY(again.empty());
        QVERIFY(!pipe.empty() && !shared.empty());
        QCOMPARE(prober.samples().size(), std::size_t(2));
        QCOMPARE(prober.samples()[1].link.id, std::string("shared"));
    }

    void whatIsNotHereIsLeftOutAndWhatEndsARunEndsIt()
    {
        LinkProber missing;
        missing.add(failingPlan("run.skipped"));
        QVERIFY(missing.take());
        QVERIFY(missing.samples()[0].seconds.empty());
        for (const char* code : {"run.cancelled", "check.failed"}) {
            LinkProber ended;
            ended.add(failingPlan(code));
            const auto taken = ended.take();
            QVERIFY(!taken);
            QCOMPARE(taken.error().code, std::string(code));
        }
    }

    /// Two processors for a second at each visit: 200 jiffies, of which this process had 100.
    void probesBesideOthersAreNotKept()
    {
        for (const double others : {0.0, 8.0, 50.0}) {
            std::vector<double> asked;
            SystemTicks now;
            LinkProber prober([&] {
                now.total += 200, now.own += 100, now.busy += 100 + others;
                return now;
            });
            prober.add(notedPlan(asked, 3));
            QVERIFY(prober.take());
            QCOMPARE(asked.size(), std::size_t(3));
            QCOMPARE(prober.samples()[0].seconds.size(), std::size_t(others > 10 ? 0 : 3));
            QCOMPARE(prober.samples()[0].disturbed, others > 10 ? 3 : 0);
        }
    }
};

QTEST_GUILESS_MAIN(TestLinkProber)
#include "tst_link_prober.moc"

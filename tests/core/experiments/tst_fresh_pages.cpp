// SPDX-License-Identifier: Apache-2.0
// Pages of a step that malloc gets anew, against what mallopt(3) says of its thresholds.
#include "core/experiments/training-memory/fresh_pages.h"

#include <QtTest>

using namespace memscape;

namespace {

constexpr std::int64_t mega = 1 << 20;

/// A step that makes these blocks, and gives them up in the order in which they were made.
double pagesOf(const std::vector<std::int64_t>& blocks)
{
    Trace trace;
    trace.allocate(8 * mega, Category::Weights);
    trace.enter(Phase::Forward);
    std::vector<BlockId> made;
    for (const std::int64_t bytes : blocks)
        made.push_back(trace.allocate(bytes, Category::Activations));
    for (const BlockId block : made)
        trace.free(block);
    return freshPagesOfStep(trace)->value();
}

} // namespace

class TestFreshPages : public QObject
{
    Q_OBJECT
private slots:
    /// DEFAULT_MMAP_THRESHOLD_MAX is 32 MiB: such a block is mapped and unmapped each time.
    void largeBlocksAreFreshInEveryStep()
    {
        const double pages = pagesOf({64 * mega});
        QVERIFY(pages >= 64 * mega / 4096 && pages <= 64 * mega / 4096 + 2);
    }

    /// Less than twice the largest mapping that was freed.
    void smallBlocksStayWithTheProgram()
    {
        QCOMPARE(pagesOf({mega}), 0.0);
        QCOMPARE(pagesOf({2 * mega, mega / 2}), 0.0);
    }

    /// M_TRIM_THRESHOLD is twice the largest mapping that was freed: a hundred blocks of 1 MiB are given back.
    void aLargeFreeEndIsGivenBack()
    {
        const double pages = pagesOf(std::vector<std::int64_t>(100, mega));
        QVERIFY(pages > 90 * 256 && pages < 101 * 256);
    }

    void aLongTraceIsNotPlayed()
    {
        Trace trace;
        trace.enter(Phase::Forward);
        for (int i = 0; i < 150000; ++i)
            trace.free(trace.allocate(1, Category::Activations));
        QVERIFY(!freshPagesOfStep(trace)->has_value());
    }
};

QTEST_GUILESS_MAIN(TestFreshPages)
#include "tst_fresh_pages.moc"

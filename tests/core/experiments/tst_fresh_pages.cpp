// SPDX-License-Identifier: Apache-2.0
// Pages of a step that malloc gets anew, against what mallopt(3) says of its thresholds.
#include "core/experiments/training-memory/fresh_pages.h"

#include "core/experiments/training-memory/training_memory.h"
#include "tests/support/asked_experiment.h"

#include <QProcess>
#include <QtTest>

#include <fmt/format.h>

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

/// What malloc_player reads.
QByteArray linesOf(const RequestTrace& trace)
{
    std::string lines;
    Phase last = Phase::Setup;
    for (const Request& request : trace.requests) {
        if (request.phase == Phase::Forward && last != Phase::Forward)
            lines += "step\n"; // the one before, or the setup
        last = request.phase;
        const bool isMade = request.kind == RequestKind::Allocate;
        lines += fmt::format("{} {}\n", request.block, isMade ? trace.blocks[request.block].bytes : 0);
    }
    return QByteArray::fromStdString(lines + "step\n");
}

/// Pages that the C library's malloc touches first, of the setup and of each step.
std::vector<double> playedByMalloc(const QByteArray& lines)
{
    QProcess player;
    player.start(MALLOC_PLAYER, {});
    player.write(lines);
    player.closeWriteChannel();
    if (!player.waitForFinished(60000) || player.exitCode() != 0)
        return {};
    std::vector<double> pages;
    for (const QByteArray& line : player.readAllStandardOutput().split('\n'))
        if (!line.isEmpty())
            pages.push_back(line.toDouble());
    return pages;
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

    /// Six steps, against glibc: the last four of each. What posix_memalign keeps for its alignment is left out.
    void aNetworksStepsTakeThePagesThatMallocTakes_data()
    {
        QTest::addColumn<QStringList>("asked");
        QTest::newRow("a decoder") << QStringList{"model=from-scratch:hidden=512,layers=4,heads=8,ffn=2048,vocab=8000",
                                                  "batch=2", "sequence=128"};
        QTest::newRow("a large vocabulary") << QStringList{
            "model=from-scratch:hidden=256,layers=2,heads=4,ffn=1024,vocab=50000", "batch=1", "sequence=64"};
        QTest::newRow("a convolutional network") << QStringList{"model=resnet18", "batch=4"};
    }
    void aNetworksStepsTakeThePagesThatMallocTakes()
    {
        QFETCH(QStringList, asked);
        std::vector<std::string> assignments{"optimizer=adamw", "precision=fp32", "advice=none"};
        for (const QString& one : asked)
            assignments.push_back(one.toStdString());
        const test::AskedExperiment memory{"training-memory"};
        const Device device = *findDevice("cpu");
        const auto answer = answerTraining(device, *standardParameters(*memory, device, assignments));
        QVERIFY(answer);
        const Trace& trace = answer->simulation.trace;
        const auto pages = playedByMalloc(linesOf(*stepsFromTheFirst(trace, 6)));
        QCOMPARE(pages.size(), std::size_t(7));
        const double counted = (pages[3] + pages[4] + pages[5] + pages[6]) / 4;
        const double found = freshPagesOfStep(trace)->value();
        QVERIFY2(std::abs(found - counted) <= 0.1 * counted, qPrintable(QString("%1 for %2").arg(found).arg(counted)));
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

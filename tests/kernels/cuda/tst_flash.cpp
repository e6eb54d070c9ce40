// SPDX-License-Identifier: Apache-2.0
// The flash-attention kernels' very code, run thread by thread on the emulated GPU and compared with
// attention in double; and mistakes planted in it, which must be noticed.
#include "kernels/cuda/attention/flash_v1.h"
#include "kernels/cuda/attention/flash_v2.h"
#include "kernels/cuda/attention/flash_v3.h"
#include "kernels/cuda/attention/flash_v4.h"
#include "kernels/cuda/attention/flash_v5.h"
#include "kernels/cuda/attention/flash_v7.h"

#include "core/timing/attention_problem.h"

#include "tests/support/forgetful_machines.h"
#include "tests/support/forward_arrays.h"

#include <QtTest>

using namespace memscape::cuda;
using namespace memscape::emulated;
using memscape::emulated::Launch;
using memscape::emulated::Machine;

namespace {

constexpr int versions = 7;

/// What a launcher must know of a version.
struct Blocks
{
    int rows, keys, threads, sharedBytes;
};

template <typename Element, int headDim> Blocks blocksOf(int version)
{
    using Two = FlashTwo<Element, headDim>;
    using Four = FlashFour<Element, headDim>;
    using Six = FlashSix<Element, headDim>;
    using Seven = FlashSeven<Element, headDim>;
    switch (version) {
    case 1:
        return {FlashOne<headDim>::rows, FlashOne<headDim>::keys, FlashOne<headDim>::threads,
                FlashOne<headDim>::sharedBytes};
    case 2:
    case 3: return {Two::rows, Two::keys, Two::threads, flashSharedBytesV2<Two>};
    case 4: return {Four::rows, Four::keys, Four::threads, flashSharedBytesV4<Four>};
    case 5: return {Four::rows, Four::keys, Four::threads, flashSharedBytesV5<Four>};
    case 6: return {Six::rows, Six::keys, Six::threads, flashSharedBytesV6<Six>};
    default: return {Seven::rows, Seven::keys, Seven::threads, flashSharedBytesV6<Seven>};
    }
}

template <typename Element, int headDim, typename AnyMachine>
void kernelOf(int version, AnyMachine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    if (version == 1)
        return flash_v1<Element, headDim>(m, s, arrays);
    if constexpr (!std::is_same_v<Element, float>) {
        switch (version) {
        case 2: return flash_v2<FlashTwo<Element, headDim>>(m, s, arrays);
        case 3: return flash_v3<FlashThree<Element, headDim>>(m, s, arrays);
        case 4: return flash_v4<FlashFour<Element, headDim>>(m, s, arrays);
        case 5: return flash_v5<FlashFive<Element, headDim>>(m, s, arrays);
        case 6: return flash_v6<FlashSix<Element, headDim>>(m, s, arrays);
        case 7: return flash_v7<FlashSeven<Element, headDim>>(m, s, arrays);
        }
    }
}

/// `kernel`: called with a machine, the sizes and the arrays.
template <typename Element, int headDim, typename Kernel>
ForwardRun runKernel(const Blocks& blocks, const AttentionSizes& sizes, Drawn kind, const Kernel& kernel,
                     bool isTuring = false)
{
    ForwardArrays<Element> forward(sizes, headDim, kind);
    Launch launch;
    launch.blocksX = over(sizes.queries, blocks.rows);
    launch.blocksY = sizes.batch * sizes.heads;
    launch.threads = blocks.threads;
    launch.sharedBytes = blocks.sharedBytes;
    launch.isTuring = isTuring;
    return forward.run(launch, [&](Machine& machine) { kernel(machine, forward.s, forward.arrays); });
}

template <typename Element, int headDim, typename AnyMachine = Machine>
ForwardRun runFlash(int version, const AttentionSizes& sizes, Drawn kind, bool isTuring = false)
{
    return runKernel<Element, headDim>(
        blocksOf<Element, headDim>(version), sizes, kind,
        [version](Machine& m, const AttentionSizes& s, const AttentionArrays& arrays) {
            kernelOf<Element, headDim>(version, static_cast<AnyMachine&>(m), s, arrays);
        },
        isTuring);
}

ForwardRun runFlash(int version, const QString& format, int headDim, const AttentionSizes& s, Drawn kind,
                    bool isTuring = false)
{
    if (format == "fp32")
        return headDim == 64 ? runFlash<float, 64>(version, s, kind) : runFlash<float, 128>(version, s, kind);
    if (format == "bf16")
        return headDim == 64 ? runFlash<Bfloat, 64>(version, s, kind) : runFlash<Bfloat, 128>(version, s, kind);
    return headDim == 64 ? runFlash<Half, 64>(version, s, kind, isTuring)
                         : runFlash<Half, 128>(version, s, kind, isTuring);
}

/// Half a step of the format times what its roundings add up to: of P, of the output.
double tolerance(const QString& format)
{
    return format == "fp32" ? 2e-5 : format == "fp16" ? 2e-3 : 1.6e-2;
}

} // namespace

Q_DECLARE_METATYPE(memscape::cuda::AttentionSizes)

class TestFlash : public QObject
{
    Q_OBJECT

private slots:
    void attendsAsInDouble_data()
    {
        QTest::addColumn<int>("version");
        QTest::addColumn<QString>("format");
        QTest::addColumn<int>("headDim");
        QTest::addColumn<AttentionSizes>("shape");
        const auto add = [](int version, const char* format, int headDim, const AttentionSizes& s) {
            QTest::addRow("v%d %s d=%d b=%d h=%d/%d n=%d/%d %s", version, format, headDim, s.batch, s.heads, s.kvHeads,
                          s.queries, s.keys, s.causal ? "causal" : "full")
                << version << format << headDim << s;
        };
        for (const bool causal : {false, true}) {
            for (const char* format : {"fp32", "fp16", "bf16"})
                add(1, format, 64, shapeOf(1, 1, 1, 77, causal));
            add(1, "fp32", 128, shapeOf(1, 2, 1, 40, causal));
            add(1, "fp32", 64, shapeOf(1, 2, 1, 33, causal, 70));
            for (int version = 2; version <= versions; ++version) {
                for (const int sequence : {1, 64, 129, 200})
                    add(version, "fp16", 64, shapeOf(1, 1, 1, sequence, causal));
                add(version, "fp16", 64, shapeOf(1, 1, 1, 3, causal, 130));
                add(version, "bf16", 64, shapeOf(2, 4, 2, 67, causal));
                add(version, "fp16", 128, shapeOf(1, 1, 1, 133, causal));
                add(version, "bf16", 128, shapeOf(1, 2, 1, 65, causal));
            }
        }
    }
    void attendsAsInDouble()
    {
        QFETCH(int, version);
        QFETCH(QString, format);
        QFETCH(int, headDim);
        QFETCH(AttentionSizes, shape);
        const ForwardRun run = runFlash(version, format, headDim, shape, Drawn::Normal);
        QVERIFY2(run.outputError < tolerance(format), qPrintable(QString::number(run.outputError)));
        QVERIFY2(run.logSumExpError < 1e-5, qPrintable(QString::number(run.logSumExpError)));
        QCOMPARE(run.untouched, std::uint64_t(0));
    }

    void extremeScoresStayFinite_data()
    {
        QTest::addColumn<int>("version");
        QTest::addColumn<int>("kind");
        for (int version = 1; version <= versions; ++version) {
            for (const Drawn kind : {Drawn::Large, Drawn::Equal, Drawn::Outliers})
                QTest::addRow("v%d kind %d", version, int(kind)) << version << int(kind);
        }
    }
    void extremeScoresStayFinite()
    {
        QFETCH(int, version);
        QFETCH(int, kind);
        for (const bool causal : {false, true}) {
            const ForwardRun run = runFlash(version, "fp16", 64, shapeOf(1, 1, 1, 70, causal), Drawn(kind));
            QVERIFY2(run.outputError < 3e-3, qPrintable(QString::number(run.outputError)));
            QVERIFY2(run.logSumExpError < 1e-5, qPrintable(QString::number(run.logSumExpError)));
        }
    }

    void turingMultipliesInHalves()
    {
        for (const int version : {2, 3}) {
            const auto run = runFlash(version, "fp16", 64, shapeOf(1, 1, 1, 100, true), Drawn::Normal, true);
            const auto whole = runFlash(version, "fp16", 64, shapeOf(1, 1, 1, 100, true), Drawn::Normal);
            QVERIFY(run.outputError < tolerance("fp16"));
            QCOMPARE(run.count.products, 2 * whole.count.products);
        }
    }

    void swizzledTilesNeverConflict_data()
    {
        QTest::addColumn<int>("version");
        QTest::addColumn<int>("headDim");
        for (int version = 3; version <= versions; ++version) {
            for (const int headDim : {64, 128})
                QTest::addRow("v%d d=%d", version, headDim) << version << headDim;
        }
    }
    void swizzledTilesNeverConflict()
    {
        QFETCH(int, version);
        QFETCH(int, headDim);
        const auto count = runFlash(version, "bf16", headDim, shapeOf(1, 1, 1, 128, false), Drawn::Normal).count;
        QVERIFY(count.matrixLoads.fewest > 0);
        QCOMPARE(count.matrixLoads.conflicts(), std::uint64_t(0));
        QCOMPARE(count.loads.conflicts(), std::uint64_t(0));
        QCOMPARE(count.stores.conflicts(), std::uint64_t(0));
        QCOMPARE(count.copies.conflicts(), std::uint64_t(0));
        QCOMPARE(count.copies.fewest > 0, version >= 4);
    }

    void plainTilesConflictEightfold()
    {
        for (const int headDim : {64, 128}) {
            const auto count = runFlash(2, "fp16", headDim, shapeOf(1, 1, 1, 64, false), Drawn::Normal).count;
            QVERIFY(count.loads.turns > 4 * count.loads.fewest);
        }
        // Version 3 on tiles that are not swizzled: every ldmatrix takes its eight rows one by one.
        using Plain = FlashTile<Half, 64, 4, 1, 64, false>;
        QCOMPARE(Plain::Layout::at(1, 0) - Plain::Layout::at(0, 0), 128U);
    }

    void readsWhatTheTilesNeed()
    {
        // 2 bytes, 64 columns, 256 rows; Q once, K and V once per block of rows; O and LSE written once.
        for (int version = 2; version <= versions; ++version) {
            const std::uint64_t rows = 256, head = rows * 64 * 2;
            const std::uint64_t blocks = version >= 6 ? 2 : 4;
            const auto run = runFlash(version, "fp16", 64, shapeOf(1, 1, 1, 256, false), Drawn::Normal);
            QCOMPARE(run.bytesRead, head + blocks * 2 * head);
            QCOMPARE(run.bytesWritten, head + rows * 4);
        }
    }

    void tilesAreAsDescribed()
    {
        const auto& described = memscape::attentionVersions(memscape::AttentionKind::Flash, true);
        for (int version = 1; version <= versions; ++version) {
            for (const int headDim : {64, 128}) {
                const Blocks blocks = headDim == 64 ? blocksOf<Half, 64>(version) : blocksOf<Half, 128>(version);
                const auto tile =
                    described.at(std::size_t(version) - 1).tile(headDim, memscape::AttentionPass::Forward);
                QCOMPARE(tile, (memscape::AttentionTile{blocks.rows, blocks.keys}));
            }
        }
    }

    void causalSkipsTilesAboveTheDiagonal()
    {
        const auto full = runFlash(5, "fp16", 64, shapeOf(1, 1, 1, 512, false), Drawn::Normal);
        const auto causal = runFlash(5, "fp16", 64, shapeOf(1, 1, 1, 512, true), Drawn::Normal);
        QCOMPARE(full.count.products, std::uint64_t(8 * 8 * 4 * (8 * 4 + 4 * 8)));
        QCOMPARE(causal.count.products * 64, full.count.products * 36); // 1 + 2 + … + 8 of 8 × 8 tiles
    }

    void aMissingWaitIsCaught()
    {
        for (int version = 4; version <= versions; ++version) {
            const QString fault = faultOf(
                [&] { return runFlash<Half, 64, WithoutWaits>(version, shapeOf(1, 1, 1, 130, false), Drawn::Normal); });
            QVERIFY2(fault.contains("has been waited for"), qPrintable(fault));
        }
    }

    void aMissingBarrierIsCaught_data()
    {
        QTest::addColumn<int>("version");
        for (int version = 1; version <= versions; ++version)
            QTest::addRow("v%d", version) << version;
    }
    void aMissingBarrierIsCaught()
    {
        QFETCH(int, version);
        const QString fault = faultOf(
            [&] { return runFlash<Half, 64, WithoutBarriers>(version, shapeOf(1, 1, 1, 130, false), Drawn::Normal); });
        QVERIFY2(fault.contains("no barrier") || fault.contains("read before"), qPrintable(fault));
    }

    void wrongFragmentsAreCaught()
    {
        const AttentionSizes s = shapeOf(1, 1, 1, 64, false);
        for (int version = 3; version <= versions; ++version) {
            QVERIFY((runFlash<Half, 64, WrongSwizzle>(version, s, Drawn::Normal).outputError) > 0.05);
            QVERIFY((runFlash<Half, 64, WithoutTransposition>(version, s, Drawn::Normal).outputError) > 0.05);
            QVERIFY((runFlash<Half, 64, WrongRow>(version, s, Drawn::Normal).outputError) > 0.02);
            QVERIFY((runFlash<Half, 64, WrongDepth>(version, s, Drawn::Normal).outputError) > 0.05);
        }
    }

    void sparingOnesChangesNoBit_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<AttentionSizes>("shape");
        for (const Drawn kind : {Drawn::Normal, Drawn::Large, Drawn::Outliers}) {
            for (const bool causal : {false, true})
                QTest::addRow("kind %d %s", int(kind), causal ? "causal" : "full")
                    << int(kind) << shapeOf(1, 1, 1, 200, causal);
        }
    }
    void sparingOnesChangesNoBit()
    {
        // Without a lag a factor is skipped only where it is 1: version 6's bits, on version 6's tiles.
        QFETCH(int, kind);
        QFETCH(AttentionSizes, shape);
        using Tile = FlashSix<Half, 64>;
        const auto always =
            runKernel<Half, 64>(blocksOf<Half, 64>(6), shape, Drawn(kind),
                                [](Machine& m, const auto& s, const auto& arrays) { flash_v6<Tile>(m, s, arrays); });
        const auto sparing =
            runKernel<Half, 64>(blocksOf<Half, 64>(6), shape, Drawn(kind),
                                [](Machine& m, const auto& s, const auto& arrays) { flash_v7<Tile>(m, s, arrays, 0); });
        QVERIFY(sparing.output == always.output && sparing.logSumExp == always.logSumExp);
        QVERIFY(sparing.count.agreements < sparing.count.votes);
    }

    void aLaggingMaximumSparesNearlyEveryTile()
    {
        // 2 blocks of 4 warps over 4 tiles. The first tile rescales what is 0; after it, normally
        // distributed scores do not rise by eight powers of two, and ones a hundred times as large do.
        const AttentionSizes shape = shapeOf(1, 1, 1, 256, false);
        const auto calm = runFlash(7, "bf16", 64, shape, Drawn::Normal).count;
        const auto wild = runFlash(7, "bf16", 64, shape, Drawn::Large).count;
        QCOMPARE(calm.votes, std::uint64_t(2 * 4 * 4));
        QCOMPARE(calm.agreements, std::uint64_t(2 * 4));
        QVERIFY(wild.agreements > calm.agreements);
    }

    void anUnheardVoteIsCaught()
    {
        const auto run = runFlash<Half, 64, WithoutVotes>(7, shapeOf(1, 1, 1, 130, false), Drawn::Normal);
        QVERIFY(run.outputError > 0.05);
    }

    void aMaskOffByOneIsCaught()
    {
        // What a kernel computes that lets a row see one key too few or too many, against the mask.
        AttentionSizes s = shapeOf(1, 1, 1, 65, true);
        s.headDim = 64;
        s.scale = 0.125F;
        const auto q = drawn(Drawn::Normal, 65 * 64, 64, 1), k = drawn(Drawn::Normal, 65 * 64, 64, 2),
                   v = drawn(Drawn::Normal, 65 * 64, 64, 3);
        const auto exact = exactAttention(s, q, k, v).output;
        std::vector<double> shorter(q.begin() + 64, q.end()); // rows 1 … as rows 0 …: one key fewer
        AttentionSizes less = s;
        less.queries = less.keys = 64;
        const auto shifted = exactAttention(less, shorter, k, v).output;
        const std::vector<double> same(exact.begin() + 64, exact.end());
        QVERIFY(worstError(std::vector<float>(shifted.begin(), shifted.end()), same) > 0.05);
        QVERIFY(!sees(s, 10, 11) && sees(s, 10, 10) && !sees(s, 64, 65));
        QVERIFY(seesAll(s, 63, 0, 64) && !seesAll(s, 62, 0, 64) && !seesAll(s, 64, 64, 64));
    }

    void aTailBeyondTheEndIsCaught()
    {
        // A kernel given one row more than the arrays have.
        const Array<Half> rows(drawn(Drawn::Normal, 64 * 64, 64, 1));
        auto output = poisoned<Half>(64 * 64);
        for (int version = 2; version <= versions; ++version) {
            GlobalMemory memory;
            memory.readable("Q, K and V", rows.elements.data(), rows.bytes());
            memory.writable("O", output.data(), output.size() * 2);
            AttentionArrays arrays;
            arrays.query = arrays.key = arrays.value = rows.elements.data();
            arrays.output = output.data();
            AttentionSizes s = shapeOf(1, 1, 1, 65, false);
            const Blocks blocks = blocksOf<Half, 64>(version);
            Launch launch;
            launch.blocksX = over(65, blocks.rows);
            launch.sharedBytes = blocks.sharedBytes;
            const QString fault = faultOf([&]() -> ForwardRun {
                memscape::emulated::run(launch, memory, [&](Machine& m) { kernelOf<Half, 64>(version, m, s, arrays); });
                return {};
            });
            QVERIFY2(fault.contains("outside every array"), qPrintable(fault));
        }
    }
};

QTEST_APPLESS_MAIN(TestFlash)
#include "tst_flash.moc"

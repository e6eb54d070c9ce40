// SPDX-License-Identifier: Apache-2.0
// The gradients of flash attention, thread by thread on the emulated GPU, compared with gradients in
// double; and mistakes planted in them, which must be noticed.
#include "kernels/cuda/attention/flash_backward.h"

#include "core/timing/attention_problem.h"

#include "tests/support/forgetful_machines.h"
#include "tests/support/gradient_arrays.h"

#include <QtTest>

using namespace memscape::cuda;
using namespace memscape::emulated;
using memscape::emulated::Launch;
using memscape::emulated::Machine;

namespace {

struct BackwardRun
{
    LaunchCount delta, keys, queries;
    double deltaError = 0, queryError = 0, keyError = 0, valueError = 0;
    std::uint64_t untouched = 0;
    double worst() const { return std::max({queryError, keyError, valueError}); }
};

template <typename Keys, typename Queries, typename AnyMachine> BackwardRun runTiles(AttentionSizes sizes, Drawn kind)
{
    using Element = typename Keys::Element;
    constexpr int headDim = Keys::headDim;
    sizes.headDim = headDim;
    Gradients<Element> g(sizes, kind);
    const AttentionSizes& s = g.s;
    const AttentionArrays arrays = g.arrays();
    BackwardRun run;
    Launch launch;
    {
        GlobalMemory memory;
        g.readInputs(memory);
        g.writes(memory, "delta", g.delta);
        launch.blocksX = over(s.batch * s.heads * s.queries, deltaThreads / 32);
        launch.threads = deltaThreads;
        launch.sharedBytes = 0;
        run.delta = memscape::emulated::run(
            launch, memory, [&](Machine& m) { flashDelta<Element, headDim>(static_cast<AnyMachine&>(m), s, arrays); });
        run.untouched += memory.elementsUntouched();
    }
    {
        GlobalMemory memory;
        g.readInputs(memory);
        memory.readable("delta", g.delta.data(), g.delta.size() * 4);
        g.writes(memory, "dK", g.keyGradient);
        g.writes(memory, "dV", g.valueGradient);
        launch.blocksX = over(s.keys, Keys::keys);
        launch.blocksY = s.batch * s.kvHeads;
        launch.threads = Keys::threads;
        launch.sharedBytes = Keys::sharedBytes;
        run.keys = memscape::emulated::run(
            launch, memory, [&](Machine& m) { gradientsOfKeys<Keys>(static_cast<AnyMachine&>(m), s, arrays); });
        run.untouched += memory.elementsUntouched();
    }
    {
        GlobalMemory memory;
        g.readInputs(memory);
        memory.readable("delta", g.delta.data(), g.delta.size() * 4);
        g.writes(memory, "dQ", g.queryGradient);
        launch.blocksX = over(s.queries, Queries::rows);
        launch.blocksY = s.batch * s.heads;
        launch.threads = Queries::threads;
        launch.sharedBytes = flashSharedBytesOfQueries<Queries>;
        run.queries = memscape::emulated::run(
            launch, memory, [&](Machine& m) { gradientsOfQueries<Queries>(static_cast<AnyMachine&>(m), s, arrays); });
        run.untouched += memory.elementsUntouched();
    }
    run.deltaError = worstError(g.delta, g.exact.delta);
    run.queryError = worstError(g.queryGradient, g.exact.queryGradient);
    run.keyError = worstError(g.keyGradient, g.exact.keyGradient);
    run.valueError = worstError(g.valueGradient, g.exact.valueGradient);
    return run;
}

template <typename Element, int headDim, typename AnyMachine = Machine>
BackwardRun runBackward(bool isWide, const AttentionSizes& s, Drawn kind)
{
    if (isWide)
        return runTiles<WideKeysTile<Element, headDim>, WideQueriesTile<Element, headDim>, AnyMachine>(s, kind);
    return runTiles<NarrowKeysTile<Element, headDim>, NarrowQueriesTile<Element, headDim>, AnyMachine>(s, kind);
}

BackwardRun runBackward(bool isWide, const QString& format, const AttentionSizes& s, Drawn kind)
{
    if (format == "bf16")
        return s.headDim == 64 ? runBackward<Bfloat, 64>(isWide, s, kind) : runBackward<Bfloat, 128>(isWide, s, kind);
    return s.headDim == 64 ? runBackward<Half, 64>(isWide, s, kind) : runBackward<Half, 128>(isWide, s, kind);
}

} // namespace

Q_DECLARE_METATYPE(memscape::cuda::AttentionSizes)

/// Turns of the banks for matrices and copies that 64 rows × 64 keys more ask for, in both passes.
template <typename Keys, typename Queries> double clocksOfSquare()
{
    const auto turns = [](const LaunchCount& count) { return double(count.matrixLoads.turns + count.copies.turns); };
    const auto run = [](int queries, int keys) {
        return runTiles<Keys, Queries, Machine>(sizesOf(1, 1, 1, queries, keys, Keys::headDim, false), Drawn::Normal);
    };
    const double ofKeys = turns(run(2 * Keys::queries, Keys::keys).keys) - turns(run(Keys::queries, Keys::keys).keys);
    const double ofQueries =
        turns(run(Queries::rows, 2 * Queries::keys).queries) - turns(run(Queries::rows, Queries::keys).queries);
    return 64 * 64 * (ofKeys / (Keys::queries * Keys::keys) + ofQueries / (Queries::rows * Queries::keys));
}

template <typename Keys> memscape::AttentionTile tileOf()
{
    return {Keys::queries, Keys::keys};
}

class TestFlashBackward : public QObject
{
    Q_OBJECT

private slots:
    void gradientsAreAsInDouble_data()
    {
        QTest::addColumn<bool>("isWide");
        QTest::addColumn<QString>("format");
        QTest::addColumn<AttentionSizes>("sizes");
        const auto add = [](const char* format, const AttentionSizes& s) {
            for (const bool isWide : {false, true})
                QTest::addRow("%s %s d=%d b=%d h=%d/%d n=%d/%d %s", isWide ? "wide" : "narrow", format, s.headDim,
                              s.batch, s.heads, s.kvHeads, s.queries, s.keys, s.causal ? "causal" : "full")
                    << isWide << format << s;
        };
        for (const bool causal : {false, true}) {
            for (const int headDim : {64, 128}) {
                add("fp16", sizesOf(1, 1, 1, 1, 1, headDim, causal));
                add("fp16", sizesOf(1, 1, 1, 64, 64, headDim, causal));
                add("fp16", sizesOf(1, 1, 1, 131, 131, headDim, causal));
                add("bf16", sizesOf(2, 4, 2, 67, 67, headDim, causal));
                add("fp16", sizesOf(1, 2, 1, 5, 131, headDim, causal));
                add("bf16", sizesOf(1, 1, 1, 77, 131, headDim, causal));
            }
        }
        add("fp16", sizesOf(1, 2, 1, 131, 7, 64, false));
    }
    void gradientsAreAsInDouble()
    {
        QFETCH(bool, isWide);
        QFETCH(QString, format);
        QFETCH(AttentionSizes, sizes);
        const BackwardRun run = runBackward(isWide, format, sizes, Drawn::Normal);
        const double allowed = format == "fp16" ? 3e-3 : 2.4e-2;
        QVERIFY2(run.deltaError < allowed, qPrintable(QString::number(run.deltaError)));
        QVERIFY2(run.queryError < allowed || sizes.keys == 1,
                 qPrintable(QString::number(run.queryError))); // one key: dQ is a rounding of zero
        QVERIFY2(run.keyError < allowed || sizes.keys == 1, qPrintable(QString::number(run.keyError)));
        QVERIFY2(run.valueError < allowed, qPrintable(QString::number(run.valueError)));
        QVERIFY(run.queryError < 1e9 && run.keyError < 1e9);
        QCOMPARE(run.untouched, std::uint64_t(0));
    }

    void extremeScoresStayFinite_data()
    {
        QTest::addColumn<bool>("isWide");
        QTest::addColumn<int>("kind");
        for (const bool isWide : {false, true}) {
            for (const Drawn kind : {Drawn::Large, Drawn::Equal, Drawn::Outliers})
                QTest::addRow("%s kind %d", isWide ? "wide" : "narrow", int(kind)) << isWide << int(kind);
        }
    }
    void extremeScoresStayFinite()
    {
        QFETCH(bool, isWide);
        QFETCH(int, kind);
        for (const bool causal : {false, true}) {
            const BackwardRun run = runBackward(isWide, "fp16", sizesOf(1, 1, 1, 70, 70, 64, causal), Drawn(kind));
            // Where one key takes a whole row, or all are alike, dQ and dK are differences that cancel:
            // what is left is the rounding of O, in delta. They are held to its size elsewhere.
            // Scores of millions are known in float to some hundredths, and P to as much.
            const double allowed = Drawn(kind) == Drawn::Outliers ? 0.1 : 3e-3;
            QVERIFY2(run.valueError < allowed, qPrintable(QString::number(run.valueError)));
            QVERIFY(std::isfinite(run.worst()));
        }
    }

    void nothingConflicts()
    {
        for (const auto& [isWide, headDim] :
             {std::pair(false, 64), std::pair(false, 128), std::pair(true, 64), std::pair(true, 128)}) {
            const BackwardRun run =
                runBackward(isWide, "fp16", sizesOf(1, 1, 1, 128, 128, headDim, true), Drawn::Normal);
            for (const LaunchCount& count : {run.keys, run.queries}) {
                QVERIFY(count.matrixLoads.fewest > 0 && count.copies.fewest > 0);
                QCOMPARE(count.matrixLoads.conflicts(), std::uint64_t(0));
                QCOMPARE(count.copies.conflicts(), std::uint64_t(0));
                QCOMPARE(count.loads.conflicts(), std::uint64_t(0));
                QCOMPARE(count.stores.conflicts(), std::uint64_t(0));
            }
        }
    }

    void sevenProductsInAll()
    {
        // A product of n × n × d is n² d / (16 × 8 × 16) instructions; tiles of 64 × 48 divide 384.
        const std::uint64_t product = 384 * 384 * 64 / (16 * 8 * 16);
        for (const bool isWide : {false, true}) {
            const BackwardRun run = runBackward(isWide, "fp16", sizesOf(1, 1, 1, 384, 384, 64, false), Drawn::Normal);
            QCOMPARE(run.keys.products, 4 * product);
            QCOMPARE(run.queries.products, 3 * product);
        }
    }

    void wideTilesLoadLess()
    {
        // Turns of the banks for matrices, per product: the counts of flash_backward.h, where a load of
        // four matrices is four turns.
        const AttentionSizes s = sizesOf(1, 1, 1, 128, 128, 128, false);
        const auto turnsPerProduct = [](const LaunchCount& count) {
            return double(count.matrixLoads.turns) / double(count.products);
        };
        const BackwardRun narrow = runBackward(false, "fp16", s, Drawn::Normal);
        const BackwardRun wide = runBackward(true, "fp16", s, Drawn::Normal);
        QCOMPARE(turnsPerProduct(narrow.keys), 4 * 80.0 / 128);
        QCOMPARE(turnsPerProduct(narrow.queries), 4 * 112.0 / 192);
        QCOMPARE(turnsPerProduct(wide.keys), 4 * 144.0 / 256);
        QCOMPARE(turnsPerProduct(wide.queries), 4 * 80.0 / 192);
    }

    void sharedMemoryIsAskedForAsPredicted()
    {
        const auto predicted = [](int version, int headDim) {
            return memscape::attentionVersions(memscape::AttentionKind::Flash, true)
                .at(std::size_t(version) - 1)
                .backwardClocks(headDim);
        };
        const double narrow64 = clocksOfSquare<NarrowKeysTile<Half, 64>, NarrowQueriesTile<Half, 64>>(),
                     narrow128 = clocksOfSquare<NarrowKeysTile<Half, 128>, NarrowQueriesTile<Half, 128>>(),
                     wide64 = clocksOfSquare<WideKeysTile<Half, 64>, WideQueriesTile<Half, 64>>(),
                     wide128 = clocksOfSquare<WideKeysTile<Half, 128>, WideQueriesTile<Half, 128>>();
        for (int version = 4; version < onePassBackward; ++version) {
            const bool isWide = version >= firstWideBackward;
            QCOMPARE(predicted(version, 64), isWide ? wide64 : narrow64);
            QCOMPARE(predicted(version, 128), isWide ? wide128 : narrow128);
        }
    }

    void tilesAreAsDescribed()
    {
        const auto& described = memscape::attentionVersions(memscape::AttentionKind::Flash, true);
        for (int version = 4; version <= firstWideBackward; ++version) {
            const auto tile = [&](int headDim) {
                return described.at(std::size_t(version) - 1).tile(headDim, memscape::AttentionPass::Backward);
            };
            const bool isWide = version >= firstWideBackward;
            QCOMPARE(tile(64), isWide ? (tileOf<WideKeysTile<Half, 64>>()) : (tileOf<NarrowKeysTile<Half, 64>>()));
            QCOMPARE(tile(128), isWide ? (tileOf<WideKeysTile<Half, 128>>()) : (tileOf<NarrowKeysTile<Half, 128>>()));
        }
    }

    void mistakesAreCaught()
    {
        const AttentionSizes s = sizesOf(1, 1, 1, 130, 130, 64, false);
        for (const bool isWide : {false, true}) {
            QVERIFY(faultOf([&] {
                        runBackward<Half, 64, WithoutWaits>(isWide, s, Drawn::Normal);
                    }).contains("has been waited for"));
            QVERIFY(faultOf([&] {
                        runBackward<Half, 64, WithoutBarriers>(isWide, s, Drawn::Normal);
                    }).contains("no barrier"));
            QVERIFY((runBackward<Half, 64, WithoutTransposition>(isWide, s, Drawn::Normal).worst()) > 0.05);
        }
    }
};

QTEST_APPLESS_MAIN(TestFlashBackward)
#include "tst_flash_backward.moc"

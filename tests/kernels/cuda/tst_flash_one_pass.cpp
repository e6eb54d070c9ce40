// SPDX-License-Identifier: Apache-2.0
// The gradients of flash attention in one pass, thread by thread on the emulated GPU, compared with
// gradients in double; what they ask of shared memory and of the sums of dQ; and mistakes planted
// in them, which must be noticed.
#include "kernels/cuda/attention/flash_one_pass.h"

#include "core/timing/attention_problem.h"

#include "tests/support/forgetful_machines.h"
#include "tests/support/gradient_arrays.h"

#include <QtTest>

#include <array>
#include <map>

using namespace memscape::cuda;
using namespace memscape::emulated;
using memscape::emulated::Launch;
using memscape::emulated::Machine;

namespace {

struct OnePassRun
{
    LaunchCount tiles;
    std::uint64_t bytesWritten = 0, untouched = 0; ///< bytes: by the tiles' kernel
    std::vector<float> sums;                       ///< of dQ, in their own order
    std::vector<double> keyGradient, valueGradient;
    double queryError = 0, keyError = 0, valueError = 0;
    double worst() const { return std::max({queryError, keyError, valueError}); }
};

template <typename Element> std::vector<double> valuesOf(const std::vector<Element>& elements)
{
    std::vector<double> values;
    for (const Element element : elements)
        values.push_back(double(toFloat(element)));
    return values;
}

template <typename Tile, typename AnyMachine = Machine, bool clears = true>
OnePassRun runTile(AttentionSizes sizes, Drawn kind = Drawn::Normal)
{
    using Element = typename Tile::Element;
    constexpr int headDim = Tile::headDim;
    sizes.headDim = headDim;
    Gradients<Element> g(sizes, kind);
    const AttentionSizes& s = g.s;
    OnePassRun run;
    run.sums = poisoned<float>(g.queryGradient.size());
    AttentionArrays arrays = g.arrays();
    arrays.queryGradientSums = run.sums.data();
    const int rows = s.batch * s.heads * s.queries;
    Launch launch;
    {
        GlobalMemory memory;
        g.readInputs(memory);
        g.writes(memory, "delta", g.delta);
        g.writes(memory, "sums of dQ", run.sums);
        launch.blocksX = over(rows, deltaThreads / 32);
        launch.threads = deltaThreads;
        launch.sharedBytes = 0;
        memscape::emulated::run(launch, memory, [&](Machine& m) {
            flashDelta<Element, headDim, clears>(static_cast<AnyMachine&>(m), s, arrays);
        });
        run.untouched += memory.elementsUntouched();
    }
    {
        GlobalMemory memory;
        g.readInputs(memory);
        memory.readable("delta", g.delta.data(), g.delta.size() * 4);
        g.writes(memory, "sums of dQ", run.sums);
        g.writes(memory, "dK", g.keyGradient);
        g.writes(memory, "dV", g.valueGradient);
        launch.blocksX = over(s.keys, Tile::keys);
        launch.blocksY = s.batch * s.kvHeads;
        launch.threads = Tile::threads;
        launch.sharedBytes = Tile::sharedBytes;
        run.tiles = memscape::emulated::run(
            launch, memory, [&](Machine& m) { gradientsInOnePass<Tile>(static_cast<AnyMachine&>(m), s, arrays); });
        run.bytesWritten = memory.bytesWritten;
        run.untouched += memory.elementsUntouched();
    }
    {
        GlobalMemory memory;
        memory.readable("sums of dQ", run.sums.data(), run.sums.size() * 4);
        g.writes(memory, "dQ", g.queryGradient);
        launch.blocksX = over(rows * (headDim / sumsTogether), roundThreads);
        launch.blocksY = 1;
        launch.threads = roundThreads;
        launch.sharedBytes = 0;
        memscape::emulated::run(launch, memory, [&](Machine& m) {
            roundQueryGradient<Element, headDim>(static_cast<AnyMachine&>(m), s, arrays);
        });
        run.untouched += memory.elementsUntouched();
    }
    run.queryError = worstError(g.queryGradient, g.exact.queryGradient);
    run.keyError = worstError(g.keyGradient, g.exact.keyGradient);
    run.valueError = worstError(g.valueGradient, g.exact.valueGradient);
    run.keyGradient = valuesOf(g.keyGradient);
    run.valueGradient = valuesOf(g.valueGradient);
    return run;
}

template <typename Element> OnePassRun runOnePass(bool isSmall, const AttentionSizes& s, Drawn kind)
{
    if (s.headDim == 64)
        return isSmall ? runTile<SmallOnePassTile<Element, 64>>(s, kind)
                       : runTile<LargeOnePassTile<Element, 64>>(s, kind);
    return isSmall ? runTile<SmallOnePassTile<Element, 128>>(s, kind)
                   : runTile<LargeOnePassTile<Element, 128>>(s, kind);
}

/// The blocks in the other order.
struct FromTheEnd : Machine
{
    int blockX() const { return blocksX() - 1 - Machine::blockX(); }
};

/// One of a turn's three barriers is forgotten by all threads.
template <int which> struct WithoutBarrier : Machine
{
    static inline std::map<int, int> met; ///< by thread
    void syncThreads()
    {
        if (met[thread()]++ % 3 != which)
            Machine::syncThreads();
    }
};

using Short = LargeOnePassTile<Half, 64>;

} // namespace

Q_DECLARE_METATYPE(memscape::cuda::AttentionSizes)

class TestFlashOnePass : public QObject
{
    Q_OBJECT

private slots:
    void gradientsAreAsInDouble_data()
    {
        QTest::addColumn<bool>("isSmall");
        QTest::addColumn<QString>("format");
        QTest::addColumn<AttentionSizes>("sizes");
        const auto add = [](const char* format, const AttentionSizes& s) {
            for (const bool isSmall : {false, true})
                QTest::addRow("%s %s d=%d b=%d h=%d/%d n=%d/%d %s", isSmall ? "small" : "large", format, s.headDim,
                              s.batch, s.heads, s.kvHeads, s.queries, s.keys, s.causal ? "causal" : "full")
                    << isSmall << format << s;
        };
        for (const bool causal : {false, true}) {
            for (const int headDim : {64, 128}) {
                add("fp16", sizesOf(1, 1, 1, 1, 1, headDim, causal));
                add("fp16", sizesOf(1, 1, 1, 64, 128, headDim, causal));
                add("fp16", sizesOf(1, 1, 1, 131, 131, headDim, causal));
                add("bf16", sizesOf(2, 4, 2, 67, 67, headDim, causal));
                add("fp16", sizesOf(1, 2, 1, 5, 259, headDim, causal));
                add("bf16", sizesOf(1, 1, 1, 77, 131, headDim, causal));
            }
        }
        add("fp16", sizesOf(1, 2, 1, 131, 7, 64, false));
    }
    void gradientsAreAsInDouble()
    {
        QFETCH(bool, isSmall);
        QFETCH(QString, format);
        QFETCH(AttentionSizes, sizes);
        const OnePassRun run = format == "fp16" ? runOnePass<Half>(isSmall, sizes, Drawn::Normal)
                                                : runOnePass<Bfloat>(isSmall, sizes, Drawn::Normal);
        const double allowed = format == "fp16" ? 3e-3 : 2.4e-2;
        const auto text = QString("dQ %1, dK %2, dV %3").arg(run.queryError).arg(run.keyError).arg(run.valueError);
        QVERIFY2(run.queryError < allowed || sizes.keys == 1,
                 qPrintable(text));                                            // one key: dQ and dK are
        QVERIFY2(run.keyError < allowed || sizes.keys == 1, qPrintable(text)); // the rounding of zero
        QVERIFY2(run.valueError < allowed, qPrintable(text));
        QVERIFY2(std::isfinite(run.worst()), qPrintable(text));
        QCOMPARE(run.untouched, std::uint64_t(0));
    }

    void extremeScoresStayFinite()
    {
        for (const Drawn kind : {Drawn::Large, Drawn::Equal, Drawn::Outliers}) {
            for (const bool causal : {false, true}) {
                const OnePassRun run = runTile<Short>(sizesOf(1, 1, 1, 70, 70, 64, causal), kind);
                // As in tst_flash_backward: scores of millions are known in float to some hundredths.
                const double allowed = kind == Drawn::Outliers ? 0.1 : 3e-3;
                QVERIFY2(run.valueError < allowed, qPrintable(QString::number(run.valueError)));
                QVERIFY(std::isfinite(run.worst()));
            }
        }
    }

    void onlyTheQuerysGradientDependsOnTheOrder()
    {
        const AttentionSizes s = sizesOf(1, 1, 1, 64, 3 * Short::keys, 64, false);
        const OnePassRun forwards = runTile<Short>(s), backwards = runTile<Short, FromTheEnd>(s);
        QVERIFY(forwards.sums != backwards.sums); // three roundings in another order
        QVERIFY(forwards.queryError < 3e-3 && backwards.queryError < 3e-3);
        QVERIFY(forwards.keyGradient == backwards.keyGradient);
        QVERIFY(forwards.valueGradient == backwards.valueGradient);
    }

    void nothingConflicts()
    {
        for (const auto& [isSmall, headDim] :
             {std::pair(false, 64), std::pair(true, 64), std::pair(false, 128), std::pair(true, 128)}) {
            const LaunchCount count =
                runOnePass<Half>(isSmall, sizesOf(1, 1, 1, 128, 128, headDim, true), Drawn::Normal).tiles;
            QVERIFY(count.matrixLoads.fewest > 0 && count.copies.fewest > 0 && count.stores.fewest > 0);
            QCOMPARE(count.matrixLoads.conflicts(), std::uint64_t(0));
            QCOMPARE(count.copies.conflicts(), std::uint64_t(0));
            QCOMPARE(count.loads.conflicts(), std::uint64_t(0));
            QCOMPARE(count.stores.conflicts(), std::uint64_t(0));
        }
    }

    void fiveProductsInAll()
    {
        const std::uint64_t product = 256 * 256 * 64 / (16 * 8 * 16); // instructions for n × n × d
        QCOMPARE(runTile<Short>(sizesOf(1, 1, 1, 256, 256, 64, false)).tiles.products, 5 * product);
    }

    void sharedMemoryIsAskedForAsDescribed()
    {
        // What a turn more asks, for 64 rows × 64 keys: the table of flash_one_pass.h. Log-sum-exp and
        // delta, which it leaves out, are four stores a turn for 64 rows.
        const auto turn = [](const LaunchCount& once, const LaunchCount& twice, double squares) {
            return std::array{double(twice.matrixLoads.turns - once.matrixLoads.turns) / squares,
                              double(twice.stores.turns - once.stores.turns) / squares,
                              double(twice.copies.turns - once.copies.turns) / squares};
        };
        const auto asked = [&]<typename Tile>(const Tile&) {
            const auto run = [](int queries) {
                return runTile<Tile>(sizesOf(1, 1, 1, queries, Tile::keys, Tile::headDim, false)).tiles;
            };
            const double squares = Tile::queries / 64.0 * Tile::keys / 64.0;
            auto counts = turn(run(Tile::queries), run(2 * Tile::queries), squares);
            counts[1] -= 4 * Tile::queries / 64 / squares;
            return counts;
        };
        using Counts = std::array<double, 3>;
        QVERIFY((asked(LargeOnePassTile<Half, 128>()) == Counts{2304, 128, 128}));
        QVERIFY((asked(SmallOnePassTile<Half, 128>()) == Counts{2176, 128, 256}));
        QVERIFY((asked(LargeOnePassTile<Half, 64>()) == Counts{1152, 128, 64}));
        QVERIFY((asked(SmallOnePassTile<Half, 64>()) == Counts{1408, 128, 64}));
    }

    void additionsAreAsDescribed()
    {
        const OnePassRun run = runTile<Short>(sizesOf(1, 2, 1, 192, 256, 64, false));
        const std::uint64_t additions = 4 * (2 * 192 * 64) * (256 / Short::keys), keys = 2 * 256 * 64 * 2;
        QCOMPARE(run.bytesWritten, additions + keys);
    }

    void tilesAreAsDescribed()
    {
        const auto& version = memscape::attentionVersions(memscape::AttentionKind::Flash, true).at(onePassBackward - 1);
        QCOMPARE(version.number, onePassBackward);
        const auto tile = [&](int headDim) { return version.tile(headDim, memscape::AttentionPass::Backward); };
        QCOMPARE(tile(64), (memscape::AttentionTile{Short::queries, Short::keys}));
        using Long = LargeOnePassTile<Half, 128>;
        QCOMPARE(tile(128), (memscape::AttentionTile{Long::queries, Long::keys}));
        QCOMPARE(version.backwardClocks(64), 1152.0 + 128 + 64);
        QCOMPARE(version.backwardClocks(128), 2304.0 + 128 + 128);
    }

    void mistakesAreCaught()
    {
        const AttentionSizes s = sizesOf(1, 1, 1, 130, 130, 64, false);
        QVERIFY(faultOf([&] { runTile<Short, WithoutWaits>(s); }).contains("has been waited for"));
        QVERIFY(faultOf([&] { runTile<Short, WithoutBarriers>(s); }).contains("no barrier"));
        QVERIFY(faultOf([&] { runTile<Short, WithoutBarrier<0>>(s); }).contains("no barrier"));
        QVERIFY(faultOf([&] { runTile<Short, WithoutBarrier<1>>(s); }).contains("no barrier"));
        QVERIFY(faultOf([&] { runTile<Short, WithoutBarrier<2>>(s); }).contains("other threads may still read"));
        QVERIFY((runTile<Short, WithoutTransposition>(s).worst()) > 0.05);
        const OnePassRun uncleared = runTile<Short, Machine, false>(s);
        QVERIFY(uncleared.untouched > 0 && !(uncleared.queryError < 1e9));
    }
};

QTEST_APPLESS_MAIN(TestFlashOnePass)
#include "tst_flash_one_pass.moc"

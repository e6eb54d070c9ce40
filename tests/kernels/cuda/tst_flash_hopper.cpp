// SPDX-License-Identifier: Apache-2.0
// Version 8 of flash attention, its very code on the emulated Hopper: compared with attention in
// double over shapes with odd ends, groups and masks; and mistakes planted in it, which must be named.
#include "kernels/cuda/attention/flash_hopper.h"

#include "tests/support/forgetful_machines.h"
#include "tests/support/forward_arrays.h"
#include "tests/support/hopper_emulator.h"

#include <QtTest>

using namespace memscape::cuda;
using namespace memscape::emulated;
using memscape::emulated::Launch;

Q_DECLARE_METATYPE(memscape::cuda::AttentionSizes)

namespace {

template <typename Element, int headDim, typename AnyMachine = HopperMachine>
ForwardRun attend(const AttentionSizes& sizes, Drawn kind = Drawn::Normal)
{
    using Tile = FlashHopper<Element, headDim>;
    ForwardArrays<Element> forward(sizes, headDim, kind);
    const AttentionSizes& s = forward.s;
    const AttentionArrays& arrays = forward.arrays;
    const TileMap query = queryMap<Tile>(s, arrays.query, false), key = keyMap<Tile>(s, arrays.key, false),
                  value = keyMap<Tile>(s, arrays.value, false);
    Launch launch;
    launch.blocksX = over(s.queries, Tile::rows);
    launch.blocksY = s.batch * s.heads;
    launch.threads = Tile::threads;
    launch.sharedBytes = Tile::sharedBytes;
    return forward.run(launch, [&](Machine& machine) {
        flash_v8<Tile>(static_cast<AnyMachine&>(machine), s, arrays, query, key, value);
    });
}

ForwardRun attend(const QString& format, int headDim, const AttentionSizes& s)
{
    if (format == "bf16")
        return headDim == 64 ? attend<Bfloat, 64>(s) : attend<Bfloat, 128>(s);
    return headDim == 64 ? attend<Half, 64>(s) : attend<Half, 128>(s);
}

/// The error of a machine with a mistake; "wrong" where only the numbers show it.
template <typename AnyMachine, int sequence = 390> QString faultWith()
{
    double error = 0;
    const QString fault =
        faultOf([&] { error = attend<Half, 128, AnyMachine>(shapeOf(1, 1, 1, sequence, false)).outputError; });
    return fault.isEmpty() && error > 0.02 ? QString("wrong") : fault;
}

// ---- machines with a mistake ------------------------------------------------------------------

struct WithoutFence : HopperMachine
{
    void fenceRegisters() { }
};
struct WithoutProductWait : HopperMachine
{
    template <int pending> void waitForProducts() { }
};
struct WaitsForOneFewer : HopperMachine
{
    template <int pending> void waitForProducts() { HopperMachine::waitForProducts<pending + 1>(); }
};
struct ReadsScoresTooEarly : HopperMachine
{
    template <int pending> void waitForProducts()
    {
        if (pending == 0)
            HopperMachine::waitForProducts<0>();
    }
};
struct WithoutCommit : HopperMachine
{
    void commitProducts() { }
};
struct WithoutBarrierWait : HopperMachine
{
    void waitBarrier(std::uint32_t, std::uint32_t) { }
};
struct OneLaneWaits : HopperMachine
{
    void waitBarrier(std::uint32_t at, std::uint32_t parity)
    {
        if (thread() % 32 == 0)
            HopperMachine::waitBarrier(at, parity);
    }
};
/// The fetching thread does not wait until a stage was read.
struct FetchesTooEarly : HopperMachine
{
    void waitBarrier(std::uint32_t at, std::uint32_t parity)
    {
        if (thread() < 256)
            HopperMachine::waitBarrier(at, parity);
    }
};
struct WrongParity : HopperMachine
{
    void waitBarrier(std::uint32_t at, std::uint32_t parity)
    {
        HopperMachine::waitBarrier(at, thread() < 256 ? parity ^ 1 : parity);
    }
};
struct GivesBackNothing : HopperMachine
{
    void arrive(std::uint32_t) { }
};
struct GivesBackTwice : HopperMachine
{
    void arrive(std::uint32_t at)
    {
        HopperMachine::arrive(at);
        HopperMachine::arrive(at);
    }
};
struct ExpectsFewerBytes : HopperMachine
{
    void arriveExpecting(std::uint32_t at, std::uint32_t bytes) { HopperMachine::arriveExpecting(at, bytes / 2); }
};
struct ExpectsMoreBytes : HopperMachine
{
    void arriveExpecting(std::uint32_t at, std::uint32_t bytes) { HopperMachine::arriveExpecting(at, bytes + 16); }
};
struct Unpublished : HopperMachine
{
    void publishBarriers() { }
};
struct WithoutBlockBarrier : HopperMachine
{
    void syncThreads() { }
};
struct NeverPassesTheTurn : HopperMachine
{
    void arriveNamed(int, int) { }
};
struct TakesTooManyRegisters : HopperMachine
{
    template <int registers> void takeRegisters() { HopperMachine::takeRegisters<registers + 16>(); }
};
struct WithoutSwizzle : HopperMachine
{
    std::uint64_t matrix(std::uint32_t at, std::uint32_t leading, std::uint32_t stride) const
    {
        return HopperMachine::matrix(at, leading, stride) & ~(std::uint64_t(3) << 62);
    }
};
struct WrongStride : HopperMachine
{
    std::uint64_t matrix(std::uint32_t at, std::uint32_t leading, std::uint32_t) const
    {
        return HopperMachine::matrix(at, leading, 512);
    }
};
/// Of V alone: K's is not used.
struct WrongLeading : HopperMachine
{
    std::uint64_t matrix(std::uint32_t at, std::uint32_t leading, std::uint32_t stride) const
    {
        return HopperMachine::matrix(at, leading == 16 ? leading : 1024, stride);
    }
};
struct BoxesOneRowOff : HopperMachine
{
    void copyBox(std::uint32_t to, const TileMap& map, int column, int row, int plane, std::uint32_t there)
    {
        HopperMachine::copyBox(to, map, column, row + 1, plane, there);
    }
};
struct ForgetsToShrink : HopperMachine
{
    float powerOfTwo(float x) { return x < 0 && x > -0.5F ? 1.0F : HopperMachine::powerOfTwo(x); }
};

} // namespace

class TestFlashHopper : public QObject
{
    Q_OBJECT

private slots:
    void descriptorsAreAsTheIsaSays()
    {
        const std::uint64_t bits = matrixDescriptor(0x2c420, 16384, 1024);
        QCOMPARE(bits & 0x3fff, std::uint64_t(0x2c42));
        QCOMPARE(bits >> 16 & 0x3fff, std::uint64_t(1024));
        QCOMPARE(bits >> 32 & 0x3fff, std::uint64_t(64));
        QCOMPARE(bits >> 49 & 7, std::uint64_t(0));
        QCOMPARE(bits >> 62, std::uint64_t(1));
    }

    void sharedMemoryFitsAMultiprocessor()
    {
        constexpr int most = 227 << 10;
        QVERIFY((FlashHopper<Half, 128>::sharedBytes <= most));
        QCOMPARE((FlashHopper<Half, 128>::keyTile(1) % 1024), 0U);
        QCOMPARE((FlashHopper<Half, 64>::valueTile(1) % 1024), 0U);
        QCOMPARE((FlashHopper<Half, 64>::barrier(FlashHopper<Half, 64>::ValuesRead, 1) + 8),
                 std::uint32_t(FlashHopper<Half, 64>::sharedBytes));
    }

    void attendsAsInDouble_data()
    {
        QTest::addColumn<QString>("format");
        QTest::addColumn<int>("headDim");
        QTest::addColumn<AttentionSizes>("shape");
        const auto add = [](const char* format, int headDim, const AttentionSizes& s) {
            QTest::addRow("%s d=%d b=%d h=%d/%d n=%d/%d %s", format, headDim, s.batch, s.heads, s.kvHeads, s.queries,
                          s.keys, s.causal ? "causal" : "full")
                << format << headDim << s;
        };
        for (const bool causal : {false, true}) {
            for (const int sequence : {1, 64, 128, 129, 300, 640})
                add("fp16", 64, shapeOf(1, 1, 1, sequence, causal));
            add("fp16", 64, shapeOf(1, 1, 1, 3, causal, 260));
            add("bf16", 64, shapeOf(2, 4, 2, 67, causal));
            add("fp16", 128, shapeOf(1, 1, 1, 517, causal));
            add("bf16", 128, shapeOf(1, 2, 1, 200, causal, 61));
            add("bf16", 128, shapeOf(2, 2, 2, 130, causal));
        }
    }
    void attendsAsInDouble()
    {
        QFETCH(QString, format);
        QFETCH(int, headDim);
        QFETCH(AttentionSizes, shape);
        const ForwardRun run = attend(format, headDim, shape);
        const double tolerance = format == "fp16" ? 2e-3 : 1.6e-2; // half a step, of P and of O
        QVERIFY2(run.outputError < tolerance, qPrintable(QString::number(run.outputError)));
        QVERIFY2(run.logSumExpError < 1e-5, qPrintable(QString::number(run.logSumExpError)));
        QCOMPARE(run.untouched, std::uint64_t(0));
    }

    void extremeScoresStayFinite_data()
    {
        QTest::addColumn<int>("kind");
        for (const Drawn kind : {Drawn::Large, Drawn::Equal, Drawn::Outliers})
            QTest::addRow("kind %d", int(kind)) << int(kind);
    }
    void extremeScoresStayFinite()
    {
        QFETCH(int, kind);
        for (const bool causal : {false, true}) {
            const ForwardRun run = attend<Half, 64>(shapeOf(1, 1, 1, 270, causal), Drawn(kind));
            QVERIFY2(run.outputError < 3e-3, qPrintable(QString::number(run.outputError)));
            QVERIFY2(run.logSumExpError < 1e-5, qPrintable(QString::number(run.logSumExpError)));
        }
    }

    void fetchesEveryTileOncePerBlock()
    {
        const std::uint64_t rows = 384, head = rows * 64 * 2;
        const ForwardRun run = attend<Half, 64>(shapeOf(1, 1, 1, 384, false));
        QCOMPARE(run.bytesRead, head + 3 * 2 * head);
        QCOMPARE(run.bytesWritten, head + rows * 4);
    }

    void causalSkipsTilesAboveTheDiagonal()
    {
        // Of every tile, each of two warpgroups: 4 products of depth 16 for S, 8 for O.
        const ForwardRun full = attend<Half, 64>(shapeOf(1, 1, 1, 384, false)),
                         causal = attend<Half, 64>(shapeOf(1, 1, 1, 384, true));
        QCOMPARE(full.count.products, std::uint64_t(3 * 3 * 2 * (4 + 8)));
        QCOMPARE(causal.count.products, std::uint64_t((1 + 2 + 3) * 2 * (4 + 8)));
    }

    void mistakesAreNamed()
    {
        const struct
        {
            const char *name, *words;
            QString (*run)();
        } mistakes[] = {
            {"none", "", faultWith<HopperMachine>},
            {"no fence of registers", "no fence", faultWith<WithoutFence>},
            {"no wait for products", "may still read it", faultWith<WithoutProductWait>},
            {"a wait for one group fewer", "may still read it", faultWith<WaitsForOneFewer>},
            {"scores read while they run", "sums were touched", faultWith<ReadsScoresTooEarly, 200>},
            {"no commit", "may still read it", faultWith<WithoutCommit>},
            {"no wait for boxes", "before anything was fetched", faultWith<WithoutBarrierWait>},
            {"one lane waits for all", "before the box has been waited for", faultWith<OneLaneWaits>},
            {"a stage fetched too early", "one arrival more", faultWith<FetchesTooEarly>},
            {"the other parity", "before anything was fetched", faultWith<WrongParity>},
            {"tiles never given back", "no warp can go on", faultWith<GivesBackNothing>},
            {"tiles given back twice", "no warp can go on", faultWith<GivesBackTwice>},
            {"too few bytes expected", "before the box has", faultWith<ExpectsFewerBytes>},
            {"too many bytes expected", "16 bytes missing", faultWith<ExpectsMoreBytes>},
            {"barriers not published", "was not published", faultWith<Unpublished>},
            {"no barrier of the block", "no barrier of the block", faultWith<WithoutBlockBarrier>},
            {"turns never passed", "waits at a named barrier", faultWith<NeverPassesTheTurn>},
            {"too many registers", "more than an SM has", faultWith<TakesTooManyRegisters>},
            {"no swizzle", "swizzle 0", faultWith<WithoutSwizzle>},
            {"a wrong stride", "wrong", faultWith<WrongStride>},
            {"a wrong leading offset", "wrong", faultWith<WrongLeading>},
            {"boxes one row off", "wrong", faultWith<BoxesOneRowOff>},
            {"sums not shrunk", "wrong", faultWith<ForgetsToShrink>},
        };
        QStringList missed;
        for (const auto& mistake : mistakes) {
            const QString fault = mistake.run();
            if (fault.isEmpty() != (*mistake.words == 0) || !fault.contains(mistake.words))
                missed += QString("%1: \"%2\"").arg(mistake.name, fault);
        }
        QVERIFY2(missed.isEmpty(), qPrintable(missed.join('\n')));
    }
};

QTEST_GUILESS_MAIN(TestFlashHopper)
#include "tst_flash_hopper.moc"

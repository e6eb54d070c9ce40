// SPDX-License-Identifier: Apache-2.0
// The kernels that copy a view, thread by thread on the emulated GPU: every view that PyTorch was recorded with, odd
// sizes, offsets that nothing is a multiple of, in elements of 1 to 16 bytes. The emulator ends a run that reads
// outside the storage, writes an element twice or reads what no barrier has brought.
#include "kernels/cuda/common/plan.h"
#include "kernels/cuda/layout/layout_tiles.h"

#include "tests/support/recorded_views.h"
#include "tests/support/warp_emulator.h"

#include <QtTest>

#include <cstring>

using namespace memscape;
using namespace memscape::cuda;
using emulated::GlobalMemory;
using emulated::LaunchCount;
using emulated::Machine;

namespace {

/// Bytes that begin `skip` beyond a multiple of 16.
class Storage
{
public:
    Storage(std::uint64_t bytes, std::uint64_t skip)
        : m_chunks((bytes + skip) / sizeof(Word16) + 1)
        , m_begin(reinterpret_cast<char*>(m_chunks.data()) + skip)
    { }
    char* begin() { return m_begin; }
    const char* begin() const { return m_begin; }

private:
    std::vector<Word16> m_chunks;
    char* m_begin;
};

struct Copied
{
    CopyPath path;
    LaunchCount count;
    QString wrong; ///< empty when it is right
};

struct Copy
{
    Copy(const ViewNest& theNest, int version, int bytes, std::uint64_t skip)
        : nest(theNest)
        , elementBytes(bytes)
        , source((lastElement(nest) + 1) * std::uint64_t(bytes), skip)
        , target(nest.elements * std::uint64_t(bytes), 0)
        , plan(turnPlanOf(nest))
    {
        const std::uint64_t sourceBytes = (lastElement(nest) + 1) * std::uint64_t(bytes);
        for (std::uint64_t i = 0; i < sourceBytes; ++i)
            source.begin()[i] = char(mixed(i) >> 7);
        memory.readable("the storage", source.begin(), sourceBytes);
        memory.writable("the target", target.begin(), nest.elements * std::uint64_t(bytes));
        copied.path = copyPathOf(nest, version, bytes,
                                 reinterpret_cast<std::uintptr_t>(source.begin())
                                     | reinterpret_cast<std::uintptr_t>(target.begin()));
    }

    template <typename Kernel> void launch(std::uint64_t blocks, int sharedBytes, const Kernel& kernel)
    {
        emulated::Launch launch;
        launch.blocksX = int(blocks);
        launch.threads = 256;
        launch.sharedBytes = sharedBytes;
        copied.count = emulated::run(launch, memory, kernel);
    }

    template <int bytes, int words> void runWords()
    {
        using Tile = WordTile<bytes, words>;
        const TurnTiles tiles = turnTiles(plan, Tile::aSide, Tile::bSide);
        launch(turnBlocks(plan, Tile::aSide, Tile::bSide), Tile::sharedBytes,
               [&](Machine& m) { turnWordTile<Tile>(m, source.begin(), target.begin(), tiles); });
    }
    template <int bytes> void runWords()
    {
        if (copied.path.chunkWords == 4)
            return runWords<bytes, 4>();
        return copied.path.chunkWords == 2 ? runWords<bytes, 2>() : runWords<bytes, 1>();
    }
    void runWords()
    {
        if (elementBytes == 1)
            return runWords<1>();
        return elementBytes == 2 ? runWords<2>() : runWords<4>();
    }

    template <typename Word, int version, int atOnce> void runPadded()
    {
        const TurnTiles tiles = turnTiles(plan, turnSide, atOnce * turnSide);
        launch(turnBlocks(plan, turnSide, atOnce * turnSide), paddedSharedBytes<Word, atOnce>, [&](Machine& m) {
            turnPaddedTile<version, atOnce>(m, reinterpret_cast<const Word*>(source.begin()),
                                            reinterpret_cast<Word*>(target.begin()), tiles);
        });
    }
    template <typename Word> void runRows()
    {
        const ViewNest words = cuda::inWords(nest, copied.path.neighbours);
        const auto* from = reinterpret_cast<const Word*>(source.begin());
        auto* to = reinterpret_cast<Word*>(target.begin());
        const auto walk = [&](const auto& walked) {
            const std::uint64_t perBlock =
                std::uint64_t(rowsInFlight<Word, std::decay_t<decltype(walked)>>) * rowsThreads;
            launch(std::min((walked.elements + perBlock - 1) / perBlock, mostBlocks), 0,
                   [&](Machine& m) { copyRows(m, from, to, walked); });
        };
        if (isNarrow(words) && !isWide)
            walk(narrowNest(words));
        else
            walk(words);
    }

    template <typename Word> void run(int version)
    {
        if (copied.path.kernel == CopyKernel::Words)
            return runWords();
        if (copied.path.kernel == CopyKernel::Rows)
            return runRows<Word>();
        if (version == 2)
            return runPadded<Word, 2, 1>();
        return version == 3 ? runPadded<Word, 3, 1>() : runPadded<Word, 3, paddedTilesAtOnce(sizeof(Word))>();
    }

    void compare()
    {
        for (std::uint64_t i = 0; i < nest.elements; ++i) {
            const char* expected = source.begin() + elementAt(nest, i) * std::uint64_t(elementBytes);
            const char* found = target.begin() + i * std::uint64_t(elementBytes);
            if (std::memcmp(found, expected, std::size_t(elementBytes)) != 0) {
                copied.wrong = QStringLiteral("element %1 is another").arg(i);
                return;
            }
        }
        const std::uint64_t bytes = nest.elements * std::uint64_t(elementBytes);
        if (memory.elementsUntouched() != 0 || memory.bytesRead != bytes || memory.bytesWritten != bytes)
            copied.wrong = QStringLiteral("%1 bytes read, %2 written of %3")
                               .arg(memory.bytesRead)
                               .arg(memory.bytesWritten)
                               .arg(bytes);
    }

    ViewNest nest;
    int elementBytes;
    Storage source, target;
    TurnPlan plan;
    GlobalMemory memory;
    Copied copied;
    std::uint64_t mostBlocks = 1 << 20;
    bool isWide = false;
};

/// As launchView() does it, or by tiles of words also where these are thin. `skip`: bytes that the storage begins
/// beyond a multiple of 16.
Copied copied(const ViewNest& nest, int version, int bytes, std::uint64_t skip = 0, bool inWords = false)
{
    Copy copy(nest, version, bytes, skip);
    if (inWords) {
        copy.copied.path.kernel = CopyKernel::Words;
        copy.copied.path.neighbours = 1;
    }
    try {
        switch (bytes * copy.copied.path.neighbours) {
        case 1: copy.run<std::uint8_t>(version); break;
        case 2: copy.run<std::uint16_t>(version); break;
        case 4: copy.run<std::uint32_t>(version); break;
        case 8: copy.run<Word8>(version); break;
        default: copy.run<Word16>(version); break;
        }
        copy.compare();
    } catch (const emulated::Fault& fault) {
        copy.copied.wrong = fault.what();
    }
    return copy.copied;
}

/// The emulator keeps the history of two bytes of shared memory at a time: elements of one byte that threads store
/// one by one would be races to it. The kernel is the same template for all elements.
bool canEmulate(const CopyPath& path, int bytes)
{
    return path.kernel != CopyKernel::Padded || bytes > 1;
}

constexpr int elementSizes[] = {1, 2, 4, 8, 16};

} // namespace

class TestLayoutTiles : public QObject
{
    Q_OBJECT

private slots:
    void everyRecordedView()
    {
        int padded = 0, words = 0;
        const std::vector<ViewNest> nests = recordedNests();
        QVERIFY(nests.size() > 500);
        const auto check = [](const Copied& copy, const ViewNest& nest) {
            QVERIFY2(copy.wrong.isEmpty(), qPrintable(copy.wrong + " in " + described(nest)));
        };
        for (const ViewNest& nest : nests) {
            for (const int bytes : elementSizes) {
                if (canEmulate(copyPathOf(nest, 4, bytes, 0), bytes))
                    check(copied(nest, 4, bytes), nest);
                const CopyPath three = copyPathOf(nest, 3, bytes, 0);
                if (three.kernel == CopyKernel::Padded && canEmulate(three, bytes)) {
                    check(copied(nest, 3, bytes), nest);
                    ++padded;
                }
                if (chunkWordsOf(turnPlanOf(nest), bytes, 0) > 0) {
                    check(copied(nest, 4, bytes, 0, true), nest);
                    ++words;
                }
            }
        }
        QVERIFY2(padded > 500 && words > 50,
                 qPrintable(QStringLiteral("%1 padded, %2 in words").arg(padded).arg(words)));
    }

    void everyShape_data()
    {
        QTest::addColumn<QString>("views");
        QTest::addColumn<QList<int>>("shape");
        QTest::newRow("a matrix of whole tiles") << "t()" << QList<int>{256, 128};
        QTest::newRow("a matrix of whole chunks") << "t()" << QList<int>{144, 272};
        QTest::newRow("a matrix of whole words") << "t()" << QList<int>{140, 92};
        QTest::newRow("odd sides") << "t()" << QList<int>{67, 33};
        QTest::newRow("one more than a tile") << "t()" << QList<int>{129, 129};
        QTest::newRow("planes") << "permute(0,2,3,1)" << QList<int>{3, 40, 5, 7};
        QTest::newRow("planes of whole chunks") << "permute(0,2,3,1)" << QList<int>{2, 48, 4, 8};
        QTest::newRow("planes around the turned loops") << "permute(3,1,2,0)" << QList<int>{16, 3, 5, 32};
        QTest::newRow("pixels of three channels") << "permute(0,2,3,1)" << QList<int>{2, 3, 16, 24};
        QTest::newRow("channels of pixels") << "permute(0,3,1,2)" << QList<int>{2, 16, 24, 3};
        QTest::newRow("heads") << "permute(0,2,1,3)" << QList<int>{2, 9, 4, 32};
        QTest::newRow("an offset of one") << "narrow(1,1,32);t()" << QList<int>{64, 48};
        QTest::newRow("an offset and odd sides") << "narrow(0,3,40);narrow(1,5,37);t()" << QList<int>{50, 60};
        QTest::newRow("a chunk's offset") << "narrow(1,16,64);t()" << QList<int>{48, 96};
        QTest::newRow("overlapping windows") << "unfold(0,9,4);t()" << QList<int>{400};
        QTest::newRow("every second") << "slice(1,0,none,2);t()" << QList<int>{66, 70};
        QTest::newRow("rows of every second") << "slice(1,0,none,2)" << QList<int>{30, 70};
        QTest::newRow("rows") << "narrow(1,4,64)" << QList<int>{30, 72};
        QTest::newRow("a broadcast") << "expand(70,-1);t()" << QList<int>{1, 45};
        QTest::newRow("one element") << "t()" << QList<int>{1, 1};
    }
    void everyShape()
    {
        QFETCH(QString, views);
        QFETCH(QList<int>, shape);
        const ViewNest nest = nestOf(Sizes(shape.begin(), shape.end()), views.toUtf8().constData());
        for (const int bytes : elementSizes) {
            for (const int version : {2, 3, 4}) {
                for (const int skip : {0, 1, 2}) { // of an element
                    const auto storageAt = std::uint64_t(skip * bytes % 16);
                    const CopyPath path = copyPathOf(nest, version, bytes, storageAt);
                    if (!canEmulate(path, bytes) || path.kernel == CopyKernel::Visits)
                        continue;
                    const Copied copy = copied(nest, version, bytes, storageAt);
                    QVERIFY2(copy.wrong.isEmpty(),
                             qPrintable(
                                 copy.wrong
                                 + QStringLiteral(", %1 B, version %2, skipped %3").arg(bytes).arg(version).arg(skip)));
                }
            }
        }
    }

    void bytesChangePlaces()
    {
        QCOMPARE(bytesOf(0x33221100U, 0x77665544U, 0x7362U), 0x77336622U);
        std::uint32_t halves[2] = {0x00010000U, 0x10011000U}; // row and column
        turnWords<2>(halves);
        QCOMPARE(halves[0], 0x10000000U);
        QCOMPARE(halves[1], 0x10010001U);
        std::uint32_t bytes[4] = {0x03020100U, 0x13121110U, 0x23222120U, 0x33323130U};
        turnWords<4>(bytes);
        for (std::uint32_t column = 0; column < 4; ++column)
            QCOMPARE(bytes[column], 0x30201000U + column * 0x01010101U);
    }

    /// A grid of three blocks that goes round, and walks that do not fit 32 bits, in small.
    void rowsBeyondTheGrid()
    {
        const ViewNest nest = nestOf({3, 70, 95}, "permute(0,2,1)");
        for (const bool isWide : {false, true}) {
            Copy copy(nest, 1, 4, 0);
            copy.isWide = isWide;
            copy.mostBlocks = 3;
            copy.runRows<std::uint32_t>();
            copy.compare();
            QVERIFY2(copy.copied.wrong.isEmpty(), qPrintable(copy.copied.wrong));
        }
    }

    /// What the versions teach: 32 turns of the banks for a column, one with padding, one with the exchange.
    void banks()
    {
        const ViewNest nest = nestOf({256, 128}, "t()");
        const LaunchCount two = copied(nest, 2, 4).count, three = copied(nest, 3, 4).count;
        QCOMPARE(two.loads.fewest, std::uint64_t(256 * 128 / 32));
        QCOMPARE(two.loads.turns, 32 * two.loads.fewest);
        QCOMPARE(two.stores.conflicts(), 0U);
        for (const int bytes : {2, 4, 8, 16})
            QCOMPARE(copied(nest, 3, bytes).count.loads.conflicts(), 0U);
        QCOMPARE(three.stores.conflicts(), 0U);
        for (const int bytes : {1, 2, 4}) {
            const std::uint64_t all = 256U * 128U * std::uint64_t(bytes);
            for (const std::uint64_t skip : {0U, 8U, 4U}) {
                const Copied four = copied(nest, 4, bytes, skip);
                QCOMPARE(four.path.chunkWords, skip == 0 ? 4 : skip == 8 ? 2 : 1);
                QCOMPARE(four.count.loads.conflicts(), 0U);
                QCOMPARE(four.count.stores.conflicts(), 0U);
                QCOMPARE(four.count.loads.fewest, all / 128);  // a warp's words
                QCOMPARE(four.count.stores.fewest, all / 128); // turns of 128 bytes
            }
        }
    }

    void faultsAreCaught()
    {
        using Tile = WordTile<2, 4>;
        const ViewNest nest = nestOf({128, 64}, "t()");
        Copy copy(nest, 4, 2, 0);
        const TurnTiles tiles = turnTiles(copy.plan, Tile::aSide, Tile::bSide);
        const auto withoutBarrier = [&](Machine& m) {
            const TurnTile tile = turnTile(tiles, std::uint32_t(m.blockX()));
            loadTile<Tile>(m, copy.source.begin(), tiles.plan, tile);
            storeTile<Tile>(m, copy.target.begin(), tiles.plan, tile);
        };
        QVERIFY_THROWS_EXCEPTION(emulated::Fault, copy.launch(2, Tile::sharedBytes, withoutBarrier));

        // Chunks of 16 bytes where the storage begins at an odd element.
        Copy odd(nest, 4, 2, 2);
        const auto asIfAligned = [&](Machine& m) {
            turnWordTile<Tile>(m, odd.source.begin(), odd.target.begin(), tiles);
        };
        QVERIFY_THROWS_EXCEPTION(emulated::Fault, odd.launch(2, Tile::sharedBytes, asIfAligned));

        // A tile too many.
        Copy beyond(nest, 4, 2, 0);
        const auto again = [&](Machine& m) {
            turnWordTile<Tile>(m, beyond.source.begin(), beyond.target.begin(), tiles);
        };
        QVERIFY_THROWS_EXCEPTION(emulated::Fault, beyond.launch(3, Tile::sharedBytes, again));
    }
};

QTEST_APPLESS_MAIN(TestLayoutTiles)
#include "tst_layout_tiles.moc"

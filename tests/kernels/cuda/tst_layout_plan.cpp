// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the GPU's copies on the host: quotients without division, which element of a view lies where,
// which tile a block turns, which kernel takes which walk, also where there are more than 2^32 elements.
#include "kernels/cuda/layout/layout_plan.h"

#include "tests/support/recorded_views.h"

#include <QtTest>

#include <random>
#include <vector>

using namespace memscape;
using namespace memscape::cuda;

namespace {

/// Where each element of the target came from, by tiles of these sides.
std::vector<std::int64_t> turned(const ViewNest& nest, int aSide, int bSide)
{
    const TurnPlan plan = turnPlanOf(nest);
    const TurnTiles tiles = turnTiles(plan, aSide, bSide);
    std::vector<std::int64_t> from(nest.elements, -1);
    for (std::uint32_t block = 0; block < turnBlocks(plan, aSide, bSide); ++block) {
        const TurnTile tile = turnTile(tiles, block);
        if (tile.aLeft < 1 || tile.aLeft > aSide || tile.bLeft < 1 || tile.bLeft > bSide)
            return {};
        for (std::uint64_t a = 0; a < std::uint64_t(tile.aLeft); ++a) {
            for (std::uint64_t b = 0; b < std::uint64_t(tile.bLeft); ++b) {
                std::int64_t& at = from.at(tile.to + b * plan.bTo + a);
                if (at != -1)
                    return {};
                at = std::int64_t(tile.from + a * plan.aFrom + b * plan.bFrom);
            }
        }
    }
    return from;
}

/// The walk of a matrix of rows × columns in memory, read column by column.
ViewNest matrix(std::uint64_t rows, std::uint64_t columns)
{
    return {2, {rows, columns}, {columns, 1}, 0, rows * columns};
}

constexpr std::uint64_t sideOf(int elementBytes)
{
    return std::uint64_t(128 / elementBytes);
}

} // namespace

template <typename Tile> void checkTile()
{
    std::vector<bool> used(Tile::sharedBytes / 4);
    for (int a = 0; a < Tile::aSide; ++a) {
        for (int column = 0; column < Tile::bSide / Tile::perWord; ++column) {
            const std::uint32_t at = Tile::wordAt(a, column);
            QVERIFY(at % 4 == 0 && at < std::uint32_t(Tile::sharedBytes) && !used[at / 4]);
            used[at / 4] = true;
        }
    }
    for (int turn = 0; turn < Tile::turns; ++turn) {
        for (int row = 0; row < Tile::rowsPerTurn; ++row) {
            for (int chunk = 0; chunk < Tile::chunks; ++chunk)
                QCOMPARE(Tile::chunkAfter(Tile::chunkAt(row, chunk), turn),
                         Tile::chunkAt(turn * Tile::rowsPerTurn + row, chunk));
        }
    }
    for (int turn = 0; turn < Tile::columnTurns; ++turn) {
        for (int a = 0; a < Tile::aSide; ++a) {
            for (int column = 0; column < Tile::columnsPerTurn; ++column)
                QCOMPARE(Tile::wordAfter(Tile::wordAt(a, column), turn),
                         Tile::wordAt(a, turn * Tile::columnsPerTurn + column));
        }
    }
}

class TestLayoutPlan : public QObject
{
    Q_OBJECT

private slots:
    void quotientsAreExact()
    {
        std::vector<std::uint64_t> divisors{1, (1ULL << 31) - 1, 1ULL << 31};
        for (std::uint64_t power = 2; power < 1ULL << 31; power *= 2)
            divisors.insert(divisors.end(), {power - 1, power, power + 1});
        std::mt19937 random(5);
        for (int i = 0; i < 2000; ++i)
            divisors.push_back(1 + (random() >> (1 + i % 31)));
        for (const std::uint64_t divisor : divisors) {
            const Division division = divisionBy(divisor);
            QCOMPARE(division.divisor, std::uint32_t(divisor));
            std::vector<std::uint64_t> dividends{0, dividendLimit - 1, (dividendLimit - 1) / divisor * divisor};
            for (int i = 0; i < 20; ++i) {
                const std::uint64_t whole = (random() >> 1) / divisor * divisor; // where a quotient changes
                dividends.insert(dividends.end(),
                                 {whole, whole + divisor - 1, whole > 0 ? whole - 1 : 0, random() >> 1});
            }
            for (const std::uint64_t n : dividends) {
                if (n < dividendLimit)
                    QCOMPARE(quotient(division, std::uint32_t(n)), std::uint32_t(n / divisor));
            }
        }
    }

    void narrowWalksAreTheWalks()
    {
        for (const ViewNest& nest : recordedNests()) {
            QVERIFY(isNarrow(nest));
            const NarrowNest narrow = narrowNest(nest);
            std::uint64_t last = 0;
            for (std::uint64_t visit = 0; visit < nest.elements; ++visit) {
                std::uint64_t expected = nest.offset, rest = visit;
                for (int i = 0; i < nest.rank; ++i) {
                    expected += rest % nest.count[i] * nest.stride[i];
                    rest /= nest.count[i];
                }
                QCOMPARE(elementAt(nest, visit), expected);
                QCOMPARE(elementAt(narrow, std::uint32_t(visit)), expected);
                last = std::max(last, expected);
            }
            QCOMPARE(lastElement(nest), last);
        }
    }

    void everyElementOnce()
    {
        int plans = 0;
        for (const ViewNest& nest : recordedNests()) {
            if (!turnPlanOf(nest).turns)
                continue;
            ++plans;
            for (const auto& [aSide, bSide] : {std::pair{32, 32}, {32, 128}, {64, 128}, {128, 128}, {4, 2}}) {
                const auto from = turned(nest, aSide, bSide);
                QVERIFY2(from.size() == std::size_t(nest.elements), qPrintable(described(nest)));
                for (std::uint64_t i = 0; i < nest.elements; ++i)
                    QCOMPARE(from[i], std::int64_t(elementAt(nest, i)));
            }
        }
        QCOMPARE(plans, 191);
    }

    void chunksAsSizesAndAddressesAllow_data()
    {
        QTest::addColumn<QString>("views");
        QTest::addColumn<QList<int>>("shape");
        QTest::addColumn<QList<int>>("words"); ///< of 1, 2 and 4 bytes an element
        const auto row = [](const char* views, const QList<int>& shape, const QList<int>& words) {
            QTest::addRow("%s of %d x %d", views, shape[0], shape[1]) << views << shape << words;
        };
        row("t()", {160, 96}, {4, 4, 4});
        row("t()", {160, 104}, {2, 4, 4});
        row("t()", {100, 96}, {1, 2, 4});
        row("t()", {98, 96}, {0, 1, 2});
        row("t()", {160, 95}, {0, 0, 1});
        row("t()", {161, 96}, {0, 0, 1});
        row("narrow(1,16,64);t()", {160, 96}, {4, 4, 4});
        row("narrow(1,8,64);t()", {160, 96}, {2, 4, 4}); // the offset
        row("narrow(1,1,64);t()", {160, 96}, {0, 0, 1});
        row("narrow(1,0,66);t()", {160, 96}, {0, 1, 2});    // rows that end inside a chunk
        row("slice(1,0,none,2);t()", {160, 96}, {0, 0, 0}); // no neighbours
        row("", {160, 96}, {0, 0, 0});                      // nothing to turn
    }
    void chunksAsSizesAndAddressesAllow()
    {
        QFETCH(QString, views);
        QFETCH(QList<int>, shape);
        QFETCH(QList<int>, words);
        const TurnPlan plan = turnPlanOf(nestOf(Sizes(shape.begin(), shape.end()), views.toUtf8().constData()));
        for (int i = 0; i < 3; ++i) {
            const int bytes = 1 << i, most = words[i];
            QCOMPARE(chunkWordsOf(plan, bytes, 0), most);
            QCOMPARE(chunkWordsOf(plan, bytes, 8), std::min(most, 2));
            QCOMPARE(chunkWordsOf(plan, bytes, 4), std::min(most, 1));
            QCOMPARE(chunkWordsOf(plan, bytes, 2), 0);
        }
        QCOMPARE(chunkWordsOf(plan, 8, 0), 0);
    }

    void rowsInWords()
    {
        const ViewNest heads = nestOf({2, 9, 4, 32}, "permute(0,2,1,3)"); // rows of 32 stay together
        QCOMPARE(neighboursOf(heads, 1, 16, 0), 16);
        QCOMPARE(neighboursOf(heads, 2, 8, 0), 8);
        QCOMPARE(neighboursOf(heads, 2, 8, 4), 2);
        QCOMPARE(neighboursOf(heads, 2, 8, 2), 1);
        QCOMPARE(neighboursOf(heads, 16, 1, 0), 1);
        QCOMPARE(neighboursOf(nestOf({5, 12}, "narrow(1,2,8)"), 1, 16, 0), 2); // the offset
        QCOMPARE(neighboursOf(nestOf({5, 12}, "t()"), 1, 16, 0), 1);
        for (const ViewNest& nest : recordedNests()) {
            for (const int neighbours : {2, 4, 8, 16}) {
                if (neighboursOf(nest, 1, neighbours, 0) != neighbours)
                    continue;
                const ViewNest words = inWords(nest, neighbours);
                QCOMPARE(words.elements * std::uint64_t(neighbours), nest.elements);
                for (std::uint64_t i = 0; i < nest.elements; ++i)
                    QCOMPARE(elementAt(words, i / neighbours) * std::uint64_t(neighbours) + i % neighbours,
                             elementAt(nest, i));
            }
        }
    }

    void kernelsByWalk()
    {
        const auto kernel = [](const ViewNest& nest, int version, int bytes, std::uint64_t addresses = 0) {
            return copyPathOf(nest, version, bytes, addresses).kernel;
        };
        const ViewNest square = matrix(256, 256), rows = nestOf({30, 72}, "narrow(1,4,64)");
        for (const int bytes : {1, 2, 4, 8, 16}) {
            QCOMPARE(kernel(square, 1, bytes), CopyKernel::Visits);
            QCOMPARE(kernel(square, 2, bytes), CopyKernel::Padded);
            QCOMPARE(kernel(square, 3, bytes), CopyKernel::Padded);
            QCOMPARE(kernel(square, 4, bytes), bytes <= 4 ? CopyKernel::Words : CopyKernel::Padded);
            QCOMPARE(kernel(rows, 3, bytes), CopyKernel::Visits);
            QCOMPARE(kernel(rows, 4, bytes), CopyKernel::Rows);
        }
        QCOMPARE(kernel(square, 4, 2, 2), CopyKernel::Padded);
        QCOMPARE(kernel(matrix(255, 255), 4, 1), CopyKernel::Padded);
        QCOMPARE(kernel(matrix(255, 255), 4, 4), CopyKernel::Words);
        QCOMPARE(kernel(matrix(8, 4096), 4, 4), CopyKernel::Rows); // eight channels of pixels
        QCOMPARE(kernel(matrix(12, 4096), 4, 4), CopyKernel::Words);
        QCOMPARE(kernel(matrix(4096, 4), 4, 4), CopyKernel::Rows); // pixels of four channels, by channels
        QCOMPARE(kernel(matrix(4096, 8), 4, 4), CopyKernel::Words);
        QCOMPARE(copyPathOf(square, 4, 8, 0).tilesAtOnce, 2);
        QCOMPARE(copyPathOf(square, 4, 16, 0).tilesAtOnce, 1);
        QCOMPARE(copyPathOf(rows, 4, 1, 0).neighbours, 4);
    }

    void wordsOfATileLieApart()
    {
        checkTile<WordTile<1, 1>>();
        checkTile<WordTile<1, 2>>();
        checkTile<WordTile<1, 4>>();
        checkTile<WordTile<2, 1>>();
        checkTile<WordTile<2, 2>>();
        checkTile<WordTile<2, 4>>();
        checkTile<WordTile<4, 1>>();
        checkTile<WordTile<4, 2>>();
        checkTile<WordTile<4, 4>>();
    }

    void beyondFourBillion()
    {
        // 2^36 elements in planes: the first and last elements of many tiles, by 64-bit divisions.
        const ViewNest planes{
            3, {1 << 17, 96, 5461}, {96, 1, std::uint64_t(96) << 17}, 7, std::uint64_t(96) * 5461 << 17};
        QVERIFY(planes.elements > 1ULL << 35);
        QVERIFY(!isNarrow(planes));
        const TurnPlan plan = turnPlanOf(planes);
        for (const int bytes : {1, 2, 4}) {
            const int aSide = int(sideOf(bytes)), bSide = 128;
            const TurnTiles tiles = turnTiles(plan, aSide, bSide);
            const std::uint64_t blocks = turnBlocks(plan, aSide, bSide);
            for (std::uint64_t i = 0; i <= 1000; ++i) {
                const std::uint64_t block = (blocks - 1) * i / 1000;
                const TurnTile tile = turnTile(tiles, std::uint32_t(block));
                QCOMPARE(elementAt(planes, tile.to), tile.from);
                QCOMPARE(elementAt(planes,
                                   tile.to + std::uint64_t(tile.bLeft - 1) * plan.bTo + std::uint64_t(tile.aLeft) - 1),
                         tile.from + std::uint64_t(tile.aLeft - 1) * plan.aFrom + std::uint64_t(tile.bLeft) - 1);
            }
        }
        // A storage, not a walk, beyond 32 bits; and the last that fits.
        QVERIFY(!isNarrow({1, {3}, {1ULL << 31}, 0, 3}));
        QVERIFY(isNarrow({1, {2}, {(1ULL << 32) - 1}, 0, 2}));
        QVERIFY(isNarrow({1, {dividendLimit}, {1}, 0, dividendLimit}));
        QVERIFY(!isNarrow({1, {dividendLimit + 1}, {0}, 0, dividendLimit + 1}));
        // More tiles than a grid holds: 2^32 planes of 16 × 16.
        const ViewNest small{3, {16, 16, 1ULL << 32}, {16, 1, 256}, 0, 1ULL << 40};
        QCOMPARE(copyPathOf(small, 4, 4, 0).kernel, CopyKernel::Rows);
        QCOMPARE(copyPathOf(small, 3, 4, 0).kernel, CopyKernel::Visits);
        QCOMPARE(copyPathOf(matrix(1 << 20, 1 << 20), 4, 1, 0).kernel, CopyKernel::Words);
    }
};

QTEST_APPLESS_MAIN(TestLayoutPlan)
#include "tst_layout_plan.moc"

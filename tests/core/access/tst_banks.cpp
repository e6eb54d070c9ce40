// SPDX-License-Identifier: Apache-2.0
// Wavefronts against a machine of banks that hands out bytes until no lane waits, against the figures of
// NVIDIA's guides, and against the rule gcd(s, 32); tiles whose elements never meet.
#include "core/access/banks.h"
#include "core/access/random.h"

#include <QtTest>

#include <map>
#include <numeric>
#include <set>

using namespace memscape;

namespace {

/// A machine of banks, byte by byte. In every turn each bank opens one word, that of the first lane that
/// still waits for one of its bytes; a lane that has all of its bytes is done.
int turnsOfMachine(const std::vector<std::uint32_t>& addresses, std::uint32_t width, std::size_t together)
{
    int turns = 0;
    for (std::size_t first = 0; first < addresses.size(); first += together) {
        std::vector<std::set<std::uint32_t>> waiting; // bytes, by lane
        for (std::size_t lane = first; lane < std::min(first + together, addresses.size()); ++lane) {
            std::set<std::uint32_t> bytes;
            for (std::uint32_t i = 0; i < width; ++i)
                bytes.insert(addresses[lane] + i);
            waiting.push_back(bytes);
        }
        const auto anyLaneWaits = [&] {
            return std::ranges::any_of(waiting, [](const auto& bytes) { return !bytes.empty(); });
        };
        while (anyLaneWaits()) {
            std::map<std::uint32_t, std::uint32_t> open; // bank → word
            for (const auto& bytes : waiting) {
                for (const std::uint32_t byte : bytes)
                    open.emplace(byte % 128 / 4, byte / 4);
            }
            for (auto& bytes : waiting)
                std::erase_if(bytes, [&](std::uint32_t byte) { return open.at(byte % 128 / 4) == byte / 4; });
            ++turns;
        }
    }
    return turns;
}

std::vector<std::uint32_t> strided(const SharedTile& tile, std::uint32_t stride, std::uint32_t lanes = 32)
{
    std::vector<std::uint32_t> addresses;
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        addresses.push_back(addressIn(tile, lane * stride));
    return addresses;
}

int wavefronts(const std::vector<std::uint32_t>& addresses, std::uint32_t width = 4)
{
    const auto access = resolveBanks(addresses, width);
    return access ? access->wavefronts : -1;
}

int stridedWavefronts(std::uint32_t stride, std::uint32_t width = 4, std::uint32_t padding = 0)
{
    return wavefronts(strided(*sharedTile(width, 32, padding, 0), stride), width);
}

std::size_t lanesTogether(std::uint32_t width)
{
    return width == 16 ? 8 : width == 8 ? 16 : 32;
}

} // namespace

class TestBanks : public QObject
{
    Q_OBJECT

private slots:
    void stridesMatchTheMachine_data()
    {
        QTest::addColumn<int>("width");
        for (const int width : {1, 2, 4, 8, 16})
            QTest::addRow("%d B", width) << width;
    }
    void stridesMatchTheMachine()
    {
        QFETCH(int, width);
        const auto bytes = std::uint32_t(width);
        for (const std::uint32_t padding : {0u, 1u, 2u, 7u}) {
            for (const std::uint32_t granule : {0u, std::max(bytes, 4u), 16u}) {
                const auto tile = sharedTile(bytes, 32, padding, granule);
                QVERIFY2(tile.has_value(), tile ? "" : tile.error().text().c_str());
                for (std::uint32_t stride = 0; stride <= 128; ++stride) {
                    for (const std::uint32_t lanes : {1u, 5u, 16u, 31u, 32u}) {
                        const auto addresses = strided(*tile, stride, lanes);
                        const int expected = turnsOfMachine(addresses, bytes, lanesTogether(bytes));
                        QVERIFY2(wavefronts(addresses, bytes) == expected,
                                 qPrintable(QStringLiteral("stride %1, padding %2, pieces of %3, %4 lanes: %5, not %6")
                                                .arg(stride)
                                                .arg(padding)
                                                .arg(granule)
                                                .arg(lanes)
                                                .arg(wavefronts(addresses, bytes))
                                                .arg(expected)));
                    }
                }
            }
        }
    }

    void anyAddressesMatchTheMachine()
    {
        SplitMix64 random(7);
        for (int round = 0; round < 2000; ++round) {
            const auto width = std::uint32_t(1) << random.below(5);
            std::vector<std::uint32_t> addresses(1 + random.below(64));
            const std::uint64_t range = 1 + random.below(400);
            for (std::uint32_t& address : addresses)
                address = std::uint32_t(random.below(range)) * width;
            QCOMPARE(wavefronts(addresses, width), turnsOfMachine(addresses, width, lanesTogether(width)));
        }
    }

    /// CUDA Programming Guide, "Shared Memory Access Patterns", figures 13 to 16.
    void theGuidesFigures()
    {
        QCOMPARE(stridedWavefronts(1), 1); // no conflict
        QCOMPARE(stridedWavefronts(2), 2); // two-way
        QCOMPARE(stridedWavefronts(3), 1); // no conflict
        std::vector<std::uint32_t> permutation(32);
        for (std::uint32_t lane = 0; lane < 32; ++lane)
            permutation[lane] = lane * 13 % 32 * 4;
        QCOMPARE(wavefronts(permutation), 1);
        auto shared = strided(*sharedTile(4, 32, 0, 0), 1); // lanes 3, 4, 6, 7 and 9 read the word of bank 5
        for (const std::size_t lane : {3u, 4u, 6u, 7u, 9u})
            shared[lane] = 5 * 4;
        QCOMPARE(wavefronts(shared), 1);
        QCOMPARE(stridedWavefronts(0), 1);        // broadcast
        QCOMPARE(stridedWavefronts(32), 32);      // smemArray[32][32]: down a column, 32-way
        QCOMPARE(stridedWavefronts(32, 4, 1), 1); // smemArray[32][33]
        QCOMPARE(stridedWavefronts(1, 4, 1), 1);  // and along its rows
    }

    void gcdIsTheRuleExceptForBroadcasts()
    {
        for (const std::uint32_t width : {4u, 8u, 16u}) {
            const int phases = int(width / 4);
            for (std::uint32_t stride = 1; stride <= 128; ++stride) {
                QCOMPARE(stridedWavefronts(stride, width), phases * gcdDegree(stride, width));
                QCOMPARE(gcdDegree(stride, width), int(std::gcd(stride, 128 / width)));
            }
        }
        QCOMPARE(gcdDegree(0, 4), 32);
        for (const std::uint32_t width : {1u, 2u}) {
            for (std::uint32_t stride = 1; stride <= 128; ++stride) {
                const int degree = gcdDegree(stride, width);
                QCOMPARE(degree == 0, stride * width % 4 != 0);
                if (degree > 0)
                    QCOMPARE(stridedWavefronts(stride, width), degree);
            }
        }
    }

    void everyLaneIsServedOnceByOneWordPerBank()
    {
        for (const std::uint32_t width : {2u, 4u, 8u, 16u}) {
            for (const std::uint32_t stride : {0u, 1u, 6u, 8u, 32u}) {
                const auto access = resolveBanks(strided(*sharedTile(width, 32, 0, 0), stride), width);
                QVERIFY(access.has_value());
                std::map<std::pair<int, std::uint32_t>, std::uint32_t> open; // wavefront and bank → word
                for (const BankLane& lane : access->lanes) {
                    QVERIFY(lane.wavefront >= 0 && lane.wavefront < access->wavefronts);
                    const BankPhase& phase = access->phases[std::size_t(lane.phase)];
                    QVERIFY(lane.wavefront >= phase.firstWavefront
                            && lane.wavefront < phase.firstWavefront + phase.degree);
                    for (std::uint32_t i = 0; i < std::uint32_t(lane.words); ++i) {
                        const auto [at, isNew] =
                            open.emplace(std::pair(lane.wavefront, (lane.word + i) % 32), lane.word + i);
                        QVERIFY(isNew || at->second == lane.word + i);
                    }
                }
                QCOMPARE(access->conflicts(), access->wavefronts - int(access->phases.size()));
            }
        }
    }

    /// NVIDIA's engineer on compute capability 7.0 to 7.5: 16-byte loads take 2 requests in place of 4 when
    /// lanes n and n ^ 1, or n and n ^ 2, have the same address, among them the case of one address for all.
    void equalPairsMergePhases()
    {
        const auto merged = [](std::uint32_t width, auto elementOfLane) {
            std::vector<std::uint32_t> addresses;
            for (std::uint32_t lane = 0; lane < 32; ++lane)
                addresses.push_back(elementOfLane(lane) * width);
            return resolveBanks(addresses, width, PhaseMerging::EqualPairs)->wavefronts;
        };
        const auto one = [](std::uint32_t) { return 0u; };
        const auto neighbours = [](std::uint32_t lane) { return lane / 2; };
        const auto apart = [](std::uint32_t lane) { return (lane & 1) + lane / 4 * 2; };
        const auto different = [](std::uint32_t lane) { return lane; };
        const auto fours = [](std::uint32_t lane) { return lane & 3; }; // n and n ^ 4: not named
        for (const std::uint32_t width : {8u, 16u}) {
            const int phases = int(width) / 4;
            QCOMPARE(merged(width, one), phases / 2);
            QCOMPARE(merged(width, neighbours), phases / 2);
            QCOMPARE(merged(width, apart), phases / 2);
            QCOMPARE(merged(width, different), phases);
            QCOMPARE(merged(width, fours), phases);
        }
        QCOMPARE(merged(4, one), 1);
        QCOMPARE(wavefronts(std::vector<std::uint32_t>(32, 0), 16), 4); // where it is not said
    }

    void tilesAreOneToOne_data()
    {
        QTest::addColumn<int>("width");
        QTest::addColumn<int>("columns");
        QTest::addColumn<int>("padding");
        QTest::addColumn<int>("granule");
        for (const int width : {1, 2, 4, 8, 16}) {
            for (const int columns : {2, 4, 8, 16, 32, 64, 128, 256}) {
                for (const int granule : {0, 4, 8, 16, 32, 128}) {
                    if (granule != 0 && (granule < width || columns * width < granule))
                        continue;
                    for (const int padding : {0, 1, 3})
                        QTest::addRow("%d B × %d + %d, pieces of %d", width, columns, padding, granule)
                            << width << columns << padding << granule;
                }
            }
        }
    }
    void tilesAreOneToOne()
    {
        QFETCH(int, width);
        QFETCH(int, columns);
        QFETCH(int, padding);
        QFETCH(int, granule);
        const auto tile =
            sharedTile(std::uint32_t(width), std::uint32_t(columns), std::uint32_t(padding), std::uint32_t(granule));
        QVERIFY2(tile.has_value(), tile ? "" : tile.error().text().c_str());
        constexpr std::uint32_t rows = 64;
        std::set<std::uint32_t> seen;
        for (std::uint32_t element = 0; element < rows * tile->columns; ++element) {
            const std::uint32_t address = addressIn(*tile, element);
            const std::uint32_t row = element / tile->columns, pitch = bytesOf(*tile, 1);
            QCOMPARE(address % tile->width, 0u);
            QVERIFY(address >= row * pitch && address + tile->width <= row * pitch + tile->columns * tile->width);
            QVERIFY(seen.insert(address).second);
        }
    }

    void columnsAreCured()
    {
        const auto column = [](std::uint32_t width, std::uint32_t columns, std::uint32_t padding,
                               std::uint32_t granule) {
            return wavefronts(strided(*sharedTile(width, columns, padding, granule), columns), width);
        };
        for (const std::uint32_t columns : {32u, 64u, 128u}) {
            QCOMPARE(column(4, columns, 0, 0), 32);
            QCOMPARE(column(4, columns, 1, 0), 1);
            QCOMPARE(column(4, columns, 0, 4), 1);
        }
        QCOMPARE(column(4, 31, 0, 0), 1);  // odd as it is
        QCOMPARE(column(4, 31, 1, 0), 32); // … and the padding makes the conflict
        QCOMPARE(column(8, 16, 1, 0), 2);
        QCOMPARE(column(8, 16, 0, 8), 2);
        // Rows of 16-byte chunks, as ldmatrix reads them: 32, 64, 128 and 256 bytes.
        for (const std::uint32_t chunks : {2u, 4u, 8u, 16u}) {
            QVERIFY(column(16, chunks, 0, 0) > 4);
            QCOMPARE(column(16, chunks, 0, 16), 4);
        }
        QCOMPARE(column(2, 64, 2, 0), 1); // halves: padded by a whole word
        QCOMPARE(column(2, 64, 1, 0), 2); // by half a word it is not enough
    }

    void badSizesAreRefused_data()
    {
        QTest::addColumn<quint32>("width");
        QTest::addColumn<quint32>("columns");
        QTest::addColumn<quint32>("padding");
        QTest::addColumn<quint32>("granule");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, quint32 width, quint32 columns, quint32 padding, quint32 granule,
                            const char* code) {
            QTest::newRow(name) << width << columns << padding << granule << code;
        };
        row("no bytes", 0, 32, 0, 0, "banks.width");
        row("three bytes", 3, 32, 0, 0, "banks.width");
        row("32 bytes", 32, 32, 0, 0, "banks.width");
        row("no columns", 4, 0, 0, 0, "banks.columns");
        row("too many columns", 4, 4'000'000'000, 0, 0, "banks.columns");
        row("too much padding", 4, 32, 4'000'000'000, 0, "banks.padding");
        row("pieces below an element", 8, 32, 0, 4, "banks.granule");
        row("pieces of 3", 4, 32, 0, 3, "banks.granule");
        row("pieces of 256", 4, 128, 0, 256, "banks.granule");
        row("rows of 33", 4, 33, 0, 4, "banks.columns");
        row("rows shorter than a piece", 4, 2, 0, 16, "banks.columns");
    }
    void badSizesAreRefused()
    {
        QFETCH(quint32, width);
        QFETCH(quint32, columns);
        QFETCH(quint32, padding);
        QFETCH(quint32, granule);
        QFETCH(QString, code);
        const auto tile = sharedTile(width, columns, padding, granule);
        QVERIFY(!tile.has_value());
        QCOMPARE(QString::fromStdString(tile.error().code), code);
        QVERIFY(!tile.error().hint.empty());
        QCOMPARE(resolveBanks({}, 4).error().code, std::string("banks.lanes"));
        QCOMPARE(resolveBanks(std::vector<std::uint32_t>(65, 0), 4).error().code, std::string("banks.lanes"));
        QCOMPARE(resolveBanks({2}, 4).error().code, std::string("banks.alignment"));
        QCOMPARE(resolveBanks({0}, 12).error().code, std::string("banks.width"));
    }
};

QTEST_GUILESS_MAIN(TestBanks)
#include "tst_banks.moc"

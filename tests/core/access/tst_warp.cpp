// SPDX-License-Identifier: Apache-2.0
// One warp request against counting every byte of every lane, over every stride from 0 to 64,
// element from 1 to 16 bytes and misalignment within a line; and the closed form against both.
#include "core/access/random.h"
#include "core/access/warp.h"

#include <QtTest>

#include <algorithm>
#include <array>
#include <cmath>

using namespace memscape;

namespace {

/// Brute force over a byte map: fast enough for the full grid, and nothing is merged or sorted.
class ByteMap
{
public:
    explicit ByteMap(const WarpRequest& request)
    {
        for (const std::uint64_t address : request.addresses)
            for (std::uint64_t b = 0; b < request.width; ++b)
                m_used.at(address + b) = true;
    }

    std::uint64_t granules(std::uint64_t size) const
    {
        std::uint64_t touched = 0;
        for (std::size_t begin = 0; begin < m_used.size(); begin += size) {
            const auto from = m_used.begin() + begin;
            touched += std::find(from, from + size, true) != from + size;
        }
        return touched;
    }

    std::uint64_t used() const { return std::uint64_t(std::ranges::count(m_used, true)); }

private:
    std::array<bool, 34816> m_used{}; // 31 × 64 × 16 + 16 + 127 fits, a multiple of 128
};

QString codeOf(const auto& result)
{
    return QString::fromStdString(result ? "" : result.error().code);
}

/// "0x20[4..8) …": what a picture would draw, as one line of text.
QString drawn(const std::vector<TouchedGranule>& granules)
{
    QStringList parts;
    for (const TouchedGranule& granule : granules) {
        QString part = QString::number(granule.address);
        for (const ByteRange& range : granule.used)
            part += QString("[%1,%2)").arg(range.begin).arg(range.end);
        parts << part;
    }
    return parts.join(' ');
}

} // namespace

class TestWarp : public QObject
{
    Q_OBJECT

private slots:
    void equalsBruteForceEverywhere()
    {
        for (std::uint64_t element = 1; element <= 16; ++element)
            for (const std::uint64_t stride : {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 27, 31, 32, 33, 63, 64})
                for (std::uint64_t offset = 0; offset < 128; ++offset) {
                    const WarpRequest request = stridedRequest(offset, stride, element).value();
                    const WarpCounts closed = stridedCounts(offset, stride, element).value();
                    const WarpAccess access = resolveRequest(request).value();
                    const bool same = closed.sectors == double(access.sectors.size())
                        && closed.lines == double(access.lines.size()) && closed.usedBytes == double(access.usedBytes)
                        && closed.fetchedBytes == double(access.fetchedBytes);
                    const QString where =
                        QString("stride %1, element %2, offset %3").arg(stride).arg(element).arg(offset);
                    QVERIFY2(same, qPrintable(where));
                    const ByteMap bytes(request);
                    QVERIFY2(access.sectors.size() == bytes.granules(32), qPrintable(where));
                    QVERIFY2(access.lines.size() == bytes.granules(128), qPrintable(where));
                    QVERIFY2(access.usedBytes == bytes.used(), qPrintable(where));
                    QVERIFY(access.efficiency() > 0 && access.efficiency() <= 1);
                }
    }

    void followsTheTextbookWhenAligned()
    {
        for (const std::uint64_t element : {1u, 2u, 4u, 8u, 16u})
            for (std::uint64_t stride = 0; stride <= 64; ++stride) {
                const WarpCounts counts = stridedCounts(0, stride, element).value();
                // With lanes stride × element bytes apart; non-power-of-two pitches below 32 B end
                // within the sector that the rule counts.
                const double rule = std::clamp(double(stride * element), 1.0, 32.0);
                QVERIFY(counts.sectors == rule);
                if (stride > 0) {
                    const double offset = stridedCounts(element, stride, element).value().sectors;
                    QVERIFY(offset == rule || offset == rule + 1); // misaligned adds at most one
                }
            }
        QCOMPARE(stridedCounts(0, 1, 4).value().efficiency(), 1.0);
        QCOMPARE(stridedCounts(0, 2, 4).value().efficiency(), 0.5);
        QCOMPARE(stridedCounts(0, 64, 4).value().efficiency(), 0.125); // the floor is element / sector
        QCOMPARE(stridedCounts(0, 0, 4).value().efficiency(), 0.125);  // a broadcast uses 4 of 32 B
        QCOMPARE(stridedCounts(4, 1, 4).value().sectors, 5.0);
    }

    void drawsEachLane()
    {
        const WarpAccess access = resolveRequest(stridedRequest(256, 4, 4).value()).value();
        QCOMPARE(access.lanes.size(), std::size_t(32));
        QCOMPARE(access.sectors.size(), std::size_t(16));
        QCOMPARE(access.lines.size(), std::size_t(4));
        for (std::size_t lane = 0; lane < 32; ++lane) {
            QCOMPARE(access.lanes[lane].address, 256 + lane * 16);
            QCOMPARE(access.lanes[lane].firstSector, lane / 2);
            QCOMPARE(access.lanes[lane].lastSector, lane / 2);
            QCOMPARE(access.lanes[lane].firstLine, lane / 8);
        }
        QCOMPARE(drawn({access.sectors[0], access.sectors[1]}), QString("256[0,4)[16,20) 288[0,4)[16,20)"));
        QCOMPARE(access.sectors[0].usedBytes(), std::uint64_t(8));
        QCOMPARE(access.usedBytes, std::uint64_t(128));
        QCOMPARE(access.fetchedBytes, std::uint64_t(512));
    }

    void drawsStraddlingElements()
    {
        // 12-byte elements: lane 2 covers bytes 24 to 36, the border of the first sector.
        const WarpAccess access = resolveRequest(stridedRequest(0, 1, 12, 3).value()).value();
        QCOMPARE(drawn(access.sectors), QString("0[0,32) 32[0,4)"));
        QCOMPARE(access.lanes[2].firstSector, std::size_t(0));
        QCOMPARE(access.lanes[2].lastSector, std::size_t(1));
        QCOMPARE(access.lanes[2].lastLine, std::size_t(0));
        // An element larger than a sector covers whole ones in between.
        const WarpAccess wide = resolveRequest({{20}, 80}).value();
        QCOMPARE(drawn(wide.sectors), QString("0[20,32) 32[0,32) 64[0,32) 96[0,4)"));
    }

    void mergesRepeatedAndOverlappingLanes()
    {
        // Any order, twice the same, and overlapping by a byte.
        const WarpAccess access = resolveRequest({{64, 0, 64, 3, 2}, 4}).value();
        QCOMPARE(drawn(access.sectors), QString("0[0,7) 64[0,4)"));
        QCOMPARE(access.usedBytes, std::uint64_t(11));
        QCOMPARE(access.lanes[0].firstSector, std::size_t(1));
        QCOMPARE(access.lanes[1].firstSector, std::size_t(0));
    }

    void servesWideLoadsInPasses_data()
    {
        QTest::addColumn<int>("element");
        QTest::addColumn<int>("passes");
        QTest::addColumn<int>("lanes");
        QTest::addColumn<int>("sectorsInAll");
        QTest::newRow("1 B") << 1 << 1 << 32 << 1;
        QTest::newRow("4 B") << 4 << 1 << 32 << 4;
        QTest::newRow("8 B") << 8 << 2 << 16 << 8;
        QTest::newRow("16 B") << 16 << 4 << 8 << 16;
    }
    void servesWideLoadsInPasses()
    {
        QFETCH(int, element);
        QFETCH(int, passes);
        QFETCH(int, lanes);
        QFETCH(int, sectorsInAll);
        const WarpAccess access = resolveRequest(stridedRequest(0, 1, std::uint64_t(element)).value()).value();
        QCOMPARE(int(access.passes.size()), passes);
        QCOMPARE(int(access.sectors.size()), sectorsInAll);
        int next = 0, sectors = 0;
        for (const WarpPass& pass : access.passes) {
            QCOMPARE(pass.firstLane, next);
            QCOMPARE(pass.lanes, lanes);
            next += pass.lanes;
            sectors += int(pass.sectors);
        }
        QCOMPARE(next, 32);
        QCOMPARE(sectors, sectorsInAll); // contiguous passes share no sector
        QCOMPARE(lanesPerPass(12), 8);   // not one instruction: see the header
        QCOMPARE(lanesPerPass(4096), 1);
    }

    void drawsTheSameNumbersForTheSameSeed()
    {
        const auto first = randomRequest(64, 9, 1000, 4).value().addresses;
        QCOMPARE(randomRequest(64, 9, 1000, 4).value().addresses, first);
        QVERIFY(randomRequest(64, 10, 1000, 4).value().addresses != first);
        for (const std::uint64_t address : first)
            QVERIFY(address >= 64 && address < 64 + 4000 && address % 4 == 0);
    }

    void expectsWhatDrawingShows()
    {
        for (const std::uint64_t elements : {8u, 100u, 5000u})
            for (const std::uint64_t width : {4u, 12u, 16u}) {
                const int trials = 8000;
                double sectors = 0, lines = 0, used = 0, squares = 0;
                for (int seed = 0; seed < trials; ++seed) {
                    const auto request = randomRequest(16, std::uint64_t(seed), elements, width);
                    const WarpAccess access = resolveRequest(request.value()).value();
                    sectors += double(access.sectors.size());
                    squares += double(access.sectors.size() * access.sectors.size());
                    lines += double(access.lines.size());
                    used += double(access.usedBytes);
                }
                const WarpCounts expected = expectedRandomCounts(16, elements, width).value();
                const double mean = sectors / trials;
                const double deviation = std::sqrt((squares / trials - mean * mean) / trials);
                QVERIFY(std::abs(expected.sectors - mean) < 5 * deviation + 0.001);
                QVERIFY(std::abs(expected.lines / (lines / trials) - 1) < 0.01);
                QVERIFY(std::abs(expected.usedBytes / (used / trials) - 1) < 0.01);
            }
        // In a large array every lane has a sector of its own.
        const WarpCounts large = expectedRandomCounts(0, std::uint64_t(1) << 36, 4).value();
        QVERIFY(std::abs(large.sectors - 32) < 1e-6);
        QVERIFY(std::abs(large.efficiency() - 0.125) < 1e-6);
    }

    void takesOtherGranules()
    {
        // A host's "warp": eight lanes of a vector gather on 64-byte lines in 128-byte pairs.
        const GranuleSizes host{64, 128};
        const WarpAccess access = resolveRequest(stridedRequest(0, 4, 8, 8).value(), host).value();
        QCOMPARE(access.sectors.size(), std::size_t(4));
        QCOMPARE(access.lines.size(), std::size_t(2));
        QCOMPARE(access.fetchedBytes, std::uint64_t(256));
        QCOMPARE(stridedCounts(0, 4, 8, 8, host).value().sectors, 4.0);
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("found");
        QTest::addColumn<QString>("code");
        const std::uint64_t most = UINT64_MAX;

        QTest::newRow("element 0") << codeOf(stridedRequest(0, 1, 0)) << "access.element";
        QTest::newRow("element 4097") << codeOf(stridedRequest(0, 1, 4097)) << "access.element";
        QTest::newRow("no lanes") << codeOf(stridedRequest(0, 1, 4, 0)) << "access.lanes";
        QTest::newRow("minus one lanes") << codeOf(stridedRequest(0, 1, 4, -1)) << "access.lanes";
        QTest::newRow("1025 lanes") << codeOf(stridedRequest(0, 1, 4, 1025)) << "access.lanes";
        QTest::newRow("stride × element") << codeOf(stridedRequest(0, most / 2, 4)) << "access.overflow";
        QTest::newRow("lane × pitch") << codeOf(stridedRequest(0, most / 64, 4)) << "access.overflow";
        QTest::newRow("base + lanes") << codeOf(stridedRequest(most - 8, 1, 4)) << "access.overflow";
        QTest::newRow("closed form: element 0") << codeOf(stridedCounts(0, 1, 0)) << "access.element";
        QTest::newRow("closed form: no lanes") << codeOf(stridedCounts(0, 1, 4, 0)) << "access.lanes";
        QTest::newRow("closed form: stride") << codeOf(stridedCounts(0, most, 4)) << "access.overflow";
        QTest::newRow("closed form: granule") << codeOf(stridedCounts(0, 1, 4, 32, {48, 128})) << "access.granule";
        QTest::newRow("random: no elements") << codeOf(randomRequest(0, 1, 0, 4)) << "access.elements";
        QTest::newRow("random: element 0") << codeOf(randomRequest(0, 1, 9, 0)) << "access.element";
        QTest::newRow("random: array too large") << codeOf(randomRequest(0, 1, most / 2, 4)) << "access.overflow";
        QTest::newRow("expected: no elements") << codeOf(expectedRandomCounts(0, 0, 4)) << "access.elements";
        QTest::newRow("resolve: no lanes") << codeOf(resolveRequest({{}, 4})) << "access.lanes";
        QTest::newRow("resolve: width 0") << codeOf(resolveRequest({{0}, 0})) << "access.element";
        QTest::newRow("resolve: past the end") << codeOf(resolveRequest({{most - 2}, 4})) << "access.overflow";
        QTest::newRow("resolve: sector 0") << codeOf(resolveRequest({{0}, 4}, {0, 128})) << "access.granule";
        QTest::newRow("resolve: line 0") << codeOf(resolveRequest({{0}, 4}, {32, 0})) << "access.granule";
    }
    void refuses()
    {
        QFETCH(QString, found);
        QFETCH(QString, code);
        QCOMPARE(found, code);
    }

    void reachesTheLastByteOfTheAddressSpace()
    {
        const std::uint64_t last = UINT64_MAX - 3;
        const WarpAccess access = resolveRequest({{last, last}, 4}).value();
        QCOMPARE(drawn(access.sectors), QString("18446744073709551584[28,32)"));
        QCOMPARE(resolveRequest({{last}, 4}, {1, 1}).value().sectors.size(), std::size_t(4));
        QCOMPARE(stridedCounts(last, 0, 4).value().sectors, 1.0);
    }
};

QTEST_GUILESS_MAIN(TestWarp)
#include "tst_warp.moc"

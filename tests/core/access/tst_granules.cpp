// SPDX-License-Identifier: Apache-2.0
// The closed forms against counting byte by byte, and the expectations against drawing.
#include "core/access/granules.h"
#include "core/access/random.h"

#include <QtTest>

#include <cmath>
#include <set>

using namespace memscape;

namespace {

struct Counted
{
    std::uint64_t granules, visits, bytes;
};

/// By brute force: every byte of every element into sets.
Counted counted(const StridedWalk& walk, std::uint64_t granule)
{
    std::set<std::uint64_t> granules;
    std::set<std::uint64_t> bytes;
    std::uint64_t visits = 0;
    for (std::uint64_t i = 0; i < walk.count; ++i) {
        std::set<std::uint64_t> own;
        for (std::uint64_t b = 0; b < walk.width; ++b) {
            const std::uint64_t byte = walk.base + i * walk.pitch + b;
            own.insert(byte / granule);
            bytes.insert(byte);
        }
        visits += own.size();
        granules.merge(own);
    }
    return {granules.size(), visits, bytes.size()};
}

QString describe(const StridedWalk& walk, std::uint64_t granule)
{
    return QString("base %1 pitch %2 width %3 count %4 granule %5")
        .arg(walk.base)
        .arg(walk.pitch)
        .arg(walk.width)
        .arg(walk.count)
        .arg(granule);
}

void compareWithBruteForce(const StridedWalk& walk, std::uint64_t granule)
{
    const Counted expected = counted(walk, granule);
    const QByteArray text = describe(walk, granule).toUtf8();
    QVERIFY2(granulesTouched(walk, granule) == expected.granules, text);
    QVERIFY2(granuleVisits(walk, granule) == expected.visits, text);
    QVERIFY2(bytesTouched(walk) == expected.bytes, text);
}

} // namespace

class TestGranules : public QObject
{
    Q_OBJECT

private slots:
    void equalsBruteForceOnSmallWalks()
    {
        // Every relation between pitch, width and granule, both sides of the case border p = g + e - 1.
        for (const std::uint64_t granule : {1u, 3u, 8u})
            for (std::uint64_t pitch = 0; pitch <= 24; ++pitch)
                for (std::uint64_t width = 1; width <= 10; ++width)
                    for (std::uint64_t base = 0; base < granule; ++base)
                        for (const std::uint64_t count : {1u, 2u, 7u})
                            compareWithBruteForce({base, pitch, width, count}, granule);
    }

    void equalsBruteForceOnRandomWalks()
    {
        SplitMix64 random(7);
        for (int i = 0; i < 2000; ++i)
            compareWithBruteForce({random.below(5000), random.below(300), 1 + random.below(40), 1 + random.below(60)},
                                  1 + random.below(200));
    }

    void isExactWhereSumsAreHuge()
    {
        // 2^40 elements of 8 B, 68 B apart: of 16 neighbours (16 × 68 = 17 × 64) one straddles, at 60.
        const std::uint64_t count = std::uint64_t(1) << 40;
        QCOMPARE(granuleVisits({0, 68, 8, count}, 64).value(), count + count / 16);
        // 72 B apart the gap is exactly a granule, and the 8 B at multiples of 8 never straddle.
        QCOMPARE(granulesTouched({0, 72, 8, count}, 64).value(), count);
        // The last byte of the address space is an address like any other.
        QCOMPARE(granulesTouched({UINT64_MAX, 0, 1, 1}, 64).value(), std::uint64_t(1));
        QCOMPARE(granulesTouched({0, 1, 1, UINT64_MAX}, 4096).value(), std::uint64_t(1) << 52);
    }

    void expectsWhatDrawingShows_data()
    {
        QTest::addColumn<quint64>("base");
        QTest::addColumn<quint64>("width");
        QTest::addColumn<quint64>("elements");
        QTest::addColumn<quint64>("draws");
        QTest::addColumn<quint64>("granule");

        QTest::newRow("one warp, float, 4 KiB") << 0ull << 4ull << 1024ull << 32ull << 32ull;
        QTest::newRow("fewer elements than draws") << 0ull << 8ull << 10ull << 64ull << 32ull;
        QTest::newRow("misaligned array") << 20ull << 4ull << 100ull << 32ull << 32ull;
        QTest::newRow("12-byte elements straddle") << 0ull << 12ull << 200ull << 32ull << 32ull;
        QTest::newRow("elements larger than a sector") << 4ull << 40ull << 60ull << 16ull << 32ull;
        QTest::newRow("partial last granule") << 0ull << 4ull << 33ull << 5ull << 128ull;
        QTest::newRow("one element") << 30ull << 4ull << 1ull << 9ull << 32ull;
        QTest::newRow("everything in one granule") << 0ull << 1ull << 16ull << 3ull << 4096ull;
    }
    void expectsWhatDrawingShows()
    {
        QFETCH(quint64, base);
        QFETCH(quint64, width);
        QFETCH(quint64, elements);
        QFETCH(quint64, draws);
        QFETCH(quint64, granule);

        SplitMix64 random(2024);
        const int trials = 20000;
        double sum = 0, squares = 0;
        for (int trial = 0; trial < trials; ++trial) {
            std::set<std::uint64_t> touched;
            for (quint64 draw = 0; draw < draws; ++draw) {
                const std::uint64_t first = base + random.below(elements) * width;
                for (std::uint64_t g = first / granule; g <= (first + width - 1) / granule; ++g)
                    touched.insert(g);
            }
            sum += double(touched.size());
            squares += double(touched.size() * touched.size());
        }
        const double mean = sum / trials;
        const double deviation = std::sqrt(std::max(0.0, squares / trials - mean * mean) / trials);
        const double expected = expectedGranules({base, width, elements}, draws, granule).value();
        QVERIFY2(std::abs(expected - mean) <= 5 * deviation + 1e-4,
                 qPrintable(QString("expected %1, drew %2 ± %3").arg(expected).arg(mean).arg(deviation)));
    }

    void expectedDistinctHasItsLimits()
    {
        QCOMPARE(expectedDistinct(1, 5), 1.0);
        QCOMPARE(expectedDistinct(100, 0), 0.0);
        QCOMPARE(expectedDistinct(100, 1), 1.0);
        // Of 2^50 elements two draws are practically always distinct: no cancellation to 0 or 2.0001.
        QCOMPARE(expectedDistinct(std::uint64_t(1) << 50, 2), 2.0);
        QCOMPARE(expectedDistinct(10, 1'000'000), 10.0);
        // A terabyte costs no more time than a kilobyte.
        const ElementArray terabyte{0, 4, std::uint64_t(1) << 38};
        QVERIFY(std::abs(expectedGranules(terabyte, 32, 32).value() - 32.0) < 1e-6);
    }

    void refuses_data()
    {
        QTest::addColumn<quint64>("base");
        QTest::addColumn<quint64>("pitch");
        QTest::addColumn<quint64>("width");
        QTest::addColumn<quint64>("count");
        QTest::addColumn<quint64>("granule");
        QTest::addColumn<QString>("code");

        QTest::newRow("width 0") << 0ull << 4ull << 0ull << 1ull << 32ull << "access.element";
        QTest::newRow("count 0") << 0ull << 4ull << 4ull << 0ull << 32ull << "access.count";
        QTest::newRow("granule 0") << 0ull << 4ull << 4ull << 1ull << 0ull << "access.granule";
        QTest::newRow("base at the end") << quint64(-1) << 4ull << 4ull << 1ull << 32ull << "access.overflow";
        QTest::newRow("huge pitch") << 0ull << quint64(-1) << 4ull << 3ull << 32ull << "access.overflow";
        QTest::newRow("huge count") << 0ull << 16ull << 4ull << quint64(-1) << 32ull << "access.overflow";
    }
    void refuses()
    {
        QFETCH(quint64, base);
        QFETCH(quint64, pitch);
        QFETCH(quint64, width);
        QFETCH(quint64, count);
        QFETCH(quint64, granule);
        QFETCH(QString, code);

        const StridedWalk walk{base, pitch, width, count};
        const auto touched = granulesTouched(walk, granule);
        const auto visits = granuleVisits(walk, granule);
        QVERIFY(!touched && !visits);
        QCOMPARE(QString::fromStdString(touched.error().code), code);
        QCOMPARE(QString::fromStdString(visits.error().code), code);
        QVERIFY(!touched.error().hint.empty());
    }

    void refusesArrays()
    {
        const auto code = [](const Result<double>& result) {
            return QString::fromStdString(result ? "" : result.error().code);
        };
        QCOMPARE(code(expectedGranules({0, 4, 0}, 1, 32)), QString("access.elements"));
        QCOMPARE(code(expectedGranules({0, 0, 4}, 1, 32)), QString("access.element"));
        QCOMPARE(code(expectedGranules({0, 2u << 20, 4}, 1, 32)), QString("access.element"));
        QCOMPARE(code(expectedGranules({0, 4, 4}, 1, 0)), QString("access.granule"));
        QCOMPARE(code(expectedGranules({0, 16, std::uint64_t(1) << 62}, 1, 32)), QString("access.overflow"));
        QCOMPARE(expectedGranules({0, 4, 4}, 0, 32).value(), 0.0);
    }
};

QTEST_GUILESS_MAIN(TestGranules)
#include "tst_granules.moc"

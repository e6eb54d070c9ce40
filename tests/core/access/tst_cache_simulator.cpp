// SPDX-License-Identifier: Apache-2.0
// The simulator against a plain one made of lists, step() against run(), and by hand where the
// answer is in the textbooks.
#include "core/access/cache_simulator.h"
#include "core/access/random.h"
#include "tests/support/plain_hierarchy.h"

#include <QtTest>

#include <algorithm>

using namespace memscape;
using test::PlainHierarchy;

namespace {

/// Accesses of every size and kind, in a region that overflows all levels and in a hot one.
std::vector<MemoryAccess> randomTrace(std::uint64_t seed, std::uint64_t region, int count)
{
    SplitMix64 random(seed);
    std::vector<MemoryAccess> trace;
    for (int i = 0; i < count; ++i) {
        const std::uint64_t within = random.below(3) ? region / 16 : region;
        trace.push_back({random.below(within), std::uint32_t(1 + random.below(200)), random.below(4) == 0});
    }
    return trace;
}

/// Lines used several times in a row, read and written, at the top of the addresses.
std::vector<MemoryAccess> repeatingTrace(std::uint64_t seed, std::uint64_t region, int count)
{
    SplitMix64 random(seed);
    std::vector<MemoryAccess> trace;
    while (int(trace.size()) < count) {
        const std::uint64_t address = cacheAddressLimit - region + random.below(region / 16) * 16;
        for (std::uint64_t uses = 1 + random.below(4); uses > 0; --uses)
            trace.push_back({address + 4 * random.below(4), 4, random.below(3) == 0});
    }
    return trace;
}

/// A few regions as far apart as stack, heap and libraries, the first alone for the first half.
std::vector<MemoryAccess> scatteredTrace(std::uint64_t seed, std::uint64_t region, int count)
{
    SplitMix64 random(seed);
    std::vector<MemoryAccess> trace;
    for (int i = 0; i < count; ++i) {
        const std::uint64_t where = i < count / 2 ? 0 : random.below(4);
        const std::uint64_t base = where * 0x7f35'1234'5000 + (where << 55);
        trace.push_back({base + random.below(region), 4, random.below(4) == 0});
    }
    return trace;
}

CacheSimulator simulatorOf(const std::vector<CacheGeometry>& levels, CacheCounting counting = CacheCounting::Lines)
{
    return CacheSimulator::create(levels, counting).value();
}

QString errorOf(const auto& result)
{
    return QString::fromStdString(result ? "" : result.error().code);
}

/// "L1 miss 0x40 way 0, L2 hit 0x40 way 2": what a picture animates, as text.
QString told(const CacheSimulator& simulator, const AccessEvent& event)
{
    QStringList parts;
    for (const CacheLookup& lookup : event.lookups) {
        QString part = QString("%1 %2 %3 way %4")
                           .arg(simulator.levels()[lookup.level].geometry().name.c_str())
                           .arg(lookup.hit ? "hit" : "miss")
                           .arg(lookup.line)
                           .arg(lookup.way);
        if (lookup.evicted)
            part += QString(" evicts %1").arg(lookup.evictedLine);
        if (lookup.writeBack)
            part += " back";
        parts << part;
    }
    return parts.join(", ");
}

} // namespace

Q_DECLARE_METATYPE(std::vector<memscape::CacheGeometry>)

class TestCacheSimulator : public QObject
{
    Q_OBJECT

private slots:
    void equalsThePlainHierarchy_data()
    {
        QTest::addColumn<std::vector<CacheGeometry>>("levels");
        using Levels = std::vector<CacheGeometry>;
        QTest::newRow("one level") << Levels{{"L1", 4096, 4, 64}};
        QTest::newRow("direct mapped") << Levels{{"L1", 2048, 1, 64}};
        QTest::newRow("fully associative") << Levels{{"L1", 4096, 64, 64}};
        QTest::newRow("one line") << Levels{{"L1", 64, 1, 64}};
        QTest::newRow("12 ways") << Levels{{"L1", 48 << 10, 12, 64}};
        QTest::newRow("three sets") << Levels{{"L1", 3 * 128, 2, 64}};
        QTest::newRow("two levels") << Levels{{"L1", 2048, 2, 64}, {"L2", 16384, 8, 64}};
        QTest::newRow("three levels, odd sets")
            << Levels{{"L1", 1536, 4, 32}, {"L2", 5 * 1024, 8, 32}, {"L3", 7 * 4096, 16, 32}};
        QTest::newRow("17 ways") << Levels{{"L1", 17 * 256, 17, 64}};
        QTest::newRow("8, 16 and 20 ways")
            << Levels{{"L1", 4096, 8, 64}, {"L2", 16384, 16, 64}, {"L3", 20 * 2048, 20, 64}};
        QTest::newRow("9 and 15 ways, odd sets") << Levels{{"L1", 9 * 192, 9, 64}, {"L2", 15 * 960, 15, 64}};
        QTest::newRow("outer level smaller") << Levels{{"L1", 4096, 4, 64}, {"L2", 1024, 2, 64}};
    }
    void equalsThePlainHierarchy()
    {
        QFETCH(std::vector<CacheGeometry>, levels);
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
            CacheSimulator simulator = simulatorOf(levels);
            PlainHierarchy plain(levels);
            const auto trace = seed < 4 ? randomTrace(seed, 64 << 10, 20000)
                : seed < 8              ? repeatingTrace(seed, 64 << 10, 20000)
                                        : scatteredTrace(seed, 8 << 10, 20000);
            for (const MemoryAccess& access : trace)
                plain.access(access);
            QVERIFY(simulator.run(trace));
            QVERIFY(simulator.counters() == plain.counters());
            QVERIFY(simulator.memory() == plain.memory);
        }
    }

    void equalsThePlainHierarchyInALargeLevel()
    {
        // Twice through more lines than the outer level has, which is fetched ahead from 2^16 lines on.
        const std::vector<CacheGeometry> levels = {{"L1", 4096, 8, 16}, {"L2", 2 << 20, 16, 16}};
        auto trace = repeatingTrace(3, 3 << 20, 400000);
        CacheSimulator simulator = simulatorOf(levels);
        PlainHierarchy plain(levels);
        for (const MemoryAccess& access : trace)
            plain.access(access);
        QVERIFY(simulator.run(trace));
        QVERIFY(simulator.counters() == plain.counters());
        QVERIFY(simulator.memory() == plain.memory);
        QVERIFY(simulator.counters()[1].writeBacks > 0);
    }

    void stepsAndRunsAlike_data()
    {
        QTest::addColumn<std::vector<CacheGeometry>>("levels");
        QTest::addColumn<bool>("whole");
        using Levels = std::vector<CacheGeometry>;
        const std::vector<std::pair<const char*, Levels>> hierarchies = {
            {"one level", {{"L1", 2048, 2, 64}}},
            {"two levels", {{"L1", 2048, 2, 64}, {"L2", 24576, 12, 64}}},
            {"three levels", {{"L1", 4096, 8, 64}, {"L2", 16384, 16, 64}, {"L3", 40960, 20, 64}}},
            {"odd sets", {{"L1", 9 * 192, 9, 64}, {"L2", 15 * 960, 15, 64}}},
            {"outer level smaller", {{"L1", 4096, 4, 64}, {"L2", 1024, 2, 64}}},
        };
        for (const auto& [name, levels] : hierarchies) {
            QTest::addRow("%s, lines", name) << levels << false;
            QTest::addRow("%s, accesses", name) << levels << true;
        }
    }
    void stepsAndRunsAlike()
    {
        QFETCH(std::vector<CacheGeometry>, levels);
        QFETCH(bool, whole);
        const auto counting = whole ? CacheCounting::Accesses : CacheCounting::Lines;
        CacheSimulator stepped = simulatorOf(levels, counting);
        CacheSimulator ran = simulatorOf(levels, counting);
        auto trace = randomTrace(11, 64 << 10, 30000);
        for (const auto& more : {repeatingTrace(12, 32 << 10, 20000), scatteredTrace(13, 8 << 10, 20000)})
            trace.insert(trace.end(), more.begin(), more.end());
        std::uint64_t lookups = 0, evictions = 0, writeBacks = 0;
        for (const MemoryAccess& access : trace) {
            const AccessEvent event = stepped.step(access).value();
            for (const CacheLookup& lookup : event.lookups) {
                ++lookups;
                evictions += lookup.evicted;
                writeBacks += lookup.writeBack;
            }
        }
        // In pieces that are no multiple of a batch; what a batch leaves waiting would show.
        for (std::size_t at = 0; at < trace.size(); at += 7001)
            QVERIFY(ran.run(std::span(trace).subspan(at, std::min<std::size_t>(7001, trace.size() - at))));
        QVERIFY(stepped.counters() == ran.counters());
        QVERIFY(stepped.memory() == ran.memory());
        CacheCounters all;
        for (std::size_t level = 0; level < levels.size(); ++level) {
            all.reads += ran.counters()[level].references();
            all.evictions += ran.counters()[level].evictions;
            all.writeBacks += ran.counters()[level].writeBacks;
            for (std::uint64_t set = 0; set < levels[level].sets(); ++set)
                QVERIFY(stepped.levels()[level].contents(set) == ran.levels()[level].contents(set));
        }
        QCOMPARE(evictions, all.evictions);
        QCOMPARE(writeBacks, all.writeBacks);
        if (!whole)
            QCOMPARE(lookups, all.reads);
    }

    void tellsWhatAnAccessDid()
    {
        CacheSimulator simulator = simulatorOf({{"L1", 128, 2, 64}, {"L2", 512, 4, 64}});
        const auto tell = [&](std::uint64_t address, bool isWrite = false) {
            return told(simulator, simulator.step({address, 4, isWrite}).value());
        };
        QCOMPARE(tell(4, true), QString("L1 miss 0 way 0, L2 miss 0 way 0"));
        QCOMPARE(tell(64), QString("L1 miss 64 way 1, L2 miss 64 way 0"));
        QCOMPARE(tell(60), QString("L1 hit 0 way 0"));
        // 64 is now the least recent; then 0, which was written.
        QCOMPARE(tell(128), QString("L1 miss 128 way 1 evicts 64, L2 miss 128 way 1"));
        QCOMPARE(tell(64), QString("L1 miss 64 way 0 evicts 0 back, L2 hit 64 way 0"));
        // 8 bytes at 124 lie in two lines.
        const AccessEvent crossing = simulator.step({124, 8, false}).value();
        QCOMPARE(told(simulator, crossing), QString("L1 hit 64 way 0, L1 hit 128 way 1"));
        QCOMPARE(crossing.servedBy, std::size_t(0));
        QCOMPARE(simulator.step({0, 4, false}).value().servedBy, std::size_t(1));
        QCOMPARE(simulator.step({1 << 20, 4, false}).value().servedBy, std::size_t(2));
    }

    void keepsALineInItsWay()
    {
        CacheSimulator simulator = simulatorOf({{"L1", 512, 8, 64}});
        for (std::uint64_t line = 0; line < 8; ++line)
            QCOMPARE(simulator.step({line * 64, 4, line == 5}).value().lookups[0].way, std::uint32_t(line));
        QVERIFY(simulator.step({3 * 64, 4, false}));
        const auto held = simulator.levels()[0].contents(0);
        for (std::uint64_t way = 0; way < 8; ++way) {
            QVERIFY(held[way].valid);
            QCOMPARE(held[way].line, way);
            QCOMPARE(held[way].dirty, way == 5);
        }
        QCOMPARE(held[3].recency, 0u);
        QCOMPARE(held[7].recency, 1u);
        QCOMPARE(held[0].recency, 7u);
        simulator.clear();
        QVERIFY(!simulator.levels()[0].contents(0)[3].valid);
        QCOMPARE(simulator.counters()[0].references(), std::uint64_t(0));
    }

    void namesLinesWhereverTheyAre()
    {
        // Every bit of an address counts: lines that differ in one are eight in a set of eight ways, and
        // each is reported whole when the next eight push it out.
        for (const std::uint64_t sets : {64u, 48u}) {
            CacheSimulator simulator = simulatorOf({{"L1", sets * 512, 8, 64}});
            for (int bit = 20; bit + 8 <= 57; ++bit) {
                simulator.clear();
                std::vector<std::uint64_t> lines;
                for (std::uint64_t i = 0; i < 16; ++i) // in set 0 of 64 and of 48
                    lines.push_back(((i << bit) + (std::uint64_t(5) << 50) * (i / 8)) / (3 * 4096)
                                    % (cacheAddressLimit / (3 * 4096)) * (3 * 4096));
                for (std::uint64_t i = 0; i < 16; ++i) {
                    const CacheLookup lookup = simulator.step({lines[i], 4, false}).value().lookups[0];
                    QVERIFY(!lookup.hit);
                    QCOMPARE(lookup.evicted, i >= 8);
                    if (i >= 8)
                        QCOMPARE(lookup.evictedLine, lines[i - 8]);
                }
            }
        }
    }

    void replacesTheLeastRecent()
    {
        // Against a stack distance: with true LRU an access hits exactly when fewer than `ways` other
        // lines were touched since its last use.
        const std::uint64_t ways = 6;
        CacheSimulator simulator = simulatorOf({{"L1", ways * 64, ways, 64}});
        SplitMix64 random(3);
        std::vector<std::uint64_t> stack;
        for (int i = 0; i < 5000; ++i) {
            const std::uint64_t line = random.below(10);
            const auto found = std::ranges::find(stack, line);
            const bool expected = found != stack.end() && std::uint64_t(found - stack.begin()) < ways;
            if (found != stack.end())
                stack.erase(found);
            stack.insert(stack.begin(), line);
            QCOMPARE(simulator.step({line * 64, 4, false}).value().lookups[0].hit, expected);
        }
    }

    void missesEveryTimeJustBeyondItsCapacity()
    {
        // The cliff of LRU: 512 lines walked in circles all hit, 512 + 64 lines (one more per set) all
        // miss.
        for (const std::uint64_t lines : {512u, 576u}) {
            CacheSimulator simulator = simulatorOf({{"L1", 32 << 10, 8, 64}});
            const auto pass = [&] {
                for (std::uint64_t line = 0; line < lines; ++line)
                    QVERIFY(simulator.step({line * 64, 8, false}));
            };
            pass();
            simulator.resetCounters();
            pass();
            QCOMPARE(simulator.counters()[0].misses(), lines == 512 ? std::uint64_t(0) : lines);
        }
    }

    void conflictsWhenSetsAreFew()
    {
        // Nine lines 4 KiB apart share one set of a 32 KiB 8-way cache; a 12-way one holds them.
        for (const std::uint64_t ways : {8u, 12u}) {
            CacheSimulator simulator = simulatorOf({{"L1", ways * 4096, ways, 64}});
            for (int pass = 0; pass < 3; ++pass)
                for (std::uint64_t i = 0; i < 9; ++i)
                    QVERIFY(simulator.step({i * 4096, 4, false}));
            QCOMPARE(simulator.counters()[0].misses(), std::uint64_t(ways == 8 ? 27 : 9));
        }
    }

    void writesBackDirtyLines()
    {
        // 64 KiB are written through a 4 KiB cache: every line is read first (write-allocate) and goes
        // back when it is evicted; the last 4 KiB are still there.
        CacheSimulator simulator = simulatorOf({{"L1", 4096, 4, 64}});
        QVERIFY(simulator.run(16384, [address = std::uint64_t(0)]() mutable {
            return MemoryAccess{4 * address++, 4, true};
        }));
        QCOMPARE(simulator.memory().linesRead, std::uint64_t(1024));
        QCOMPARE(simulator.memory().linesWritten, std::uint64_t(1024 - 64));
        QCOMPARE(simulator.counters()[0].writeMisses, std::uint64_t(1024));
        QCOMPARE(simulator.counters()[0].reads, std::uint64_t(0));
    }

    void countsAccessesThatCrossLines()
    {
        const std::vector<CacheGeometry> levels = {{"D1", 4096, 4, 64}, {"LL", 16384, 4, 64}};
        // 8 bytes at 60: two lines, both missing.
        CacheSimulator lines = simulatorOf(levels);
        QVERIFY(lines.step({60, 8, false}));
        QCOMPARE(lines.counters()[0].readMisses, std::uint64_t(2));
        CacheSimulator accesses = simulatorOf(levels, CacheCounting::Accesses);
        QVERIFY(accesses.step({60, 8, false}));
        QCOMPARE(accesses.counters()[0].reads, std::uint64_t(1));
        QCOMPARE(accesses.counters()[0].readMisses, std::uint64_t(1));
        QCOMPARE(accesses.counters()[1].readMisses, std::uint64_t(1));
        QCOMPARE(accesses.memory().linesRead, std::uint64_t(2));
        // Its second line is here, its third is not: one more miss, in both levels.
        QVERIFY(accesses.step({124, 8, true}));
        QCOMPARE(accesses.counters()[0].writeMisses, std::uint64_t(1));
        QCOMPARE(accesses.counters()[1].writeMisses, std::uint64_t(1));
        QCOMPARE(accesses.memory().linesRead, std::uint64_t(3));
        QVERIFY(accesses.step({60, 72, false}));
        QCOMPARE(accesses.counters()[0].readMisses, std::uint64_t(1));
    }

    void generatesAddressesAsItRuns()
    {
        // A count that is no multiple of the batch, against the same trace from a vector.
        const auto trace = randomTrace(5, 1 << 16, 5000);
        CacheSimulator generated = simulatorOf({{"L1", 2048, 2, 64}});
        CacheSimulator whole = simulatorOf({{"L1", 2048, 2, 64}});
        std::size_t next = 0;
        QVERIFY(generated.run(trace.size(), [&] { return trace[next++]; }));
        QVERIFY(whole.run(trace));
        QCOMPARE(next, trace.size());
        QVERIFY(generated.counters() == whole.counters());
        QVERIFY(generated.run(0, [] { return MemoryAccess{}; }));
    }

    void keepsItsContentsWhenCountersAreReset()
    {
        CacheSimulator simulator = simulatorOf({{"L1", 2048, 2, 64}});
        QVERIFY(simulator.step({0, 4, true}));
        simulator.resetCounters();
        QVERIFY(simulator.memory() == MemoryTraffic{});
        QVERIFY(simulator.step({0, 4, false}).value().lookups[0].hit);
        QCOMPARE(simulator.counters()[0].references(), std::uint64_t(1));
    }

    void refusesGeometries_data()
    {
        QTest::addColumn<std::vector<CacheGeometry>>("levels");
        QTest::addColumn<QString>("code");
        using Levels = std::vector<CacheGeometry>;
        QTest::newRow("no level") << Levels{} << "cache.levels";
        QTest::newRow("nine levels") << Levels(9) << "cache.levels";
        QTest::newRow("line 0") << Levels{{"L1", 4096, 4, 0}} << "cache.line";
        QTest::newRow("line 48") << Levels{{"L1", 4096, 4, 48}} << "cache.line";
        QTest::newRow("line 8") << Levels{{"L1", 4096, 4, 8}} << "cache.line";
        QTest::newRow("line 8192") << Levels{{"L1", 65536, 1, 8192}} << "cache.line";
        QTest::newRow("lines differ") << Levels{{"L1", 4096, 4, 64}, {"L2", 8192, 4, 128}} << "cache.line";
        QTest::newRow("no ways") << Levels{{"L1", 4096, 0, 64}} << "cache.ways";
        QTest::newRow("513 ways") << Levels{{"L1", 513 * 64, 513, 64}} << "cache.ways";
        QTest::newRow("huge ways") << Levels{{"L1", 4096, UINT64_MAX / 32, 64}} << "cache.ways";
        QTest::newRow("no bytes") << Levels{{"L1", 0, 4, 64}} << "cache.size";
        QTest::newRow("half a set") << Levels{{"L1", 4096 + 128, 4, 64}} << "cache.size";
        QTest::newRow("an exabyte") << Levels{{"L1", std::uint64_t(1) << 60, 16, 64}} << "cache.size";
        QTest::newRow("second level wrong") << Levels{{"L1", 4096, 4, 64}, {"L2", 8192, 0, 64}} << "cache.ways";
    }
    void refusesGeometries()
    {
        QFETCH(std::vector<CacheGeometry>, levels);
        QFETCH(QString, code);
        const auto result = CacheSimulator::create(levels);
        QCOMPARE(errorOf(result), code);
        QVERIFY(!result.error().hint.empty());
        if (levels.size() == 2)
            QCOMPARE(result.error().place, std::string("L2"));
    }

    void refusesAccesses()
    {
        CacheSimulator simulator = simulatorOf({{"L1", 4096, 4, 64}});
        QCOMPARE(errorOf(simulator.step({0, 0, false})), QString("access.size"));
        QCOMPARE(errorOf(simulator.step({0, accessSizeLimit + 1, false})), QString("access.size"));
        QCOMPARE(errorOf(simulator.step({UINT64_MAX, 4, false})), QString("access.address"));
        QCOMPARE(errorOf(simulator.step({cacheAddressLimit - 2, 4, false})), QString("access.address"));
        QCOMPARE(simulator.counters()[0].references(), std::uint64_t(0));
        QVERIFY(simulator.step({cacheAddressLimit - 4, 4, true}).has_value());
        QVERIFY(simulator.step({cacheAddressLimit - 4, 4, false}).value().lookups[0].hit);

        // The bulk run makes what comes before the wrong one, and says the same.
        const std::vector<MemoryAccess> trace = {{0, 4, false}, {64, 4, false}, {0, 0, false}, {128, 4, false}};
        simulator.clear();
        QCOMPARE(errorOf(simulator.run(trace)), QString("access.size"));
        QCOMPARE(simulator.counters()[0].references(), std::uint64_t(2));
        QCOMPARE(errorOf(simulator.run(std::vector<MemoryAccess>{{UINT64_MAX - 3, 4, false}})),
                 QString("access.address"));
        QCOMPARE(errorOf(simulator.run(3, [] { return MemoryAccess{0, 0, false}; })), QString("access.size"));
    }
};

QTEST_GUILESS_MAIN(TestCacheSimulator)
#include "tst_cache_simulator.moc"

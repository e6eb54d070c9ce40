// SPDX-License-Identifier: Apache-2.0
// Allocators beside PyTorch's on cases that are worked out by hand, plans against every order of placement of tiny
// traces, scripts with what is wrong in them, and pages against a count page by page.
#include "core/access/random.h"
#include "core/trace/packing.h"
#include "core/trace/policy_replay.h"
#include "core/trace/touched_pages.h"
#include "core/trace/trace_script.h"

#include <QtTest>

#include <algorithm>
#include <numeric>
#include <set>

using namespace memscape;

namespace {

constexpr std::int64_t kib = 1024, mib = 1024 * kib;

PolicyReplay played(const std::string& script, const std::string& setting)
{
    return replayRequests(parseTraceScript(script).value(), readSetting(setting).value()).value();
}

/// Blocks that live from one request to another, in a few requests.
RequestTrace randomTrace(std::uint64_t seed, int blocks)
{
    SplitMix64 random(seed);
    std::string script;
    std::vector<int> alive;
    for (int made = 0; made < blocks || !alive.empty();) {
        if (made < blocks && (alive.empty() || random.below(3) != 0)) {
            script += "alloc b" + std::to_string(made) + " " + std::to_string(512 * (1 + random.below(9))) + ";";
            alive.push_back(made++);
        } else {
            const std::size_t at = std::size_t(random.below(alive.size()));
            script += "free b" + std::to_string(alive[at]) + ";";
            alive.erase(alive.begin() + std::ptrdiff_t(at));
        }
    }
    return parseTraceScript(script).value();
}

bool liveTogether(LifeSpan a, LifeSpan b)
{
    return a.begin < b.end && b.begin < a.end;
}

/// The smallest arena: some order of placement at lowest addresses gives it, so all are tried.
std::int64_t smallestArena(const RequestTrace& trace)
{
    const std::vector<LifeSpan> lives = lifetimesOf(trace);
    std::vector<BlockId> order(trace.blocks.size() - 1);
    std::iota(order.begin(), order.end(), BlockId(1));
    std::int64_t best = INT64_MAX;
    do {
        std::vector<std::int64_t> at(trace.blocks.size());
        std::int64_t top = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const BlockId block = order[i];
            for (bool moved = true; moved;) {
                moved = false;
                for (std::size_t k = 0; k < i; ++k) {
                    const BlockId other = order[k];
                    const bool overlaps = at[block] < at[other] + trace.blocks[other].bytes
                        && at[other] < at[block] + trace.blocks[block].bytes;
                    if (overlaps && liveTogether(lives[block], lives[other])) {
                        at[block] = at[other] + trace.blocks[other].bytes;
                        moved = true;
                    }
                }
            }
            top = std::max(top, at[block] + trace.blocks[block].bytes);
        }
        best = std::min(best, top);
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
}

bool overlaps(const RequestTrace& trace, const Packing& packing)
{
    const std::vector<LifeSpan> lives = lifetimesOf(trace);
    for (BlockId a = 1; a < trace.blocks.size(); ++a)
        for (BlockId b = 1; b < a; ++b)
            if (liveTogether(lives[a], lives[b]) && packing.offsets[a] < packing.offsets[b] + packing.sizes[b]
                && packing.offsets[b] < packing.offsets[a] + packing.sizes[a])
                return true;
    return false;
}

/// Segments are tiled by blocks, blocks that are alive are there once, sums agree with the counts.
void checkSegments(const RequestTrace& trace, const std::string& setting)
{
    const auto policy = makePolicy(readSetting(setting).value(), trace).value();
    std::set<BlockId> alive;
    for (const Request& request : trace.requests) {
        policy->play(request, trace.blocks[request.block]);
        if (request.kind == RequestKind::Allocate)
            alive.insert(request.block);
        else
            alive.erase(request.block);
        std::set<BlockId> found;
        std::int64_t reserved = 0, allocated = 0;
        for (const PolicySegment& segment : policy->segments()) {
            std::uint64_t at = segment.address;
            for (const PolicyBlock& block : segment.blocks) {
                QCOMPARE(block.address, at);
                at += std::uint64_t(block.size);
                if (block.block == noBlock)
                    continue;
                QVERIFY(found.insert(block.block).second);
                QVERIFY(block.size >= trace.blocks[block.block].bytes);
                allocated += block.size;
            }
            QCOMPARE(at, segment.address + std::uint64_t(segment.size));
            reserved += segment.size;
        }
        QVERIFY(found == alive);
        QCOMPARE(policy->counts().reserved, reserved);
        QCOMPARE(policy->counts().allocated, allocated);
    }
}

const char* const mixedScript =
    "alloc a 3MiB; alloc b 1MiB; alloc c 2MiB; free a; alloc d 1MiB; free c; free b; alloc e 4MiB;"
    "empty_cache; free d; free e; empty_cache";

} // namespace

// Blocks of 4, 1, 2 and 1 MiB side by side; the first and the third are freed: holes of 4 and 2 MiB.
const char* const twoHoles = "alloc a 4MiB; alloc b 1MiB; alloc c 2MiB; alloc d 1MiB; free a; free c;";

class TestMemoryPolicies : public QObject
{
    Q_OBJECT

private slots:
    void firstFitTakesTheLowestHole()
    {
        const auto trace = parseTraceScript(std::string(twoHoles) + "alloc e 2MiB; alloc f 4MiB").value();
        const auto policy = makePolicy(readSetting("first-fit").value(), trace).value();
        std::vector<PolicyAct> acts;
        for (const Request& request : trace.requests)
            acts.push_back(policy->play(request, trace.blocks[request.block]));
        const PolicyAct& e = acts[6];
        QCOMPARE(e.address, acts[0].address); // where a was, though c's hole is exact
        QCOMPARE(e.found, 4 * mib);
        QCOMPARE(e.rest, 2 * mib);
        QCOMPARE(acts[7].taken, 4 * mib); // neither hole has 4 MiB any more
        QCOMPARE(policy->counts().reserved, 12 * mib);
    }

    void bestFitTakesTheSmallestHole()
    {
        const auto replay = played(std::string(twoHoles) + "alloc e 2MiB; alloc f 4MiB", "best-fit");
        QCOMPARE(replay.peak.reserved, 8 * mib); // both fit
        QCOMPARE(replay.totals.takes, 4);
        QCOMPARE(replay.peak.segments, 1);
        QCOMPARE(replay.reservedPeak.unusable(), 0); // nothing was free when it grew last
    }

    void aHoleAtTheEndGrowsWithTheArena()
    {
        const auto replay = played("alloc a 1MiB; alloc b 2MiB; free b; alloc c 3MiB", "first-fit");
        QCOMPARE(replay.peak.reserved, 4 * mib);
        QCOMPARE(replay.totals.takenBytes, 4 * mib);
        // In the middle there is no room to grow: 2 MiB lie idle, and cannot be used.
        const auto stuck = played("alloc a 2MiB; alloc b 1MiB; free a; alloc c 3MiB", "first-fit");
        QCOMPARE(stuck.peak.reserved, 6 * mib);
        QCOMPARE(stuck.reservedPeak.free, 2 * mib);
        QCOMPARE(stuck.reservedPeak.share(), 2.0 / 6);
    }

    void powersOfTwoRoundUpAndNeverMerge()
    {
        const auto replay = played(
            "alloc a 3MiB; alloc b 3MiB; free a; free b; alloc c 5MiB; alloc d 700KiB; alloc e 1MiB", "powers-of-two");
        QCOMPARE(replay.peak.reserved, (4 + 4 + 8 + 2) * mib); // d and e share a slab of 2 MiB
        QCOMPARE(replay.peak.segments, 4);
        QCOMPARE(replay.end.allocated, (8 + 1 + 1) * mib);
        QCOMPARE(replay.end.requested, (5 + 1) * mib + 700 * kib);
    }

    void powerOfTwo_data()
    {
        QTest::addColumn<qint64>("bytes");
        QTest::addColumn<qint64>("expected");
        QTest::newRow("one byte") << qint64(1) << qint64(512);
        QTest::newRow("512") << qint64(512) << qint64(512);
        QTest::newRow("513") << qint64(513) << qint64(1024);
        QTest::newRow("1 MiB") << qint64(mib) << qint64(mib);
        QTest::newRow("1 MiB and one") << qint64(mib + 1) << qint64(2 * mib);
        QTest::newRow("1 PiB") << (qint64(1) << 50) << (qint64(1) << 50);
    }
    void powerOfTwo()
    {
        QFETCH(qint64, bytes);
        QTEST(qint64(powerOfTwoFor(bytes)), "expected");
    }

    // mallopt(3): requests from 128 KiB on are mapped; a freed mapping raises that to its size, up to 32 MiB.
    void mallocMapsLargeBlocksAndLearns()
    {
        const auto trace =
            parseTraceScript("alloc a 1MiB; free a; alloc b 1MiB; alloc c 64MiB; free c; alloc d 64MiB").value();
        const auto policy = makePolicy(readSetting("malloc").value(), trace).value();
        std::vector<PolicyAct> acts;
        for (const Request& request : trace.requests)
            acts.push_back(policy->play(request, trace.blocks[request.block]));
        QCOMPARE(acts[0].pool, std::string("mapping"));
        QCOMPARE(acts[0].taken, mib + 4096); // 16 bytes of its own, a whole page
        QCOMPARE(acts[1].returned, mib + 4096);
        QCOMPARE(acts[2].pool, std::string("heap")); // it learned
        QCOMPARE(acts[3].pool, std::string("mapping"));
        QCOMPARE(acts[5].pool, std::string("mapping")); // 64 MiB teach nothing
    }

    void cudaMallocGivesEverythingBack()
    {
        const auto replay = played("alloc a 3MiB; alloc b 5MiB; free a; free b; alloc c 1KiB; free c", "cudaMalloc");
        QCOMPARE(replay.peak.reserved, (4 + 6) * mib); // pages of 2 MiB
        QCOMPARE(replay.end.reserved, 2 * mib);        // the slab of small blocks stays
        QCOMPARE(replay.totals.returns, 2);
    }

    void aLimitRefuses_data()
    {
        QTest::addColumn<QString>("setting");
        for (const char* setting : {"default", "expandable_segments", "first-fit", "best-fit", "powers-of-two",
                                    "malloc", "cudaMalloc", "cudaMallocAsync", "largest-first", "lifetime-colouring"})
            QTest::newRow(setting) << setting;
    }
    void aLimitRefuses()
    {
        QFETCH(QString, setting);
        PolicySetting limited = readSetting(setting.toStdString()).value();
        limited.options.deviceLimit = 100 * mib;
        const auto trace = parseTraceScript("alloc a 60MiB; alloc b 60MiB").value();
        const auto replay = replayRequests(trace, limited).value();
        QVERIFY(replay.refusal);
        QCOMPARE(replay.refusal->request, std::size_t(limited.isPlanned() ? 0 : 1));
        QCOMPARE(replay.refusal->bytes, 60 * mib);
        QVERIFY(replay.peak.reserved <= 100 * mib);
        limited.options.deviceLimit = 200 * mib;
        QVERIFY(!replayRequests(trace, limited).value().refusal);
    }

    void blocksTileTheirSegments_data()
    {
        aLimitRefuses_data();
        QTest::newRow("max_split_size_mb:32") << QString("max_split_size_mb:32");
        QTest::newRow("roundup_power2_divisions:4") << QString("roundup_power2_divisions:4");
    }
    void blocksTileTheirSegments()
    {
        QFETCH(QString, setting);
        checkSegments(parseTraceScript(mixedScript).value(), setting.toStdString());
        for (std::uint64_t seed = 1; seed <= 5; ++seed)
            checkSegments(randomTrace(seed, 40), setting.toStdString());
    }

    void plansAgainstEveryOrder()
    {
        int exact = 0; // times that largest first is as good as any
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            const RequestTrace trace = randomTrace(seed, 6);
            const std::int64_t bound = peakOfLiveBytes(trace), best = smallestArena(trace);
            const Packing packed = packLargestFirst(trace).value(), coloured = colourLifetimes(trace).value();
            QVERIFY(bound <= best);
            QVERIFY(best <= packed.bytes && best <= coloured.bytes);
            QVERIFY(!overlaps(trace, packed) && !overlaps(trace, coloured));
            exact += packed.bytes == best;
        }
        QVERIFY2(exact >= 50, qPrintable(QString::number(exact))); // a heuristic, and a good one
    }

    void coloursAreAsManyAsBlocksThatLiveAtOnce()
    {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            const RequestTrace trace = randomTrace(seed, 30);
            std::size_t live = 0, most = 0;
            for (const Request& request : trace.requests) {
                live += request.kind == RequestKind::Allocate ? 1 : std::size_t(-1);
                most = std::max(most, live);
            }
            const Packing coloured = colourLifetimes(trace).value();
            QCOMPARE(coloured.buffers, most); // an interval graph is perfect
            QVERIFY(!overlaps(trace, coloured));
        }
    }

    void anotherStreamKeepsABlockUntilTheyAreSynchronized()
    {
        for (const char* setting : {"default", "first-fit", "powers-of-two"}) {
            const auto waiting = played("alloc a 30MiB; record a stream 1; free a; alloc b 30MiB", setting);
            const auto finished =
                played("alloc a 30MiB; record a stream 1; free a; synchronize; alloc b 30MiB", setting);
            QCOMPARE(waiting.peak.reserved, 2 * finished.peak.reserved);
            QCOMPARE(waiting.end.requested, waiting.end.requested);
            QCOMPARE(finished.end.requested, 30 * mib);
            // empty_cache() synchronizes first, and then the block goes.
            const auto emptied =
                played("alloc a 30MiB; record a stream 1; free a; empty_cache; alloc b 30MiB", setting);
            QCOMPARE(emptied.peak.reserved, finished.peak.reserved);
        }
        // PyTorch never gives a block to another stream.
        QCOMPARE(played("alloc a 30MiB; free a; alloc b 30MiB stream 1", "default").peak.reserved, 60 * mib);
        QCOMPARE(played("alloc a 30MiB; free a; alloc b 30MiB stream 1", "best-fit").peak.reserved, 30 * mib);
    }

    void emptyCacheKeepsSegmentsWithALivingBlock()
    {
        // a, b and c share a segment of 20 MiB; d has one of its own.
        const std::string script =
            "alloc a 5MiB; alloc b 5MiB; alloc c 5MiB; alloc d 40MiB; free a; free c; free d; empty_cache";
        const auto kept = played(script, "default");
        QCOMPARE(kept.end.reserved, 20 * mib);
        QCOMPARE(kept.end.allocated, 5 * mib);
        QCOMPARE(played(script + "; free b; empty_cache", "default").end.reserved, std::int64_t(0));
    }

    void wordsSayWhatHappened()
    {
        // A block of 118 MiB is freed; 96 MiB of it are used again.
        const auto trace =
            parseTraceScript("alloc a 118MiB; free a; alloc b 96MiB; alloc c 19MiB; free b; alloc d 300MiB").value();
        const PolicySetting setting = readSetting("default").value();
        const auto policy = makePolicy(setting, trace).value();
        std::vector<std::string> words;
        for (std::size_t i = 0; i < trace.requests.size(); ++i) {
            const auto before = policy->segments();
            const PolicyAct act = policy->play(trace.requests[i], trace.blocks[trace.requests[i].block]);
            std::string text;
            for (const std::string& line : actText(trace, i, act, setting, before))
                text += line + "|";
            words.push_back(text);
        }
        QCOMPARE(words[0], std::string("118 MiB: nothing is free in the large pool|118 MiB taken from the driver|"));
        QCOMPARE(words[2],
                 std::string("96 MiB from the large pool: best fit|118 MiB block, rest 22 MiB > 1 MiB: split, 22 MiB "
                             "stay free|"));
        QVERIFY(words[3].find("19 MiB") == 0 && words[3].find("split") != std::string::npos);
        QVERIFY(words[4].find("96 MiB freed; it stays in the large pool") == 0);
        QVERIFY(words[5].find(
                    "300 MiB: no free block of the large pool fits; 99 MiB are free in it, the largest piece 96 MiB")
                == 0);
    }

    void settings_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("error");
        QTest::newRow("default") << "default"
                                 << "";
        QTest::newRow("nothing") << ""
                                 << "";
        QTest::newRow("expandable") << "expandable_segments"
                                    << "";
        QTest::newRow("PyTorch's text") << "max_split_size_mb:128,garbage_collection_threshold:0.8"
                                        << "";
        QTest::newRow("a list") << "roundup_power2_divisions:[256:1,512:2,>:8]"
                                << "";
        QTest::newRow("a word") << "first-fit"
                                << "";
        QTest::newRow("a slip") << "frist-fit"
                                << "allocator.setting";
        QTest::newRow("unknown") << "jemalloc"
                                 << "allocator.setting";
        QTest::newRow("unknown option") << "max_splt_size_mb:128"
                                        << "allocator.option";
        QTest::newRow("too small") << "max_split_size_mb:1"
                                   << "allocator.value";
        QTest::newRow("negative") << "max_split_size_mb:-5"
                                  << "allocator.value";
        QTest::newRow("no number") << "max_split_size_mb:nan"
                                   << "allocator.value";
        QTest::newRow("share") << "garbage_collection_threshold:7"
                               << "allocator.value";
        QTest::newRow("another backend") << "backend:cudaMallocAsync"
                                         << "allocator.backend";
    }
    void settings()
    {
        QFETCH(QString, text);
        QFETCH(QString, error);
        const auto setting = readSetting(text.toStdString());
        QCOMPARE(setting ? QString() : QString::fromStdString(setting.error().code), error);
        if (setting)
            QCOMPARE(readSetting(setting->key)->kind, setting->kind);
        else if (error == "allocator.setting" && text == "frist-fit")
            QVERIFY(setting.error().hint.find("first-fit") != std::string::npos);
    }

    void scripts_data()
    {
        QTest::addColumn<QString>("script");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        const auto row = [](const char* name, const char* script, const char* code, const char* place) {
            QTest::newRow(name) << script << code << place;
        };
        row("comments and blanks", "# nothing\n\n  alloc a 1KiB # so much\n\tfree a\r\n", "", "");
        row("in one line", "alloc a 96MiB; free a; empty_cache()", "", "");
        row("a name again", "alloc a 1KiB\nfree a\nalloc a 2KiB", "", "");
        row("stream and category", "alloc a 1KiB stream 3 as weights", "", "");
        row("no request at all", "# only words\n", "script.empty", "f.txt");
        row("unknown verb", "alloc a 1KiB\nfoo a", "script.verb", "f.txt, line 2");
        row("unknown name", "alloc a 1KiB\nfree b", "script.name", "f.txt, line 2");
        row("freed twice", "alloc a 1KiB\nfree a\n\nfree a", "script.name", "f.txt, line 4");
        row("made twice", "alloc a 1KiB\nalloc a 1KiB", "script.name", "f.txt, line 2");
        row("no size", "alloc a", "script.syntax", "f.txt, line 1");
        row("words too many", "alloc a 1KiB 2KiB", "script.syntax", "f.txt, line 1");
        row("negative", "alloc a -5MiB", "script.size", "f.txt, line 1");
        row("nothing", "alloc a 0", "script.size", "f.txt, line 1");
        row("not a number", "alloc a nan", "script.size", "f.txt, line 1");
        row("half a byte", "alloc a 0.5", "script.size", "f.txt, line 1");
        row("huge", "alloc a 1e30", "script.size", "f.txt, line 1");
        row("bare G", "alloc a 3G", "script.size", "f.txt, line 1");
        row("no stream", "alloc a 1KiB stream -1", "script.stream", "f.txt, line 1");
        row("no category", "alloc a 1KiB as wheights", "script.category", "f.txt, line 1");
        row("free of two", "alloc a 1KiB\nfree a a", "script.syntax", "f.txt, line 2");
        row("record of nothing", "record a stream 1", "script.name", "f.txt, line 1");
    }
    void scripts()
    {
        QFETCH(QString, script);
        QFETCH(QString, code);
        QFETCH(QString, place);
        const auto trace = parseTraceScript(script.toStdString(), "f.txt");
        QCOMPARE(trace ? QString() : QString::fromStdString(trace.error().code), code);
        if (trace)
            return;
        QCOMPARE(QString::fromStdString(trace.error().place), place);
        QVERIFY(!trace.error().hint.empty());
    }

    void aScriptThatIsTooLongSaysWhere()
    {
        std::string script;
        for (std::size_t i = 0; i <= mostScriptLines; ++i)
            script += "\n";
        const auto lines = parseTraceScript(script, "long.txt");
        QVERIFY(!lines);
        QCOMPARE(lines.error().code, std::string("script.length"));
        QCOMPARE(lines.error().place, std::string("long.txt, line 1000001"));
        // More than 1 EiB alive at once.
        std::string large;
        for (int i = 0; i < 1100; ++i)
            large += "alloc b" + std::to_string(i) + " 1125899906842624\n";
        const auto bytes = parseTraceScript(large);
        QVERIFY(!bytes);
        QCOMPARE(bytes.error().place, std::string("line 1025"));
    }

    void stepsFollowEachOther()
    {
        Trace trace;
        trace.allocate(4 * mib, Category::Weights, trace.name("weight"));
        const BlockId input = trace.allocate(mib, Category::Input, trace.name("input"));
        trace.enter(Phase::Forward);
        const BlockId activation = trace.allocate(3 * mib, Category::Activations, trace.name("out"));
        trace.free(input); // a step that takes its batch away and leaves the next one
        trace.allocate(mib, Category::Input, trace.name("input"));
        trace.free(activation);
        const RequestTrace once = requestsOf(trace, 100).value();
        const RequestTrace thrice = repeated(once, 3, 100).value();
        QCOMPARE(once.requests.size(), std::size_t(6));
        QCOMPARE(thrice.requests.size(), std::size_t(2 + 3 * 4));
        std::vector<int> state(thrice.blocks.size());
        for (const Request& request : thrice.requests) {
            QCOMPARE(state[request.block], request.kind == RequestKind::Allocate ? 0 : 1);
            ++state[request.block];
        }
        QCOMPARE(peakOfLiveBytes(thrice), peakOfLiveBytes(once));
        QVERIFY(!repeated(once, 30, 100)); // too many
        // The loss of a step lives until the next step has made its own.
        trace.allocate(5 * mib, Category::Activations, trace.name("loss"));
        const RequestTrace held = repeated(requestsOf(trace, 100).value(), 3, 100).value();
        QCOMPARE(held.requests.size(), std::size_t(2 + 5 + 6 + 6));
        QVERIFY(held.requests[11].kind == RequestKind::Allocate && held.requests[12].kind == RequestKind::Free);
        QCOMPARE(peakOfLiveBytes(held), (4 + 1 + 5 + 5) * mib); // two losses at once, for a moment
        Trace broken;
        const BlockId only = broken.allocate(mib, Category::Input, broken.name("input"));
        broken.enter(Phase::Forward);
        broken.free(only);
        const auto gone = repeated(requestsOf(broken, 100).value(), 2, 100);
        QVERIFY(!gone);
        QCOMPARE(gone.error().code, std::string("trace.steps"));
    }

    void pagesAreThoseThatWereWritten()
    {
        for (const char* text :
             {"default", "expandable_segments", "first-fit", "best-fit", "powers-of-two", "cudaMalloc"}) {
            const PolicySetting setting = readSetting(text).value();
            for (std::uint64_t seed = 1; seed <= 4; ++seed) {
                RequestTrace trace = randomTrace(seed, 60);
                for (RequestedBlock& block : trace.blocks)
                    block.bytes = block.bytes * 700 + 1;
                trace = withEmptyCache(std::move(trace), trace.requests.size() / 2);
                // Page by page.
                const auto policy = makePolicy(setting, trace).value();
                std::set<std::uint64_t> pages;
                std::int64_t faults = 0, highest = 0;
                for (const Request& request : trace.requests) {
                    const RequestedBlock& block = trace.blocks[request.block];
                    const PolicyAct act = policy->play(request, block);
                    if (act.returned > 0) {
                        std::set<std::uint64_t> kept;
                        for (const PolicySegment& segment : policy->segments())
                            for (const std::uint64_t page : pages)
                                if (page * 4096 >= segment.address
                                    && page * 4096 < segment.address + std::uint64_t(segment.size))
                                    kept.insert(page);
                        pages = kept;
                    }
                    if (request.kind == RequestKind::Allocate)
                        for (std::uint64_t page = act.address / 4096;
                             page * 4096 < act.address + std::uint64_t(block.bytes); ++page)
                            faults += pages.insert(page).second;
                    highest = std::max(highest, std::int64_t(pages.size()));
                }
                const PageCounts counts = pagesOf(trace, setting, FirstTouch::Lazy).value();
                QCOMPARE(counts.faults, faults);
                QCOMPARE(counts.highest, highest);
                QCOMPARE(pagesOf(trace, setting, FirstTouch::None)->faults, std::int64_t(0));
                QVERIFY(pagesOf(trace, setting, FirstTouch::Eager)->faults >= faults);
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestMemoryPolicies)
#include "tst_memory_policies.moc"

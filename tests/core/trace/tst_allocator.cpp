// SPDX-License-Identifier: Apache-2.0
// The caching allocator against an independent port of CUDACachingAllocator.cpp (another language,
// another author): single requests, ten random traces under nine settings, eight real training
// steps under five, every statistic to the byte (tests/data/pytorch/caching_allocator.json). Addresses of
// recorded runs are compared in tests/core/snapshot/tst_lifetimes.cpp.
#include "core/access/random.h"
#include "core/trace/allocator_replay.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

#include <map>

using namespace memscape;

namespace {

qint64 integer(const QJsonValue& value)
{
    return value.toInteger(-1);
}

/// "gc:0.6,fraction_limit=1.1*peak" and so on, the names of the settings in the file.
AllocatorOptions optionsNamed(const QString& name, const QJsonObject& result)
{
    const qint64 limit = integer(result["limit"]);
    std::string text = name.toStdString();
    if (name == "default")
        text = "";
    else if (name.startsWith("device_limit"))
        text = "";
    else if (name == "expandable,device_limit")
        text = "expandable_segments:True";
    else if (name == "max_split:32,device_limit")
        text = "max_split_size_mb:32";
    else if (name.startsWith("gc:0.6"))
        text = "garbage_collection_threshold:0.6";
    AllocatorOptions options = parseAllocatorOptions(text).value();
    if (name.contains("device_limit"))
        options.deviceLimit = limit;
    if (name.contains("fraction_limit"))
        options.fractionLimit = limit;
    return options;
}

/// Runs a list of ["a", id, bytes, stream], ["f", id] and ["empty_cache"].
class EventRunner
{
public:
    explicit EventRunner(const AllocatorOptions& options)
        : allocator(options)
    { }
    void run(const QJsonArray& events, bool hasStreams)
    {
        for (qsizetype i = 0; i < events.size() && failedAt < 0; ++i) {
            const QJsonArray event = events[i].toArray();
            const QString kind = event[0].toString();
            if (kind == "empty_cache")
                allocator.emptyCache();
            else if (kind == "f")
                allocator.free(blocks.at(integer(event[1])));
            else if (const BlockIndex block =
                         allocator.allocate(integer(event[2]), hasStreams ? std::uint16_t(event[3].toInt()) : 0))
                blocks[integer(event[1])] = block;
            else
                failedAt = i;
        }
    }
    CachingAllocator allocator;
    std::map<qint64, BlockIndex> blocks;
    qint64 failedAt = -1;
};

void compareCounts(const AllocatorCounts& counts, const QJsonObject& expected)
{
    QCOMPARE(counts.allocated, integer(expected["allocated"]));
    QCOMPARE(counts.active, integer(expected["active"]));
    QCOMPARE(counts.requested, integer(expected["requested"]));
    QCOMPARE(counts.reserved, integer(expected["reserved"]));
    QCOMPARE(counts.inactiveSplit, integer(expected["inactive_split"]));
    QCOMPARE(counts.segments, integer(expected["segments"]));
    QCOMPARE(counts.allocations, integer(expected["allocs"]));
}

void compareStatistics(const AllocatorStatistics& statistics, const QJsonObject& expected)
{
    compareCounts(statistics.peak, expected["peak"].toObject());
    compareCounts(statistics.current, expected["final"].toObject());
    QCOMPARE(statistics.deviceAllocations, integer(expected["device_alloc"]));
    QCOMPARE(statistics.deviceFrees, integer(expected["device_free"]));
    QCOMPARE(statistics.retries, integer(expected["retries"]));
}

/// What must always hold: segments are tiled by their blocks, no two free neighbours, sums agree.
void checkInvariants(const CachingAllocator& allocator)
{
    AllocatorCounts sums;
    std::uint64_t end = 0;
    for (const AllocatorSegment& segment : allocator.segments()) {
        QVERIFY(segment.address >= end);
        end = segment.address;
        bool wasFree = false;
        for (const AllocatorBlock& block : segment.blocks) {
            QCOMPARE(block.address, end);
            QVERIFY(block.size > 0 && block.size % smallestBlock == 0);
            end += std::uint64_t(block.size);
            const bool isFree = block.state == BlockState::Free;
            QVERIFY(!(isFree && wasFree));
            wasFree = isFree;
            sums.active += isFree ? 0 : block.size;
            sums.requested += isFree ? 0 : block.requested;
        }
        QCOMPARE(end, segment.address + std::uint64_t(segment.size));
        sums.reserved += segment.size;
    }
    const AllocatorCounts& counts = allocator.statistics().current;
    QCOMPARE(counts.active, sums.active);
    QCOMPARE(counts.requested, sums.requested);
    QCOMPARE(counts.reserved, sums.reserved);
}

AllocatorBlock blockAt(std::uint64_t address, std::int64_t size, std::int64_t requested, bool isActive)
{
    AllocatorBlock block;
    block.address = address;
    block.size = size;
    block.requested = requested;
    block.state = isActive ? BlockState::Active : BlockState::Free;
    return block;
}

} // namespace

class TestAllocator : public QObject
{
    Q_OBJECT

private slots:
    void oneRequest_data()
    {
        QTest::addColumn<QJsonObject>("expected");
        const QJsonArray unit = pytorchData("caching_allocator.json")["unit"].toArray();
        QCOMPARE(unit.size(), 26);
        for (qsizetype i = 0; i < unit.size(); ++i) {
            const QJsonObject entry = unit[i].toObject();
            QTest::addRow("%lld bytes (%lld)", integer(entry["request"]), i) << entry;
        }
    }
    void oneRequest()
    {
        QFETCH(QJsonObject, expected);
        const qint64 request = integer(expected["request"]);
        const QJsonObject divisions = expected["roundup_divisions"].toObject();
        for (const QString& count : divisions.keys()) {
            const auto options = parseAllocatorOptions("roundup_power2_divisions:" + count.toStdString());
            QVERIFY(options);
            QCOMPARE(roundedRequest(request, *options), integer(divisions[count]));
        }
        if (!divisions.isEmpty())
            return;
        CachingAllocator allocator;
        QVERIFY(allocator.allocate(request));
        QCOMPARE(allocator.statistics().current.allocated, integer(expected["allocated"]));
        QCOMPARE(allocator.statistics().current.reserved, integer(expected["reserved"]));
    }

    void randomTraces_data()
    {
        QTest::addColumn<QJsonArray>("events");
        QTest::addColumn<QString>("setting");
        QTest::addColumn<QJsonObject>("expected");
        const QJsonArray traces = pytorchData("caching_allocator.json")["traces"].toArray();
        QCOMPARE(traces.size(), 10);
        for (const QJsonValue& trace : traces) {
            const QJsonObject results = trace["results"].toObject();
            QCOMPARE(results.size(), 9);
            for (const QString& setting : results.keys())
                QTest::addRow("seed %d %s", trace["spec"]["seed"].toInt(), qPrintable(setting))
                    << trace["events"].toArray() << setting << results[setting].toObject();
        }
    }
    void randomTraces()
    {
        QFETCH(QJsonArray, events);
        QFETCH(QString, setting);
        QFETCH(QJsonObject, expected);
        EventRunner runner(optionsNamed(setting, expected));
        runner.run(events, true);
        compareStatistics(runner.allocator.statistics(), expected);
        const QJsonObject failure = expected["oom_at"].toObject();
        QCOMPARE(runner.failedAt, failure.isEmpty() ? -1 : integer(failure["event"]));
        if (!failure.isEmpty())
            QCOMPARE(runner.allocator.refusedBytes(), integer(failure["bytes"]));
        checkInvariants(runner.allocator);
    }

    void realSteps_data()
    {
        QTest::addColumn<QJsonObject>("step");
        QTest::addColumn<QString>("setting");
        QTest::addColumn<QJsonObject>("expected");
        const QJsonArray steps = pytorchData("training_traces.json")["traces"].toArray();
        const QJsonArray real = pytorchData("caching_allocator.json")["real"].toArray();
        QCOMPARE(steps.size(), 8);
        QCOMPARE(real.size(), 8);
        for (qsizetype i = 0; i < real.size(); ++i) {
            QCOMPARE(steps[i]["name"], real[i]["name"]);
            const QJsonObject results = real[i]["results"].toObject();
            for (const QString& setting : results.keys())
                QTest::addRow("%s %s %s", qPrintable(real[i]["name"].toString()),
                              qPrintable(real[i]["optimizer"].toString()), qPrintable(setting))
                    << steps[i].toObject() << setting << results[setting].toObject();
        }
    }
    void realSteps()
    {
        QFETCH(QJsonObject, step);
        QFETCH(QString, setting);
        QFETCH(QJsonObject, expected);
        Trace trace;
        for (const QJsonValue& bytes : step["initial"].toArray())
            trace.allocate(integer(bytes), Category::Unknown);
        trace.enter(Phase::Forward);
        std::map<qint64, BlockId> blocks;
        for (const QJsonValue& event : step["events"].toArray()) {
            if (event[0].toString() == "a")
                blocks[integer(event[1])] = trace.allocate(integer(event[2]), Category::Unknown);
            else
                trace.free(blocks.at(integer(event[1])));
        }
        const AllocatorReplay replay = replayTrace(trace, optionsNamed(setting, expected));
        QVERIFY(!replay.outOfMemory);
        compareStatistics(replay.statistics, expected);
        QCOMPARE(replay.statistics.peak.requested, trace.peakBytes());
    }

    void aRecordedStateMustBeWhole()
    {
        AllocatorSegment segment{0, 4096, 0, true, false, {blockAt(0, 1024, 1000, true)}};
        QCOMPARE(CachingAllocator::continued({}, {segment}).error().code, std::string("allocator.segments"));
        segment.blocks.push_back(blockAt(1024, 3072, 0, false));
        const auto whole = CachingAllocator::continued({}, {segment});
        QVERIFY(whole);
        QCOMPARE(whole->statistics().current.inactiveSplit, 3072);
        QCOMPARE(whole->statistics().current.allocated, 1024);
        checkInvariants(*whole);
        QVERIFY(!CachingAllocator::continued({}, {segment, segment})); // one over the other
    }

    /// Two mapped ranges are one segment: the place between them is mapped before what lies behind.
    void aRecordedExpandableSegmentGoesOn()
    {
        constexpr std::int64_t page = 20 << 20;
        AllocatorOptions options;
        options.expandableSegments = true;
        const auto range = [&](std::uint64_t address) {
            return AllocatorSegment{address, page, 0, false, true, {blockAt(address, page, page, true)}};
        };
        const std::uint64_t first = std::uint64_t(page) * 100, second = first + 2 * std::uint64_t(page);
        auto allocator = CachingAllocator::continued(options, {range(second), range(first)});
        QVERIFY2(allocator, allocator ? "" : allocator.error().text().c_str());
        QCOMPARE(allocator->statistics().current.reserved, 2 * page);
        QCOMPARE(allocator->statistics().current.segments, 0); // as PyTorch counts
        QCOMPARE(allocator->block(allocator->allocate(page)).address, first + std::uint64_t(page));
        QCOMPARE(allocator->block(allocator->allocate(page)).address, second + std::uint64_t(page));
        QCOMPARE(allocator->statistics().current.reserved, 4 * page);
        checkInvariants(*allocator);
    }

    void aPlacedSegmentComesThereUnlessSomethingIs()
    {
        CachingAllocator allocator;
        constexpr std::uint64_t place = 0x100000000;
        allocator.placeNextSegment(place);
        QCOMPARE(allocator.block(allocator.allocate(30 << 20)).address, place);
        allocator.placeNextSegment(place + (10 << 20)); // within the first
        const BlockIndex other = allocator.allocate(40 << 20);
        QVERIFY(allocator.block(other).address >= place + (30 << 20));
        checkInvariants(allocator);
    }

    void optionsReadBackFromTheirText_data()
    {
        QTest::addColumn<QString>("text");
        for (const char* text : {"", "max_split_size_mb:128", "expandable_segments:True",
                                 "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],garbage_collection_threshold:0.8",
                                 "max_split_size_mb:64,max_non_split_rounding_mb:40"})
            QTest::newRow(text) << QString(text);
    }
    void optionsReadBackFromTheirText()
    {
        QFETCH(QString, text);
        const AllocatorOptions options = parseAllocatorOptions(text.toStdString()).value();
        const auto again = parseAllocatorOptions(allocatorOptionsText(options));
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        QCOMPARE(again->maxSplit, options.maxSplit);
        QCOMPARE(again->maxNonSplitRounding, options.maxNonSplitRounding);
        QCOMPARE(again->powerOf2Divisions, options.powerOf2Divisions);
        QCOMPARE(again->expandableSegments, options.expandableSegments);
        QCOMPARE(again->garbageCollectionThreshold, options.garbageCollectionThreshold);
    }

    void outOfMemoryNamesTheEvent()
    {
        Trace trace;
        trace.allocate(30 << 20, Category::Weights);
        trace.enter(Phase::Forward);
        trace.free(trace.allocate(40 << 20, Category::Temporary)); // cached, then given back
        trace.allocate(50 << 20, Category::Activations);
        trace.allocate(15 << 20, Category::Activations);
        AllocatorOptions options;
        options.deviceLimit = 90 << 20;
        const AllocatorReplay replay = replayTrace(trace, options, {0, 2, 4});
        QVERIFY(replay.outOfMemory);
        QCOMPARE(replay.outOfMemory->event, std::size_t(4));
        QCOMPARE(replay.outOfMemory->wanted, 15 << 20);
        QCOMPARE(replay.outOfMemory->segment, 16 << 20);
        QCOMPARE(replay.outOfMemory->before.allocated, 80 << 20);
        QCOMPARE(replay.statistics.retries, 2); // for the 50 MiB and for the 15 MiB
        QCOMPARE(replay.moments.size(), std::size_t(2));
        QCOMPARE(replay.moments[1].reserved, 70 << 20);
        QCOMPARE(replay.moments[1].allocated, 30 << 20);
    }

    void aBlockThatAnotherStreamUsesStaysActive()
    {
        CachingAllocator allocator;
        const BlockIndex block = allocator.allocate(4096);
        allocator.requestFree(block);
        QCOMPARE(allocator.statistics().current.allocated, 0);
        QCOMPARE(allocator.statistics().current.active, 4096);
        const BlockIndex other = allocator.allocate(4096);
        QVERIFY(allocator.block(other).address != allocator.block(block).address);
        allocator.completeFree(block);
        QCOMPARE(allocator.statistics().current.active, 4096);
        checkInvariants(allocator);
        allocator.free(other);
        allocator.emptyCache();
        QCOMPARE(allocator.statistics().current.reserved, 0);
        QVERIFY(allocator.segments().empty());
    }

    // As torch/distributed/fsdp/_limiter_utils.py, _FreeEventQueue, lets two gathers be under way.
    void freesBehindAnotherStreamWaitUntilThatHasPassed()
    {
        constexpr std::int64_t size = 32 << 20;
        CachingAllocator allocator;
        const auto gathered = [&] {
            allocator.passBehind(1);
            const BlockIndex block = allocator.allocate(size, 1);
            const std::uint64_t address = allocator.block(block).address;
            allocator.freeBehind(block);
            return address;
        };
        const std::uint64_t first = gathered(), second = gathered();
        QVERIFY(first != second);
        QCOMPARE(allocator.statistics().current.allocated, 0);
        QCOMPARE(allocator.statistics().current.active, 2 * size);
        allocator.allocate(size); // of another stream: it waits for nothing
        QCOMPARE(allocator.statistics().current.reserved, 3 * size);
        QCOMPARE(gathered(), first);
        QCOMPARE(gathered(), second);
        QCOMPARE(allocator.statistics().current.reserved, 3 * size);
        checkInvariants(allocator);
        allocator.emptyCache();
        QCOMPARE(allocator.statistics().current.reserved, size);
    }

    void invariantsHoldAfterEveryEvent_data()
    {
        QTest::addColumn<QString>("text");
        for (const char* text : {"", "max_split_size_mb:32", "expandable_segments:True",
                                 "roundup_power2_divisions:4,garbage_collection_threshold:0.5"})
            QTest::newRow(text) << QString(text);
    }
    void invariantsHoldAfterEveryEvent()
    {
        QFETCH(QString, text);
        AllocatorOptions options = parseAllocatorOptions(text.toStdString()).value();
        options.deviceLimit = 1 << 28;
        options.fractionLimit = 1 << 28;
        CachingAllocator allocator(options);
        SplitMix64 random(11);
        std::vector<BlockIndex> live;
        int refusals = 0;
        for (int step = 0; step < 1500; ++step) {
            if (live.empty() || random.below(100) < 55) {
                const auto bytes = std::int64_t(1 + random.below(1ull << (9 + random.below(18))));
                if (const BlockIndex block = allocator.allocate(bytes, std::uint16_t(random.below(2))))
                    live.push_back(block);
                else
                    ++refusals;
            } else {
                std::swap(live[random.below(live.size())], live.back());
                allocator.free(live.back());
                live.pop_back();
            }
            if (random.below(200) == 0)
                allocator.emptyCache();
            checkInvariants(allocator);
            if (QTest::currentTestFailed())
                return;
            QVERIFY(allocator.statistics().current.reserved <= 1 << 28);
        }
        for (const BlockIndex block : live)
            allocator.free(block);
        allocator.emptyCache();
        QCOMPARE(allocator.statistics().current.reserved, 0);
        QVERIFY(refusals > 0);
    }

    void optionsAreReadAsPyTorchWritesThem()
    {
        const auto options =
            parseAllocatorOptions(" max_split_size_mb:128 , roundup_power2_divisions:[256:1,512:2,1024:4,>:8],"
                                  "expandable_segments:True,garbage_collection_threshold:0.8,backend:native");
        QVERIFY2(options, options ? "" : options.error().text().c_str());
        QCOMPARE(*options->maxSplit, 128 << 20);
        QVERIFY(options->expandableSegments);
        QCOMPARE(options->garbageCollectionThreshold, 0.8);
        const std::array<std::int64_t, 16> divisions{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 8, 8, 8, 8, 8, 8};
        QCOMPARE(options->powerOf2Divisions, divisions);
    }

    void wrongOptionsSayWhatIsWrong_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("code");
        QTest::newRow("typo") << "max_split_size:128"
                              << "allocator.option";
        QTest::newRow("too small") << "max_split_size_mb:19"
                                   << "allocator.value";
        QTest::newRow("fraction") << "max_split_size_mb:20.5"
                                  << "allocator.value";
        QTest::newRow("huge") << "max_split_size_mb:1e300"
                              << "allocator.value";
        QTest::newRow("no power") << "roundup_power2_divisions:3"
                                  << "allocator.value";
        QTest::newRow("open list") << "roundup_power2_divisions:[256:1"
                                   << "allocator.value";
        QTest::newRow("half a pair") << "roundup_power2_divisions:[256]"
                                     << "allocator.value";
        QTest::newRow("threshold") << "garbage_collection_threshold:1.5"
                                   << "allocator.value";
        QTest::newRow("word") << "expandable_segments:yes"
                              << "allocator.value";
        QTest::newRow("backend") << "backend:cudaMallocAsync"
                                 << "allocator.backend";
    }
    void wrongOptionsSayWhatIsWrong()
    {
        QFETCH(QString, text);
        QFETCH(QString, code);
        const auto options = parseAllocatorOptions(text.toStdString());
        QVERIFY(!options);
        QCOMPARE(QString::fromStdString(options.error().code), code);
    }

    /// Two states in turn, after `before` other ones: the first that comes back ends the replay of what is left.
    void aShortCycleIsFoundWhenItCloses_data()
    {
        QTest::addColumn<std::size_t>("before");
        for (const std::size_t before : {0, 1, 2, 5, 30})
            QTest::newRow(qPrintable(QString::number(before))) << before;
    }
    void aShortCycleIsFoundWhenItCloses()
    {
        QFETCH(std::size_t, before);
        CachingAllocator allocator;
        std::vector<BlockIndex> blocks;
        for (std::size_t i = 0; i < before + 2; ++i)
            blocks.push_back(allocator.allocate(1 << 20));
        AllocatorCycle cycle;
        const auto leftAfter = [&](std::size_t block, std::size_t left) {
            return cycle.timesLeft(allocator, {&blocks[block], 1}, left);
        };
        for (std::size_t i = 0; i < before + 2; ++i)
            QCOMPARE(leftAfter(i, 100 - i), 100 - i);
        QCOMPARE(leftAfter(before, 7), std::size_t(1)); // three cycles are counted
    }

    /// Longer than the states that are kept.
    void aLongCycleIsFoundToo()
    {
        CachingAllocator allocator;
        std::vector<BlockIndex> blocks;
        for (int i = 0; i < 40; ++i)
            blocks.push_back(allocator.allocate(1 << 20));
        AllocatorCycle cycle;
        std::size_t left = 100'000, replayed = 0;
        for (; left > 0; ++replayed)
            left = cycle.timesLeft(allocator, {&blocks[replayed % blocks.size()], 1}, left - 1);
        QVERIFY2(replayed < 200, qPrintable(QString::number(replayed)));
    }

    void anImpossibleRequestIsRefused()
    {
        CachingAllocator allocator;
        QCOMPARE(allocator.allocate(std::numeric_limits<std::int64_t>::max()), BlockIndex(0));
        QCOMPARE(allocator.statistics().current.reserved, 0);
    }
};

QTEST_APPLESS_MAIN(TestAllocator)
#include "tst_allocator.moc"

// SPDX-License-Identifier: Apache-2.0
// Recorded histories as requests: with the options of the run PyTorch's allocator reserves what the file says, event by
// event, from the first event or from the middle; other allocators get the same requests.
#include "snapshot_files.h"

#include "core/snapshot/snapshot_requests.h"
#include "core/trace/policy_replay.h"

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr std::size_t most = 1'000'000;

PolicySetting asRecorded(const RequestTrace& trace)
{
    PolicySetting setting = readSetting("recorded").value();
    setting.options.deviceLimit = trace.recording->options.deviceLimit;
    return setting;
}

/// Bytes reserved after each allocation that the trace has: by its own segments, and by the replay.
void compareReserved(const SnapshotDevice& device)
{
    const auto trace = requestsOf(device, most);
    QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
    const auto replay = replayRequests(*trace, asRecorded(*trace), ReplayKeeps::EveryRequest);
    QVERIFY2(replay, replay ? "" : replay.error().text().c_str());
    const Lifetimes& lifetimes = device.lifetimes();
    std::size_t request = 0; // behind those that ask for what was there
    for (std::size_t seen = 0, there = lifetimes.aliveAt(0).size(); seen < there; ++request)
        seen += trace->requests[request].kind == RequestKind::Allocate;
    std::size_t compared = 0;
    for (std::size_t event = 0; event < lifetimes.events(); ++event) {
        if (lifetimes.event(event).action != SnapshotAction::Allocate)
            continue;
        while (trace->requests[request].kind != RequestKind::Allocate)
            ++request;
        QVERIFY(request < replay->reserved.size());
        QCOMPARE(replay->reserved[request], lifetimes.bytesAt(event + 1).reserved);
        ++request;
        ++compared;
    }
    QVERIFY(compared > 2);
    QCOMPARE(replay->end.reserved, lifetimes.bytesAt(lifetimes.events()).reserved);
    if (!replay->refusal) // behind which nothing is played
        QCOMPARE(replay->end.allocated, lifetimes.bytesAt(lifetimes.events()).allocated);
}

struct Script
{
    Snapshot snapshot;
    std::int64_t time = 0;

    Script() { snapshot.streams = {0, 7}; }
    void add(SnapshotAction action, std::uint64_t address, std::int64_t size, std::uint16_t stream = 0)
    {
        snapshot.events.append({action, address, size, ++time, noStack, noLabel, stream});
    }
    /// A segment that is there at the end, with its blocks.
    void segment(std::uint64_t address, std::int64_t size, const std::vector<SnapshotBlock>& blocks)
    {
        snapshot.segments.push_back(
            {address, size, snapshot.blocks.size(), blocks.size(), noStack, 0, 0, size == smallSegment, false, {0, 0}});
        for (const SnapshotBlock& block : blocks)
            snapshot.blocks.push_back(block);
    }
    std::shared_ptr<const SnapshotDevice> device()
    {
        snapshot.traces.push_back({0, snapshot.events.size()});
        return SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(snapshot)), 0).value();
    }
};

} // namespace

class TestSnapshotRequests : public QObject
{
    Q_OBJECT

private slots:
    void theRecordedOptionsReserveWhatWasReserved_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<double>("from");
        for (const char* family :
             {"gpt2_mid_peak_expandable", "gpt2_tiny_end", "gpt2_tiny_mid_backward", "llama_tiny_old_format",
              "random_expandable_unmap", "random_oom_pending", "vgg_small_mid"}) {
            const QString file = QString::fromStdString(familyFile(family + std::string(".p4.pickle")).string());
            for (const double from : {0.0, 0.2, 0.5, 0.8})
                QTest::addRow("%s from %g", family, from) << file << from;
        }
        QTest::newRow("real GPU") << qEnvironmentVariable("MEMSCAPE_REAL_SNAPSHOT") << 0.0;
    }
    void theRecordedOptionsReserveWhatWasReserved()
    {
        QFETCH(QString, file);
        QFETCH(double, from);
        if (!QFile::exists(file))
            QSKIP("MEMSCAPE_REAL_SNAPSHOT names no file");
        const auto device = analysedFrom(file, from);
        compareReserved(*device);
    }

    /// 40 MiB were there, and 20 MiB of their segment of 60 MiB free: the next 20 MiB take nothing.
    void theHistoryBeginsWithWhatWasThere()
    {
        Script script;
        constexpr std::uint64_t base = 1ull << 40;
        script.add(SnapshotAction::Allocate, base + 40 * mib, 20 * mib);
        script.add(SnapshotAction::FreeRequested, base, 40 * mib);
        script.add(SnapshotAction::FreeCompleted, base, 40 * mib);
        script.segment(base, 60 * mib,
                       {{base, 40 * mib, 0, noStack, SnapshotBlockState::Free},
                        {base + 40 * mib, 20 * mib, 20 * mib, noStack, SnapshotBlockState::Active}});
        const auto trace = requestsOf(*script.device(), most);
        QVERIFY(trace);
        QCOMPARE(trace->requests.size(), std::size_t(3));
        QCOMPARE(int(trace->requests[0].phase), int(Phase::Setup));
        QCOMPARE(trace->blocks[1].bytes, 40 * mib);
        QCOMPARE(int(trace->requests[2].kind), int(RequestKind::Free));
        QCOMPARE(trace->requests[2].block, BlockId(1));
        const auto replay = replayRequests(*trace, asRecorded(*trace));
        QCOMPARE(replay->peak.reserved, 60 * mib);
        QCOMPARE(replay->totals.takes, 0);
        QCOMPARE(replay->end.allocated, 20 * mib);
        // Another allocator asks for both.
        const auto elsewhere = replayRequests(*trace, readSetting("default").value());
        QCOMPARE(elsewhere->totals.takes, 2);
        QCOMPARE(elsewhere->peak.reserved, 60 * mib);
    }

    void anotherStreamsUseAndAnEmptiedCache()
    {
        Script script;
        constexpr std::uint64_t base = 1ull << 40, other = base + 64 * mib;
        script.add(SnapshotAction::SegmentAlloc, base, 20 * mib);
        script.add(SnapshotAction::Allocate, base, 8 * mib);
        script.add(SnapshotAction::FreeRequested, base, 8 * mib); // a stream still reads it …
        script.add(SnapshotAction::Allocate, base + 8 * mib, 8 * mib);
        script.add(SnapshotAction::FreeCompleted, base, 8 * mib); // … until here
        script.add(SnapshotAction::FreeRequested, base + 8 * mib, 8 * mib);
        script.add(SnapshotAction::FreeCompleted, base + 8 * mib, 8 * mib);
        script.add(SnapshotAction::SegmentFree, base, 20 * mib); // empty_cache()
        script.add(SnapshotAction::FreeRequested, other, mib);
        script.add(SnapshotAction::FreeCompleted, other, mib);
        script.segment(other, 2 * mib, {{other, 2 * mib, 0, noStack, SnapshotBlockState::Free}});
        const auto device = script.device();
        const auto trace = requestsOf(*device, most);
        QVERIFY(trace);
        std::vector<RequestKind> kinds;
        for (const Request& request : trace->requests)
            kinds.push_back(request.kind);
        using enum RequestKind;
        QCOMPARE(kinds,
                 (std::vector<RequestKind>{Allocate, Allocate, Record, Free, Allocate, Synchronize, Free, EmptyCache,
                                           Free}));
        QCOMPARE(trace->requests[5].block, BlockId(2)); // of the one block
        const auto replay = replayRequests(*trace, asRecorded(*trace), ReplayKeeps::EveryRequest);
        QCOMPARE(replay->reserved,
                 (std::vector<std::int64_t>{2 * mib, 22 * mib, 22 * mib, 22 * mib, 22 * mib, 22 * mib, 22 * mib,
                                            2 * mib, 2 * mib}));
        QCOMPARE(replay->end.reserved, device->lifetimes().bytesAt(device->lifetimes().events()).reserved);
    }

    /// The device's limit follows from what the driver had left, and another allocator may serve what was refused.
    void theRefusedRequestIsPlayed()
    {
        const auto trace = requestsOf(*analysed(familyFile("random_oom_pending.p4.pickle")), most);
        QVERIFY(trace);
        const auto limit = trace->recording->options.deviceLimit;
        QVERIFY(limit);
        QCOMPARE(*limit, 729808896 + 57252249); // reserved and left, from the file
        const auto replay = replayRequests(*trace, asRecorded(*trace));
        QVERIFY(replay->refusal);
        QCOMPARE(replay->refusal->bytes, 63520768);
        QCOMPARE(replay->totals.retries, 2); // of an allocation that then was served, and of this one
        PolicySetting expandable = readSetting("expandable_segments").value();
        expandable.options.deviceLimit = limit;
        const auto elsewhere = replayRequests(*trace, expandable);
        QVERIFY(!elsewhere->refusal);
        QVERIFY(elsewhere->peak.reserved <= *limit);
    }

    void whatCannotBePlayed()
    {
        const auto device = analysed(familyFile("gpt2_tiny_end.p4.pickle"));
        QCOMPARE(requestsOf(*device, 100).error().code, std::string("trace.length"));
        Script script;
        script.add(SnapshotAction::Snapshot, 0, 0);
        QCOMPARE(requestsOf(*script.device(), most).error().code, std::string("trace.empty"));
        RequestTrace plain;
        QCOMPARE(makePolicy(readSetting("recorded").value(), plain).error().code, std::string("allocator.recorded"));
    }
};

QTEST_APPLESS_MAIN(TestSnapshotRequests)
#include "tst_snapshot_requests.moc"

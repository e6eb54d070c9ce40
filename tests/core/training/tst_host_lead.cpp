// SPDX-License-Identifier: Apache-2.0
// What another stream was given stays until the device has come past it: a thousand commands behind the host
// (forums.developer.nvidia.com, topic 68937).
#include "core/trace/allocator_replay.h"
#include "core/training/host_lead.h"

#include <QTest>

using namespace memscape;

namespace {

constexpr std::int64_t size = 32 << 20;

AllocatorCounts replayedPeak(const Trace& trace)
{
    return replayTrace(trace, {}).statistics.peak;
}

/// A hundred weights, one after the other, each used by so many commands.
AllocatorCounts weightsUsedBy(int commands)
{
    Trace trace;
    HostLead lead(trace);
    for (int i = 0; i < 100; ++i) {
        const BlockId weight = trace.allocate(size, Category::Communication, 0, 0, 1);
        lead.launch(commands);
        lead.freeBehind(weight);
    }
    return replayedPeak(trace);
}

} // namespace

class TestHostLead : public QObject
{
    Q_OBJECT

private slots:
    void aQueueOfCommandsKeepsWhatTheyUse()
    {
        QCOMPARE(weightsUsedBy(1024).allocated, size);
        QCOMPARE(weightsUsedBy(1024).active, 2 * size);
        QCOMPARE(weightsUsedBy(128).active, 9 * size);
        QCOMPARE(weightsUsedBy(128).reserved, 9 * size);
        QCOMPARE(weightsUsedBy(1).active, 100 * size);
    }

    /// stage3.py, max_param_reduce_events: three may be on their way when another one is asked for.
    void eventsLetTheHostWait()
    {
        Trace trace;
        HostLead lead(trace);
        for (int i = 0; i < 10; ++i) {
            const BlockId gradient = trace.allocate(size, Category::Gradients);
            lead.launch(1);
            lead.freeBehind(gradient);
            lead.record(2);
        }
        QCOMPARE(replayedPeak(trace).active, 4 * size);
    }

    void afterAWaitAllIsFree()
    {
        Trace trace;
        HostLead lead(trace);
        for (int i = 0; i < 3; ++i) {
            const BlockId weight = trace.allocate(size, Category::Communication, 0, 0, 1);
            lead.launch(1);
            lead.freeBehind(weight);
            lead.wait();
        }
        QCOMPARE(replayedPeak(trace).active, size);
    }
};

QTEST_APPLESS_MAIN(TestHostLead)
#include "tst_host_lead.moc"

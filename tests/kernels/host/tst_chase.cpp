// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/hierarchy/chase.h"

#include <vector>

#include <QTest>

using namespace memscape::host;

namespace {

struct ChaseChain
{
    explicit ChaseChain(std::size_t count, ChaseOptions o = {})
        : nodes(count)
        , options(o)
        , start(buildChase(bytes(), options, [] { return false; }))
    { }
    std::span<std::byte> bytes()
    {
        return {reinterpret_cast<std::byte*>(nodes.data()), nodes.size() * sizeof(ChaseNode)};
    }

    std::vector<ChaseNode> nodes;
    ChaseOptions options;
    const ChaseNode* start;
};

} // namespace

class TestChase : public QObject
{
    Q_OBJECT
private slots:
    void oneCycleOverAllNodes_data()
    {
        QTest::addColumn<int>("count");
        QTest::addColumn<int>("window");
        for (const int count : {2, 3, 17, 64, 1000, 5000}) {
            for (const int window : {0, 128, 4096, 1 << 20})
                QTest::addRow("%d nodes, windows of %d", count, window) << count << window;
        }
    }
    void oneCycleOverAllNodes()
    {
        QFETCH(const int, count);
        QFETCH(const int, window);
        ChaseChain chain(static_cast<std::size_t>(count), {static_cast<std::size_t>(window), 3});
        // Counted here, independent of checkChase: back at the start after exactly `count` loads.
        const ChaseNode* node = chain.start;
        int steps = 0;
        do {
            node = node->next;
            ++steps;
        } while (node != chain.start && steps <= count);
        QCOMPARE(steps, count);
        QCOMPARE(checkChase(chain.bytes(), chain.options), std::string());
    }

    void versionsGoTheSameWay()
    {
        ChaseChain chain(1000);
        QCOMPARE(chase_v1(chain.start, 1000), chain.start);
        QCOMPARE(chase_v2(chain.start, 320), chase_v1(chain.start, 320));
        QCOMPARE(chase_v2(chain.start, 32000), chain.start); // 32 laps
        QCOMPARE(chase(chain.start, 64), chase_v1(chain.start, 64));
    }

    void seedsGiveDifferentCycles()
    {
        ChaseChain a(1000, {0, 1}), b(1000, {0, 2});
        int same = 0;
        for (std::size_t i = 0; i < 1000; ++i)
            same += a.nodes[i].next - a.nodes.data() == b.nodes[i].next - b.nodes.data();
        QVERIFY(same < 20);
    }

    void checkFindsBrokenChains()
    {
        ChaseChain shortened(100);
        shortened.nodes[40].next = shortened.nodes.data(); // a short cycle
        QVERIFY(!checkChase(shortened.bytes(), {}).empty());
        ChaseChain stray(100);
        stray.nodes[3].next = stray.nodes.data() + 100; // out of the array
        QVERIFY(!checkChase(stray.bytes(), {}).empty());
        ChaseChain windowless(1000); // random everywhere, checked as if in windows
        QVERIFY(!checkChase(windowless.bytes(), {4096, 1}).empty());
    }

    void givesUpWhenAsked()
    {
        std::vector<ChaseNode> nodes(1u << 19);
        const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(nodes.data()), nodes.size() * sizeof(ChaseNode));
        QVERIFY(!buildChase(bytes, {0, 1}, [] { return true; }));
        QVERIFY(!buildChase(bytes, {4096, 1}, [] { return true; }));
    }

    void tooSmallIsNoChain()
    {
        std::vector<ChaseNode> nodes(1);
        QVERIFY(!buildChase({reinterpret_cast<std::byte*>(nodes.data()), sizeof(ChaseNode)}, {}, [] { return false; }));
    }
};

QTEST_APPLESS_MAIN(TestChase)
#include "tst_chase.moc"

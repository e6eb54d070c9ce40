// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/memory.h"

#include <cstring>
#include <thread>
#include <vector>

#include <QTest>

using namespace memscape;

class TestMemory : public QObject
{
    Q_OBJECT
private slots:
    void highWaterIsExact()
    {
        MemoryMeter meter;
        meter.add(100);
        meter.add(50);
        meter.remove(120);
        meter.add(10);
        QCOMPARE(meter.used(), 40);
        QCOMPARE(meter.highWater(), 150);
        meter.resetHighWater(); // after the warm-up, what is alive stays counted
        QCOMPARE(meter.highWater(), 40);
        meter.add(1);
        QCOMPARE(meter.highWater(), 41);
    }

    void threadsLoseNothing()
    {
        MemoryMeter meter;
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                for (int i = 0; i < 10000; ++i) {
                    meter.add(3);
                    meter.remove(3);
                }
            });
        for (std::thread& thread : threads)
            thread.join();
        QCOMPARE(meter.used(), 0);
        QVERIFY(meter.highWater() >= 3 && meter.highWater() <= 12);
    }

    void processHighWaterSeesAnAllocation()
    {
        const auto before = processHighWater();
        if (!before)
            QSKIP("no /proc here");
        constexpr std::size_t bytes = std::size_t {64} << 20;
        {
            std::vector<char> memory(bytes);
            std::memset(memory.data(), 1, bytes);
        }
        QVERIFY(*processHighWater() > 0);
        QVERIFY(*processHighWater() >= *before);
        QVERIFY(*availableMemory() > 0);
    }
};

QTEST_APPLESS_MAIN(TestMemory)
#include "tst_memory.moc"

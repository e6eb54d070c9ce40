// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/memory.h"

#include <cstring>
#include <thread>
#include <vector>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include <sys/resource.h>
#include <unistd.h>

using namespace memscape;

namespace {

/// VmSize, in bytes, as the first number of statm in pages says it.
std::int64_t processSize()
{
    QFile file("/proc/self/statm");
    return file.open(QIODevice::ReadOnly) ? file.readAll().split(' ').first().toLongLong() * ::sysconf(_SC_PAGESIZE)
                                          : 0;
}

} // namespace

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
        constexpr std::size_t bytes = std::size_t{64} << 20;
        {
            std::vector<char> memory(bytes);
            std::memset(memory.data(), 1, bytes);
        }
        QVERIFY(*processHighWater() > 0);
        QVERIFY(*processHighWater() >= *before);
        QVERIFY(*availableMemory() > 0);
    }

    void theNarrowestLimitCounts()
    {
        const QTemporaryDir root;
        const auto write = [&](const QString& path, const QByteArray& text) {
            QFile file(root.filePath(path));
            QVERIFY(QDir().mkpath(QFileInfo(file).path()) && file.open(QIODevice::WriteOnly));
            file.write(text);
        };
        const auto available = [&] { return availableMemory(root.path().toStdString() + "/").value_or(-1); };
        QCOMPARE(available(), -1); // nothing is known
        write("proc/meminfo", "MemTotal:  4000 kB\nMemAvailable:    2000 kB\n");
        QCOMPARE(available(), 2000 * 1024);
        // A group without a limit inside one with 1,000,000 bytes, 300,000 taken, 100,000 of them files'.
        write("proc/self/cgroup", "1:name=systemd:/\n0::/batch/job\n");
        write("sys/fs/cgroup/batch/job/memory.max", "max\n");
        write("sys/fs/cgroup/batch/job/memory.current", "5000\n");
        write("sys/fs/cgroup/batch/memory.max", "1000000\n");
        write("sys/fs/cgroup/batch/memory.current", "300000\n");
        write("sys/fs/cgroup/batch/memory.stat", "anon 200000\ninactive_file 100000\n");
        QCOMPARE(available(), 800000);
        write("sys/fs/cgroup/batch/job/memory.max", "4000\n");
        QCOMPARE(available(), 0);            // over its limit already
        write("proc/self/cgroup", "0::/\n"); // as a container sees itself
        write("sys/fs/cgroup/memory.max", "777777\n");
        write("sys/fs/cgroup/memory.current", "0\n");
        QCOMPARE(available(), 777777);
    }

    void aLimitOfTheAddressSpaceCounts()
    {
        const auto before = availableMemory();
        if (!before || *before < (64 << 20))
            QSKIP("not enough memory here, or no /proc");
        rlimit old{};
        QCOMPARE(getrlimit(RLIMIT_AS, &old), 0);
        const std::int64_t size = processSize();
        rlimit limit = old;
        limit.rlim_cur = rlim_t(size + (32 << 20));
        QCOMPARE(setrlimit(RLIMIT_AS, &limit), 0);
        const auto limited = availableMemory();
        QCOMPARE(setrlimit(RLIMIT_AS, &old), 0);
        QVERIFY(*limited <= 32 << 20);
        QVERIFY(*limited > 16 << 20);
    }
};

QTEST_APPLESS_MAIN(TestMemory)
#include "tst_memory.moc"

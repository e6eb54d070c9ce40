// SPDX-License-Identifier: Apache-2.0
// Transfers within this machine, real and small: every kind moves every byte in both directions, chunks of any size,
// side by side and in turn; no process and no name in shared memory is left, also when the parent is killed.
#include "core/experiment/experiment.h"
#include "kernels/host/common/numa_memory.h"
#include "kernels/host/measurement.h"
#include "kernels/host/transfer/transfer.h"
#include "kernels/host/transfer/transfer_kernels.h"
#include "kernels/host/transfer/transfer_route.h"
#include "tests/support/host_fakes.h"

#include <QTest>

#include <QDir>
#include <QElapsedTimer>
#include <QFile>

#include <csignal>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

namespace memscape::host {
std::unique_ptr<HostMeasurement> makeTransferMeasurement(HostSession& session);
}

using namespace memscape;
using namespace memscape::host;

namespace {

std::vector<TransferKind> hostKinds()
{
    return calibratedTransfers();
}

TransferCase smallTransfer(TransferKind kind, TransferDirection direction, std::uint64_t bytes, std::uint64_t chunk)
{
    TransferCase asked;
    asked.kind = kind;
    asked.direction = direction;
    asked.bytes = bytes;
    asked.chunk = chunk;
    return asked;
}

/// Processes whose parent is `parent`.
int childrenOf(pid_t parent)
{
    int count = 0;
    for (const QString& entry : QDir(QStringLiteral("/proc")).entryList(QDir::Dirs)) {
        QFile stat(QStringLiteral("/proc/%1/stat").arg(entry));
        if (!stat.open(QIODevice::ReadOnly))
            continue;
        const QByteArray text = stat.readAll();
        const QList<QByteArray> words = text.mid(text.lastIndexOf(')') + 2).split(' ');
        count += words.size() > 1 && words[1].toInt() == parent;
    }
    return count;
}

/// The session of a run with the machine's own threads.
struct TransferSession
{
    Device device;
    test::Listener listener;
    HostSession session{device, listener};
};

/// Runs what a session's routes do with `thread` at the other end while `body` uses it.
void withServedRoute(HostSession& session, TransferRoute& route, const std::function<void()>& body)
{
    std::atomic<bool> done{false};
    session.team().run(
        [&](int thread) {
            if (thread == 0) {
                body();
                done = true;
            } else {
                route.serve(done);
            }
        },
        std::min(2, session.team().size()));
}

} // namespace

class TestTransferRoutes : public QObject
{
    Q_OBJECT

private slots:
    void kernelsAreRight()
    {
        const Check check = checkTransferKernels();
        QVERIFY2(check.passed(), check.text().c_str());
        QVERIFY(check.compared() > 10);
    }

    void everyByteArrives_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("bytes");
        QTest::addColumn<int>("chunk");
        for (const TransferKind kind : hostKinds()) {
            for (const auto& [bytes, chunk] : {std::pair(4, 4), std::pair(70001, 4097), std::pair(300000, 300000)})
                QTest::addRow("%s %d by %d", transferKindKey(kind).c_str(), bytes, chunk)
                    << int(kind) << bytes << chunk;
        }
    }
    void everyByteArrives()
    {
        QFETCH(int, kind);
        QFETCH(int, bytes);
        QFETCH(int, chunk);
        TransferSession one;
        for (const TransferDirection direction : {TransferDirection::To, TransferDirection::From}) {
            const TransferCase asked =
                smallTransfer(TransferKind(kind), direction, std::uint64_t(bytes), std::uint64_t(chunk));
            auto route = openTransferRoute(one.session, asked);
            if (!route && route.error().code == "run.skipped")
                QSKIP(route.error().message.c_str());
            QVERIFY2(route, route ? "" : route.error().text().c_str());
            auto buffer = allocate(bufferStride(asked), Pages::Small, one.session.memory());
            QVERIFY(buffer);
            int wrong = 0;
            withServedRoute(one.session, **route, [&] {
                for (std::uint64_t i = 0; i < asked.chunks(); ++i) {
                    const std::size_t offset = std::size_t(i * asked.chunk);
                    const std::size_t count =
                        std::min<std::size_t>(std::size_t(asked.chunk), std::size_t(bytes) - offset);
                    if (direction == TransferDirection::To) {
                        std::memset(buffer->data(), 0, count);
                        wrong += !(*route)->bring(buffer->data(), offset, count)
                            || !holdsSource(buffer->data(), offset, count);
                    } else {
                        fillSource(buffer->data(), offset, count);
                        wrong += !(*route)->send(buffer->data(), std::size_t(i), count)
                            || !(*route)->hasArrived(buffer->data(), std::size_t(i), count);
                    }
                }
            });
            QCOMPARE(wrong, 0);
        }
    }

    /// hasArrived() answers for the bytes, not for the call.
    void whatWasSentIsCompared()
    {
        TransferSession one;
        const TransferCase asked = smallTransfer(TransferKind::Copy, TransferDirection::From, 4096, 4096);
        auto route = openTransferRoute(one.session, asked);
        QVERIFY(route);
        std::vector<std::byte> buffer(4096);
        fillSource(buffer.data(), 0, buffer.size());
        QVERIFY((*route)->send(buffer.data(), 0, buffer.size()));
        QVERIFY((*route)->hasArrived(buffer.data(), 0, buffer.size()));
        buffer[77] ^= std::byte{4};
        QVERIFY(!(*route)->hasArrived(buffer.data(), 0, buffer.size()));
    }

    void noProcessIsLeft()
    {
        const int before = childrenOf(::getpid());
        TransferSession one;
        for (const TransferKind kind : {TransferKind::Pipe, TransferKind::Shared}) {
            {
                auto route = openTransferRoute(one.session, smallTransfer(kind, TransferDirection::To, 4096, 4096));
                QVERIFY(route);
                QCOMPARE(childrenOf(::getpid()), before + 1);
            }
            QCOMPARE(childrenOf(::getpid()), before); // not even a zombie
        }
    }

    void aKilledParentLeavesNoProcess()
    {
        for (const TransferKind kind : {TransferKind::Pipe, TransferKind::Shared}) {
            std::array<int, 2> told{};
            QCOMPARE(::pipe(told.data()), 0);
            const pid_t parent = ::fork();
            if (parent == 0) { // becomes a parent itself, and is killed as it waits
                TransferSession one;
                auto route = openTransferRoute(one.session, smallTransfer(kind, TransferDirection::To, 4096, 4096));
                const char word = route ? 'y' : 'n';
                static_cast<void>(!::write(told[1], &word, 1));
                ::pause();
                ::_exit(0);
            }
            char word = 0;
            QCOMPARE(::read(told[0], &word, 1), ssize_t(1));
            QCOMPARE(word, 'y');
            QCOMPARE(childrenOf(parent), 1);
            // No process holds the pipe any more.
            ::close(told[1]);
            ::kill(parent, SIGKILL);
            QCOMPARE(::read(told[0], &word, 1), ssize_t(0));
            ::waitpid(parent, nullptr, 0);
            ::close(told[0]);
            QTRY_COMPARE(childrenOf(parent), 0);
        }
    }

    void aLostProcessIsAnError()
    {
        TransferSession one;
        for (const TransferKind kind : {TransferKind::Pipe, TransferKind::Shared}) {
            auto route = openTransferRoute(one.session, smallTransfer(kind, TransferDirection::To, 4096, 4096));
            QVERIFY(route);
            for (const QString& entry : QDir(QStringLiteral("/proc")).entryList(QDir::Dirs)) {
                QFile stat(QStringLiteral("/proc/%1/stat").arg(entry));
                if (!stat.open(QIODevice::ReadOnly))
                    continue;
                const QByteArray text = stat.readAll();
                if (text.mid(text.lastIndexOf(')') + 2).split(' ').value(1).toInt() == ::getpid())
                    ::kill(entry.toInt(), SIGKILL);
            }
            std::vector<std::byte> buffer(4096);
            bool arrived = true;
            one.session.team().run([&](int) { arrived = (*route)->bring(buffer.data(), 0, buffer.size()); }, 1);
            QVERIFY(!arrived);
        }
    }

    /// A run that is stopped while it waits for another core ends at once.
    void stopEndsAWait()
    {
        TransferSession one;
        if (one.session.team().size() < 2)
            QSKIP("one core has no other to wait for");
        auto route =
            openTransferRoute(one.session, smallTransfer(TransferKind::Thread, TransferDirection::To, 4096, 4096));
        QVERIFY(route);
        one.listener.stop = true;
        std::vector<std::byte> buffer(4096);
        bool arrived = true;
        QElapsedTimer timer;
        timer.start();
        one.session.team().run([&](int) { arrived = (*route)->bring(buffer.data(), 0, buffer.size()); }, 1);
        QVERIFY(!arrived);
        QVERIFY(timer.elapsed() < 5000);
    }

    void samplesAreTaken()
    {
        TransferSession one;
        for (const TransferKind kind : hostKinds()) {
            const auto seconds = measureTransfer(one.session, kind, 10000, test::fewSamples(3));
            if (!seconds && seconds.error().code == "run.skipped")
                continue;
            QVERIFY2(seconds, seconds ? "" : seconds.error().text().c_str());
            QVERIFY(seconds->size() >= 3);
            QVERIFY(std::all_of(seconds->begin(), seconds->end(), [](double s) { return s > 0 && s < 1; }));
        }
        const auto plan = besidePlan(one.session);
        QCOMPARE(plan.has_value(), one.session.team().size() > 1);
        if (!plan)
            return;
        const auto small = plan->measure(0x1p14, test::fewSamples(3)),
                   large = plan->measure(0x1p22, test::fewSamples(3));
        QVERIFY(small && large && small->size() >= 3);
        QVERIFY(0 < *std::min_element(small->begin(), small->end()));
        QVERIFY(*std::min_element(small->begin(), small->end()) < *std::max_element(large->begin(), large->end()));
    }

    /// One that waits for requests computes: it would take turns with the probe's. The prober reads the system's
    /// counters before it probes.
    void theFarEndHasEndedWhenTheLinkIsProbed()
    {
        int most = 0, reads = 0;
        Instruments instruments;
        instruments.ticks = [&] {
            most = std::max(most, childrenOf(::getpid()));
            ++reads;
            return SystemTicks();
        };
        Device device;
        device.units = device.threads = 2;
        test::Listener listener;
        HostSession session(device, listener, instruments);
        const auto measurement = makeTransferMeasurement(session);
        const Parameters asked = resolve((*findExperiment("transfer"))->schema(),
                                         std::vector<std::string>{"kind=shared", "bytes=64KiB", "chunk=0", "work=0"})
                                     .value();
        const auto visited = measurement->visit(asked, 0);
        QVERIFY2(visited, visited ? "" : visited.error().text().c_str());
        QVERIFY(reads >= 3); // by the session, before and behind the probes
        QCOMPARE(most, 0);
        QVERIFY(!measurement->probes().links.empty());
    }

    void anotherNodeIsNamedOrRefused()
    {
        const NumaNode home{0, {0, 1}, 0x1p34, {10, 20}}, far{1, {2, 3}, 0x1p34, {20, 10}};
        QCOMPARE(farNodeOf({home, far}, 0).value(), 1);
        QCOMPARE(farNodeOf({home, far}, 3).value(), 0);
        const auto alone = farNodeOf({home}, 0);
        QVERIFY(!alone);
        QCOMPARE(alone.error().code, std::string("run.skipped"));
        QVERIFY(alone.error().message.find("one node of memory") != std::string::npos);
        QVERIFY(!farNodeOf({home, far}, 7)); // a processor that no node lists
        QVERIFY(!farNodeOf({}, 0));
    }

    /// On made-up nodes: the processors' own, which is not there, and this machine's first, which is "the other".
    void pagesLieOnTheNodeThatWasAskedFor()
    {
        const std::vector<NumaNode> real = readNumaNodes();
        if (real.empty())
            QSKIP("this kernel lists no nodes of memory");
        const auto sessionWith = [&](int otherNode, test::Listener& listener, const Device& device) {
            Instruments instruments;
            const int processor = instruments.processors.front();
            instruments.nodes = [=] {
                return std::vector<NumaNode>{{900, {processor}, 0x1p34, {10, 20}}, {otherNode, {}, 0x1p34, {20, 10}}};
            };
            return std::make_unique<HostSession>(device, listener, instruments);
        };
        const Device device;
        test::Listener listener;
        const auto session = sessionWith(real.front().id, listener, device);
        const TransferCase asked = smallTransfer(TransferKind::Numa, TransferDirection::To, 1 << 20, 1 << 18);
        auto route = openTransferRoute(*session, asked);
        if (!route && route.error().message.find("cannot be asked for") != std::string::npos)
            QSKIP("this system does not let a program choose a node");
        QVERIFY2(route, route ? "" : route.error().text().c_str());
        std::vector<std::byte> buffer(1 << 18);
        QVERIFY((*route)->bring(buffer.data(), 1 << 18, buffer.size()));
        QVERIFY(holdsSource(buffer.data(), 1 << 18, buffer.size()));
        auto memory = allocate(1 << 20, Pages::Small, session->memory());
        QVERIFY(memory && bindToNode(*memory, real.front().id));
        QCOMPARE(shareOnNode(*memory, real.front().id), 0.0); // nothing is there before it is touched
        std::memset(memory->data(), 1, memory->bytes() / 2);
        QCOMPARE(shareOnNode(*memory, real.front().id), 0.5);
        QCOMPARE(shareOnNode(*memory, real.front().id + 1), 0.0);
        // A node that the tree lists and the kernel has not got.
        const auto wrong = sessionWith(901, listener, device);
        const auto refused = openTransferRoute(*wrong, asked);
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, std::string("run.skipped"));
        QVERIFY(refused.error().message.find("node 901") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestTransferRoutes)
#include "tst_transfer_routes.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// Workers that do everything wrong. Whatever they do: this program goes on, the run ends exactly
// once, the points that arrived are kept, and no process is left.
#include "app/workers/worker_client.h"
#include "tests/support/sample_study.h"
#include "tests/support/waiting.h"

#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <random>

#include <unistd.h>

using namespace memscape;
using namespace std::chrono_literals;
using State = WorkerClient::State;

namespace {

WorkerOptions fake(const QStringList& mode)
{
    WorkerOptions options;
    options.command = QStringList{QStringLiteral(FAKE_WORKER)} + mode;
    options.firstBackoff = 10ms;
    options.handshake = 5s;
    return options;
}

RunRequest request()
{
    return {"stride", sample::device(), "cpu", sample::parameters({"stride=1,2,3,4"})};
}

bool isAlive(qint64 pid)
{
    if (::kill(static_cast<pid_t>(pid), 0) != 0)
        return false;
    QFile status(QStringLiteral("/proc/%1/stat").arg(pid));
    return status.open(QIODevice::ReadOnly) && !status.readAll().contains(") Z ");
}

/// One client with one run and everything that was heard of it.
struct ClientFixture
{
    explicit ClientFixture(WorkerOptions options)
        : client(std::move(options))
    {
        QObject::connect(&client, &WorkerClient::finished, &client,
                         [this](const FinishedRun& run) { runs.push_back(run); });
    }
    /// The end of a run that is started now.
    FinishedRun measure()
    {
        const std::size_t before = runs.size();
        const qint64 id = client.run(request());
        if (!QTest::qWaitFor([&] { return runs.size() > before; }, 60000))
            qFatal("the run did not end");
        if (runs.back().id != id)
            qFatal("another run ended");
        return runs.back();
    }
    std::string code() const { return client.error() ? client.error()->code : ""; }

    std::vector<FinishedRun> runs;
    WorkerClient client;
};

std::size_t pointsOf(const FinishedRun& run)
{
    return run.provenance.value("points", std::size_t(0));
}

} // namespace

Q_DECLARE_METATYPE(RunStatus)

class TestWorkerClient : public QObject
{
    Q_OBJECT
private slots:
    void aRunFromStartToEnd()
    {
        ClientFixture fixture(fake({QStringLiteral("ok")}));
        QSignalSpy devices(&fixture.client, &WorkerClient::devicesChanged);
        QSignalSpy points(&fixture.client, &WorkerClient::pointsArrived);
        QSignalSpy progress(&fixture.client, &WorkerClient::progress);
        const FinishedRun run = fixture.measure();
        QCOMPARE(run.status, RunStatus::Done);
        QVERIFY(!run.error);
        QVERIFY(run.measurement.has_value());
        QCOMPARE(run.measurement->figures.at(0).number(), 0.5);
        QCOMPARE(run.elapsed, 0.5);
        QVERIFY(run.provenance["backend"] == "fake");
        QCOMPARE(devices.size(), 1);
        QCOMPARE(fixture.client.devices().size(), 2u);
        QCOMPARE(fixture.client.devices()[1].missing, std::string("no driver"));
        QVERIFY(!points.isEmpty());
        const auto last = points.last().at(1).value<std::vector<Point>>();
        QCOMPARE(last.back().x, 4.0);
        QCOMPARE(last.back().figures[0].number(), 4e9 + 1); // of the second pass
        QCOMPARE(progress.last().at(1).toInt(), 8);
        QCOMPARE(fixture.client.state(), State::Ready);
        QCOMPARE(fixture.measure().status, RunStatus::Done); // the same worker again
        QVERIFY(recordFromRun(run).has_value());
    }

    void runsWaitForEachOther()
    {
        ClientFixture fixture(fake({QStringLiteral("ok")}));
        const qint64 first = fixture.client.run(request());
        const qint64 second = fixture.client.run(request());
        const qint64 third = fixture.client.run(request());
        fixture.client.cancel(second);
        QTRY_COMPARE(fixture.runs.size(), 3u);
        QCOMPARE(fixture.runs[0].id, second);
        QCOMPARE(fixture.runs[0].status, RunStatus::Cancelled);
        QCOMPARE(fixture.runs[1].id, first);
        QCOMPARE(fixture.runs[2].id, third);
        QCOMPARE(fixture.runs[2].status, RunStatus::Done);
    }

    void whatTheWorkerDoesDuringARun_data()
    {
        QTest::addColumn<QString>("mode");
        QTest::addColumn<RunStatus>("status");
        QTest::addColumn<std::string>("code");
        QTest::addColumn<std::size_t>("points");
        QTest::newRow("crashes") << "crash" << RunStatus::Interrupted << std::string("worker.crashed")
                                 << std::size_t(2);
        QTest::newRow("is killed") << "killed" << RunStatus::Interrupted << std::string("worker.crashed")
                                   << std::size_t(1);
        QTest::newRow("prints garbage") << "garbage" << RunStatus::Interrupted << std::string("worker.protocol")
                                        << std::size_t(1);
        QTest::newRow("prints a huge line")
            << "huge" << RunStatus::Interrupted << std::string("worker.protocol") << std::size_t(1);
        QTest::newRow("exits in a line") << "half-line" << RunStatus::Interrupted << std::string("worker.crashed")
                                         << std::size_t(1);
        QTest::newRow("exits after done without newline")
            << "half-done" << RunStatus::Done << std::string() << std::size_t(0);
        QTest::newRow("skips") << "skipped" << RunStatus::Skipped << std::string("run.skipped") << std::size_t(0);
        QTest::newRow("fails") << "failed" << RunStatus::Failed << std::string("run.memory") << std::size_t(0);
        QTest::newRow("sends a broken result")
            << "broken-result" << RunStatus::Failed << std::string("json.type") << std::size_t(0);
        QTest::newRow("sends what we do not know") << "strange" << RunStatus::Done << std::string() << std::size_t(0);
    }
    void whatTheWorkerDoesDuringARun()
    {
        QFETCH(QString, mode);
        QFETCH(RunStatus, status);
        QFETCH(std::string, code);
        QFETCH(std::size_t, points);
        ClientFixture fixture(fake({mode}));
        const FinishedRun run = fixture.measure();
        QCOMPARE(run.status, status);
        QCOMPARE(run.error ? run.error->code : "", code);
        QCOMPARE(pointsOf(run), points);
        QCOMPARE(run.measurement.has_value(), points > 0 || status == RunStatus::Done);
        if (points > 0) {
            QVERIFY(recordFromRun(run)->measured.has_value());
            QVERIFY(run.provenance["status"] == "interrupted");
        }
        // Whatever it was, there is a worker again.
        QTRY_COMPARE(fixture.client.state(), State::Ready);
        QCOMPARE(fixture.runs.size(), 1u);
    }

    void notesAndSplitLinesArriveWhole()
    {
        ClientFixture fixture(fake({QStringLiteral("strange")}));
        QSignalSpy notes(&fixture.client, &WorkerClient::note);
        fixture.measure();
        QCOMPARE(notes.size(), 1);
        QCOMPARE(notes[0].at(3).toString(), QStringLiteral("half and half"));
    }

    void anInterruptedRunCanBeRepeated()
    {
        QTemporaryDir folder;
        ClientFixture fixture(fake({QStringLiteral("crash-once"), folder.filePath(QStringLiteral("crashed"))}));
        const FinishedRun first = fixture.measure();
        QCOMPARE(first.status, RunStatus::Interrupted);
        QVERIFY(first.details.contains(QStringLiteral("illegal address")));
        QCOMPARE(fixture.measure().status, RunStatus::Done);
    }

    void workersThatNeverGetReady_data()
    {
        QTest::addColumn<QString>("mode");
        QTest::addColumn<std::string>("code");
        QTest::addColumn<QString>("says");
        QTest::newRow("exits") << "exit" << std::string("worker.start") << "publickey";
        QTest::newRow("says nothing") << "silent" << std::string("worker.handshake") << "0.3 s";
        QTest::newRow("speaks another version") << "version" << std::string("worker.version") << "99";
        QTest::newRow("prints a greeting") << "noise" << std::string("worker.protocol") << "Welcome to lab-gpu";
        QTest::newRow("begins with something else") << "early" << std::string("worker.protocol") << "hello";
    }
    void workersThatNeverGetReady()
    {
        QFETCH(QString, mode);
        QFETCH(std::string, code);
        QFETCH(QString, says);
        WorkerOptions options = fake({mode});
        if (mode == QLatin1String("silent"))
            options.handshake = 300ms;
        ClientFixture fixture(options);
        const FinishedRun run = fixture.measure();
        QCOMPARE(run.status, RunStatus::Failed);
        QCOMPARE(run.error->code, code);
        QVERIFY2(run.error->message.find(says.toStdString()) != std::string::npos, run.error->message.c_str());
        QVERIFY(!run.error->hint.empty());
        QCOMPARE(fixture.client.state(), State::Failed);
        QCOMPARE(fixture.code(), code);
        QVERIFY(fixture.client.details().contains(mode));
    }

    void aMissingProgramIsSaid()
    {
        for (const QStringList& command : {QStringList{}, {QStringLiteral("/no/such/worker")}}) {
            WorkerOptions options;
            options.command = command;
            ClientFixture fixture(options);
            QCOMPARE(fixture.measure().error->code, std::string("worker.missing"));
            QCOMPARE(fixture.client.state(), State::Failed);
            QVERIFY(!fixture.client.error()->hint.empty());
        }
    }

    void aWorkerThatCrashesAgainAndAgainIsGivenUp()
    {
        WorkerOptions options = fake({QStringLiteral("crash-idle")});
        options.restarts = 3;
        ClientFixture fixture(options);
        QSignalSpy states(&fixture.client, &WorkerClient::stateChanged);
        fixture.client.start();
        QTRY_COMPARE_WITH_TIMEOUT(fixture.client.state(), State::Failed, 20000);
        QCOMPARE(fixture.code(), std::string("worker.gave-up"));
        QVERIFY2(fixture.client.error()->message.find("4 times") != std::string::npos,
                 fixture.client.error()->message.c_str());
        const auto ready = std::ranges::count_if(
            states, [](const auto& change) { return change.at(0).template value<State>() == State::Ready; });
        QCOMPARE(ready, 4);
        fixture.client.start(); // "Try again"
        QTRY_COMPARE(fixture.client.state(), State::Ready);
    }

    void stopStops_data()
    {
        QTest::addColumn<QString>("mode");
        QTest::newRow("a worker that obeys") << "slow";
        QTest::newRow("one that waits") << "hang";
        QTest::newRow("one that ignores everything") << "deaf";
        QTest::newRow("one with a child") << "child";
    }
    void stopStops()
    {
        QFETCH(QString, mode);
        ClientFixture fixture(fake({mode}));
        QSignalSpy points(&fixture.client, &WorkerClient::pointsArrived);
        const qint64 id = fixture.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = fixture.client.processId();
        fixture.client.cancel(id);
        fixture.client.cancel(id); // pressed twice
        QTRY_COMPARE_WITH_TIMEOUT(fixture.runs.size(), 1u, test::notStuck);
        QCOMPARE(fixture.runs[0].status, RunStatus::Cancelled);
        QVERIFY(pointsOf(fixture.runs[0]) >= 1);
        QVERIFY(fixture.runs[0].measurement.has_value());
        if (mode == QLatin1String("deaf") || mode == QLatin1String("child"))
            QTRY_VERIFY(!isAlive(pid));
        QTRY_COMPARE(fixture.client.state(), State::Ready);
    }

    void whatTheWorkerStartedEndsWithIt()
    {
        ClientFixture fixture(fake({QStringLiteral("child")}));
        QSignalSpy points(&fixture.client, &WorkerClient::pointsArrived);
        const qint64 run = fixture.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        QTRY_VERIFY(fixture.client.details().contains(QStringLiteral("child ")));
        const qint64 child = fixture.client.details().section(QStringLiteral("child "), -1).trimmed().toLongLong();
        QVERIFY(isAlive(child));
        fixture.client.cancel(run);
        QTRY_VERIFY(!isAlive(child));
    }

    void aSilentRunIsAskedAbout()
    {
        WorkerOptions options = fake({QStringLiteral("hang")});
        options.silence = 200ms;
        ClientFixture fixture(options);
        QSignalSpy silent(&fixture.client, &WorkerClient::silent);
        const qint64 run = fixture.client.run(request());
        QTRY_COMPARE(silent.size(), 1);
        QTest::qWait(400);
        QCOMPARE(silent.size(), 1); // asked once
        fixture.client.keepWaiting();
        QTRY_COMPARE(silent.size(), 2);
        QCOMPARE(fixture.client.state(), State::Running);
        fixture.client.cancel(run);
        QTRY_COMPARE(fixture.runs.size(), 1u);
    }

    void aFloodDoesNotFreezeTheWindow()
    {
        ClientFixture fixture(fake({QStringLiteral("flood"), QStringLiteral("500000")}));
        QSignalSpy progress(&fixture.client, &WorkerClient::progress);
        qint64 longest = 0;
        QElapsedTimer beat;
        QTimer heart;
        connect(&heart, &QTimer::timeout, this, [&] { longest = std::max(longest, beat.restart()); });
        QElapsedTimer whole;
        whole.start();
        beat.start();
        heart.start(5);
        const FinishedRun run = fixture.measure();
        QCOMPARE(run.status, RunStatus::Done);
        QCOMPARE(progress.last().at(1).toInt(), 500000);
        QVERIFY2(longest < 500, qPrintable(QStringLiteral("%1 ms without a heartbeat").arg(longest)));
        const double seconds = static_cast<double>(whole.elapsed()) / 1000;
        QVERIFY2(static_cast<double>(progress.size()) <= 31 * (seconds + 1),
                 qPrintable(QString::number(progress.size())));
    }

    void aWorkerThatIsKilledIsReplaced()
    {
        ClientFixture fixture(fake({QStringLiteral("slow")}));
        QSignalSpy points(&fixture.client, &WorkerClient::pointsArrived);
        fixture.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = fixture.client.processId();
        ::kill(static_cast<pid_t>(pid), SIGKILL);
        QTRY_COMPARE(fixture.runs.size(), 1u);
        QCOMPARE(fixture.runs[0].status, RunStatus::Interrupted);
        QVERIFY(fixture.runs[0].measurement.has_value());
        QTRY_COMPARE(fixture.client.state(), State::Ready);
        QVERIFY(fixture.client.processId() != pid);
    }

    void killedAtAnyMomentItKeepsThePointsItHad()
    {
        WorkerOptions options = fake({QStringLiteral("slow")});
        options.restarts = 100;
        options.firstBackoff = 1ms;
        ClientFixture fixture(options);
        std::mt19937 random(1);
        for (std::size_t kill = 1; kill <= 30; ++kill) {
            const qint64 id = fixture.client.run(request());
            QTRY_VERIFY(fixture.client.state() == State::Running);
            QTest::qWait(int(random() % 60));
            ::kill(static_cast<pid_t>(fixture.client.processId()), SIGKILL);
            QTRY_COMPARE(fixture.runs.size(), kill);
            const FinishedRun& run = fixture.runs.back();
            QCOMPARE(run.id, id);
            QCOMPARE(run.status, RunStatus::Interrupted);
            QCOMPARE(run.error->code, std::string("worker.crashed"));
            QCOMPARE(run.measurement.has_value(), run.provenance["points"].get<int>() > 0);
        }
    }

    /// The system kills when the memory runs out: the user must see what to do about it.
    void aKilledWorkerNamesMemory()
    {
        ClientFixture fixture(fake({QStringLiteral("killed")}));
        const FinishedRun killed = fixture.measure();
        QVERIFY2(killed.error->message.find("memory runs out") != std::string::npos, killed.error->message.c_str());
        QVERIFY(killed.error->hint.find("smaller") != std::string::npos);
        ClientFixture other(fake({QStringLiteral("crash")}));
        QVERIFY(other.measure().error->message.find("memory") == std::string::npos);
    }

    void stoppingEndsTheWorkerAndItsRun()
    {
        ClientFixture fixture(fake({QStringLiteral("deaf")}));
        QSignalSpy points(&fixture.client, &WorkerClient::pointsArrived);
        fixture.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = fixture.client.processId();
        fixture.client.stop();
        QCOMPARE(fixture.runs.size(), 1u);
        QCOMPARE(fixture.runs[0].status, RunStatus::Interrupted);
        QTRY_COMPARE(fixture.client.state(), State::Stopped);
        QTRY_VERIFY(!isAlive(pid));
        QCOMPARE(fixture.client.processId(), 0);
        fixture.client.start(), fixture.client.stop(), fixture.client.start(); // "Restart workers"
        QTRY_VERIFY(fixture.client.state() == State::Ready && fixture.client.processId() != 0);
    }

    void anotherCommandStartsAnotherWorker()
    {
        ClientFixture fixture(fake({QStringLiteral("deaf")}));
        QSignalSpy points(&fixture.client, &WorkerClient::pointsArrived);
        fixture.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 first = fixture.client.processId();
        const QStringList same = fixture.client.command();
        fixture.client.setCommand(same);
        QCOMPARE(fixture.client.processId(), first);
        fixture.client.setCommand({same.first(), QStringLiteral("ok")});
        QCOMPARE(fixture.runs.size(), 1u); // what it had measured is kept
        QCOMPARE(fixture.runs[0].status, RunStatus::Interrupted);
        QVERIFY(fixture.runs[0].measurement.has_value());
        QTRY_VERIFY(fixture.client.state() == State::Ready && !isAlive(first));
        QCOMPARE(fixture.measure().status, RunStatus::Done);
    }

    void closingTheWindowDuringARunLeavesNothing()
    {
        auto fixture = std::make_unique<ClientFixture>(fake({QStringLiteral("deaf")}));
        QSignalSpy points(&fixture->client, &WorkerClient::pointsArrived);
        fixture->client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = fixture->client.processId();
        QVERIFY(isAlive(pid));
        fixture.reset();
        QTRY_VERIFY(!isAlive(pid));
    }

    void killingTheWindowLeavesNothing()
    {
        for (const char* mode : {"slow", "deaf"}) {
            QProcess window;
            window.start(QStringLiteral(WORKER_PARENT), {QStringLiteral(FAKE_WORKER), QLatin1String(mode)});
            QTRY_VERIFY_WITH_TIMEOUT(window.canReadLine(), 20000);
            const qint64 worker = window.readLine().trimmed().toLongLong();
            QVERIFY(worker > 0);
            QVERIFY(isAlive(worker));
            window.kill();
            QVERIFY(window.waitForFinished());
            QTRY_VERIFY(!isAlive(worker));
        }
    }
};

QTEST_GUILESS_MAIN(TestWorkerClient)
#include "tst_worker_client.moc"

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
struct Session
{
    explicit Session(WorkerOptions options)
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
        Session session(fake({QStringLiteral("ok")}));
        QSignalSpy devices(&session.client, &WorkerClient::devicesChanged);
        QSignalSpy points(&session.client, &WorkerClient::pointsArrived);
        QSignalSpy progress(&session.client, &WorkerClient::progress);
        const FinishedRun run = session.measure();
        QCOMPARE(run.status, RunStatus::Done);
        QVERIFY(!run.error);
        QVERIFY(run.measurement.has_value());
        QCOMPARE(run.measurement->figures.at(0).number(), 0.5);
        QCOMPARE(run.elapsed, 0.5);
        QVERIFY(run.provenance["backend"] == "fake");
        QCOMPARE(devices.size(), 1);
        QCOMPARE(session.client.devices().size(), 2u);
        QCOMPARE(session.client.devices()[1].missing, std::string("no driver"));
        QVERIFY(!points.isEmpty());
        const auto last = points.last().at(1).value<std::vector<Point>>();
        QCOMPARE(last.back().x, 4.0);
        QCOMPARE(last.back().figures[0].number(), 4e9 + 1); // of the second pass
        QCOMPARE(progress.last().at(1).toInt(), 8);
        QCOMPARE(session.client.state(), State::Ready);
        QCOMPARE(session.measure().status, RunStatus::Done); // the same worker again
        QVERIFY(recordFromRun(run).has_value());
    }

    void runsWaitForEachOther()
    {
        Session session(fake({QStringLiteral("ok")}));
        const qint64 first = session.client.run(request());
        const qint64 second = session.client.run(request());
        const qint64 third = session.client.run(request());
        session.client.cancel(second);
        QTRY_COMPARE(session.runs.size(), 3u);
        QCOMPARE(session.runs[0].id, second);
        QCOMPARE(session.runs[0].status, RunStatus::Cancelled);
        QCOMPARE(session.runs[1].id, first);
        QCOMPARE(session.runs[2].id, third);
        QCOMPARE(session.runs[2].status, RunStatus::Done);
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
        Session session(fake({mode}));
        const FinishedRun run = session.measure();
        QCOMPARE(run.status, status);
        QCOMPARE(run.error ? run.error->code : "", code);
        QCOMPARE(pointsOf(run), points);
        QCOMPARE(run.measurement.has_value(), points > 0 || status == RunStatus::Done);
        if (points > 0) {
            QVERIFY(recordFromRun(run)->measured.has_value());
            QVERIFY(run.provenance["status"] == "interrupted");
        }
        // Whatever it was, there is a worker again.
        QTRY_COMPARE(session.client.state(), State::Ready);
        QCOMPARE(session.runs.size(), 1u);
    }

    void notesAndSplitLinesArriveWhole()
    {
        Session session(fake({QStringLiteral("strange")}));
        QSignalSpy notes(&session.client, &WorkerClient::note);
        session.measure();
        QCOMPARE(notes.size(), 1);
        QCOMPARE(notes[0].at(3).toString(), QStringLiteral("half and half"));
    }

    void anInterruptedRunCanBeRepeated()
    {
        QTemporaryDir folder;
        Session session(fake({QStringLiteral("crash-once"), folder.filePath(QStringLiteral("crashed"))}));
        const FinishedRun first = session.measure();
        QCOMPARE(first.status, RunStatus::Interrupted);
        QVERIFY(first.details.contains(QStringLiteral("illegal address")));
        QCOMPARE(session.measure().status, RunStatus::Done);
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
        Session session(options);
        const FinishedRun run = session.measure();
        QCOMPARE(run.status, RunStatus::Failed);
        QCOMPARE(run.error->code, code);
        QVERIFY2(run.error->message.find(says.toStdString()) != std::string::npos, run.error->message.c_str());
        QVERIFY(!run.error->hint.empty());
        QCOMPARE(session.client.state(), State::Failed);
        QCOMPARE(session.code(), code);
        QVERIFY(session.client.details().contains(mode));
    }

    void aMissingProgramIsSaid()
    {
        for (const QStringList& command : {QStringList{}, {QStringLiteral("/no/such/worker")}}) {
            WorkerOptions options;
            options.command = command;
            Session session(options);
            QCOMPARE(session.measure().error->code, std::string("worker.missing"));
            QCOMPARE(session.client.state(), State::Failed);
            QVERIFY(!session.client.error()->hint.empty());
        }
    }

    void aWorkerThatCrashesAgainAndAgainIsGivenUp()
    {
        WorkerOptions options = fake({QStringLiteral("crash-idle")});
        options.restarts = 3;
        Session session(options);
        QSignalSpy states(&session.client, &WorkerClient::stateChanged);
        session.client.start();
        QTRY_COMPARE_WITH_TIMEOUT(session.client.state(), State::Failed, 20000);
        QCOMPARE(session.code(), std::string("worker.gave-up"));
        QVERIFY2(session.client.error()->message.find("4 times") != std::string::npos,
                 session.client.error()->message.c_str());
        const auto ready = std::count_if(states.begin(), states.end(), [](const auto& change) {
            return change.at(0).template value<State>() == State::Ready;
        });
        QCOMPARE(ready, 4);
        session.client.start(); // "Try again"
        QTRY_COMPARE(session.client.state(), State::Ready);
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
        Session session(fake({mode}));
        QSignalSpy points(&session.client, &WorkerClient::pointsArrived);
        const qint64 id = session.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = session.client.processId();
        session.client.cancel(id);
        session.client.cancel(id); // pressed twice
        QTRY_COMPARE_WITH_TIMEOUT(session.runs.size(), 1u, test::notStuck);
        QCOMPARE(session.runs[0].status, RunStatus::Cancelled);
        QVERIFY(pointsOf(session.runs[0]) >= 1);
        QVERIFY(session.runs[0].measurement.has_value());
        if (mode == QLatin1String("deaf") || mode == QLatin1String("child"))
            QTRY_VERIFY(!isAlive(pid));
        QTRY_COMPARE(session.client.state(), State::Ready);
    }

    void whatTheWorkerStartedEndsWithIt()
    {
        Session session(fake({QStringLiteral("child")}));
        QSignalSpy points(&session.client, &WorkerClient::pointsArrived);
        session.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        QTRY_VERIFY(session.client.details().contains(QStringLiteral("child ")));
        const qint64 child = session.client.details().section(QStringLiteral("child "), -1).trimmed().toLongLong();
        QVERIFY(isAlive(child));
        session.client.cancel(session.client.currentRun());
        QTRY_VERIFY(!isAlive(child));
    }

    void aSilentRunIsAskedAbout()
    {
        WorkerOptions options = fake({QStringLiteral("hang")});
        options.silence = 200ms;
        Session session(options);
        QSignalSpy silent(&session.client, &WorkerClient::silent);
        session.client.run(request());
        QTRY_COMPARE(silent.size(), 1);
        QTest::qWait(400);
        QCOMPARE(silent.size(), 1); // asked once
        session.client.keepWaiting();
        QTRY_COMPARE(silent.size(), 2);
        QCOMPARE(session.client.state(), State::Running);
        session.client.cancel(session.client.currentRun());
        QTRY_COMPARE(session.runs.size(), 1u);
    }

    void aFloodDoesNotFreezeTheWindow()
    {
        Session session(fake({QStringLiteral("flood"), QStringLiteral("500000")}));
        QSignalSpy progress(&session.client, &WorkerClient::progress);
        qint64 longest = 0;
        QElapsedTimer beat;
        QTimer heart;
        connect(&heart, &QTimer::timeout, this, [&] { longest = std::max(longest, beat.restart()); });
        QElapsedTimer whole;
        whole.start();
        beat.start();
        heart.start(5);
        const FinishedRun run = session.measure();
        QCOMPARE(run.status, RunStatus::Done);
        QCOMPARE(progress.last().at(1).toInt(), 500000);
        QVERIFY2(longest < 500, qPrintable(QStringLiteral("%1 ms without a heartbeat").arg(longest)));
        const double seconds = static_cast<double>(whole.elapsed()) / 1000;
        QVERIFY2(static_cast<double>(progress.size()) <= 31 * (seconds + 1),
                 qPrintable(QString::number(progress.size())));
    }

    void aWorkerThatIsKilledIsReplaced()
    {
        Session session(fake({QStringLiteral("slow")}));
        QSignalSpy points(&session.client, &WorkerClient::pointsArrived);
        session.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = session.client.processId();
        ::kill(static_cast<pid_t>(pid), SIGKILL);
        QTRY_COMPARE(session.runs.size(), 1u);
        QCOMPARE(session.runs[0].status, RunStatus::Interrupted);
        QVERIFY(session.runs[0].measurement.has_value());
        QTRY_COMPARE(session.client.state(), State::Ready);
        QVERIFY(session.client.processId() != pid);
    }

    void killedAtAnyMomentItKeepsThePointsItHad()
    {
        WorkerOptions options = fake({QStringLiteral("slow")});
        options.restarts = 100;
        options.firstBackoff = 1ms;
        Session session(options);
        std::mt19937 random(1);
        for (std::size_t kill = 1; kill <= 30; ++kill) {
            const qint64 id = session.client.run(request());
            QTRY_VERIFY(session.client.state() == State::Running);
            QTest::qWait(int(random() % 60));
            ::kill(static_cast<pid_t>(session.client.processId()), SIGKILL);
            QTRY_COMPARE(session.runs.size(), kill);
            const FinishedRun& run = session.runs.back();
            QCOMPARE(run.id, id);
            QCOMPARE(run.status, RunStatus::Interrupted);
            QCOMPARE(run.error->code, std::string("worker.crashed"));
            QCOMPARE(run.measurement.has_value(), run.provenance["points"].get<int>() > 0);
        }
    }

    /// The system kills when the memory runs out: the user must be told what to do about it.
    void aKilledWorkerSpeaksOfMemory()
    {
        Session session(fake({QStringLiteral("killed")}));
        const FinishedRun killed = session.measure();
        QVERIFY2(killed.error->message.find("memory runs out") != std::string::npos, killed.error->message.c_str());
        QVERIFY(killed.error->hint.find("smaller") != std::string::npos);
        Session other(fake({QStringLiteral("crash")}));
        QVERIFY(other.measure().error->message.find("memory") == std::string::npos);
    }

    void stoppingEndsTheWorkerAndItsRun()
    {
        Session session(fake({QStringLiteral("deaf")}));
        QSignalSpy points(&session.client, &WorkerClient::pointsArrived);
        session.client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = session.client.processId();
        session.client.stop();
        QCOMPARE(session.runs.size(), 1u);
        QCOMPARE(session.runs[0].status, RunStatus::Interrupted);
        QTRY_COMPARE(session.client.state(), State::Stopped);
        QTRY_VERIFY(!isAlive(pid));
        QCOMPARE(session.client.processId(), 0);
        session.client.start(), session.client.stop(), session.client.start(); // "Restart workers"
        QTRY_VERIFY(session.client.state() == State::Ready && session.client.processId() != 0);
    }

    void closingTheWindowDuringARunLeavesNothing()
    {
        auto session = std::make_unique<Session>(fake({QStringLiteral("deaf")}));
        QSignalSpy points(&session->client, &WorkerClient::pointsArrived);
        session->client.run(request());
        QTRY_VERIFY(!points.isEmpty());
        const qint64 pid = session->client.processId();
        QVERIFY(isAlive(pid));
        session.reset();
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

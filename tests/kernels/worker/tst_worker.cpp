// SPDX-License-Identifier: Apache-2.0
// The worker over real pipes, with a backend that does what the test asks of it.
#include "kernels/worker/worker.h"

#include "core/protocol/message.h"
#include "tests/support/waiting.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include <QElapsedTimer>
#include <QTest>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace memscape;
using namespace memscape::protocol;

namespace {

/// Ten points, 20 ms apart; stops on a cancel, unless it ignores it.
class FakeBackend : public Backend
{
public:
    explicit FakeBackend(bool deaf = false)
        : m_deaf(deaf)
    { }
    std::string id() const override { return "fake"; }
    std::vector<BackendDevice> devices() override
    {
        return {{"cpu", "a fake", {}, {}}, {"cuda:0", {}, "there is no driver", {}}};
    }
    Result<MeasuredRun> measure(const Experiment&, const BackendDevice&, const Parameters&, RunSink& sink) override
    {
        MeasuredRun run;
        run.measurement.detail = Json::object();
        for (int i = 0; i < (m_deaf ? 3000 : 10); ++i) {
            sink.progress(i, 10, "point");
            Point point;
            point.x = i;
            sink.point("stride", point);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            if (sink.cancelled() && !m_deaf) {
                run.complete = false;
                return run;
            }
        }
        return run;
    }
    Result<Device> calibrate(const BackendDevice&, RunSink&) override { throw std::runtime_error("a library threw"); }
    std::vector<SelftestLine> selftest(const BackendDevice&, RunSink&) override
    {
        return {{"good", true, false, {}}, {"bad", false, false, "off by one"}, {"rare", false, true, {}}};
    }

private:
    bool m_deaf;
};

/// runWorker on its own thread, and the other ends of its pipes.
class RunningWorker
{
public:
    RunningWorker()
    {
        if (::pipe2(m_in, O_CLOEXEC) != 0 || ::pipe2(m_out, O_CLOEXEC) != 0)
            qFatal("no pipes");
        m_thread = std::thread([this] {
            Backends backends;
            backends.push_back(std::make_unique<FakeBackend>());
            m_code = runWorker(m_in[0], m_out[1], std::move(backends), WorkerOptions{{}, 5});
            ::close(m_out[1]);
        });
    }
    ~RunningWorker()
    {
        endInput();
        m_thread.join();
        ::close(m_in[0]);
        ::close(m_out[0]);
    }

    void send(const std::string& text) { QVERIFY(::write(m_in[1], text.data(), text.size()) > 0); }
    void send(const Command& command) { send(encode(command)); }
    void run(std::int64_t id, const std::string& experiment = "stride", const std::string& device = "cpu")
    {
        send(Command{Run{id, experiment, device, Json::object()}});
    }
    void endInput()
    {
        if (m_in[1] >= 0)
            ::close(m_in[1]);
        m_in[1] = -1;
    }

    /// Events until `last` accepts one, five seconds pass, or the output ends.
    std::vector<Event> eventsUntil(const std::function<bool(const Event&)>& last)
    {
        std::vector<Event> events;
        QElapsedTimer timer;
        timer.start();
        while (timer.elapsed() < 5000) {
            for (; m_next < m_lines.size(); ++m_next) {
                auto event = decodeEvent(m_lines[m_next]);
                if (!event) {
                    qWarning("not protocol: %s", m_lines[m_next].c_str());
                    continue;
                }
                events.push_back(*event);
                if (last(*event)) {
                    ++m_next;
                    return events;
                }
            }
            pollfd waiting{m_out[0], POLLIN, 0};
            if (::poll(&waiting, 1, 100) <= 0)
                continue;
            char chunk[65536];
            const ssize_t count = ::read(m_out[0], chunk, sizeof(chunk));
            if (count <= 0)
                return events;
            const auto lines = m_reader.feed(std::string_view(chunk, static_cast<std::size_t>(count)));
            m_lines.insert(m_lines.end(), lines->begin(), lines->end());
        }
        return events;
    }
    std::vector<Event> eventsUntilDone(std::int64_t id)
    {
        return eventsUntil([id](const Event& event) {
            const auto* const done = std::get_if<Done>(&event);
            return done && done->id == id;
        });
    }
    std::vector<Event> untilEnd()
    {
        return eventsUntil([](const Event&) { return false; });
    }
    int code() const { return m_code; }

private:
    int m_in[2] = {-1, -1}, m_out[2] = {-1, -1};
    std::atomic<int> m_code{-1};
    std::thread m_thread;
    LineReader m_reader;
    std::vector<std::string> m_lines;
    std::size_t m_next = 0;
};

template <typename T> int countOf(const std::vector<Event>& events)
{
    int count = 0;
    for (const Event& event : events)
        count += std::holds_alternative<T>(event);
    return count;
}

Done lastDone(const std::vector<Event>& events)
{
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
        if (const auto* const done = std::get_if<Done>(&*event))
            return *done;
    }
    return {};
}

} // namespace

class TestWorker : public QObject
{
    Q_OBJECT
private slots:
    void saysHelloFirst()
    {
        RunningWorker worker;
        const auto events = worker.eventsUntil([](const Event& event) { return std::holds_alternative<Hello>(event); });
        QCOMPARE(events.size(), std::size_t{1});
        const Hello hello = std::get<Hello>(events.front());
        QCOMPARE(hello.protocol, version);
        QCOMPARE(hello.pid, std::int64_t{::getpid()});
        QCOMPARE(hello.devices.size(), std::size_t{2});
        QCOMPARE(hello.devices[1].missing, std::string("there is no driver"));
    }

    void runEndsInOneDone()
    {
        RunningWorker worker;
        worker.run(7);
        const auto events = worker.eventsUntilDone(7);
        QCOMPARE(countOf<Started>(events), 1);
        QCOMPARE(countOf<Sample>(events), 10);
        QCOMPARE(countOf<Done>(events), 1);
        QCOMPARE(lastDone(events).status, std::string("ok"));
        QVERIFY(lastDone(events).elapsed > 0.1);
        worker.run(8); // and the next one is taken at once
        QCOMPARE(lastDone(worker.eventsUntilDone(8)).status, std::string("ok"));
    }

    void refusals_data()
    {
        QTest::addColumn<QString>("experiment");
        QTest::addColumn<QString>("device");
        QTest::addColumn<QString>("status");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, const char* experiment, const char* device, const char* status,
                            const char* code) { QTest::newRow(name) << experiment << device << status << code; };
        row("experiment", "strde", "cpu", "failed", "experiment.unknown");
        row("device", "stride", "cpu:9", "failed", "device.unknown");
        row("missing device", "stride", "cuda:0", "skipped", "device.missing");
        row("exception", "calibrate", "cpu", "failed", "run.failed");
        row("wrong kernel", "selftest", "cpu", "failed", "check.failed");
    }
    void refusals()
    {
        QFETCH(const QString, experiment);
        QFETCH(const QString, device);
        QFETCH(const QString, status);
        QFETCH(const QString, code);
        RunningWorker worker;
        worker.run(1, experiment.toStdString(), device.toStdString());
        const Done done = lastDone(worker.eventsUntilDone(1));
        QCOMPARE(QString::fromStdString(done.status), status);
        QVERIFY(done.error.has_value());
        QCOMPARE(QString::fromStdString(done.error->code), code);
    }

    void badParameterNamesItself()
    {
        RunningWorker worker;
        worker.send(Command{Run{1, "stride", "cpu", Json{{"stride", "four"}}}});
        const Done done = lastDone(worker.eventsUntilDone(1));
        QCOMPARE(done.status, std::string("failed"));
        QVERIFY2(QString::fromStdString(done.error->text()).contains("stride"), done.error->text().c_str());
    }

    void secondRunIsRefused()
    {
        RunningWorker worker;
        worker.run(1);
        worker.run(2);
        const Done refused = lastDone(worker.eventsUntilDone(2));
        QCOMPARE(refused.error->code, std::string("run.busy"));
        QCOMPARE(lastDone(worker.eventsUntilDone(1)).status, std::string("ok"));
    }

    void cancelKeepsWhatThereIs()
    {
        RunningWorker worker;
        worker.run(1);
        worker.eventsUntil([](const Event& event) { return std::holds_alternative<Sample>(event); });
        worker.send(Command{Cancel{99}}); // of another run
        worker.send(Command{Cancel{1}});
        const Done done = lastDone(worker.eventsUntilDone(1));
        QCOMPARE(done.status, std::string("cancelled"));
        QVERIFY(!done.result.is_null());
    }

    void garbageIsSaidAndSurvived_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("no JSON") << QByteArray("hello there\n");
        QTest::newRow("unknown command") << QByteArray("{\"cmd\":\"dance\"}\n");
        QTest::newRow("wrong types") << QByteArray("{\"cmd\":\"run\",\"id\":\"x\",\"experiment\":3}\n");
        QTest::newRow("not UTF-8") << QByteArray("\xff\xfe\x80\n");
        QTest::newRow("deep") << QByteArray(5000, '[') + "\n";
        QTest::newRow("empty lines") << QByteArray("\n\r\n  \n");
        QTest::newRow("over-long") << QByteArray(static_cast<int>(lineLimit) + 100, 'x') + "\n";
    }
    void garbageIsSaidAndSurvived()
    {
        QFETCH(const QByteArray, text);
        RunningWorker worker;
        std::thread sender([&] { // larger than a pipe holds
            std::string rest = text.toStdString();
            worker.send(rest);
            worker.run(5);
        });
        const auto events = worker.eventsUntilDone(5);
        sender.join();
        QCOMPARE(lastDone(events).status, std::string("ok"));
        const bool blank = QString::fromUtf8(text).trimmed().isEmpty();
        QCOMPARE(countOf<Note>(events) > 0, !blank);
    }

    void halfALineAtTheEndIsNoCommand()
    {
        RunningWorker worker;
        const std::string line = encode(Command{Run{1, "stride", "cpu", Json::object()}});
        worker.send(line.substr(0, line.size() - 3));
        worker.endInput();
        const auto events = worker.untilEnd();
        QCOMPARE(countOf<Started>(events), 0);
        QCOMPARE(countOf<Hello>(events), 1);
    }

    void splitLinesAreOneCommand()
    {
        RunningWorker worker;
        for (const char byte : encode(Command{Run{1, "stride", "cpu", Json::object()}}))
            worker.send(std::string(1, byte));
        QCOMPARE(lastDone(worker.eventsUntilDone(1)).status, std::string("ok"));
    }

    void endOfInputEndsARun_data()
    {
        QTest::addColumn<bool>("quit");
        QTest::newRow("end of input") << false;
        QTest::newRow("quit") << true;
    }
    void endOfInputEndsARun()
    {
        QFETCH(const bool, quit);
        RunningWorker worker;
        worker.run(1);
        worker.eventsUntil([](const Event& event) { return std::holds_alternative<Sample>(event); });
        QElapsedTimer timer;
        timer.start();
        if (quit)
            worker.send(Command{Quit{}});
        else
            worker.endInput();
        const auto events = worker.untilEnd();
        QVERIFY2(timer.elapsed() < test::notStuck, qPrintable(QString::number(timer.elapsed())));
        QCOMPARE(lastDone(events).status, std::string("cancelled"));
        QCOMPARE(worker.code(), 0);
    }

    // The process as a whole: forked, so that it may be killed and may kill itself.
    void processGoes_data()
    {
        QTest::addColumn<QString>("how");
        QTest::newRow("input ends under a deaf run") << "eof";
        QTest::newRow("reader gone") << "pipe";
        QTest::newRow("terminated") << "term";
    }
    void processGoes()
    {
        QFETCH(const QString, how);
        int in[2], out[2];
        QVERIFY(::pipe(in) == 0 && ::pipe(out) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            std::signal(SIGTERM, SIG_DFL); // the test framework catches it
            ::close(in[1]);
            ::close(out[0]);
            Backends backends;
            backends.push_back(std::make_unique<FakeBackend>(how == "eof"));
            std::_Exit(runWorker(in[0], out[1], std::move(backends), WorkerOptions{{}, 0.3}));
        }
        ::close(in[0]);
        ::close(out[1]);
        const std::string line = encode(Command{Run{1, "stride", "cpu", Json::object()}});
        QVERIFY(::write(in[1], line.data(), line.size()) > 0);
        char chunk[1];
        QVERIFY(::read(out[0], chunk, 1) == 1);
        QTest::qWait(100);
        QElapsedTimer timer;
        timer.start();
        if (how == "term")
            ::kill(child, SIGTERM);
        if (how == "pipe")
            ::close(out[0]);
        if (how != "term")
            ::close(in[1]);
        int status = 0;
        pid_t ended = 0;
        while ((ended = ::waitpid(child, &status, WNOHANG)) == 0 && timer.elapsed() < 5000)
            QTest::qWait(10);
        if (ended == 0)
            ::kill(child, SIGKILL);
        QCOMPARE(ended, child);
        QVERIFY(timer.elapsed() < test::notStuck);
        if (how == "term")
            QVERIFY(WIFSIGNALED(status));
        else
            QCOMPARE(WEXITSTATUS(status), 0);
        if (how == "term")
            ::close(in[1]);
        if (how != "pipe")
            ::close(out[0]);
    }
};

QTEST_GUILESS_MAIN(TestWorker)
#include "tst_worker.moc"

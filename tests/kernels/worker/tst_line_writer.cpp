// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/line_writer.h"

#include <csignal>
#include <map>
#include <thread>
#include <vector>

#include <QTest>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace memscape;
using namespace memscape::protocol;

namespace {

/// A pipe whose ends close by themselves.
struct Pipe
{
    explicit Pipe(int flags = 0)
    {
        if (::pipe2(ends, flags | O_CLOEXEC) != 0)
            qFatal("no pipe");
    }
    ~Pipe()
    {
        closeEnd(0);
        closeEnd(1);
    }
    void closeEnd(int end)
    {
        if (ends[end] >= 0)
            ::close(ends[end]);
        ends[end] = -1;
    }
    int ends[2];
};

Event noteOf(int writer, std::size_t length)
{
    return Note{writer, "info", "test", std::string(length, static_cast<char>('a' + writer))};
}

/// Reads until the other end is closed.
std::vector<Event> readAll(int descriptor)
{
    std::vector<Event> events;
    LineReader reader;
    char chunk[4096];
    for (ssize_t count = 0; (count = ::read(descriptor, chunk, sizeof(chunk))) > 0;) {
        const auto lines = reader.feed(std::string_view(chunk, static_cast<std::size_t>(count)));
        for (const std::string& line : *lines) {
            const auto event = decodeEvent(line);
            if (!event)
                qWarning("a line was broken: %.80s", line.c_str());
            events.push_back(event ? *event : Event(Note{-1, "error", "broken", {}}));
        }
    }
    return events;
}

} // namespace

class TestLineWriter : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase() { std::signal(SIGPIPE, SIG_IGN); } // as the worker does

    void oneEventIsOneLine()
    {
        Pipe pipe;
        LineWriter writer(pipe.ends[1]);
        writer.write(Note{3, "warning", "a.b", "two\nlines and a \"quote\""});
        pipe.closeEnd(1);
        const auto events = readAll(pipe.ends[0]);
        QCOMPARE(events.size(), std::size_t{1});
        QCOMPARE(std::get<Note>(events[0]).text, std::string("two\nlines and a \"quote\""));
        QVERIFY(!writer.broken());
    }

    // Lines longer than a pipe takes at once, from several threads, with a reader that is slower.
    void linesOfThreadsDoNotMix_data()
    {
        QTest::addColumn<int>("flags");
        QTest::newRow("writes wait") << 0;
        QTest::newRow("writes do not wait") << O_NONBLOCK;
    }
    void linesOfThreadsDoNotMix()
    {
        QFETCH(const int, flags);
        Pipe pipe(flags);
        ::fcntl(pipe.ends[0], F_SETFL, 0); // the reader waits
        LineWriter writer(pipe.ends[1]);
        constexpr int each = 20;
        constexpr std::size_t length = 100'000;
        std::vector<std::thread> writers;
        for (int id = 0; id < 4; ++id) {
            writers.emplace_back([&writer, id] {
                for (int i = 0; i < each; ++i)
                    writer.write(noteOf(id, length));
            });
        }
        std::vector<Event> events;
        std::thread reader([&] { events = readAll(pipe.ends[0]); });
        for (std::thread& one : writers)
            one.join();
        pipe.closeEnd(1);
        reader.join();
        QVERIFY(!writer.broken());
        std::map<std::int64_t, int> counts;
        for (const Event& event : events) {
            const Note& note = std::get<Note>(event);
            ++counts[note.id];
            QCOMPARE(note.text, std::string(length, static_cast<char>('a' + note.id)));
        }
        for (int id = 0; id < 4; ++id)
            QCOMPARE(counts[id], each);
    }

    void aReaderThatHasGoneBreaksIt()
    {
        Pipe pipe;
        LineWriter writer(pipe.ends[1]);
        writer.write(noteOf(0, 10));
        QVERIFY(!writer.broken());
        pipe.closeEnd(0);
        writer.write(noteOf(0, 10));
        QVERIFY(writer.broken());
        writer.write(noteOf(0, 10)); // and this one does not even try
        QVERIFY(writer.broken());
    }

    void aReaderThatGoesInTheMiddleOfALineBreaksIt()
    {
        Pipe pipe;
        LineWriter writer(pipe.ends[1]);
        std::thread writing([&] { writer.write(noteOf(0, 5'000'000)); }); // waits for the reader
        char chunk[1000];
        QVERIFY(::read(pipe.ends[0], chunk, sizeof(chunk)) > 0);
        pipe.closeEnd(0);
        writing.join();
        QVERIFY(writer.broken());
    }

    void aFullDiskBreaksIt()
    {
        const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
        if (full < 0)
            QSKIP("no /dev/full here");
        LineWriter writer(full);
        writer.write(noteOf(0, 10));
        ::close(full);
        QVERIFY(writer.broken());
    }

    void aFileThatMayNotGrowBreaksIt()
    {
        // The first part of the line fits: it must not go on for ever with the rest.
        std::signal(SIGXFSZ, SIG_IGN);
        std::FILE* const file = std::tmpfile();
        QVERIFY(file != nullptr);
        rlimit before{};
        getrlimit(RLIMIT_FSIZE, &before);
        const rlimit limit{1000, before.rlim_max};
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &limit), 0);
        LineWriter writer(::fileno(file));
        writer.write(noteOf(0, 5000));
        setrlimit(RLIMIT_FSIZE, &before);
        QVERIFY(writer.broken());
        QCOMPARE(::lseek(::fileno(file), 0, SEEK_END), off_t{1000});
        std::fclose(file);
    }

    void aClosedDescriptorBreaksIt()
    {
        LineWriter writer(-1);
        writer.write(noteOf(0, 10));
        QVERIFY(writer.broken());
    }
};

QTEST_GUILESS_MAIN(TestLineWriter)
#include "tst_line_writer.moc"

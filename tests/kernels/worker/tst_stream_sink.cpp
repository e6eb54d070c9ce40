// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/stream_sink.h"

#include <map>

#include <QTest>

#include <fcntl.h>
#include <unistd.h>

using namespace memscape;
using namespace memscape::protocol;

namespace {

/// What a sink wrote, read back from a pipe.
class Written
{
public:
    Written()
    {
        if (::pipe2(m_pipe, O_NONBLOCK) != 0)
            qFatal("no pipe");
    }
    ~Written()
    {
        ::close(m_pipe[0]);
        ::close(m_pipe[1]);
    }
    int descriptor() const { return m_pipe[1]; }
    std::vector<Event> events()
    {
        std::vector<Event> events;
        char chunk[65536];
        for (ssize_t count = 0; (count = ::read(m_pipe[0], chunk, sizeof(chunk))) > 0;) {
            const auto lines = m_reader.feed(std::string_view(chunk, static_cast<std::size_t>(count)));
            for (const std::string& line : *lines)
                events.push_back(*decodeEvent(line));
        }
        return events;
    }

private:
    int m_pipe[2];
    LineReader m_reader;
};

Point pointAt(double x, double value)
{
    Point point;
    point.x = x;
    Figure figure{"time", "time", Unit::Second};
    figure.value = value;
    point.figures = {figure};
    return point;
}

/// A sink of run 1 whose clock stands at one second, and what it wrote.
struct Sinking
{
    Sinking() { clock.advance(1); }

    Written written;
    LineWriter writer{written.descriptor()};
    const std::atomic<bool> cancelled{false};
    FakeClock clock;
    StreamSink sink{1, writer, cancelled, &clock};
};

} // namespace

class TestStreamSink : public QObject
{
    Q_OBJECT
private slots:
    void pointsAreThrottledAndNoneIsLost()
    {
        Sinking at;
        for (int i = 0; i < 100; ++i) { // a hundred points in a tenth of a second
            at.sink.point("stride", pointAt(i, i));
            at.clock.advance(0.001);
        }
        QVERIFY(at.written.events().size() <= 5);
        at.sink.flush();
        QVERIFY(at.written.events().size() >= 95);
    }

    void theNewestOfAPointCounts()
    {
        Sinking at;
        for (int i = 0; i < 50; ++i)
            at.sink.point("stride", pointAt(3, i));
        at.sink.flush();
        const auto events = at.written.events();
        QCOMPARE(events.size(), std::size_t{2}); // the first at once, the newest at the end
        QCOMPARE(std::get<Sample>(events.back()).point.figures.front().number(), 49.0);
    }

    void progressIsThrottledNotesAreNot()
    {
        Sinking at;
        for (int i = 0; i < 20; ++i) {
            at.sink.progress(i, 20, "step");
            at.sink.note("info", "test", "note");
        }
        std::map<std::size_t, int> counts;
        for (const Event& event : at.written.events())
            ++counts[event.index()];
        QCOMPARE(counts[Event(Progress{}).index()], 1);
        QCOMPARE(counts[Event(Note{}).index()], 20);
    }
};

QTEST_APPLESS_MAIN(TestStreamSink)
#include "tst_stream_sink.moc"

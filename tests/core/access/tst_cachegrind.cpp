// SPDX-License-Identifier: Apache-2.0
// The cache simulator against Valgrind's cachegrind on ten real loops and four geometries: data
// misses of the first and the last level, reads and writes apart, within 1 %, or within 96 misses
// where a loop has few: the recorded numbers are of whole programs, whose end finds about 70 lines
// evicted; what runs live is counted in the function of the loop. The numbers recorded in tests/data/cachegrind are
// always checked; where valgrind is installed the loops are also run live. To record again:
//   MEMSCAPE_RECORD_CACHEGRIND=tests/data/cachegrind tst_cachegrind runsLive
#include "core/access/cache_simulator.h"
#include "tests/support/cachegrind_loops.h"

#include <QtTest>

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStandardPaths>

using namespace memscape;

namespace {

/// Passes a loop's addresses to the simulator.
class RecordingMemory
{
public:
    explicit RecordingMemory(CacheSimulator& simulator)
        : m_simulator(simulator)
    { }
    ~RecordingMemory() { flush(); }

    template <typename T> T read(std::uint64_t address, T value = {})
    {
        add({address, sizeof(T), false});
        return value;
    }
    template <typename T> void write(std::uint64_t address, T) { add({address, sizeof(T), true}); }

private:
    void add(const MemoryAccess& access)
    {
        m_batch.push_back(access);
        if (m_batch.size() == 4096)
            flush();
    }
    void flush()
    {
        if (!m_simulator.run(m_batch))
            qFatal("the simulator refused an address");
        m_batch.clear();
    }

    CacheSimulator& m_simulator;
    std::vector<MemoryAccess> m_batch;
};

struct Geometry
{
    const char* name;
    CacheGeometry first, last;
};

const std::vector<Geometry>& geometries()
{
    static const std::vector<Geometry> all = {
        {"32k-8-64+32m-16-64", {"D1", 32 << 10, 8, 64}, {"LL", 32 << 20, 16, 64}},
        {"48k-12-64+2m-16-64", {"D1", 48 << 10, 12, 64}, {"LL", 2 << 20, 16, 64}},
        {"4k-2-64+256k-8-64", {"D1", 4 << 10, 2, 64}, {"LL", 256 << 10, 8, 64}},
        {"16k-1-32+1m-4-32", {"D1", 16 << 10, 1, 32}, {"LL", 1 << 20, 4, 32}},
    };
    return all;
}

const QStringList& missNames()
{
    static const QStringList names = {"D1mr", "D1mw", "DLmr", "DLmw"};
    return names;
}

using Misses = QMap<QString, qint64>; // by cachegrind's names of its events

struct Run
{
    loops::Arrays arrays;
    Misses counts;
};

Misses simulated(const Geometry& geometry, const QString& loop, const loops::Arrays& arrays)
{
    auto simulator = CacheSimulator::create({geometry.first, geometry.last}, CacheCounting::Accesses).value();
    {
        RecordingMemory memory(simulator);
        for (const auto& candidate : loops::all<RecordingMemory>())
            if (loop == QLatin1String(candidate.name.data(), qsizetype(candidate.name.size())))
                candidate.run(memory, arrays);
    }
    const CacheCounters& first = simulator.counters()[0];
    const CacheCounters& last = simulator.counters()[1];
    return {{"Dr", qint64(first.reads)},         {"Dw", qint64(first.writes)},      {"D1mr", qint64(first.readMisses)},
            {"D1mw", qint64(first.writeMisses)}, {"DLmr", qint64(last.readMisses)}, {"DLmw", qint64(last.writeMisses)}};
}

void compareMisses(const Misses& simulatedMisses, const Misses& counted)
{
    for (const QString& name : missNames()) {
        const double expected = double(counted.value(name));
        const double difference = std::abs(double(simulatedMisses.value(name)) - expected);
        QVERIFY2(difference <= std::max(96.0, 0.01 * expected),
                 qPrintable(QString("%1: simulated %2, cachegrind %3")
                                .arg(name)
                                .arg(simulatedMisses.value(name))
                                .arg(counted.value(name))));
    }
}

QString option(const char* name, const CacheGeometry& cache)
{
    return QString("--%1=%2,%3,%4").arg(name).arg(cache.bytes).arg(cache.ways).arg(cache.line);
}

QStringList valgrindOptions(const Geometry& geometry)
{
    return {"--tool=cachegrind", "--cache-sim=yes", option("D1", geometry.first), option("LL", geometry.last)};
}

/// Whether cachegrind saw the loop's reads and writes and, within 1 in 1000, no others: a compiler
/// that keeps variables on the stack makes another access pattern than the one simulated.
bool madeAsWritten(const Misses& simulatedCounts, const Misses& counted)
{
    const auto near = [&](const char* name) {
        const double expected = double(simulatedCounts.value(name));
        return std::abs(double(counted.value(name)) - expected) <= 50 + 0.001 * expected;
    };
    return near("Dr") && near("Dw");
}

/// One run of the loops program under cachegrind; the counts are of the loop alone.
std::optional<Run> underCachegrind(const QString& valgrind, const Geometry& geometry, const QString& loop)
{
    QTemporaryDir folder;
    const QString out = folder.filePath("counts");
    QProcess process;
    process.start(valgrind, valgrindOptions(geometry) << "--cachegrind-out-file=" + out << CACHEGRIND_LOOPS << loop);
    if (!process.waitForFinished(120'000) || process.exitCode() != 0)
        return std::nullopt;
    const QStringList addresses = QString(process.readAllStandardOutput()).simplified().split(' ');
    QFile file(out);
    if (addresses.size() != 3 || !file.open(QIODevice::ReadOnly))
        return std::nullopt;
    Run run{{addresses[0].toULongLong(), addresses[1].toULongLong(), addresses[2].toULongLong()}, {}};
    QStringList names;
    bool isLoop = false;
    for (QString line = file.readLine(); !line.isEmpty(); line = file.readLine()) {
        const QStringList words = line.simplified().split(' ');
        if (words[0] == "events:")
            names = words.mid(1);
        else if (line.startsWith("fn="))
            isLoop = line.contains("memscape::loops::");
        else if (isLoop && line[0].isDigit()) // the source's line, then a count for each event
            for (qsizetype i = 0; i < names.size() && i + 1 < words.size(); ++i)
                run.counts[names[i]] += words[i + 1].toLongLong();
    }
    return run;
}

QString versionOf(const QString& valgrind)
{
    QProcess process;
    process.start(valgrind, {"--version"});
    process.waitForFinished(10'000);
    return QString(process.readAllStandardOutput()).trimmed();
}

QJsonObject recorded(const QString& loop, const Run& run)
{
    QJsonObject object{{"loop", loop},
                       {"arrays", QJsonArray{qint64(run.arrays.a), qint64(run.arrays.b), qint64(run.arrays.c)}}};
    for (const QString& name : QStringList{"Dr", "Dw"} + missNames())
        object[name] = run.counts.value(name);
    return object;
}

void writeFixture(const QString& folder, const QString& valgrind, const Geometry& geometry, const QJsonArray& loops)
{
    const QJsonObject provenance{
        {"tool", versionOf(valgrind)},
        {"command", "valgrind " + valgrindOptions(geometry).join(' ') + " cachegrind_loops LOOP"},
        {"counts", "the events of the function of the loop"},
        {"compiler", QString("g++ %1 -O1").arg(__VERSION__)}};
    QFile file(QDir(folder).filePath(QString(geometry.name) + ".json"));
    QVERIFY2(file.open(QIODevice::WriteOnly), qPrintable(file.errorString()));
    file.write(QJsonDocument(QJsonObject{{"provenance", provenance}, {"loops", loops}}).toJson());
}

} // namespace

class TestCachegrind : public QObject
{
    Q_OBJECT

private slots:
    void equalsRecordedRuns_data()
    {
        QTest::addColumn<int>("geometry");
        QTest::addColumn<QJsonObject>("run");
        for (std::size_t i = 0; i < geometries().size(); ++i) {
            QFile file(QString("%1/cachegrind/%2.json").arg(TEST_DATA, geometries()[i].name));
            QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(file.fileName()));
            const QJsonArray loops = QJsonDocument::fromJson(file.readAll())["loops"].toArray();
            QVERIFY(loops.size() >= 8);
            for (const QJsonValue& loop : loops)
                QTest::addRow("%s %s", geometries()[i].name, qPrintable(loop["loop"].toString()))
                    << int(i) << loop.toObject();
        }
    }
    void equalsRecordedRuns()
    {
        QFETCH(int, geometry);
        QFETCH(QJsonObject, run);
        const QJsonArray arrays = run["arrays"].toArray();
        const loops::Arrays at{std::uint64_t(arrays[0].toInteger()), std::uint64_t(arrays[1].toInteger()),
                               std::uint64_t(arrays[2].toInteger())};
        Misses counted;
        for (const QString& name : missNames())
            counted[name] = run[name].toInteger(-1);
        compareMisses(simulated(geometries()[std::size_t(geometry)], run["loop"].toString(), at), counted);
    }

    void runsLive_data()
    {
        QTest::addColumn<int>("geometry");
        for (std::size_t i = 0; i < geometries().size(); ++i)
            QTest::newRow(geometries()[i].name) << int(i);
    }
    void runsLive()
    {
        QFETCH(int, geometry);
        const QString valgrind = QStandardPaths::findExecutable("valgrind");
        if (valgrind.isEmpty())
            QSKIP("valgrind is not installed: only the recorded runs were checked (apt install "
                  "valgrind)");
        const Geometry& caches = geometries()[std::size_t(geometry)];

        QCOMPARE(QProcess::execute(CACHEGRIND_LOOPS, {"none"}), 0); // by itself, it must run
        if (!underCachegrind(valgrind, caches, "none"))
            QSKIP("valgrind cannot run programs here: only the recorded runs were checked");
        QJsonArray fixture;
        for (const auto& loop : loops::all<RecordingMemory>()) {
            const QString name = QString::fromUtf8(loop.name.data(), qsizetype(loop.name.size()));
            auto run = underCachegrind(valgrind, caches, name);
            QVERIFY2(run, qPrintable("valgrind did not run " + name));
            const Misses own = simulated(caches, name, run->arrays);
            if (!madeAsWritten(own, run->counts)) {
                qWarning("loop %s: this compiler added accesses of its own, not compared", qPrintable(name));
                continue;
            }
            compareMisses(own, run->counts);
            if (QTest::currentTestFailed())
                return qWarning("in loop %s", qPrintable(name));
            fixture.append(recorded(name, *run));
        }
        QVERIFY2(fixture.size() >= 8, "too few loops were compared");
        if (const QString folder = qEnvironmentVariable("MEMSCAPE_RECORD_CACHEGRIND"); !folder.isEmpty())
            writeFixture(folder, valgrind, caches, fixture);
    }
};

QTEST_GUILESS_MAIN(TestCachegrind)
#include "tst_cachegrind.moc"

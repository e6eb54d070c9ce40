// SPDX-License-Identifier: Apache-2.0
// Everything that can be wrong with what a person types, hands over or asks to be written: an exit
// code, a message that names the place, a remedy, and nothing lost.
#include "run_cli.h"

#include <QFile>
#include <QTemporaryDir>

#include <unistd.h>

using namespace memscape::test;

namespace {

QByteArray aRecord()
{
    static const QByteArray text = cli({"predict", "stride", "--device", "nvidia-h200", "--json"}).out;
    return text;
}

QByteArray replaced(QByteArray text, const char* from, const QByteArray& to)
{
    return text.replace(from, to);
}

} // namespace

class TestBadInput : public QObject
{
    Q_OBJECT

private slots:
    void words_data()
    {
        QTest::addColumn<QStringList>("words");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("says");
        const auto row = [](const char* name, const QStringList& words, int code, const char* says) {
            QTest::newRow(name) << words << code << QByteArray(says);
        };
        row("nothing", {}, 2, "Usage");
        row("unknown command", {"predcit"}, 2, "predict");
        row("unknown option", {"predict", "stride", "--devise", "cpu"}, 2, "--device");
        row("no experiment", {"predict"}, 2, "EXPERIMENT");
        row("unknown experiment", {"predict", "strid"}, 2, "stride");
        row("unknown parameter", {"predict", "stride", "strides=2"}, 2, "did you mean stride");
        row("not an assignment", {"predict", "stride", "4"}, 2, "KEY=VALUE");
        row("empty value", {"predict", "stride", "stride="}, 2, "stride");
        row("empty word", {"predict", "stride", ""}, 2, "memscape-cli");
        row("text for a number", {"predict", "stride", "stride=four"}, 2, "four");
        row("nan", {"predict", "stride", "stride=nan"}, 2, "stride");
        row("infinity", {"predict", "stride", "bytes=inf"}, 2, "bytes");
        row("1e300", {"predict", "stride", "stride=1e300"}, 2, "stride");
        row("1e400", {"predict", "stride", "stride=1e400"}, 2, "stride");
        row("negative", {"predict", "stride", "stride=-1"}, 2, "stride");
        row("not whole", {"predict", "stride", "stride=1.5"}, 2, "stride");
        row("twice", {"predict", "stride", "stride=1", "stride=2"}, 2, "stride");
        row("unknown choice", {"predict", "stride", "element=float23"}, 2, "float32");
        row("wrong unit", {"predict", "stride", "bytes=4s"}, 2, "KiB");
        row("two sweeps", {"predict", "stride", "stride=1,2", "element=int8,float32"}, 2, "swept");
        row("endless sweep", {"predict", "stride", "stride=0:64:0"}, 2, "stride");
        row("huge sweep", {"predict", "stride", "bytes=4096:1099511627776:1"}, 2, "bytes");
        row("huge word", {"predict", "stride", QString(100'000, 'x')}, 2, "memscape-cli");
        row("hostile word", {"predict", "stride", "\x1b[2J=1"}, 2, "parameter");
        row("unknown device", {"predict", "stride", "--device", "nvidia-h2000"}, 3, "nvidia-h200");
        row("no device", {"measure", "stride"}, 2, "--device cpu");
        row("catalogue device", {"measure", "stride", "--device", "nvidia-h200"}, 3, "predict");
        row("far too many GPUs", {"measure", "stride", "--device", "cuda:99"}, 3, "cuda:99");
        row("a word too many", {"devices", "x", "y"}, 2, "\"x\" was not expected here");
        row("missing experiment", {"predict"}, 2, "EXPERIMENT is missing");
        row("missing value", {"predict", "stride", "--device"}, 2, "--device lacks its value");
        row("value given twice", {"predict", "stride", "--device", "cpu", "--device", "cpu"}, 2,
            "--device is given more than once");
        row("missing device file", {"predict", "stride", "--device", "/nowhere/d.json"}, 2, "/nowhere/d.json");
        row("missing replay", {"measure", "stride", "--device", "replay:/nowhere.json"}, 2, "/nowhere.json");
        row("more than the memory", {"measure", "hierarchy", "working_set=1TiB", "--device", "cpu"}, 1, "80 %");
        row("json and events", {"measure", "stride", "--device", "cpu", "--json", "--events"}, 2, "events");
        row("no report format", {"report", "x.json"}, 2, "--to");
        row("unknown report format", {"report", "x.json", "--to", "htlm"}, 2, "html");
        row("missing record", {"report", "/nowhere.json", "--to", "md"}, 2, "/nowhere.json");
        row("folder for a record", {"report", "/", "--to", "md"}, 2, "file");
        row("missing file", {"check", "/nowhere.json"}, 2, "/nowhere.json");
    }
    void words()
    {
        QFETCH(QStringList, words);
        QFETCH(int, code);
        QFETCH(QByteArray, says);
        const Ran ran = cli(words);
        QCOMPARE(ran.code, code);
        QCOMPARE(ran.out, QByteArray());
        QVERIFY2(ran.says(says), ran.err.constData());
        QVERIFY2(ran.err.size() < 4000, "a message is not a wall");
        QVERIFY(!ran.err.contains('\x1b'));
    }

    void documents_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("says");
        const QByteArray record = aRecord();
        QTest::newRow("empty") << QByteArray() << QByteArray("line 1");
        QTest::newRow("not JSON") << QByteArray("stride,4\n") << QByteArray("line 1, column 1");
        QTest::newRow("truncated") << record.left(record.size() / 2) << QByteArray("line");
        QTest::newRow("NUL bytes") << QByteArray(64, '\0') << QByteArray("line 1");
        QTest::newRow("another format") << QByteArray(R"({"format": "tiled-map", "version": 1})")
                                        << QByteArray("tiled-map");
        QTest::newRow("no format") << QByteArray(R"({"a": 1})") << QByteArray("format");
        QTest::newRow("a list") << QByteArray("[1, 2]") << QByteArray("");
        QTest::newRow("newer") << replaced(record, "\"version\": 1,", "\"version\": 2,") << QByteArray("newer");
        QTest::newRow("wrong type") << replaced(record, "\"experiment\": \"stride\"", "\"experiment\": 7")
                                    << QByteArray("experiment");
        QTest::newRow("wrong figure") << replaced(record, "\"figures\": {", "\"figures\": 3, \"x\": {")
                                      << QByteArray("predicted.figures");
        QTest::newRow("huge") << "[" + QByteArray("0,").repeated(21'000'000) + "0]" << QByteArray("at most 20000000");
        QTest::newRow("long sweep") << replaced(record, "\"stride\": 4,",
                                                "\"stride\": [" + QByteArray("1,").repeated(5000) + "1],")
                                    << QByteArray("parameters.stride: expected 1 to 4096");
        QTest::newRow("deep") << QByteArray(100'000, '[') << QByteArray("");
        QTest::newRow("deep objects") << QByteArray(R"({"format":)").repeated(50'000) << QByteArray("");
    }
    void documents()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, says);
        const QList<QStringList> readers{{"check", "-"}, {"report", "-", "--to", "html"}};
        for (const QStringList& words : readers) {
            const Ran ran = cli(words, text);
            QCOMPARE(ran.code, 2);
            QCOMPARE(ran.out, QByteArray());
            QVERIFY2(ran.says("standard input") && ran.says(says), ran.err.constData());
        }
    }

    void checkKnowsForeignFiles_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("says");
        const QByteArray chain = R"({"format": "memscape-chain", "version": 1, "forward": [1, 2],
            "backward": [1, 2, 3], "values": [1, 2, 3], "saved": [1, 2, 3], "forward_overhead": [0, 0],
            "backward_overhead": [0, 0, 0], "units": {"time": "s", "memory": "B"}})";
        QTest::newRow("chain") << chain << 0 << QByteArray("chain of 2 stages");
        QTest::newRow("short chain") << replaced(chain, "\"saved\": [1, 2, 3]", "\"saved\": [1, 2]") << 2
                                     << QByteArray("saved");
        QTest::newRow("config") << QByteArray(
            R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32})")
                                << 0 << QByteArray("config.json of llama, 6738415616 parameters");
        QTest::newRow("config without layers") << QByteArray(R"({"model_type": "llama", "hidden_size": 4096})") << 2
                                               << QByteArray("num_hidden_layers: is missing");
        QTest::newRow("bad config") << QByteArray(R"({"model_type": "llama", "hidden_size": -1})") << 2
                                    << QByteArray("hidden_size");
        QTest::newRow("words in config") << QByteArray(R"({"model_type": "llama", "hidden_size": "big"})") << 2
                                         << QByteArray("hidden_size");
        QTest::newRow("snapshot") << QByteArray(
            R"({"segments": [{"total_size": 2097152, "blocks": []}], "device_traces": []})")
                                  << 0 << QByteArray("1 segments");
        QTest::newRow("bad snapshot") << QByteArray(
            R"({"segments": [{"total_size": "2 MiB", "blocks": []}], "device_traces": []})")
                                      << 2 << QByteArray("segments[0].total_size");
        QFile pickle(TEST_DATA "/snapshots/vgg_small_mid.p4.pickle");
        QVERIFY(pickle.open(QIODevice::ReadOnly));
        const QByteArray snapshot = pickle.readAll();
        QTest::newRow("pickle") << snapshot << 0 << QByteArray("PyTorch memory snapshot: 6 segments of 48 MiB");
        QTest::newRow("cut pickle") << snapshot.left(9000) << 2 << QByteArray("but the file ends");
        QTest::newRow("pickle with code") << QByteArray("\x80\x04"
                                                        "cos\nsystem\n.")
                                          << 2 << QByteArray("would run code");
    }
    void checkKnowsForeignFiles()
    {
        QFETCH(QByteArray, text);
        QFETCH(int, code);
        QFETCH(QByteArray, says);
        const Ran ran = cli({"check", "-"}, text);
        QCOMPARE(ran.code, code);
        QVERIFY2((code == 0 ? ran.out : ran.err).contains(says), (ran.out + ran.err).constData());
    }

    void oneBadFileAmongGoodOnes()
    {
        QTemporaryDir folder;
        QFile good(folder.filePath("good.json"));
        QVERIFY(good.open(QIODevice::WriteOnly));
        good.write(aRecord());
        good.close();
        const Ran ran = cli({"check", good.fileName(), "/nowhere.json", good.fileName()});
        QCOMPARE(ran.code, 2);
        QCOMPARE(ran.out.count(": valid"), 2);
    }

    void noSuchFolder()
    {
        QTemporaryDir folder; // what is kept goes with it
        const Ran ran = cli({"predict", "stride", "-o", "/nowhere/r.json"}, {}, {"TMPDIR=" + folder.path()});
        QCOMPARE(ran.code, 2);
        QVERIFY(ran.says("/nowhere"));
        QVERIFY2(ran.err.contains("kept in " + folder.path().toUtf8()), ran.err.constData());
    }

    void measuringAsksAboutTheFileFirst()
    {
        // Minutes of measuring must not end in "no such folder": it answers at once.
        const Ran ran = cli({"measure", "hierarchy", "--device", "cpu", "-o", "/nowhere/r.json"});
        QCOMPARE(ran.code, 2);
        QVERIFY2(ran.says("there is no folder /nowhere"), ran.err.constData());
    }

    /// Terabytes of scores, refused before a page of them is touched; when asked, tried and survived.
    /// (The address space is limited, so that trying does no harm to the machine of the test.)
    void whatDoesNotFit()
    {
        const QString question = "measure attention implementation=standard sequence=262144 heads=64 --device cpu";
        const Ran refused = cli(question.split(' '));
        QCOMPARE(refused.code, 1);
        QVERIFY2(refused.says("memory are available"), refused.err.constData());
        QVERIFY2(refused.says("--force"), refused.err.constData());
        const Ran tried = shell("ulimit -v 4000000; exec \"$CLI\" " + question + " --force");
        QCOMPARE(tried.code, 1);
        QVERIFY2(tried.says("it is tried anyway"), tried.err.constData());
        QVERIFY2(tried.says("the system refused an array of"), tried.err.constData());
    }

    void tooLittleMemoryForAnything()
    {
        for (const char* limit : {"60000", "120000", "250000"}) { // KiB
            const Ran ran = shell(QStringLiteral("ulimit -v %1; exec \"$CLI\" measure attention "
                                                 "sequence=1024 --device cpu")
                                      .arg(limit));
            QVERIFY2(ran.code >= 0, limit); // no crash
            QVERIFY2(ran.code == 0 || !ran.err.isEmpty(), limit);
        }
    }

    void noPermission()
    {
        if (::geteuid() == 0)
            QSKIP("root may write everywhere");
        QTemporaryDir folder;
        QVERIFY(QFile::setPermissions(folder.path(), QFile::ReadOwner | QFile::ExeOwner));
        const Ran ran = cli({"predict", "stride", "--json", "-o", folder.filePath("r.json")});
        QFile::setPermissions(folder.path(), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        QCOMPARE(ran.code, 2);
        QVERIFY(ran.says("Permission denied"));
        QVERIFY(!ran.json().isEmpty());
    }

    void fullDiskLosesNothing()
    {
        if (!QFile::exists("/dev/full"))
            QSKIP("no /dev/full here");
        const Ran printed = cli({"predict", "stride", "--json", "-o", "/dev/full"});
        QCOMPARE(printed.code, 2);
        QVERIFY(!printed.json().isEmpty());

        QTemporaryDir folder;
        const Ran kept = cli({"predict", "stride", "-o", "/dev/full"}, {}, {"TMPDIR=" + folder.path()});
        QCOMPARE(kept.code, 2);
        const qsizetype at = kept.err.indexOf("kept in ");
        QVERIFY2(at > 0, kept.err.constData());
        const QString path = QString::fromUtf8(kept.err.mid(at + 8)).section('\n', 0, 0);
        QVERIFY(path.startsWith(folder.path()));
        QCOMPARE(cli({"check", path}).code, 0);

        QCOMPARE(shell("exec \"$CLI\" predict stride --json > /dev/full").code, 2);
    }

    void fileSizeLimitLosesNothing()
    {
        // Not one block may be written, to a temporary file neither: standard output is what is left.
        QTemporaryDir folder;
        const Ran ran = shell("ulimit -f 0; exec \"$CLI\" predict stride -o " + folder.filePath("r.json"));
        QCOMPARE(ran.code, 2);
        QVERIFY(ran.out.contains("\"memscape-record\""));
        QVERIFY(!QFile::exists(folder.filePath("r.json")));
    }
};

QTEST_GUILESS_MAIN(TestBadInput)
#include "tst_bad_input.moc"

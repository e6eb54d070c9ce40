// SPDX-License-Identifier: Apache-2.0
// The contract of the command line: what other people's scripts rely on.
#include "run_cli.h"

#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>

#include <csignal>

using namespace memscape::test;

namespace {

const QStringList quickStride{"stride", "stride=1:4:x2", "bytes=1MiB", "--device", "cpu"};

QStringList keysOf(const QJsonValue& list, const char* key)
{
    QStringList keys;
    for (const QJsonValue& item : list.toArray())
        keys << item.toObject()[key].toString();
    return keys;
}

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// Begins a measurement of seconds and waits until a point of it has come.
bool measuresItsFirstPoint(QProcess& process, const QStringList& more)
{
    process.start(cliPath, QStringList{"measure", "hierarchy", "--device", "cpu", "--events"} + more);
    QByteArray seen;
    while (!seen.contains("\"sample\"")) {
        if (!process.waitForReadyRead(120'000))
            return false;
        seen += process.readAllStandardOutput();
    }
    return true;
}

} // namespace

class TestCommands : public QObject
{
    Q_OBJECT

private slots:
    void version()
    {
        const Ran ran = cli({"--version"});
        QCOMPARE(ran.code, 0);
        QVERIFY(ran.out.startsWith("memscape-cli 0."));
    }

    void everyHelpTeaches_data()
    {
        QTest::addColumn<QString>("command");
        for (const char* command : {"list", "devices", "describe", "predict", "measure", "calibrate", "report", "check",
                                    "selftest", "worker", "claims", "accuracy"})
            QTest::newRow(command) << QString(command);
    }
    void everyHelpTeaches()
    {
        QFETCH(QString, command);
        const Ran ran = cli({command, "--help"});
        QCOMPARE(ran.code, 0);
        QCOMPARE(ran.err, QByteArray());
        QVERIFY(ran.out.contains("memscape-cli " + command.toUtf8()));
        QVERIFY(cli({"--help"}).out.contains(command.toUtf8()));
    }

    void helpOfAnExperimentShowsItsParameters()
    {
        QVERIFY(cli({"predict", "stride", "--help"}).out.contains("element=float32"));
    }

    void accuracy()
    {
        const QString table = SOURCE_FOLDER "/resources/published/torchao-tokens.json"; // all: tst_shipped_tables
        const Ran text = cli({"accuracy", table});
        QCOMPARE(text.code, 0);
        QVERIFY(text.out.contains("step time, NVIDIA A100 80 GB SXM") && text.out.contains("cannot be predicted"));
        const Ran json = cli({"accuracy", "--json", table});
        QCOMPARE(json.code, 0);
        const QJsonObject document = QJsonDocument::fromJson(json.out).object();
        QCOMPARE(document["rows"].toArray().size(), 6);
        for (const char* key : {"family", "rows", "mean", "median", "bias", "worst"})
            QVERIFY2(document["families"][0].toObject().contains(key), key);
        QCOMPARE(cli({"accuracy", "--rows", "--json"}).code, 2);
        QCOMPARE(cli({"accuracy", "/nowhere.json"}).code, 2);
        QVERIFY(cli({"accuracy"}, {}, {"MEMSCAPE_RESOURCES=/nowhere"}).err.contains("published"));
    }

    void claims()
    {
        const Ran ran = cli({"claims", "--source", "vram-bottleneck", "--device", "nvidia-h200", "--json"});
        QCOMPARE(ran.code, 0);
        const QJsonArray claims = QJsonDocument::fromJson(ran.out).array();
        QVERIFY(claims.size() >= 21);
        for (const QJsonValue& claim : claims) {
            for (const char* key : {"source", "place", "quote", "ours", "verdict", "right", "experiment", "parameters"})
                QVERIFY2(claim.toObject().contains(key), key);
        }
        const Ran text = cli({"claims", "--experiment", "checkpoint"});
        QCOMPARE(text.code, 0);
        QVERIFY(text.out.contains("O(√n)") && text.out.contains("Shown by: checkpoint"));
        QVERIFY(text.out.indexOf("(device-and-memory-theory)") < text.out.indexOf("(vram-bottleneck)"));
        const Ran unknown = cli({"claims", "--source", "vram"});
        QCOMPARE(unknown.code, 2);
        QVERIFY(unknown.says("vram-bottleneck"));
        QCOMPARE(cli({"claims", "--experiment", "strid"}).code, 2);
        QCOMPARE(cli({"claims", "--device", "nvidia-h20"}).code, 3);
        const Ran questions = cli({"claims", "--questions", "--device", "nvidia-h200", "--json"});
        QCOMPARE(questions.code, 0);
        const QJsonArray answers = QJsonDocument::fromJson(questions.out).array();
        QCOMPARE(answers.size(), qsizetype(6));
        for (const QJsonValue& answer : answers) {
            QVERIFY(answer["steps"].toArray().size() >= 3);
            QVERIFY(!answer["verdict"].toString().isEmpty());
        }
        QVERIFY(cli({"claims", "--questions"}).out.contains("memscape-cli predict checkpoint"));
        QCOMPARE(cli({"claims", "--questions", "--source", "vram-bottleneck"}).code, 2);
        const Ran nowhere = cli({"claims"}, {}, {"MEMSCAPE_RESOURCES=/nowhere"});
        QCOMPARE(nowhere.code, 2);
        QVERIFY(nowhere.says("MEMSCAPE_RESOURCES"));
    }

    void list()
    {
        const Ran ran = cli({"list", "--json"});
        QCOMPARE(ran.code, 0);
        const QStringList ids = keysOf(ran.json()["experiments"], "id");
        QVERIFY(ids.contains("stride") && ids.contains("hierarchy"));
        QVERIFY(cli({"list"}).out.contains("stride"));
        QMap<QString, QStringList> kinds;
        for (const QJsonValue& experiment : ran.json()["experiments"].toArray()) {
            for (const QJsonValue& kind : experiment.toObject()["measured_on"].toArray())
                kinds[experiment.toObject()["id"].toString()] << kind.toString();
        }
        QCOMPARE(kinds["stride"], QStringList({"cpu", "cuda"}));
        QCOMPARE(kinds["attention"], QStringList({"cpu", "cuda", "pytorch"}));
        QCOMPARE(kinds["training-memory"], QStringList({"pytorch"}));
        QCOMPARE(kinds["bank-conflicts"], QStringList({"cuda"}));
        QVERIFY(cli({"describe", "layout"}).out.contains("Measured on cpu, cuda, pytorch\n"));
    }

    void devices()
    {
        const Ran ran = cli({"devices", "--json"});
        QCOMPARE(ran.code, 0);
        const QJsonArray list = ran.json()["devices"].toArray();
        QVERIFY(keysOf(list, "id").contains("nvidia-h200"));
        const QJsonObject cpu = list[0].toObject();
        QCOMPARE(cpu["id"].toString(), "cpu");
        QCOMPARE(cpu["kind"].toString(), "live");
        QCOMPARE(cpu["available"].toBool(), true);
        QVERIFY(cpu["measures"].toArray().contains("stride"));
        QVERIFY(!cpu["measures"].toArray().contains("bank-conflicts"));
    }

    void describe()
    {
        const QJsonObject stride = cli({"describe", "stride", "--json"}).json();
        QCOMPARE(keysOf(stride["parameters"], "key").mid(0, 4),
                 QStringList({"stride", "element", "pattern", "operation"}));
        QCOMPARE(keysOf(stride["series"], "key").first(), "useful_bandwidth");
        const QStringList figures = keysOf(stride["figures"], "key");
        for (const char* key : {"sectors_per_request", "lines_per_request", "efficiency", "useful_bandwidth",
                                "moved_bandwidth", "time", "peak_memory"})
            QVERIFY2(figures.contains(key), key);
        const QJsonObject hierarchy = cli({"describe", "hierarchy", "--json"}).json();
        QCOMPARE(keysOf(hierarchy["series"], "key").first(), "latency");
        QVERIFY(cli({"describe", "stride"}).out.contains("useful_bandwidth"));
        const QString attention = cli({"describe", "attention"}).out.simplified(); // every version with its lesson
        for (const char* lesson : {"1 tiles and a running softmax (no score is ever written",
                                   "8 Hopper's copy engine and warpgroups (one thread fetches tiles"})
            QVERIFY2(attention.contains(lesson), qPrintable(attention));
    }

    void predict()
    {
        const Ran ran = cli({"predict", "stride", "stride=8", "--device", "nvidia-h200", "--json"});
        QCOMPARE(ran.code, 0);
        QCOMPARE(ran.err, QByteArray());
        const QJsonObject record = ran.json();
        QCOMPARE(record["format"].toString(), "memscape-record");
        QCOMPARE(record["experiment"].toString(), "stride");
        QCOMPARE(record["device"].toObject()["id"].toString(), "nvidia-h200");
        QVERIFY(record["measured"].isNull());
        // 32 lanes × 4 B, 32 B apart: one 32-byte sector each.
        const QJsonObject figures = record["predicted"].toObject()["figures"].toObject();
        QCOMPARE(figures["sectors_per_request"].toObject()["value"].toDouble(), 32.0);
        QVERIFY(figures["useful_bandwidth"].toObject()["why"].isObject());
    }

    void predictForPeople()
    {
        const Ran ran = cli({"predict", "stride", "--device", "nvidia-h200"});
        QCOMPARE(ran.code, 0);
        for (const char* words : {"useful bandwidth", "predicted", "Why", "from the catalogue"})
            QVERIFY2(ran.out.contains(words), words);
    }

    void predictAsLinesForAnotherProgram()
    {
        const QStringList setting{"predict",  "training-memory", "model=gpt2",  "sequence=512",
                                  "zero=2",   "data_parallel=4", "advice=none", "checkpointing=block",
                                  "--device", "nvidia-h200"};
        const Ran lines = cli(setting + QStringList{"--as", "pytorch"});
        QCOMPARE(lines.code, 0);
        QVERIFY2(lines.out.contains("import torch\n") && lines.out.contains("ShardingStrategy.SHARD_GRAD_OP"),
                 lines.out);
        const Ran config = cli(setting + QStringList{"--as", "deepspeed"});
        QCOMPARE(config.code, 0);
        QCOMPARE(config.json()["zero_optimization"].toObject()["stage"].toInt(), 2); // JSON and nothing else
        QVERIFY(config.says("Checkpointing is the model's"));                        // what it does not say
        QTemporaryDir folder;
        QCOMPARE(cli(setting + QStringList{"--as", "deepspeed", "-o", folder.filePath("ds.json")}).code, 0);
        QFile file(folder.filePath("ds.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll(), config.out);
    }

    void predictAsASnapshotForMemoryViz()
    {
        QTemporaryDir folder;
        const QString step = folder.filePath("step.pickle");
        const QStringList setting{"predict",     "training-memory", "model=gpt2",  "batch=2", "sequence=64",
                                  "advice=none", "--device",        "nvidia-h200", "--as",    "memory_viz"};
        QCOMPARE(cli(setting).code, 2); // no text for a terminal
        QCOMPARE(cli(setting + QStringList{"-o", step}).code, 0);
        const Ran read = cli({"snapshot", step, "--json"});
        QCOMPARE(read.code, 0);
        const Ran predicted = cli(setting.mid(0, setting.size() - 2) + QStringList{"--json"});
        const auto peak = [](const Ran& ran, const char* outcome) {
            return ran.json()[outcome].toObject()["figures"].toObject()["peak_reserved"].toObject()["value"].toDouble();
        };
        QVERIFY(peak(predicted, "predicted") > 1e9);
        QCOMPARE(peak(read, "predicted"), peak(predicted, "predicted"));
        QVERIFY(read.json()["measured"].isNull());
        QCOMPARE(cli({"predict", "stride", "--as", "memory_viz", "-o", step}).code, 2);
    }

    void linesThatAreNotThereAreRefused()
    {
        const Ran unknown =
            cli({"predict", "training-memory", "advice=none", "--device", "nvidia-h200", "--as", "pytorh"});
        QCOMPARE(unknown.code, 2);
        QVERIFY(unknown.says("did you mean pytorch?"));
        QCOMPARE(cli({"predict", "stride", "--as", "pytorch"}).code, 2);
        QCOMPARE(cli({"predict", "training-memory", "--as", "pytorch", "--json"}).code, 2);
        QCOMPARE(cli({"predict", "training-memory", "model=nosuch", "--as", "pytorch"}).code, 2);
    }

    void parametersAreListedInTheirGroups()
    {
        const Ran text = cli({"describe", "training-memory"});
        QVERIFY(text.out.indexOf("  model=") < text.out.indexOf("  parallelism and offload:"));
        QVERIFY(text.out.indexOf("  parallelism and offload:") < text.out.indexOf("  zero="));
        QVERIFY(text.out.indexOf("  memory details:") < text.out.indexOf("  allocator="));
        const QJsonArray parameters = cli({"describe", "training-memory", "--json"}).json()["parameters"].toArray();
        for (const QJsonValue& one : parameters) {
            if (one["key"].toString() == "zero")
                QCOMPARE(one["group"].toString(), "parallelism and offload");
            if (one["key"].toString() == "model")
                QVERIFY(one["group"].isUndefined());
        }
    }

    void operationsReadInFlop()
    {
        const Ran ran = cli({"predict", "attention", "--device", "nvidia-h200"});
        QVERIFY(ran.out.contains("120 GFLOP") && !ran.out.contains("120259084288"));
        const QJsonObject record = cli({"predict", "attention", "--device", "nvidia-h200", "--json"}).json();
        QCOMPARE(record["predicted"]["figures"]["flash_flops"]["value"].toDouble(), 120259084288.0);
    }

    void sameQuestionSameAnswer()
    {
        const auto ask = [] {
            QJsonObject record = cli({"predict", "hierarchy", "--device", "nvidia-h200", "--json"}).json();
            record.remove("provenance"); // holds the time
            return record;
        };
        QCOMPARE(ask(), ask());
        QVERIFY(!ask().isEmpty());
    }

    void anotherLocaleChangesNothing()
    {
        QTemporaryDir folder;
        const QString name = folder.filePath("de_DE.UTF-8");
        const Ran made = runProgram("localedef", {"-i", "de_DE", "-f", "UTF-8", name});
        if (!QFile::exists(name + "/LC_NUMERIC"))
            QSKIP(qPrintable("de_DE.UTF-8 cannot be generated here: " + made.err));
        const QStringList german{"LOCPATH=" + folder.path(), "LC_ALL=de_DE.UTF-8"};
        const QStringList question{"predict", "stride", "--device", "nvidia-h200"};
        QCOMPARE(cli(question, {}, german).out, cli(question).out);
        QVERIFY(!cli(question).out.isEmpty());
        QCOMPARE(cli({"describe", "stride", "--json"}, {}, german).out, cli({"describe", "stride", "--json"}).out);
    }

    void aProcessorMeasuresWhatItHolds()
    {
        const Ran ran = cli({"measure", "sharding", "data_parallel=2:2:1", "--device", "cpu", "--json"});
        QCOMPARE(ran.code, 0);
        QVERIFY2(ran.says("model=from-scratch:"), ran.err.constData());
        const QJsonObject parameters = ran.json()["parameters"].toObject();
        QVERIFY(parameters["model"].toString().startsWith("from-scratch:"));
        QVERIFY(!ran.json()["comparison"].isNull());
        // A model that is named is measured, or refused.
        const Ran named = cli({"measure", "sharding", "model=llama-2-7b", "--device", "cpu"});
        QVERIFY(named.code != 0 && named.says("each rank would send"));
    }

    void measure()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("r.json");
        const Ran ran = cli(QStringList{"measure"} + quickStride + QStringList{"--json", "-o", path});
        QCOMPARE(ran.code, 0);
        const QJsonObject record = ran.json();
        QCOMPARE(contentOf(path), ran.out);
        QCOMPARE(record["provenance"].toObject()["status"].toString(), "ok");
        QCOMPARE(record["provenance"].toObject()["forced"].toBool(true), false);
        const auto sides = {record["predicted"].toObject(), record["measured"].toObject()};
        for (const QJsonObject& side : sides) {
            QCOMPARE(side["series"].toArray()[0].toObject()["key"].toString(), "useful_bandwidth");
            QCOMPARE(side["series"].toArray()[0].toObject()["x"].toObject()["values"].toArray().size(), 3);
        }
        QVERIFY(!record["comparison"].isNull());

        QCOMPARE(cli({"check", path}).code, 0);
        const Ran replayed =
            cli({"measure", "stride", "stride=1:4:x2", "bytes=1MiB", "--device", "replay:" + path, "--json"});
        QCOMPARE(replayed.code, 0);
        QCOMPARE(replayed.json()["measured"].toObject()["figures"].toObject()["useful_bandwidth"].toObject()["value"],
                 record["measured"].toObject()["figures"].toObject()["useful_bandwidth"].toObject()["value"]);
        for (const char* format : {"html", "md", "csv", "json"}) {
            const QString report = folder.filePath(QString("r.%1").arg(format));
            QCOMPARE(cli({"report", path, "--to", format, "-o", report}).code, 0);
            QVERIFY(!contentOf(report).isEmpty());
        }
        QCOMPARE(contentOf(folder.filePath("r.json")), ran.out); // one record is written as it was
        QVERIFY(contentOf(folder.filePath("r.html")).contains("<svg"));
        QVERIFY(cli({"report", "-", "--to", "csv", "-o", "-"}, ran.out).out.startsWith("stride,"));
    }

    void aHeavyStudyIsSaid()
    {
        QByteArray record = cli({"predict", "stride", "--device", "nvidia-h200", "--json"}).out;
        record.replace(record.indexOf('{'), 1, "{\"name\": \"long\", \"note\": \"" + QByteArray(64 << 20, 'x') + "\",");
        QTemporaryDir folder;
        QFile file(folder.filePath("heavy.memscape"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("{\"format\": \"memscape-study\", \"version\": 1, \"title\": \"t\", \"records\": [" + record + "]}");
        file.close();
        const Ran checked = cli({"check", file.fileName()});
        QCOMPARE(checked.code, 0);
        QVERIFY2(checked.out.contains("“long” (64") && checked.out.contains("divide it"), checked.out.constData());
        const Ran reported = cli({"report", file.fileName(), "--to", "csv"});
        QCOMPARE(reported.code, 0);
        QVERIFY2(reported.says("heavy.memscape: this study takes 64"), reported.err.constData());
        QVERIFY(!reported.out.contains("this study"));
    }

    /// Of a run that is forced though it fits, which is an ordinary one.
    void events()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("r.json");
        const Ran ran = cli(QStringList{"measure", "--force"} + quickStride + QStringList{"--events", "-o", path});
        QCOMPARE(ran.code, 0);
        const QJsonObject record = QJsonDocument::fromJson(contentOf(path)).object();
        QVERIFY(record["measured"].isObject());
        QCOMPARE(record["provenance"].toObject()["forced"].toBool(), true);
        QStringList types;
        const auto lines = ran.out.trimmed().split('\n');
        for (const QByteArray& line : lines) {
            const auto event = QJsonDocument::fromJson(line).object();
            QVERIFY2(!event.isEmpty(), line.constData());
            types << event["type"].toString();
        }
        QCOMPARE(types.first(), "started");
        QCOMPARE(types.last(), "done");
        QCOMPARE(types.count("done"), 1);
        QVERIFY(types.contains("sample"));
    }

    void interruptKeepsThePoints()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("r.json");
        QProcess process;
        QVERIFY2(measuresItsFirstPoint(process, {"-o", path}), "no point came");
        QCOMPARE(::kill(static_cast<pid_t>(process.processId()), SIGINT), 0);
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitCode(), 130);
        const auto record = QJsonDocument::fromJson(contentOf(path)).object();
        QCOMPARE(record["provenance"].toObject()["status"].toString(), "interrupted");
        QVERIFY(record["measured"].isObject());
        QCOMPARE(cli({"check", path}).code, 0);
    }

    /// As the system does it when the memory runs out: the process that measures is killed, the one that
    /// was asked says so and keeps what was measured.
    void aKilledMeasurementIsSurvived()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("r.json");
        QProcess process;
        QVERIFY2(measuresItsFirstPoint(process, {"--force", "-o", path}), "no point came");
        const auto id = process.processId();
        const QByteArray children = contentOf(QStringLiteral("/proc/%1/task/%1/children").arg(id));
        const int worker = children.trimmed().split(' ').first().toInt();
        QVERIFY2(worker > 0, children.constData());
        QCOMPARE(contentOf(QStringLiteral("/proc/%1/oom_score_adj").arg(worker)).trimmed(), QByteArray("1000"));
        QCOMPARE(::kill(worker, SIGKILL), 0);
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 1);
        QVERIFY(process.readAllStandardError().contains("memory runs out"));
        const auto record = QJsonDocument::fromJson(contentOf(path)).object();
        QCOMPARE(record["provenance"].toObject()["status"].toString(), "failed");
        QVERIFY(record["measured"].isObject());
        QCOMPARE(cli({"check", path}).code, 0);
    }

    void aForcedRunCanBeInterrupted()
    {
        QProcess process;
        QVERIFY2(measuresItsFirstPoint(process, {"--force"}), "no point came");
        QCOMPARE(::kill(static_cast<pid_t>(process.processId()), SIGINT), 0);
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitCode(), 130);
    }

    void readerThatGoesAwayIsNoError()
    {
        const Ran ran = shell("\"$CLI\" devices --json | head -c 1");
        QCOMPARE(ran.code, 0);
        QCOMPARE(ran.err, QByteArray());
    }

    void workerEndsWithItsInput()
    {
        const Ran ran = cli({"worker"}, "");
        QCOMPARE(ran.code, 0);
        QCOMPARE(QJsonDocument::fromJson(ran.out.split('\n')[0]).object()["type"].toString(), "hello");
    }
};

QTEST_GUILESS_MAIN(TestCommands)
#include "tst_commands.moc"

// SPDX-License-Identifier: Apache-2.0
// tests/gpu/adopt on an archive made by hand: predictions of an H200 written down as if they had been measured, in the
// form that tests/gpu/run leaves. It is in folders of the test's own; whole it is adopted, and with any one thing
// wrong it is refused by file and place, and nothing changes.
#include "tests/gpu/gpu_test.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>
#include <QtTest>

namespace {

using Files = QMap<QString, QByteArray>;

QByteArray textOf(const QJsonObject& object)
{
    return QJsonDocument(object).toJson();
}

QJsonObject objectOf(const QByteArray& text)
{
    return QJsonDocument::fromJson(text).object();
}

/// object[key][inner] = value; without a value it is taken away.
QByteArray changed(const QByteArray& text, const QString& key, const QString& inner, const QJsonValue& value)
{
    QJsonObject object = objectOf(text), part = object[key].toObject();
    if (value.isUndefined())
        part.remove(inner);
    else
        part[inner] = value;
    object[key] = part;
    return textOf(object);
}

QJsonObject provenance()
{
    return {{"program", "memscape"}, {"version", "0.1.0"},           {"time", "2026-11-23T09:00:00Z"},
            {"backend", "cuda"},     {"device_name", "NVIDIA H200"}, {"driver", "580.95.05"},
            {"grade", "B"},          {"reason", "by hand"},          {"status", "ok"}};
}

/// The prediction of a step of the table, as its own measurement.
QByteArray recordOf(const QStringList& step, const QString& folder)
{
    QStringList words = step[2].split(' ').mid(2); // EXPERIMENT KEY=VALUE … --device cuda:0 -o FILE
    words = words.mid(0, words.indexOf("--device"));
    const QString file = folder + "/record.json";
    const Ran ran = run(program, QStringList{"predict"} + words + QStringList{"--device", "nvidia-h200", "-o", file});
    if (ran.status != 0)
        qWarning().noquote() << step.join(' ') << ran.error;
    QJsonObject record = objectOf(read(file));
    record["measured"] = record["predicted"];
    record["provenance"] = provenance();
    return textOf(record);
}

QJsonObject comparison(const QJsonArray& rows)
{
    return {{"torch", "2.11.0+cu130"}, {"device", "NVIDIA H200"}, {"whole", true}, {"rows", rows}};
}

QJsonObject attentionRow(const QString& pass, bool causal, double ours)
{
    return {
        {"case",
         QJsonObject{
             {"batch", 2}, {"heads", 16}, {"sequence", 8192}, {"head_dim", 128}, {"causal", causal}, {"pass", pass}}},
        {"name", "by hand"},
        {"tflops", QJsonObject{{"ours", ours}, {"torch FLASH", 380.0}, {"torch CUDNN", 610.0}}},
        {"of", QJsonObject{{"torch FLASH", ours / 380}}}};
}

Files comparisons()
{
    const QJsonObject copy{{"working_set", 2147483648.0},
                           {"bytes_per_second", QJsonObject{{"ours", 4.0e12}, {"torch", 4.1e12}}},
                           {"share", 0.976}};
    const QJsonObject product{{"format", "bf16"},
                              {"sizes",
                               QJsonObject{{"4096", QJsonObject{{"seconds", QJsonObject{{"ours", 2.0e-4}}}}},
                                           {"8192", QJsonObject{{"seconds", QJsonObject{{"ours", 1.5e-3}}}}}}},
                              {"ratio", QJsonObject{{"4096", 0.97}, {"8192", 0.99}}}};
    return {{"copy", textOf(comparison({copy}))},
            {"attention-8k",
             textOf(comparison({attentionRow("forward", false, 333.0), attentionRow("backward", true, 201.0)}))},
            {"matmul-bf16", textOf(comparison({product}))}};
}

/// Everything that stage A leaves.
Files handMade(const QString& folder)
{
    Files files;
    const Files compared = comparisons();
    const auto steps = plannedSteps("A", {"--small"});
    for (const QStringList& step : steps.mid(0, steps.size() - 1)) {
        files["steps/" + step[0]] = "A\t" + step[0].toUtf8() + "\tok\t0\t7\t2026-11-23T09:00:00Z\t1234567\n";
        if (step[2].startsWith("memscape-cli measure"))
            files["records/" + step[0] + ".json"] = recordOf(step, folder);
        const QString name = QString(step[0]).remove("torch-");
        if (step[0].startsWith("torch-"))
            files["compare/" + name + ".json"] = compared.value(name, textOf(comparison({})));
    }
    files["summary.txt"] = "by hand\n";
    return files;
}

void pack(Files files, const QString& archive, bool isListed = true)
{
    const QTemporaryDir folder;
    if (isListed) {
        for (auto one = files.begin(); one != files.end(); ++one)
            files["MANIFEST.sha256"] += QCryptographicHash::hash(one.value(), QCryptographicHash::Sha256).toHex() + "  "
                + one.key().toUtf8() + '\n';
    }
    for (auto one = files.begin(); one != files.end(); ++one)
        write(folder.filePath(one.key()), one.value());
    run("tar", QStringList{"-czf", archive, "-C", folder.path()} + files.keys());
}

} // namespace

class TestGpuAdopt : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        if (QStandardPaths::findExecutable("python3").isEmpty())
            QSKIP("python3 is not installed");
        m_whole = handMade(m_folder.path());
        m_archive = m_folder.filePath("results.tar.gz");
        QVERIFY(m_whole.contains("records/stride-read-float32.json") && m_whole.contains("compare/copy.json"));
    }

    void init()
    {
        m_root = std::make_unique<QTemporaryDir>();
        for (const char* part : {"README.md", "resources/records/README.md", "tests/gpu/run", "tests/gpu/stages.sh"})
            write(root() + '/' + part, read(source + '/' + part));
        QFile::setPermissions(root() + "/tests/gpu/run", QFile::ReadOwner | QFile::ExeOwner);
        for (const auto& device : QDir(source + "/resources/devices").entryInfoList({"*.json"}))
            write(root() + "/resources/devices/" + device.fileName(), read(device.filePath()));
    }

    void whatIsWholeIsAdopted()
    {
        pack(m_whole, m_archive);
        const Files before = filesOf(root());
        const Ran adopted = adopt();
        QVERIFY2(adopted.status == 0, qPrintable(adopted.error));
        const Files after = filesOf(root());
        for (auto one = m_whole.begin(); one != m_whole.end(); ++one) {
            if (one.key().startsWith("records/"))
                QCOMPARE(after["resources/records/h200-" + one.key().mid(8)], one.value()); // byte for byte
            if (one.key().startsWith("compare/"))
                QCOMPARE(after["tests/data/gpu/h200/" + one.key().mid(8)], one.value());
        }
        for (auto one = before.begin(); one != before.end(); ++one) {
            if (!one.key().endsWith("README.md") && one.key() != "resources/devices/nvidia-h200.json")
                QCOMPARE(after[one.key()], one.value());
        }
        QVERIFY(after["resources/records/README.md"].contains(
            "| `h200-stride-read-float32.json` | NVIDIA H200 SXM | `stride`, grade B |"));
        QCOMPARE(adopt().status, 0); // and once more is the same
        QCOMPARE(filesOf(root()), after);
    }

    void theFastestFlashIsNamedInTheCatalogue()
    {
        const QString file = "/resources/devices/nvidia-h200.json";
        Files files = m_whole;
        const auto set = [&](const QString& name, const QJsonArray& versions, const QJsonArray& seconds) {
            QJsonObject record = objectOf(files[name]), measured = record["measured"].toObject();
            QJsonArray all;
            for (const QJsonValue& one : measured["series"].toArray()) {
                QJsonObject series = one.toObject(), x = series["x"].toObject(), y = series["y"].toObject();
                if (series["key"] != "flash_time")
                    continue;
                x["values"] = versions;
                y["values"] = seconds;
                series["x"] = x;
                series["y"] = y;
                all.append(series);
            }
            QCOMPARE(all.size(), 1);
            measured["series"] = all;
            record["measured"] = measured;
            files[name] = textOf(record);
        };
        set("records/attention-flash-versions-d128.json", {4, 6, 7},
            {2e-9, 1e-9, QJsonValue::Null}); // one that hung has no time
        set("records/attention-flash-backward-d128.json", {6, 7, 9}, {3e-9, 2e-9, 1e-9});
        pack(files, m_archive);
        const Ran adopted = adopt();
        QVERIFY2(adopted.status == 0, qPrintable(adopted.error));
        QJsonObject device = objectOf(read(root() + file));
        const QJsonObject chosen = device["kernels"].toObject()["attention.forward"].toObject();
        QCOMPARE(chosen["version"].toInt(), 6);
        QCOMPARE(device["kernels"].toObject()["attention.backward"].toObject()["version"].toInt(), 9);
        QCOMPARE(chosen["source"].toString(),
                 QString("record resources/records/h200-attention-flash-versions-d128.json, 2026-11-23"));
        device.remove("kernels"); // and nothing else is changed
        QCOMPARE(device, objectOf(read(source + file)));
        QCOMPARE(run(program, {"check", root() + file}).status, 0);
    }

    void figuresComeFromWhatWasAdopted()
    {
        pack(m_whole, m_archive);
        QCOMPARE(adopt().status, 0);
        const QByteArray readme = read(root() + "/README.md"), old = read(source + "/README.md");
        for (const char* line :
             {"Measured on an NVIDIA H200 SXM (driver 580.95.05, 2026-11-23;",
              "| copy of 1 GiB | 4.00 TB/s | PyTorch 4.10 TB/s: 98 %; goal 95 % |",
              "| flash attention forward, d 128, 8192, bf16 | 333 TFLOP/s | CUDNN 610, FLASH 380; goal 330, stretch "
              "500 |",
              "| flash attention backward, d 128, 8192, causal, bf16 | 201 TFLOP/s | CUDNN 610, FLASH 380 |",
              "| product of 8192³, bf16 | 733 T/s | 4096: 97 %, 8192: 99 % of torch.matmul; goal 95 % |",
              "| transposition of 64 × 64, bfloat16 | ", "| peak of a checkpointed chain (√n) | ",
              "| stride-read-float32 | B | "})
            QVERIFY2(readme.contains(line), line + QByteArray("\n") + readme);
        QVERIFY(!readme.contains("No figure of a GPU is claimed here"));
        const QByteArray begin = "<!-- figures of GPUs", end = "<!-- end of the figures of GPUs -->";
        QCOMPARE(readme.left(readme.indexOf(begin)), old.left(old.indexOf(begin)));
        QCOMPARE(readme.mid(readme.indexOf(end)), old.mid(old.indexOf(end)));
        for (const auto& record : QDir(root() + "/resources/records").entryInfoList({"h200-*.json"}))
            QVERIFY(QFile::remove(record.filePath())); // without the records there are no figures
        QCOMPARE(run(source + "/tests/gpu/adopt", {"--figures", "--root", root()}).status, 0);
        QCOMPARE(read(root() + "/README.md"), old);
    }

    void whatIsNotWholeChangesNothing_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QByteArray>("content"); // none: the file is missing
        QTest::addColumn<QString>("said");
        const QString stride = "records/stride-read-float32.json", copy = "compare/copy.json";
        const QByteArray record = m_whole[stride];
        const auto provenanceWith = [&](const char* key, const QJsonValue& value) {
            return changed(record, "provenance", key, value);
        };
        QTest::newRow("half a record") << stride << record.left(record.size() / 2) << stride + ": not whole JSON";
        QTest::newRow("not a record") << stride << QByteArray("[]") << stride + ": an object was expected";
        QTest::newRow("refused by check")
            << stride << changed(record, "parameters", "stride", "wide") << stride + ": memscape-cli check: ";
        QTest::newRow("no provenance") << stride << changed(record, "provenance", "driver", QJsonValue::Undefined)
                                       << stride + ": provenance.driver is missing";
        QTest::newRow("grade D") << stride << provenanceWith("grade", "D")
                                 << stride + ": provenance.grade is D: by hand";
        QTest::newRow("a fake") << stride << provenanceWith("fake", "host memory") << stride + ": provenance.fake";
        QTest::newRow("a host's") << stride << provenanceWith("backend", "host")
                                  << stride + ": provenance.backend is 'host'";
        QTest::newRow("interrupted") << stride << provenanceWith("status", "interrupted")
                                     << stride + ": provenance.status is 'interrupted'";
        QTest::newRow("another GPU") << stride << provenanceWith("device_name", "NVIDIA H100 80GB HBM3")
                                     << "more than one device: 'NVIDIA H100 80GB HBM3' (" + stride + ")";
        QTest::newRow("nothing measured") << stride << textOf([&] {
            auto one = objectOf(record);
            one["measured"] = QJsonValue::Null;
            return one;
        }()) << stride + ": measured is empty";
        QTest::newRow("a failed step") << "steps/selftest" << QByteArray("A\tselftest\tfailed\t1\t9\t2026\t1\n")
                                       << "steps/selftest: failed (stage A;";
        QTest::newRow("a missing step") << "steps/checkpoint-sqrt" << QByteArray()
                                        << "steps/checkpoint-sqrt: missing (stage A;";
        QTest::newRow("a missing record") << stride << QByteArray() << stride + ": missing";
        QTest::newRow("a missing comparison") << copy << QByteArray() << copy + ": missing";
        QTest::newRow("a comparison cut short")
            << copy << QByteArray(m_whole[copy]).replace("\"whole\": true", "\"whole\": false")
            << copy + ": whole is false";
        QTest::newRow("a comparison on another GPU")
            << copy << QByteArray(m_whole[copy]).replace("NVIDIA H200", "NVIDIA L4") << "more than one device: ";
    }
    void whatIsNotWholeChangesNothing()
    {
        QFETCH(QString, file);
        QFETCH(QByteArray, content);
        QFETCH(QString, said);
        Files files = m_whole;
        if (content.isEmpty())
            files.remove(file);
        else
            files[file] = content;
        pack(files, m_archive);
        const Files before = filesOf(root());
        const Ran refused = adopt();
        QCOMPARE(refused.status, 1);
        QVERIFY2(refused.error.contains(said), qPrintable(refused.error));
        QCOMPARE(filesOf(root()), before);
    }

    void anArchiveCutShortChangesNothing()
    {
        pack(m_whole, m_archive);
        const QByteArray archive = read(m_archive);
        write(m_archive, archive.left(archive.size() * 2 / 3));
        const Files before = filesOf(root());
        const Ran refused = adopt();
        QCOMPARE(refused.status, 1);
        QVERIFY2(refused.error.contains("cannot be read to its end"), qPrintable(refused.error));
        QCOMPARE(filesOf(root()), before);
    }

    void aFileThatWasChangedIsNamed()
    {
        pack(m_whole, m_archive);
        Files files = filesOfArchive(m_archive);
        files["records/stride-read-float32.json"].replace("580.95.05", "580.95.06");
        files.remove("compare/copy.json");
        files["records/more.json"] = "{}";
        pack(files, m_archive, false);
        const Ran refused = adopt();
        QCOMPARE(refused.status, 1);
        for (const char* said : {"records/stride-read-float32.json was changed", "compare/copy.json is missing",
                                 "records/more.json is not in MANIFEST"})
            QVERIFY2(refused.error.contains(said), qPrintable(refused.error));
    }

    void aFailedStepCanBeDoneWithout()
    {
        Files files = m_whole;
        files["steps/torch-copy"].replace("\tok\t", "\tout-of-time\t");
        pack(files, m_archive);
        QVERIFY(adopt().error.contains("--without torch-copy adopts the rest"));
        QCOMPARE(adopt({"--without", "torch-co*"}).status, 0);
        QVERIFY(!QFile::exists(root() + "/tests/data/gpu/h200/copy.json"));
        QVERIFY(QFile::exists(root() + "/resources/records/h200-stride-read-float32.json"));
    }

    void aGoalThatWasMissedIsAResult()
    {
        Files files = m_whole;
        files["steps/torch-matmul-bf16"].replace("\tok\t", "\tfailed\t"); // whole, only slower than it should be
        pack(files, m_archive);
        const Ran adopted = adopt();
        QVERIFY2(adopted.status == 0, qPrintable(adopted.error));
        QVERIFY(QFile::exists(root() + "/tests/data/gpu/h200/matmul-bf16.json"));
    }

    void theRepositorysFiguresAreThoseOfItsRecords()
    {
        for (const char* part : {"resources/records/", "tests/data/gpu/"}) {
            const Files files = filesOf(source + '/' + part);
            for (auto one = files.begin(); one != files.end(); ++one)
                write(root() + '/' + part + one.key(), one.value());
        }
        QCOMPARE(run(source + "/tests/gpu/adopt", {"--figures", "--root", root()}).status, 0);
        for (const char* written : {"README.md", "resources/records/README.md"})
            QCOMPARE(read(root() + '/' + written), read(source + '/' + written));
    }

private:
    QString root() const { return m_root->path(); }
    Ran adopt(const QStringList& more = {}) const
    {
        return run(source + "/tests/gpu/adopt",
                   QStringList{"--root", root(), "--cli", program} + more + QStringList{m_archive});
    }

    QTemporaryDir m_folder;
    Files m_whole;
    QString m_archive;
    std::unique_ptr<QTemporaryDir> m_root; ///< a copy of the files that adopt reads and writes
};

QTEST_GUILESS_MAIN(TestGpuAdopt)
#include "tst_gpu_adopt.moc"

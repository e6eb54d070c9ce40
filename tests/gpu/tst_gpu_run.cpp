// SPDX-License-Identifier: Apache-2.0
// tests/gpu/run on the GPU of the tests (tests/kernels/cuda/fake_module.cpp): every stage with the very steps that a
// real GPU gets, tiny. What must hold when something breaks half-way is what is tried most.
#include "tests/gpu/gpu_test.h"

#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>
#include <QtTest>

namespace {

using Variables = QMap<QString, QString>;

/// A machine with a GPU, as far as the script can tell: nvidia-smi, no PyTorch, a bundle.
class Machine
{
public:
    Machine()
    {
        writeProgram(path("bin/nvidia-smi"),
                     "echo \"$@\" >> \"" + path("asked").toUtf8()
                         + "\"\n"
                           "case \"$*\" in *compute_cap*) echo 9.0 ;; *) echo 'a GPU of the tests' ;; esac\n");
        writeProgram(path("bin/python3"), "echo 'no PyTorch on this machine' >&2; exit 3\n");
        for (const char* tool : {"ncu", "compute-sanitizer"})
            writeProgram(path("bin/") + tool, QByteArray("echo '") + tool + " is not on this machine' >&2; exit 127\n");
        QDir().mkpath(path("bundle/bin"));
        QFile::link(program, path("bundle/bin/memscape-cli"));
        QDir().mkpath(path("bundle/share"));
        QFile::link(source + "/resources", path("bundle/share/memscape"));
        write(path("bundle/BUNDLE"), "commit 1234567\narchitectures 90\n");
    }

    QString path(const QString& name) const { return m_folder.filePath(name); }
    QString out(const QString& name) const { return path("out/" + name); }
    QString summary() const { return QString::fromUtf8(read(out("summary.txt"))); }
    QString step(const QString& name) const
    {
        return QString::fromUtf8(read(path("work/steps/" + name))).split('\t').value(2);
    }

    QStringList arguments(const QString& stage, const QStringList& more) const
    {
        // A busy machine is given the time that it needs, where the budget is not what is asked.
        return QStringList{"--stage",  stage,          "--small", "--budget",  "5000",
                           "--bundle", path("bundle"), "--work",  path("work")}
        + more;
    }
    Variables variables(Variables more = {}) const
    {
        more["PATH"] = path("bin") + ':' + qEnvironmentVariable("PATH");
        more["OUT"] = path("out");
        if (!more.contains("MEMSCAPE_STEP_LIMIT"))
            more["MEMSCAPE_STEP_LIMIT"] = "1500"; // of a busy machine
        more["MEMSCAPE_CUDA_MODULE"] = FAKE_MODULE;
        return more;
    }
    Ran stage(const QString& stage, const QStringList& more = {}, const Variables& faults = {}) const
    {
        return run(source + "/tests/gpu/run", arguments(stage, more), variables(faults), 1500);
    }

private:
    QTemporaryDir m_folder;
};

/// Nothing is run; what has a result says so.
const QStringList noTime{"--budget", "1"};

bool isMeasured(const QStringList& step)
{
    return step[2].contains(" measure ") && !step[2].startsWith("ncu");
}

} // namespace

class TestGpuRun : public QObject
{
    Q_OBJECT

private slots:
    void aDryRunNamesEveryStep_data()
    {
        QTest::addColumn<QString>("stage");
        QTest::addColumn<int>("most");
        QTest::newRow("A") << "A" << 240;
        QTest::newRow("B") << "B" << 528;
        QTest::newRow("C") << "C" << 528;
        QTest::newRow("D") << "D" << 528;
    }
    void aDryRunNamesEveryStep()
    {
        QFETCH(QString, stage);
        QFETCH(int, most);
        const auto steps = plannedSteps(stage), small = plannedSteps(stage, {"--small"});
        QVERIFY(steps.size() > 5);
        int sum = 0;
        QStringList names;
        for (const QStringList& step : steps.mid(0, steps.size() - 1)) {
            sum += step[1].toInt();
            QVERIFY2(step[1].toInt() > 0 && !step[2].isEmpty() && !names.contains(step[0]), qPrintable(step.join(' ')));
            names << step[0];
        }
        QCOMPARE(steps.last()[0], QString("the sum"));
        QVERIFY2(sum <= most, qPrintable(QString::number(sum)));
        QCOMPARE(small.size(), steps.size());
        for (qsizetype i = 0; i < steps.size(); ++i)
            QCOMPARE(small[i][0], steps[i][0]); // the very same table
    }

    void everyStepRuns_data() { aDryRunNamesEveryStep_data(); }

    void everyStepRuns()
    {
        QFETCH(QString, stage);
        const Ran ran = m_machine.stage(stage);
        QCOMPARE(ran.status, 1); // PyTorch and NVIDIA's tools are not there, and that is said
        const QString summary = m_machine.summary();
        const auto archive = filesOfArchive(m_machine.out("results.tar.gz"));
        const auto steps = plannedSteps(stage, {"--small"});
        for (const QStringList& step : steps.mid(0, steps.size() - 1)) {
            const QString name = step[0], record = "records/" + name + ".json";
            QVERIFY2(summary.contains('\n' + name + ": "), qPrintable(name + '\n' + summary));
            QVERIFY2(archive.contains("logs/" + name + ".txt"), qPrintable(name));
            if (isMeasured(step)) {
                QVERIFY2(m_machine.step(name) == "ok", archive["logs/" + name + ".txt"]);
                const QJsonObject provenance = QJsonDocument::fromJson(archive[record])["provenance"].toObject();
                QVERIFY2(provenance.contains("fake"), qPrintable(record));
            } else if (step[2].contains("python3") || stage == "D") {
                QVERIFY2(summary.contains('\n' + name + ": NOT HERE: "), qPrintable(name));
            }
        }
        QVERIFY(summary.contains("\nstage " + stage + ": "));
        QVERIFY(archive.contains("machine.txt") && archive.contains("summary.txt"));
        QCOMPARE(QDir(m_machine.path("out")).entryList(QDir::Files | QDir::Hidden),
                 (QStringList{"results.tar.gz", "summary.txt"}));
    }

    void aResultIsNotMadeAgain()
    {
        const QByteArray before = read(m_machine.path("work/records/stride-read-float32.json"));
        QVERIFY(!before.isEmpty());
        m_machine.stage("A");
        QVERIFY(m_machine.summary().contains("\nstride-read-float32: ok before\n"));
        QCOMPARE(read(m_machine.path("work/records/stride-read-float32.json")), before);
        m_machine.stage("A", {"--only", "stride-read-float32"}); // unless it is asked for by name
        QVERIFY(read(m_machine.path("work/records/stride-read-float32.json")) != before);
    }

    void theArchiveOfAFakeIsRefused()
    {
        if (QStandardPaths::findExecutable("python3").isEmpty())
            QSKIP("python3 is not installed");
        // With everything forgiven that can be forgiven, every record is refused by name, twice over.
        const Ran refused = run(source + "/tests/gpu/adopt",
                                {"--cli", program, "--without", "torch-*", m_machine.out("results.tar.gz")});
        QCOMPARE(refused.status, 1);
        const auto archive = filesOfArchive(m_machine.out("results.tar.gz"));
        QStringList notKept; // of the last stage
        for (const QStringList& step : plannedSteps("D"))
            notKept << step.front();
        int records = 0;
        for (const QString& name : archive.keys()) {
            const bool isKept = name.startsWith("records/") && !notKept.contains(name.mid(8).chopped(5));
            if (!isKept)
                continue;
            ++records;
            QVERIFY2(refused.error.contains(name + ": provenance.fake"), qPrintable(name + '\n' + refused.error));
        }
        QVERIFY(records > 40);
        QVERIFY(refused.error.contains("is no GPU of the catalogue"));
    }

    void settingsAreNotTouched()
    {
        const QStringList asked = QString::fromUtf8(read(m_machine.path("asked"))).split('\n', Qt::SkipEmptyParts);
        QVERIFY(asked.size() > 3);
        for (const QString& words : asked)
            QVERIFY2(words == "-L" || words == "-q -d CLOCK" || words.startsWith("--query-gpu="), qPrintable(words));
    }

    void aHangEndsAndTheNextStepRuns()
    {
        const Machine machine;
        const QStringList two{"--only", "float32"};
        const Ran ran = machine.stage("A", two, {{"MEMSCAPE_FAKE_HANGS", "stride"}, {"MEMSCAPE_STEP_LIMIT", "20"}});
        QCOMPARE(ran.status, 1);
        QCOMPARE(machine.step("stride-read-float32"), QString("out-of-time"));
        QVERIFY(machine.summary().contains("\nstride-read-float32: OUT OF TIME, ended after 20 s\n"));
        QCOMPARE(machine.step("layout-transpose-float32"), QString("ok"));
        machine.stage("A", noTime); // a result that is none stays, until it is asked for
        QCOMPARE(machine.step("stride-read-float32"), QString("out-of-time"));
        machine.stage("A", two + QStringList{"--retry"});
        QCOMPARE(machine.step("stride-read-float32"), QString("ok"));
    }

    void whatWasKilledGoesOn()
    {
        const Machine machine;
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        const Variables variables = machine.variables(
            {{"MEMSCAPE_FAKE_HANGS", "layout"}, {"MEMSCAPE_STEP_LIMIT", "30"}, {"MEMSCAPE_ARCHIVE_EVERY", "0"}});
        for (auto one = variables.begin(); one != variables.end(); ++one)
            environment.insert(one.key(), one.value());
        process.setProcessEnvironment(environment);
        process.start(source + "/tests/gpu/run", machine.arguments("A", {"--only", "@(stride|torch-matmul|layout)"}));
        QTRY_VERIFY_WITH_TIMEOUT(machine.step("torch-matmul-bf16") == "absent",
                                 600000); // the step before the one that hangs
        QTest::qWait(1500);
        process.kill(); // what hangs is left to its own time limit
        QVERIFY(process.waitForFinished());
        // Everything up to there is in the archive, and only there.
        const auto archive = filesOfArchive(machine.out("results.tar.gz"));
        QVERIFY(archive.contains("records/stride-read-float32.json") && archive.contains("steps/torch-matmul-bf16"));
        QVERIFY(!archive.contains("steps/layout-transpose-float32"));
        machine.stage("A", noTime);
        QVERIFY(machine.summary().contains("\nstride-read-float32: ok before\n"));
        machine.stage("A", {"--only", "layout"});
        QCOMPARE(machine.step("layout-transpose-float32"), QString("ok"));
    }

    void aWrongKernelEndsNothing()
    {
        const Machine machine;
        QCOMPARE(machine.stage("A", {"--only", "@(selftest|stride|report)"}, {{"MEMSCAPE_FAKE_WRONG", "1"}}).status, 1);
        QCOMPARE(machine.step("selftest"), QString("failed"));
        QVERIFY(machine.summary().contains("WRONG"));
        QCOMPARE(machine.step("stride-read-float32"), QString("failed")); // tried, and refused before it was timed
        QCOMPARE(machine.step("report-A").isEmpty(), false);
    }

    void theBudgetIsKept()
    {
        const Machine machine;
        QElapsedTimer clock;
        clock.start();
        QCOMPARE(machine.stage("A", {"--budget", "40", "--only", "@(selftest|copy)"}).status, 1);
        QVERIFY2(clock.elapsed() < 40000, qPrintable(QString::number(clock.elapsed())));
        QVERIFY(machine.summary().contains("\nselftest: LEFT OUT, it takes about 45 s and "));
        QVERIFY(machine.step("selftest").isEmpty());
        QCOMPARE(machine.step("copy"), QString("ok")); // a shorter one still fits
    }

    void anotherMachineGoesOn()
    {
        const Machine machine;
        machine.stage("A", {"--only", "stride", "--from", m_machine.out("results.tar.gz")});
        const auto archive = filesOfArchive(machine.out("results.tar.gz"));
        QVERIFY(archive.contains("records/copy.json") && archive.contains("records/hierarchy-read.json"));
        QVERIFY(archive.contains("data/memscape/devices/cuda-0.json")); // the calibration came along
    }

    void aLargeArchiveLeavesWhatMattersLess()
    {
        const Machine machine;
        machine.stage("A", {"--only", "copy", "--from", m_machine.out("results.tar.gz")},
                      {{"MEMSCAPE_ARCHIVE_LIMIT", "200000"}});
        const auto archive = filesOfArchive(machine.out("results.tar.gz"));
        QVERIFY2(machine.summary().contains("from here on stage A alone"), qPrintable(machine.summary()));
        QVERIFY(archive.contains("steps/copy") && archive.contains("steps/stride-read-float32"));
        QVERIFY(!archive.contains("logs/copy.txt") && !archive.contains("report.html"));
        QVERIFY(!archive.contains("steps/hierarchy-read")
                && !archive.contains("records/hierarchy-read.json")); // of stage B
        QVERIFY(QFile::exists(machine.path("work/records/hierarchy-read.json")));
    }

    void whatCannotBeAskedIsSaid_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("said");
        QTest::newRow("no stage") << QStringList{"--dry-run"} << "which stage?";
        QTest::newRow("another stage") << QStringList{"--stage", "E"} << "which stage?";
        QTest::newRow("no seconds") << QStringList{"--stage", "A", "--budget", "soon"}
                                    << "--budget takes whole seconds";
        QTest::newRow("no value") << QStringList{"--stage"} << "--stage needs a value";
        QTest::newRow("unknown") << QStringList{"--quick"} << "unknown argument: --quick";
    }
    void whatCannotBeAskedIsSaid()
    {
        QFETCH(QStringList, arguments);
        QFETCH(QString, said);
        const Ran refused = run(source + "/tests/gpu/run", arguments);
        QCOMPARE(refused.status, 2);
        QVERIFY2(refused.error.contains(said), qPrintable(refused.error));
    }

    void aBundleNeedsGlibcAlone()
    {
        const QTemporaryDir folder;
        const QString cli = folder.filePath("bin/memscape-cli"), module = folder.filePath("bin/libmemscape-cuda.so");
        write(cli, read("/bin/true"));
        write(module, read("/bin/true"));
        const QStringList check{"--check", folder.path()};
        const Ran whole = run(source + "/tests/gpu/bundle", check);
        QVERIFY2(whole.status == 0 && whole.error.contains("whole: "), qPrintable(whole.error));
        write(cli, read(program)); // built for tests: with the libraries that are installed here
        const Ran refused = run(source + "/tests/gpu/bundle", check);
        QCOMPARE(refused.status, 1);
        QVERIFY2(refused.error.contains("memscape-cli needs libstdc++.so.6"), qPrintable(refused.error));
        QFile::remove(module);
        QVERIFY(run(source + "/tests/gpu/bundle", check).error.contains("there is no "));
    }

private:
    Machine m_machine; // all four stages, one after the other
};

QTEST_GUILESS_MAIN(TestGpuRun)
#include "tst_gpu_run.moc"

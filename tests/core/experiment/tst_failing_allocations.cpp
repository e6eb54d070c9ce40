// SPDX-License-Identifier: Apache-2.0
// Memory that runs out at any moment: one allocation of a prediction, a reading or a saving is refused, then a later
// one, and so on to the last, each in a process of its own. Each time it ends with std::bad_alloc (which the programs
// report as "out of memory"), with a right answer or an error, or, where a destructor of the JSON library was refused
// (core/base/out_of_memory.h), with that message; what stands on disk is the old document or the new one.
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/out_of_memory.h"
#include "core/device/catalogue.h"
#include "core/experiment/record.h"
#include "tests/support/counted_allocations.h"

#include <QTemporaryDir>
#include <QtTest>

#include <csignal>
#include <functional>
#include <new>

#include <sys/wait.h>
#include <unistd.h>

using namespace memscape;

class TestFailingAllocations : public QObject
{
    Q_OBJECT

private slots:
    void predicting_data()
    {
        QTest::addColumn<QString>("experiment");
        QTest::addColumn<QStringList>("assignments");
        QTest::newRow("stride") << "stride" << QStringList{};
        QTest::newRow("layout") << "layout" << QStringList{};
        QTest::newRow("checkpoint") << "checkpoint" << QStringList{"chain=mlp:12x64"};
        QTest::newRow("training memory") << "training-memory"
                                         << QStringList{"model=gpt2", "batch=1", "sequence=32", "advice=none"};
        QTest::newRow("attention") << "attention" << QStringList{"sequence=512"};
    }
    void predicting()
    {
        QFETCH(QString, experiment);
        QFETCH(QStringList, assignments);
        const Experiment& asked = **findExperiment(experiment.toStdString());
        const Device device = *findDevice("nvidia-h200");
        std::vector<std::string> given;
        for (const QString& one : assignments)
            given.push_back(one.toStdString());
        const Parameters parameters = *resolve(asked.schema(), given);
        const auto answer = [&] { // without the detail, where a solver says how long it took
            const auto record = predictRecord(asked, device, parameters);
            return record && record->predicted ? seriesText(*record->predicted) : std::string();
        };
        const std::string right = answer();
        QVERIFY(!right.empty());
        eachFailing([&] {
            const std::string now = answer();
            return now.empty() || now == right; // an error, or right
        });
    }

    void reading()
    {
        const Experiment& asked = **findExperiment("stride");
        const Record record =
            *predictRecord(asked, *findDevice("nvidia-h200"), *resolve(asked.schema(), std::vector<std::string>{}));
        const std::string text = jsonText(recordToJson(record));
        eachFailing([&] {
            const auto json = parseJson(text);
            const auto back = json ? recordFromJson(*json) : Result<Record>(fail(json.error()));
            return !back || jsonText(recordToJson(*back)) == text;
        });
    }

    void saving()
    {
        const QTemporaryDir folder;
        const auto path = std::filesystem::path(folder.filePath("study.memscape").toStdString());
        const Experiment& asked = **findExperiment("stride");
        Study before, after;
        before.title = "before";
        after.title = "after";
        after.records = {
            *predictRecord(asked, *findDevice("nvidia-h200"), *resolve(asked.schema(), std::vector<std::string>{}))};
        QVERIFY(writeStudy(path, before));
        const std::string old = *readFile(path);
        QVERIFY(writeStudy(path, after));
        const std::string renewed = *readFile(path);
        eachFailing(
            [&] {
                static_cast<void>(writeStudy(path, after));
                return true; // what became of it is on the disk
            },
            [&] {
                const std::string found = *readFile(path);
                QVERIFY2(found == old || found == renewed, "a torn study");
                QCOMPARE(QDir(folder.path()).entryList(QDir::Files | QDir::Hidden), QStringList{"study.memscape"});
                QVERIFY(writeStudy(path, before));
            });
    }

private:
    static std::string seriesText(const Prediction& prediction)
    {
        const Json series = outcomeToJson(prediction)["series"];
        return jsonText(series);
    }

    enum Ended { Right = 10, Refused, Wrong };

    /// `answers` with its first allocation refused, its second, …: all where there are few, else some hundred of them,
    /// near each other at the start. It must be right or throw; `check` looks after each.
    template <typename Answers>
    static void eachFailing(
        Answers answers, const std::function<void()>& check = [] {})
    {
        const std::size_t before = test::allocationsSoFar().count;
        QVERIFY(answers());
        const long all = long(test::allocationsSoFar().count - before);
        QVERIFY(all > 10);
        int refused = 0;
        for (long n = 0; n < all; n += 1 + n / 20) {
            const int ended = endOf([&] { return endedWithout(n, answers); });
            const QByteArray moment =
                QString("ended with %1 after allocation %2 of %3").arg(ended).arg(n).arg(all).toUtf8();
            QVERIFY2(ended == Right || ended == Refused || ended == outOfMemoryStatus, moment.constData());
            refused += ended != Right;
            check();
            if (QTest::currentTestFailed())
                return;
        }
        QVERIFY(refused > 10); // or nothing was tried
    }

    template <typename Answers> static Ended endedWithout(long allocation, Answers answers)
    {
        test::refuseAllocationAfter(allocation);
        try {
            const bool isRight = answers();
            test::refuseAllocationAfter(-1);
            return isRight ? Right : Wrong;
        } catch (const std::bad_alloc&) {
            test::refuseAllocationAfter(-1);
            return Refused;
        }
    }

    /// The exit status of a child that runs `body`; -1 when a signal ended it.
    template <typename Body> static int endOf(Body body)
    {
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(SIGABRT, SIG_DFL); // Qt's handlers are not this child's
            ::signal(SIGSEGV, SIG_DFL);
            endClearlyWithoutMemory("child");
            ::_exit(body());
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
};

QTEST_GUILESS_MAIN(TestFailingAllocations)
#include "tst_failing_allocations.moc"

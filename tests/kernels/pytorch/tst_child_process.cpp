// SPDX-License-Identifier: Apache-2.0
// A child's words come back, and nothing of it stays when it hangs, crashes or is forgotten.
#include "kernels/worker/child_process.h"
#include "tests/kernels/pytorch/fake_python.h"

using namespace memscape;
using namespace memscape::test;

class TestChildProcess : public QObject
{
    Q_OBJECT

private slots:
    void what_it_says()
    {
        QCOMPARE(*outputOf({{"sh", "-c", "printf 'a\\nb'; echo noise >&2"}, {}, true}, 10), std::string("a\nb"));
        QCOMPARE(*outputOf({{"sh", "-c", "printf \"$OWN\""}, {{"OWN", "mine"}}}, 10), std::string("mine"));
        QCOMPARE(*outputOf({{"cat"}}, 10), std::string()); // its input has ended
    }

    void how_it_ends()
    {
        QCOMPARE(outputOf({{"/nowhere/python"}}, 10).error().code, std::string("run.failed"));
        const auto three = outputOf({{"sh", "-c", "exit 3"}}, 10);
        QVERIFY(three.error().message.find("code 3") != std::string::npos);
        const auto killed = outputOf({{"sh", "-c", "kill -9 $$"}}, 10);
        QCOMPARE(killed.error().code, std::string("run.memory"));
        const auto crashed = outputOf({{"sh", "-c", "kill -11 $$"}}, 10);
        QVERIFY(crashed.error().message.find("signal 11") != std::string::npos);
    }

    void one_that_hangs_is_killed_with_what_it_started()
    {
        const QTemporaryDir folder;
        const std::string file = folder.filePath("pid").toStdString();
        const auto hung = outputOf({{"sh", "-c", "sleep 600 & echo $! > " + file + "; wait"}}, 0.5);
        QCOMPARE(hung.error().code, std::string("run.hung"));
        QFile mark(folder.filePath("pid"));
        QVERIFY(mark.open(QFile::ReadOnly));
        const qint64 grandchild = mark.readAll().trimmed().toLongLong();
        QVERIFY(grandchild > 0);
        QTRY_VERIFY(!isAlive(grandchild));
    }

    void one_that_talks_without_end_is_killed()
    {
        QCOMPARE(outputOf({{"yes"}}, 10, 100'000).error().code, std::string("run.hung"));
    }

    void one_that_closes_its_output_and_stays_is_ended()
    {
        QVERIFY(!outputOf({{"sh", "-c", "exec >&-; sleep 600"}}, 10).has_value());
    }
};

QTEST_GUILESS_MAIN(TestChildProcess)
#include "tst_child_process.moc"

// SPDX-License-Identifier: Apache-2.0
// The load that is looked at before a measurement.
#include "core/base/file.h"
#include "core/device/host_load.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace memscape;

class TestHostLoad : public QObject
{
    Q_OBJECT

    static HostLoad loadOf(const std::string& average, const std::string& online)
    {
        const QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        std::filesystem::create_directories(root / "proc");
        std::filesystem::create_directories(root / "sys/devices/system/cpu");
        if (!average.empty())
            static_cast<void>(writeFileAtomically(root / "proc/loadavg", average));
        if (!online.empty())
            static_cast<void>(writeFileAtomically(root / "sys/devices/system/cpu/online", online));
        return readHostLoad(root);
    }

private slots:
    void whoAsksDoesNotCount()
    {
        const HostLoad load = loadOf("9.93 12.10 14.25 5/412 12345\n", "0-1\n");
        QCOMPARE(load.load, 9.93);
        QCOMPARE(load.running, 4);
        QCOMPARE(load.threads, 2);
        QCOMPARE(busyText(load), std::string("machine busy (load 9.9 on 2 cores)"));
    }

    void busy_data()
    {
        QTest::addColumn<QString>("average");
        QTest::addColumn<QString>("online");
        QTest::addColumn<bool>("busy");
        QTest::newRow("others wait for two cores") << "9.93 9 9 5/412 1"
                                                   << "0-1" << true;
        QTest::newRow("one hog on two cores") << "1.02 1 1 2/412 1"
                                              << "0-1" << true;
        QTest::newRow("quiet") << "0.12 0 0 1/412 1"
                               << "0-1" << false;
        QTest::newRow("our own run has just ended") << "1.90 1 1 1/412 1"
                                                    << "0-1" << false;
        QTest::newRow("a burst right now") << "0.20 0 0 4/412 1"
                                           << "0-1" << false;
        QTest::newRow("a browser on many cores") << "1.50 1 1 3/412 1"
                                                 << "0-15" << false;
        QTest::newRow("a build on many cores") << "14.0 9 9 17/412 1"
                                               << "0-15" << true;
        QTest::newRow("not told") << ""
                                  << "0-1" << false;
        QTest::newRow("cores not told") << "9.93 9 9 5/412 1"
                                        << "" << false;
        QTest::newRow("nonsense") << "busy very much 1/x"
                                  << "0-1" << false;
    }
    void busy()
    {
        QFETCH(QString, average);
        QFETCH(QString, online);
        QFETCH(bool, busy);
        QCOMPARE(loadOf(average.toStdString(), online.toStdString()).isBusy(), busy);
    }

    void thisMachineTells()
    {
        const HostLoad load = readHostLoad();
        QVERIFY(std::isnan(load.load) || (load.load >= 0 && load.threads > 0));
    }
};

QTEST_APPLESS_MAIN(TestHostLoad)
#include "tst_host_load.moc"

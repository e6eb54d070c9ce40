// SPDX-License-Identifier: Apache-2.0
// A computation that is not wanted any more ends; no other does.
#include "core/base/cancellation.h"
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QElapsedTimer>
#include <QTest>

#include <thread>

using namespace memscape;

class TestCancellation : public QObject
{
    Q_OBJECT

private slots:
    void withoutAFlagEverythingIsWanted()
    {
        QVERIFY(!isCancelled());
        QVERIFY(checkWanted());
    }

    void theInnermostScopeCounts()
    {
        std::atomic<bool> outer = true, inner = false;
        const CancelScope first(outer);
        QVERIFY(isCancelled());
        {
            const CancelScope second(inner);
            QVERIFY(!isCancelled());
            inner = true;
            QVERIFY(isCancelled());
            QCOMPARE(checkWanted().error().code, std::string("predict.cancelled"));
            inner = false;
        }
        QVERIFY(isCancelled());
    }

    void anotherThreadIsNotConcerned()
    {
        std::atomic<bool> flag = true;
        const CancelScope scope(flag);
        bool there = true;
        std::thread([&] { there = isCancelled(); }).join();
        QVERIFY(!there);
    }

    void aLongSolveEndsSoon()
    {
        const Experiment& checkpoint = **findExperiment("checkpoint");
        // 150 stages, solved a hundred times: some seconds.
        const auto parameters =
            resolve(checkpoint.schema(), std::vector<std::string>{"chain=mlp:150x4096", "slots=400:499:1"});
        QVERIFY(parameters);
        const auto device = findDevice("nvidia-h200");
        QVERIFY(device);
        std::atomic<bool> flag = false;
        QElapsedTimer sinceCancelled;
        std::thread impatient([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            sinceCancelled.start();
            flag = true;
        });
        const CancelScope scope(flag);
        const auto prediction = checkpoint.predict(*device, *parameters);
        const qint64 late = sinceCancelled.elapsed();
        impatient.join();
        QVERIFY(!prediction);
        QCOMPARE(prediction.error().code, std::string("predict.cancelled"));
        QVERIFY2(late < 1000, qPrintable(QString::number(late)));
    }
};

QTEST_GUILESS_MAIN(TestCancellation)
#include "tst_cancellation.moc"

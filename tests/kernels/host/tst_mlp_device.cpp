// SPDX-License-Identifier: Apache-2.0
// The MLP chain on this machine's threads: right in double, the same bits whatever is discarded and
// made again, and the memory of every schedule what its replay says.
#include "kernels/host/checkpoint/gelu.h"
#include "kernels/host/checkpoint/mlp_device.h"
#include "kernels/programs/checkpoint/chain_executor.h"
#include "kernels/programs/checkpoint/mlp_reference.h"

#include "tests/support/listener.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::host;

class TestMlpDevice : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_listener = std::make_unique<test::Listener>();
        m_session = std::make_unique<HostSession>(m_device, *m_listener);
    }

    void gelusAgreeWithTheReference()
    {
        const Check check = checkGelu();
        QVERIFY2(check.passed(), check.text().c_str());
    }

    void everyScheduleGivesTheSameGradients_data()
    {
        QTest::addColumn<int>("index");
        const auto kernels = productKernels();
        for (int i = 0; i < int(kernels.size()); ++i)
            QTest::newRow(kernels[std::size_t(i)].name.c_str()) << i;
    }
    void everyScheduleGivesTheSameGradients()
    {
        QFETCH(int, index);
        const ProductKernel kernel = productKernels()[std::size_t(index)];
        const auto check = checkMlpDevice(
            [&](const MlpShape& shape, std::int64_t arena) { return makeMlpDevice(*m_session, shape, arena, kernel); });
        QVERIFY2(check.has_value(), check ? "" : check.error().text().c_str());
        QVERIFY2(check->passed(), check->text().c_str());
        QVERIFY(check->compared() > 5 * 5 * 67 * 67);
    }

    void theThreadsDoNotMatterToTheCheck()
    {
        Instruments one;
        one.processors.resize(1);
        HostSession session(m_device, *m_listener, one);
        const auto check = checkMlpDevice([&](const MlpShape& shape, std::int64_t arena) {
            return makeMlpDevice(session, shape, arena, bestProduct());
        });
        QVERIFY(check.has_value());
        QVERIFY2(check->passed(), check->text().c_str());
    }

    void memoryIsWhatTheReplaySays()
    {
        using enum OperationKind;
        const MlpShape shape{6, 100, 50}; // arrays of 20,000 B, 20,480 in the pool
        const Schedule schedule{{ForwardKeep, 0}, {ForwardDrop, 1}, {ForwardKeep, 2},  {ForwardSave, 3, 1},
                                {ForwardSave, 4}, {ForwardSave, 5}, {Loss, 6},         {Backward, 5},
                                {Backward, 4},    {Backward, 3},    {DiscardValue, 2}, {ForwardSave, 0},
                                {ForwardSave, 1}, {ForwardSave, 2}, {Backward, 2},     {Backward, 1},
                                {Backward, 0}};
        const auto chain = mlpChain(shape);
        const auto predicted = replay(*chain, schedule);
        QVERIFY2(predicted.has_value(), predicted ? "" : predicted.error().text().c_str());

        const auto device = makeMlpDevice(*m_session, shape, predicted->peak, bestProduct());
        QVERIFY(device.has_value());
        const auto run = execute(**device, shape, predicted->peak, schedule);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QCOMPARE(run->replay.peak, predicted->peak);
        QCOMPARE(run->replay.forwards, predicted->forwards);
        QCOMPARE(run->replay.recomputed, predicted->recomputed);
        QCOMPARE(run->replay.steps.size(), predicted->steps.size());
        for (std::size_t i = 0; i < schedule.size(); ++i) {
            QCOMPARE(run->replay.steps[i].during, predicted->steps[i].during);
            QCOMPARE(run->replay.steps[i].after, predicted->steps[i].after);
            QCOMPARE(run->replay.steps[i].isRecomputation, predicted->steps[i].isRecomputation);
            QVERIFY(run->replay.steps[i].end >= run->replay.steps[i].begin);
        }
    }

    /// A device that forgets one input: what the executor would do if it gave an array back too early.
    void whatIsUsedAfterItsDiscardShows()
    {
        const MlpShape shape{2, 40, 20};
        const std::int64_t arena = 8 * mlpArrayBytes(shape);
        const auto device = makeMlpDevice(*m_session, shape, arena, bestProduct());
        QVERIFY(device.has_value());
        float* const x = (*device)->arena();
        float* const result = x + mlpArrayBytes(shape) / 4;
        QVERIFY((*device)->input(x) && (*device)->forward(0, x, nullptr, result));
        QVERIFY(std::isfinite(result[0]));
        QVERIFY((*device)->poison(x) && (*device)->forward(0, x, nullptr, result));
        for (std::size_t i = 0; i < 800; ++i)
            QVERIFY(std::isnan(result[i]));
    }

    void aBrokenScheduleIsAnErrorAtItsPlace_data()
    {
        using enum OperationKind;
        QTest::addColumn<Schedule>("schedule");
        QTest::addColumn<QString>("place");
        const Schedule whole = saveEverything(2);
        QTest::newRow("nothing") << Schedule{} << "operation 0";
        QTest::newRow("ends early") << Schedule(whole.begin(), whole.end() - 1) << "operation 4";
        QTest::newRow("input is gone") << Schedule{{ForwardDrop, 0}, {ForwardKeep, 0}} << "operation 1";
        QTest::newRow("no such stage") << Schedule{{ForwardKeep, 2}} << "operation 0";
        QTest::newRow("no such way") << Schedule{{ForwardSave, 0, 2}} << "operation 0";
        QTest::newRow("saved twice") << Schedule{{ForwardSave, 0}, {ForwardSave, 0}} << "operation 1";
        QTest::newRow("backward first") << Schedule{{ForwardSave, 0}, {Backward, 0}} << "operation 1";
        QTest::newRow("backward out of order")
            << Schedule{{ForwardSave, 0}, {ForwardSave, 1}, {Loss, 2}, {Backward, 0}} << "operation 3";
        QTest::newRow("nothing saved") << Schedule{{ForwardKeep, 0}, {ForwardKeep, 1}, {Loss, 2}, {Backward, 1}}
                                       << "operation 3";
        QTest::newRow("loss of nothing") << Schedule{{Loss, 2}} << "operation 0";
        QTest::newRow("loss twice") << Schedule{{ForwardKeep, 0}, {ForwardSave, 1}, {Loss, 2}, {Loss, 2}}
                                    << "operation 3";
        QTest::newRow("discards nothing") << Schedule{{DiscardValue, 1}} << "operation 0";
        QTest::newRow("discards behind the end") << Schedule{{DiscardSaved, 9}} << "operation 0";
    }
    void aBrokenScheduleIsAnErrorAtItsPlace()
    {
        QFETCH(Schedule, schedule);
        QFETCH(QString, place);
        const MlpShape shape{2, 40, 20};
        const std::int64_t arena = 16 * mlpArrayBytes(shape);
        const auto device = makeMlpDevice(*m_session, shape, arena, bestProduct());
        QVERIFY(device.has_value());
        const auto run = execute(**device, shape, arena, schedule, {true, true, {}});
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("schedule.invalid"));
        QCOMPARE(QString::fromStdString(run.error().place), place);
        // Where the run refuses, the replay refuses.
        const auto replayed = replay(*mlpChain(shape), schedule);
        QVERIFY(!replayed.has_value());
        QCOMPARE(QString::fromStdString(replayed.error().place), place);
    }

    void anArenaTooSmallIsRefused()
    {
        const MlpShape shape{2, 40, 20};
        const std::int64_t peak = replay(*mlpChain(shape), saveEverything(2))->peak;
        const auto device = makeMlpDevice(*m_session, shape, peak - poolGranularity, bestProduct());
        QVERIFY(device.has_value());
        const auto run = execute(**device, shape, peak - poolGranularity, saveEverything(2));
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.memory"));
    }

    void moreThanTheMachineHasIsRefused()
    {
        const auto device = makeMlpDevice(*m_session, {10'000, 65'536, 1}, 1 << 20, bestProduct());
        QVERIFY(!device.has_value());
        QCOMPARE(device.error().code, std::string("run.memory"));
        QVERIFY(QString::fromStdString(device.error().message).contains("weights"));
        QCOMPARE(m_session->memory().used(), std::int64_t(0));
    }

    void stopIsHeardBetweenOperations()
    {
        const MlpShape shape{2, 40, 20};
        const std::int64_t arena = 16 * mlpArrayBytes(shape);
        const auto device = makeMlpDevice(*m_session, shape, arena, bestProduct());
        QVERIFY(device.has_value());
        ExecutionOptions options;
        options.progress = [this](std::size_t operation) {
            if (operation == 2)
                m_listener->stop = true;
        };
        const auto run = execute(**device, shape, arena, saveEverything(2), options);
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.cancelled"));
    }

private:
    Device m_device;
    std::unique_ptr<test::Listener> m_listener;
    std::unique_ptr<HostSession> m_session;
};

QTEST_APPLESS_MAIN(TestMlpDevice)
#include "tst_mlp_device.moc"

// SPDX-License-Identifier: Apache-2.0
// A slower host takes so many times as long for each product, calibrated or not, and for columns of a walk alone.
#include "core/timing/operation_pace.h"

#include "core/timing/host_operations.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

class TestOperationPace : public QObject
{
    Q_OBJECT

private slots:
    void everyOperationTakesSoManyTimesAsLong_data()
    {
        QTest::addColumn<bool>("isCalibrated");
        QTest::newRow("calibrated") << true;
        QTest::newRow("typical") << false;
    }

    void everyOperationTakesSoManyTimesAsLong()
    {
        QFETCH(bool, isCalibrated);
        Device host = test::twoCores("host");
        host.clock.value = 2e9;
        host.rates["fp32"].flops.value = 128e9;
        if (isCalibrated) {
            HostOperations operations = typicalHostOperations(host);
            operations.call *= 3; // not the typical one
            host.calibration.emplace();
            host.calibration->raw = {{"operations", hostOperationsToJson(operations)}};
        }
        const HostOperations before = hostOperations(host), after = hostOperations(withSlowerOperations(host, 1.5));
        for (const auto way : {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient}) {
            for (const ProductShape& shape : {ProductShape{1, 96, 96}, {64, 1024, 1024}})
                QVERIFY(std::fabs(after.productSeconds(way, shape) / before.productSeconds(way, shape) - 1.5) < 1e-9);
        }
        QVERIFY(std::fabs(after.perByte / before.perByte - 1.5) < 1e-9);
        QCOMPARE(after.threads, before.threads);
    }

    void columnsAreSlowerStreamsAreNot()
    {
        Device host = test::twoCores("host");
        host.calibration.emplace();
        host.calibration->walkRates = {{"column L2", 4, 4096, 2e-9}, {"read stream", 4, 4096, 1e-9}};
        const Device slower = withSlowerOperations(host, 2);
        QCOMPARE(slower.calibration->walkRates[0].seconds, 4e-9);
        QCOMPARE(slower.calibration->walkRates[1].seconds, 1e-9);
    }
};

QTEST_GUILESS_MAIN(TestOperationPace)
#include "tst_operation_pace.moc"

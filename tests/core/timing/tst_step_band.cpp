// SPDX-License-Identifier: Apache-2.0
// The band around a step's time: sums of its parts by hand, and narrower where rates were measured here.
#include "core/device/catalogue.h"
#include "core/timing/step_band.h"

#include <nlohmann/json.hpp>

#include <QtTest>

using namespace memscape;

class TestStepBand : public QObject
{
    Q_OBJECT

    static StepTime someTime()
    {
        StepTime time;
        time.arithmeticBound = 5, time.attention = 1, time.memoryBound = 2, time.optimizer = 1;
        time.communication = 3, time.exposed = 1;
        time.total = 9;
        return time;
    }

private slots:
    void partsAddUp()
    {
        const StepBand band = stepBand(someTime(), findDevice("nvidia-a100-80gb").value(), {});
        double expected = 0, low = 0, high = 0;
        for (const BandPart& part : band.parts)
            expected += part.expected, low += part.low, high += part.high;
        QCOMPARE(expected, 9.0);
        QCOMPARE(band.low, low);
        QCOMPARE(band.high, high);
        QVERIFY(band.low < 9 && band.high > 9);
        QVERIFY(band.parts.front().high - band.parts.front().low
                >= band.parts.back().high - band.parts.back().low); // widest first
    }

    void hiddenCollectivesMakeItWiderUpwards()
    {
        StepTime time = someTime();
        const Device device = findDevice("nvidia-a100-80gb").value();
        const double high = stepBand(time, device, {}).high;
        time.communication = 6;
        QCOMPARE(stepBand(time, device, {}).high, high + 0.9);
    }

    void aCalibrationNarrowsIt()
    {
        Device device = findDevice("nvidia-a100-80gb").value();
        const StepBand sheet = stepBand(someTime(), device, {});
        device.calibration.emplace();
        device.calibration->raw = {{"product_rates", {{"fp32", 1.4e13}, {"bf16", 2.6e14}}}};
        const StepBand measured = stepBand(someTime(), device, {});
        QVERIFY(measured.high - measured.low < 0.8 * (sheet.high - sheet.low));
    }

    void nothingTakesNoTime()
    {
        const StepBand band = stepBand({}, findDevice("nvidia-a100-80gb").value(), {});
        QCOMPARE(band.low, 0.0);
        QCOMPARE(band.high, 0.0);
        QVERIFY(band.parts.empty());
    }
};

QTEST_APPLESS_MAIN(TestStepBand)
#include "tst_step_band.moc"

// SPDX-License-Identifier: Apache-2.0
// The vendor's numbers alone, over the whole catalogue, and what the experiments make of them.
#include "core/device/catalogue.h"
#include "core/device/datasheet.h"
#include "core/experiment/experiment.h"

#include <QTest>

#include <cmath>

using namespace memscape;

class TestDatasheet : public QObject
{
    Q_OBJECT

private slots:
    void onlySpecifiedRatesAreLeft()
    {
        for (const Device& device : catalogue()) {
            const Device sheet = datasheetOf(device);
            QCOMPARE(sheet.basis, std::string("datasheet"));
            QCOMPARE(sheet.levels.size(), device.levels.size());
            for (std::size_t i = 0; i < sheet.levels.size(); ++i) {
                const MemoryLevel& level = sheet.levels[i];
                QVERIFY(!level.latency.known() || level.latency.evidence == Evidence::Specified);
                QVERIFY(!level.bandwidth.known() || level.bandwidth.evidence == Evidence::Specified);
                QCOMPARE(level.capacity.known(), device.levels[i].capacity.known());
            }
        }
    }

    void memoryIsAsFastAsTheVendorSays()
    {
        const Device device = *findDevice("nvidia-h200");
        const Device sheet = datasheetOf(device);
        for (const Operation operation : {Operation::Read, Operation::Write, Operation::Copy})
            QCOMPARE(levelBandwidth(sheet, *sheet.dram(), operation).value, 4.8e12); // the data sheet
        QVERIFY(levelBandwidth(device, *device.dram(), Operation::Read).value < 4.8e12);
    }

    void aStrideOfOneReachesTheSheetAndNoLatencyIsInvented()
    {
        const Device sheet = datasheetOf(*findDevice("nvidia-h200"));
        const Experiment& stride = **findExperiment("stride");
        const auto walk = resolve(stride.schema(), std::vector<std::string>{"stride=1", "bytes=16GiB"});
        const auto predicted = stride.predictPoint(sheet, *walk);
        QVERIFY2(predicted, predicted ? "" : predicted.error().text().c_str());
        const double rate = findFigure(*predicted, "useful_bandwidth")->number();
        QVERIFY2(std::abs(rate / 4.8e12 - 1) < 0.01, qPrintable(QString::number(rate)));
        const Experiment& hierarchy = **findExperiment("hierarchy");
        const auto figures =
            hierarchy.predictPoint(sheet, *resolve(hierarchy.schema(), std::vector<std::string>{"working_set=64MiB"}));
        QVERIFY(!std::isfinite(findFigure(*figures, "latency")->number()));
    }

    void aMachineWithoutASheetIsRefusedWithAReason()
    {
        const Device sheet = datasheetOf(describeHost(TEST_DATA "/no-such-root"));
        const Experiment& stride = **findExperiment("stride");
        const auto refused = stride.predictPoint(sheet, *resolve(stride.schema(), std::vector<std::string>{}));
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, std::string("predict.device"));
    }
};

QTEST_GUILESS_MAIN(TestDatasheet)
#include "tst_datasheet.moc"

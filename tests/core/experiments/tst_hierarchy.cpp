// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

class TestHierarchy : public QObject
{
    Q_OBJECT

private slots:
    void sizesLiveWhereTheyShould_data();
    void sizesLiveWhereTheyShould();
    void seriesBeginWithLatency();
    void everyCatalogueDeviceAnswers();
    void claimsAreJudgedByNumbers();
};

namespace {

const Experiment& hierarchy()
{
    return **findExperiment("hierarchy");
}

Figures at(const char* device, const std::string& workingSet)
{
    return *hierarchy().predictPoint(*findDevice(device), *resolve(hierarchy().schema(), std::vector<std::string>{"working_set=" + workingSet}));
}

} // namespace

void TestHierarchy::sizesLiveWhereTheyShould_data()
{
    QTest::addColumn<QString>("device");
    QTest::addColumn<QString>("size");
    QTest::addColumn<QString>("level");
    QTest::newRow("Zen 4, L1") << "amd-epyc-9654" << "16KiB" << "L1";
    QTest::newRow("Zen 4, L2") << "amd-epyc-9654" << "256KiB" << "L2";
    QTest::newRow("Zen 4, L3") << "amd-epyc-9654" << "16MiB" << "L3";
    QTest::newRow("Zen 4, DRAM") << "amd-epyc-9654" << "1GiB" << "DRAM";
    QTest::newRow("H200, L1") << "nvidia-h200" << "64KiB" << "L1";
    QTest::newRow("H200, L2") << "nvidia-h200" << "8MiB" << "L2";
    QTest::newRow("H200, DRAM") << "nvidia-h200" << "4GiB" << "DRAM";
}

void TestHierarchy::sizesLiveWhereTheyShould()
{
    QFETCH(QString, device);
    QFETCH(QString, size);
    QFETCH(QString, level);
    const Figures figures = at(device.toUtf8().constData(), size.toStdString());
    QCOMPARE(QString::fromStdString(findFigure(figures, "level")->text()), level);
    QVERIFY(std::isfinite(findFigure(figures, "latency")->number()));
    QVERIFY(std::isfinite(findFigure(figures, "bandwidth")->number()));
}

void TestHierarchy::seriesBeginWithLatency()
{
    const auto prediction = hierarchy().predict(*findDevice("cpu"), *resolve(hierarchy().schema(), std::vector<std::string>{}));
    QVERIFY(prediction.has_value());
    QStringList keys;
    for (const Series& series : prediction->series)
        keys << QString::fromStdString(series.key);
    QCOMPARE(keys.first(), QString("latency"));
    QCOMPARE(keys.last(), QString("bandwidth"));
    QCOMPARE(QString::fromStdString(prediction->series[0].x.key), QString("working_set"));
    QVERIFY(prediction->series[0].x.values.back() >= 0x1p26);
}

void TestHierarchy::everyCatalogueDeviceAnswers()
{
    std::vector<Error> problems;
    const auto devices = catalogue(&problems);
    QVERIFY(problems.empty());
    QVERIFY(devices.size() >= 17);
    for (const Device& device : devices) {
        const auto prediction = hierarchy().predict(device, *resolve(hierarchy().schema(), std::vector<std::string>{}));
        QVERIFY2(prediction.has_value(), device.id.c_str());
        double last = 0;
        for (const double latency : prediction->series[0].y) {
            if (std::isnan(latency))
                continue; // a level whose latency nobody has measured
            QVERIFY2(latency >= last, device.id.c_str());
            last = latency;
        }
    }
}

void TestHierarchy::claimsAreJudgedByNumbers()
{
    const auto claims = hierarchy().claims(*findDevice("amd-epyc-9654"), *resolve(hierarchy().schema(), std::vector<std::string>{}));
    QVERIFY(claims.size() >= 4);
    bool l1 = false, ram = false;
    for (const Claim& claim : claims) {
        if (claim.quote.starts_with("L1"))
            l1 = claim.verdict == "holds";
        if (claim.quote.starts_with("RAM"))
            ram = claim.verdict == "does not hold";
    }
    QVERIFY(l1);
    QVERIFY(ram); // some 100 ns are some 370 cycles, not 100
}

QTEST_GUILESS_MAIN(TestHierarchy)
#include "tst_hierarchy.moc"

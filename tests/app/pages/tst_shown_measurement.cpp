// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/shown_measurement.h"

#include "tests/support/page_fixture.h"

#include <QTest>

using namespace memscape;

namespace {

const Experiment& stride()
{
    return **findExperiment("stride");
}

Parameters parameters(const std::vector<std::string>& values)
{
    return *resolve(stride().schema(), values);
}

} // namespace

class TestShownMeasurement : public QObject
{
    Q_OBJECT

private slots:
    void init() { m_fixture = std::make_unique<PageFixture>(); }

    void noneWithoutRecords() { QVERIFY(!shown({}, "nvidia-h200").outcome); }

    void theNewestThatAnswers()
    {
        add({"element=float32"});
        add({"element=float32"});
        add({"element=float64"});
        const auto now = shown({"element=float32"}, "nvidia-h200");
        QCOMPARE(now.recordIndex, 1);
        QVERIFY(!now.elsewhere);
    }

    void elseTheNewestOfThatDeviceButMarked()
    {
        add({"element=float32"});
        const auto now = shown({"element=float64"}, "nvidia-h200");
        QCOMPARE(now.recordIndex, 0);
        QVERIFY(now.elsewhere);
        QVERIFY(!shown({}, "nvidia-l4").outcome); // never another device's unasked
    }

    void theChosenOneWins()
    {
        add({"element=float32"});
        add({"element=float32"});
        QCOMPARE(shown({}, "nvidia-h200", 0).recordIndex, 0);
        const auto foreign = shown({}, "nvidia-l4", 0);
        QCOMPARE(foreign.recordIndex, 0);
        QVERIFY(foreign.elsewhere);
        QCOMPARE(shown({}, "nvidia-h200", 99).recordIndex, 1); // an index that is gone
    }

private:
    void add(const std::vector<std::string>& values) { m_fixture->document.addRecord(sampleRecord("stride", values)); }

    ShownMeasurement shown(const std::vector<std::string>& values, const char* device, int chosen = -1)
    {
        return shownMeasurement(m_fixture->document, m_fixture->runs, stride(), *findDevice(device), parameters(values),
                                chosen);
    }

    std::unique_ptr<PageFixture> m_fixture;
};

QTEST_MAIN(TestShownMeasurement)
#include "tst_shown_measurement.moc"

// SPDX-License-Identifier: Apache-2.0
// The records that ship (resources/records): sound, with where they come from, and today's program predicts them no
// worse than the one that recorded them did. tests/gpu/adopt adds to them; what it adds is tested here unasked.
#include "core/experiment/document.h"

#include <QDir>
#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

constexpr double allowance = 0.02; ///< of a median error: what a model may lose here for what it gains elsewhere

void recordFiles()
{
    QTest::addColumn<QString>("path");
    const QDir folder(SOURCE_FOLDER "/resources/records");
    for (const QString& name : folder.entryList({"*.json"}, QDir::Files))
        QTest::newRow(qPrintable(name)) << folder.filePath(name);
}

} // namespace

class TestRecordedRuns : public QObject
{
    Q_OBJECT

private slots:
    void saysWhereItComesFrom_data() { recordFiles(); }

    void saysWhereItComesFrom()
    {
        QFETCH(QString, path);
        const auto record = readRecord(path.toStdString());
        QVERIFY2(record, record ? "" : record.error().text().c_str());
        QVERIFY(record->measured && record->predicted);
        for (const char* key : {"backend", "grade", "time", "version"})
            QVERIFY2(record->provenance.contains(key), key);
        QCOMPARE(record->provenance.value("status", std::string()), std::string("ok"));
        QVERIFY(!record->provenance.contains("fake"));
    }

    void isPredictedAsWellAsThen_data() { recordFiles(); }

    void isPredictedAsWellAsThen()
    {
        QFETCH(QString, path);
        const auto record = readRecord(path.toStdString());
        QVERIFY(record && record->measured);
        const auto experiment = findExperiment(record->experiment);
        QVERIFY(experiment);
        const auto again = (*experiment)->predict(record->device, record->parameters);
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        const Comparison then = record->comparison(), now = compare(*again, *record->measured);
        QVERIFY(!then.series.empty() || !then.figures.empty());
        for (const SeriesComparison& before : then.series) {
            const auto same = std::ranges::find(now.series, before.key, &SeriesComparison::key);
            QVERIFY2(same != now.series.end(), before.key.c_str());
            QCOMPARE(same->points, before.points);
            QVERIFY2(
                !(same->medianError > before.medianError + allowance),
                qPrintable(
                    QString("%1: %2, then %3").arg(before.key.c_str()).arg(same->medianError).arg(before.medianError)));
        }
    }
};

QTEST_GUILESS_MAIN(TestRecordedRuns)
#include "tst_recorded_runs.moc"

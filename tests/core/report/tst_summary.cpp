// SPDX-License-Identifier: Apache-2.0
#include "core/report/summary.h"

#include "golden.h"
#include "sample_record.h"

using namespace memscape;
using namespace memscape::test;

class TestSummary : public QObject
{
    Q_OBJECT

private slots:
    void figuresWithTheirError()
    {
        // (100 − 80) / 80 = 25 %.
        QCOMPARE(bytes(alignedText(figuresTable(sampleRecord()))),
                 QByteArray("figure  predicted  measured    error\n"
                            "speed    100 GB/s   80 GB/s    +25 %\n"
                            "level          L2        L3  differs\n"));
    }

    void aBandStandsBesideItsFigure()
    {
        Record record = predictedRecord();
        record.predicted->figures[0].low = 90e9;
        record.predicted->figures[0].high = 120e9;
        const QByteArray table = bytes(alignedText(figuresTable(record)));
        QVERIFY2(table.contains("between"), table);
        QVERIFY2(table.contains("90 to 120 GB/s"), table);
        record.predicted->figures[0].high.reset(); // half a band is none
        QVERIFY(!bytes(alignedText(figuresTable(record))).contains("between"));
    }

    void onlyTheSidesThatAreThere()
    {
        QCOMPARE(bytes(alignedText(figuresTable(predictedRecord()))),
                 QByteArray("figure  predicted\n"
                            "speed    100 GB/s\n"
                            "level          L2\n"));
        Record measured = sampleRecord();
        measured.predicted.reset();
        QCOMPARE(figuresTable(measured).columns.size(), std::size_t(2));
        QVERIFY(errorsTable(measured).empty());
        QCOMPARE(headlineFigure(measured), static_cast<const Figure*>(nullptr));
        QCOMPARE(figuresTable(Record()).rows.size(), std::size_t(0));
    }

    void figuresBesideABaseline()
    {
        // 80 against 64 GB/s measured: a quarter more; 100 against 200 GB/s predicted: half.
        Record baseline = sampleRecord();
        baseline.measured->figures[0].value = 64e9;
        QCOMPARE(bytes(alignedText(figuresTable(sampleRecord(), &baseline))),
                 QByteArray("figure  predicted  measured    error  baseline  vs baseline\n"
                            "speed    100 GB/s   80 GB/s    +25 %   64 GB/s        +25 %\n"
                            "level          L2        L3  differs        L3         same\n"));
        baseline.predicted->figures[0].value = 200e9;
        QCOMPARE(bytes(alignedText(figuresTable(predictedRecord(), &baseline))),
                 QByteArray("figure  predicted  baseline  vs baseline\n"
                            "speed    100 GB/s  200 GB/s        −50 %\n"
                            "level          L2        L2         same\n"));
    }

    void figuresThatSayNothingAreLeftOut()
    {
        Record record = predictedRecord();
        record.predicted->figures.push_back({"fullest_rank", "fullest rank", Unit::One, 0.0});
        record.predicted->figures.push_back({"communication", "communication", Unit::Byte, 0.0});
        QCOMPARE(figuresTable(record).rows.size(), predictedRecord().predicted->figures.size());
        record.predicted->detail["pipeline"] = Json::object();
        record.predicted->figures.back().value = 8.0; // bytes are sent
        QCOMPARE(figuresTable(record).rows.size(), record.predicted->figures.size());
    }

    void theBaselineOfItsExperiment()
    {
        std::vector<Record> records{sampleRecord(), sampleRecord()};
        QCOMPARE(baselineFor(records[1], records), static_cast<const Record*>(nullptr));
        records[0].baseline = true;
        QCOMPARE(baselineFor(records[1], records), &records[0]);
        QCOMPARE(baselineFor(records[0], records), static_cast<const Record*>(nullptr));
        records[1].experiment = "stride";
        QCOMPARE(baselineFor(records[1], records), static_cast<const Record*>(nullptr));
    }

    void pointsBesideEachOther()
    {
        const auto tables = seriesTables(sampleRecord());
        QCOMPARE(tables.size(), std::size_t(1));
        QCOMPARE(bytes(alignedText(tables[0])),
                 QByteArray("           speed     speed\n"
                            " step  predicted  measured\n"
                            "1 KiB   100 GB/s   80 GB/s\n"
                            "2 KiB    50 GB/s   40 GB/s\n"
                            "4 KiB    25 GB/s         –\n"));
    }

    void curvesWithoutAnyValueAreLeftOut()
    {
        Record record = sampleRecord();
        const double nan = std::nan("");
        record.measured->series[0].y = {nan, nan, nan};
        QCOMPARE(seriesTables(record)[0].columns.size(), std::size_t(2));
        record.predicted->series[0].y = {nan, nan, nan};
        QVERIFY(seriesTables(record).empty());
    }

    void errorsOfCurves()
    {
        // 25 % at both points that both have.
        QCOMPARE(bytes(alignedText(errorsTable(sampleRecord()))),
                 QByteArray("curve  points  median error  largest error     at\n"
                            "speed       2          25 %           25 %  1 KiB\n"));
    }

    void grade()
    {
        QCOMPARE(bytes(gradeText(sampleRecord())), QByteArray("grade B: the clock moved"));
        QCOMPARE(gradeText(predictedRecord()), std::string());
        Record odd = sampleRecord();
        odd.provenance = {{"grade", 7}};
        QCOMPARE(gradeText(odd), std::string());
    }

    void provenanceCountsSamples()
    {
        const auto rows = provenanceRows(sampleRecord());
        QVERIFY(std::ranges::find(rows, std::pair<std::string, std::string>("samples", "3 values")) != rows.end());
    }

    void titles()
    {
        Record record = sampleRecord();
        QCOMPARE(bytes(recordTitle(record)), QByteArray("walk · A box"));
        record.name = "mine";
        QCOMPARE(bytes(recordTitle(record)), QByteArray("mine"));
        QCOMPARE(bytes(basisText(record.device)), QByteArray("A box, from the catalogue"));
    }
};

QTEST_APPLESS_MAIN(TestSummary)
#include "tst_summary.moc"

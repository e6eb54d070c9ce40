// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/report/report.h"

#include "golden.h"
#include "sample_record.h"

using namespace memscape;
using namespace memscape::test;

class TestReport : public QObject
{
    Q_OBJECT

private slots:
    void formats_data()
    {
        QTest::addColumn<QString>("word");
        QTest::addColumn<bool>("known");
        for (const char* word : {"html", "md", "text", "csv", "json", "HTML"})
            QTest::newRow(word) << QString(word) << true;
        for (const char* word : {"", "pdf", "htlm"})
            QTest::newRow(*word ? word : "empty") << QString(word) << false;
    }
    void formats()
    {
        QFETCH(QString, word);
        QFETCH(bool, known);
        QCOMPARE(reportFormatFromText(word.toStdString()).has_value(), known);
    }

    void aSlipIsRecognised()
    {
        const auto format = reportFormatFromText("htlm");
        QVERIFY(!format);
        QCOMPARE(format.error().code, std::string("report.format"));
        QVERIFY(format.error().hint.find("html") != std::string::npos);
    }

    void jsonReadsBackAsTheSameRecord()
    {
        const std::string text = reportJson({sampleRecord()}, "x");
        const auto record = recordFromJson(*parseJson(text));
        QVERIFY2(record.has_value(), record ? "" : record.error().text().c_str());
        QCOMPARE(bytes(reportJson({*record}, "x")), bytes(text));
    }

    void textIsTheSummary()
    {
        const auto text = QString::fromStdString(reportText({sampleRecord(), predictedRecord()}, "Both"));
        for (const char* words :
             {"Both\n", "walk · A box\n", "verdict  speed: predicted 100 GB/s, measured 80 GB/s\n",
              "error    25 % over 2 points\n", "grade    grade B: the clock moved\n", "error    not measured\n"})
            QVERIFY2(text.contains(words), qPrintable(text));
        QVERIFY(!QString::fromStdString(reportText({hostileRecord()}, "\x1b[2J")).contains(QChar(0x1b)));
        QVERIFY(QString::fromStdString(reportText({}, "x")).contains("no records"));
    }

    /// A prediction alone is a report too: of a memory budget the verdict is whether it fits.
    void predictionsAreReportedWithoutAMeasurement()
    {
        const Experiment& memory = **findExperiment("training-memory");
        const auto record = predictRecord(memory, *findDevice("nvidia-l4"),
                                          *resolve(memory.schema(), std::vector<std::string>{"model=llama-2-7b"}));
        QVERIFY(record);
        const auto text = QString::fromStdString(reportText({*record}, "x"));
        QVERIFY2(text.contains("Out of memory") && text.contains("not measured"), qPrintable(text));
        const auto html = QString::fromStdString(reportHtml({*record}, "x"));
        QVERIFY(html.left(html.indexOf("<section")).contains("<svg"));
    }

    void severalRecordsAreAStudy()
    {
        const auto study = studyFromJson(*parseJson(reportJson({sampleRecord(), predictedRecord()}, "Both")));
        QVERIFY2(study.has_value(), study ? "" : study.error().text().c_str());
        QCOMPARE(study->title, std::string("Both"));
        QCOMPARE(study->records.size(), std::size_t(2));
    }

    void sameBytesEveryTime()
    {
        for (const auto format : {ReportFormat::Html, ReportFormat::Markdown, ReportFormat::Text, ReportFormat::Csv,
                                  ReportFormat::JsonText})
            QCOMPARE(bytes(report(format, {sampleRecord()}, "x")), bytes(report(format, {sampleRecord()}, "x")));
    }
};

QTEST_APPLESS_MAIN(TestReport)
#include "tst_report.moc"

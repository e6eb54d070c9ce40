// SPDX-License-Identifier: Apache-2.0
#include "core/report/csv.h"

#include "core/report/report.h"
#include "golden.h"
#include "sample_record.h"

#include <limits>

using namespace memscape;
using namespace memscape::test;

namespace {

/// A reader of RFC 4180 written from its grammar, independent of the writer.
QList<QStringList> readCsv(const QString& text)
{
    QList<QStringList> rows{{}};
    QString field;
    bool quoted = false;
    for (qsizetype i = 0; i < text.size(); ++i) {
        const QChar c = text[i];
        if (quoted) {
            if (c != '"')
                field += c;
            else if (i + 1 < text.size() && text[i + 1] == '"')
                field += text[++i];
            else
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == ',' || c == '\r') {
            rows.last() << field;
            field.clear();
            if (c == '\r') {
                ++i; // the line feed
                rows << QStringList();
            }
        } else {
            field += c;
        }
    }
    rows.removeLast();
    return rows;
}

} // namespace

class TestCsv : public QObject
{
    Q_OBJECT

private slots:
    void fields_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("expected");
        QTest::newRow("plain") << QByteArray("read") << QByteArray("read");
        QTest::newRow("empty") << QByteArray("") << QByteArray("");
        QTest::newRow("comma") << QByteArray("a,b") << QByteArray("\"a,b\"");
        QTest::newRow("quote") << QByteArray("a\"b") << QByteArray("\"a\"\"b\"");
        QTest::newRow("line end") << QByteArray("a\r\nb") << QByteArray("\"a\r\nb\"");
        QTest::newRow("semicolon") << QByteArray("a;=1+1") << QByteArray("\"a;=1+1\"");
        QTest::newRow("formula") << QByteArray("=1+1") << QByteArray("'=1+1");
        QTest::newRow("formula, quoted") << QByteArray("=HYPERLINK(\"x\",1)")
                                         << QByteArray("\"'=HYPERLINK(\"\"x\"\",1)\"");
        QTest::newRow("plus") << QByteArray("+cmd|' /C calc'!A0") << QByteArray("'+cmd|' /C calc'!A0");
        QTest::newRow("minus") << QByteArray("-2+3") << QByteArray("'-2+3");
        QTest::newRow("at") << QByteArray("@SUM(A1)") << QByteArray("'@SUM(A1)");
        QTest::newRow("behind a blank") << QByteArray(" =1+1") << QByteArray("' =1+1");
        QTest::newRow("behind a tab") << QByteArray("\t=1+1") << QByteArray("\"'\t=1+1\"");
        QTest::newRow("negative number") << QByteArray("-1.5e-09") << QByteArray("-1.5e-09");
        QTest::newRow("sign inside") << QByteArray("a=b") << QByteArray("a=b");
    }
    void fields()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, expected);
        QCOMPARE(bytes(csvField(text.toStdString())), expected);
    }

    void numbersReadBackExactly_data()
    {
        QTest::addColumn<double>("value");
        for (const double value : {0.1, 1.0 / 3, 123456789.125, 1e300, -0.0, 9007199254740993.0, 5e-324})
            QTest::newRow(qPrintable(QString::number(value, 'g', 17))) << value;
    }
    void numbersReadBackExactly()
    {
        QFETCH(double, value);
        QCOMPARE(bytes(csvNumber(value)).toDouble(), value);
    }

    void notANumberIsAnEmptyField()
    {
        QCOMPARE(csvNumber(std::nan("")), std::string());
        QCOMPARE(csvNumber(std::numeric_limits<double>::infinity()), std::string());
    }

    void onePointPerRow()
    {
        QCOMPARE(bytes(reportCsv({sampleRecord()})),
                 QByteArray("step,speed_predicted,speed_measured,speed_low,speed_high\r\n"
                            "1024,100000000000,80000000000,75000000000,82000000000\r\n"
                            "2048,50000000000,40000000000,38500000000,41000000000\r\n"
                            "4096,25000000000,,,\r\n"));
    }

    void severalRecordsShareOneTable()
    {
        Record other = sampleRecord();
        other.name = "later, and \"louder\"";
        other.predicted->series[0].key = other.measured->series[0].key = "noise";
        const auto rows = readCsv(QString::fromStdString(reportCsv({sampleRecord(), other})));
        QCOMPARE(rows.size(), 7);
        for (const QStringList& row : rows)
            QCOMPARE(row.size(), rows[0].size());
        QCOMPARE(rows[0][0], "record");
        QCOMPARE(rows[1][0], "walk · A box");
        QCOMPARE(rows[4][0], "later, and \"louder\"");
        QCOMPARE(rows[4][rows[0].indexOf("speed_predicted")], "");
        QCOMPARE(rows[4][rows[0].indexOf("noise_predicted")], "100000000000");
    }

    void aRecordWithoutCurvesGivesItsFigures()
    {
        Record record = sampleRecord();
        record.predicted->series.clear();
        record.measured->series.clear();
        const auto rows = readCsv(QString::fromStdString(reportCsv({record})));
        QCOMPARE(rows.size(), 2);
        QCOMPARE(rows[1][rows[0].indexOf("level_measured")], "L3");
    }

    void commentsNameTheUnits()
    {
        const auto text = reportCsv({sampleRecord()}, {true});
        QVERIFY(text.starts_with("# walk · A box: walk on box; step 1024; kind slow\r\n"));
        QVERIFY(text.find("# speed_measured: B/s\r\n") != std::string::npos);
        QVERIFY(text.ends_with(reportCsv({sampleRecord()})));
    }

    /// Wherever a spreadsheet parts the cells, comments included.
    void noCellIsAFormula()
    {
        Record record = hostileRecord();
        record.name = record.device.id = record.device.name = "=1+1,@a;-2+3,\"=4";
        record.foreignParameters = {{"=key", "+value"}};
        for (auto* side : {&record.predicted, &record.measured}) {
            (*side)->figures[1].key = "=figure";
            (*side)->figures[1].value = "=1+1";
        }
        Record curveless = record;
        curveless.predicted->series.clear();
        curveless.measured->series.clear();
        const std::string text = reportCsv({record, curveless}, {true});
        const auto [comments, table] = std::pair{QString::fromStdString(text).section("record,", 0, 0),
                                                 "record," + QString::fromStdString(text).section("record,", 1)};
        QStringList cells;
        for (const QStringList& row : readCsv(table))
            cells += row;
        cells += comments.split(QRegularExpression("[,;\t\r\n\"]"));
        QVERIFY(cells.contains("'=1+1") && cells.contains("'=figure_predicted"));
        for (const QString& cell : cells) {
            bool number = false;
            cell.toDouble(&number);
            QVERIFY2(number || !QString("=+-@").contains(cell.trimmed().left(1)) || cell.trimmed().isEmpty(),
                     qPrintable(cell));
        }
    }

    void hostileTextCannotAddRows()
    {
        Record record = hostileRecord();
        record.name = "a\r\n1,2,3";
        const auto rows = readCsv(QString::fromStdString(reportCsv({record, record})));
        QCOMPARE(rows.size(), 7);
        QCOMPARE(rows[1][0], "a\r\n1,2,3");
    }
};

QTEST_APPLESS_MAIN(TestCsv)
#include "tst_csv.moc"

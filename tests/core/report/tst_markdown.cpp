// SPDX-License-Identifier: Apache-2.0
#include "core/report/report.h"

#include "golden.h"
#include "sample_record.h"

#include <QTextBlock>
#include <QTextDocument>

using namespace memscape;
using namespace memscape::test;

class TestMarkdown : public QObject
{
    Q_OBJECT

private slots:
    void golden() { QVERIFY(sameAsGolden("walk.md", reportMarkdown({sampleRecord()}, "A walk"))); }

    void emptyReportSaysSo() { QVERIFY(reportMarkdown({}, "Nothing").find("no records") != std::string::npos); }

    void hostileTextStaysText()
    {
        // Every character that could open markup is escaped, so none stands alone.
        const QByteArray text = bytes(reportMarkdown({hostileRecord()}, "<b>"));
        for (qsizetype i = 1; i < text.size(); ++i) {
            if ((text[i] == '<' && text.mid(i, 8) != "<!-- -->") || text[i] == '`')
                QCOMPARE(text[i - 1], '\\');
        }
        QVERIFY(!text.contains('\x1b'));
    }

    /// As a reader of GitHub's dialect that we did not write (md4c, in Qt) takes it.
    void addressesInNamesAreNoLinks()
    {
        const std::string address = "http://a.example/x https://b.example www.c.example WWW.d.example ftp://e.example "
                                    "f@g.example <http://h.example>";
        Record record = hostileRecord();
        record.name = record.note = record.device.name = address;
        record.foreignParameters = {{address, address}};
        record.predicted->figures[0].label = address;
        record.provenance["program"] = address;
        QTextDocument shown;
        shown.setMarkdown(QString::fromStdString(reportMarkdown({record}, address)));
        QVERIFY(shown.toPlainText().contains("https://b.example www.c.example"));
        int links = 0;
        for (QTextBlock block = shown.begin(); block.isValid(); block = block.next()) {
            for (auto piece = block.begin(); !piece.atEnd(); ++piece) {
                const QString link = piece.fragment().charFormat().anchorHref();
                links += !link.isEmpty();
                QVERIFY2(link.isEmpty() || link.startsWith('#'), qPrintable(link)); // of the summary, to the record
            }
        }
        QVERIFY(links > 0);
    }
};

QTEST_MAIN(TestMarkdown)
#include "tst_markdown.moc"

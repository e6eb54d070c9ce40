// SPDX-License-Identifier: Apache-2.0
#include "core/report/report.h"

#include "golden.h"
#include "sample_record.h"

using namespace memscape;
using namespace memscape::test;

class TestMarkdown : public QObject
{
    Q_OBJECT

private slots:
    void golden() { QVERIFY(sameAsGolden("walk.md", reportMarkdown({sampleRecord()}, "A walk"))); }

    void emptyReportSaysSo()
    {
        QVERIFY(reportMarkdown({}, "Nothing").find("no records") != std::string::npos);
    }

    void hostileTextStaysText()
    {
        // Every character that could open markup is escaped, so none stands alone.
        const QByteArray text = bytes(reportMarkdown({hostileRecord()}, "<b>"));
        for (qsizetype i = 1; i < text.size(); ++i) {
            if (text[i] == '<' || text[i] == '`')
                QCOMPARE(text[i - 1], '\\');
        }
        QVERIFY(!text.contains('\x1b'));
    }
};

QTEST_APPLESS_MAIN(TestMarkdown)
#include "tst_markdown.moc"

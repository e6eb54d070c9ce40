// SPDX-License-Identifier: Apache-2.0
#include "core/report/svg_chart.h"

#include "golden.h"

using namespace memscape;
using namespace memscape::test;

class TestEscape : public QObject
{
    Q_OBJECT

private slots:
    void escapes_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("expected");
        const QByteArray lost = "\xEF\xBF\xBD";
        QTest::newRow("plain") << QByteArray("24 MiB") << QByteArray("24 MiB");
        QTest::newRow("markup") << QByteArray("<a href=\"x\">'&'")
                                << QByteArray("&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
        QTest::newRow("once") << QByteArray("&lt;") << QByteArray("&amp;lt;");
        QTest::newRow("utf-8 kept") << QByteArray("µs · 時 🙂") << QByteArray("µs · 時 🙂");
        QTest::newRow("lone byte") << QByteArray("a\xFF"
                                                 "b")
                                   << "a" + lost + "b";
        QTest::newRow("truncated") << QByteArray("a\xE2\x82") << "a" + lost + lost;
        QTest::newRow("overlong slash") << QByteArray("\xC0\xAF") << lost + lost;
        QTest::newRow("surrogate") << QByteArray("\xED\xA0\x80") << lost + lost + lost;
        QTest::newRow("beyond unicode") << QByteArray("\xF4\x90\x80\x80") << lost + lost + lost + lost;
        QTest::newRow("nul and escape") << QByteArray("a\0b\x1b[2J", 7) << QByteArray("ab[2J");
        QTest::newRow("line end kept") << QByteArray("a\n\tb") << QByteArray("a\n\tb");
    }
    void escapes()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, expected);
        QCOMPARE(bytes(escapedForXml(text.toStdString())), expected);
    }
};

QTEST_APPLESS_MAIN(TestEscape)
#include "tst_escape.moc"

// SPDX-License-Identifier: Apache-2.0
#include "core/report/report.h"

#include "golden.h"
#include "sample_record.h"

#include <QRegularExpression>
#include <QSet>

using namespace memscape;
using namespace memscape::test;

namespace {

QSet<QString> tagsOf(const QString& html)
{
    QSet<QString> tags;
    static const QRegularExpression tag("<\\s*([a-zA-Z][a-zA-Z0-9]*)");
    for (auto match = tag.globalMatch(html); match.hasNext();)
        tags << match.next().captured(1).toLower();
    return tags;
}

} // namespace

class TestHtml : public QObject
{
    Q_OBJECT

private slots:
    void holdsWhatTheRecordSays()
    {
        const auto html = QString::fromStdString(reportHtml({sampleRecord()}, "A walk"));
        for (const char* words :
             {"<title>A walk</title>", "walk · A box", ">100 GB/s<", ">80 GB/s<", ">25 %<", "speed = B / n",
              "= 200 GB/s / 2", "bandwidth of the box", "its label", "a walk, 2026", "Wind.",
              "grade B: the clock moved", "A box, from the catalogue", "<svg", "prefers-color-scheme: dark", "0.1.0"})
            QVERIFY2(html.contains(words), words);
    }

    void isSelfContained()
    {
        const auto html = QString::fromStdString(reportHtml({sampleRecord()}, "A walk"));
        for (const char* reference : {"src=", "href=\"h", "url(", "@import", "<script", "<link", "<iframe"})
            QVERIFY2(!html.contains(reference), reference);
        QCOMPARE(html.count("http"), html.count("http://www.w3.org/2000/svg") + html.count("http-equiv"));
    }

    void hostileTextStaysText()
    {
        const auto html = QString::fromStdString(reportHtml({hostileRecord()}, "</title><script>"));
        const QSet<QString> harmless =
            tagsOf(QString::fromStdString(reportHtml({sampleRecord()}, "x"))) + QSet<QString>{"blockquote"};
        const QSet<QString> foreign = tagsOf(html) - harmless;
        QVERIFY2(foreign.isEmpty(), qPrintable(QStringList(foreign.values()).join(' ')));
        QVERIFY(!html.contains(QChar(0x1b)));
        QVERIFY(!html.contains(QChar(1)));
    }

    void everyElementIsClosed()
    {
        const auto html = QString::fromStdString(reportHtml({sampleRecord(), predictedRecord()}, "x"));
        for (const char* name : {"section", "table", "thead", "tbody", "tr", "td", "th", "details", "nav", "a",
                                 "figcaption", "summary", "svg", "g", "figure", "dl", "ul", "p", "div"}) {
            const QRegularExpression open(QString("<%1[ >]").arg(name));
            QCOMPARE(html.count(open), html.count(QString("</%1>").arg(name)));
        }
    }

    /// Every link of the summary leads to a record of the page.
    void beginsWithASummaryThatLinks()
    {
        const auto html = QString::fromStdString(reportHtml({sampleRecord(), predictedRecord()}, "x"));
        const QString summary = html.mid(html.indexOf("<nav"), html.indexOf("</nav>") - html.indexOf("<nav"));
        QVERIFY(html.indexOf("<nav") < html.indexOf("<section"));
        for (const char* words : {"speed: predicted 100 GB/s, measured 80 GB/s", "25 % over 2 points",
                                  "grade B: the clock moved", "not measured", "<svg", "#record-1", "#record-2"})
            QVERIFY2(summary.contains(words), words);
        QVERIFY(html.contains("<section id=\"record-1\">") && html.contains("<section id=\"record-2\">"));
    }

    void plotsStandTwoAbreast()
    {
        Record record = sampleRecord();
        record.predicted->series.push_back(record.predicted->series.front());
        record.predicted->series.back().key = "other";
        const auto html = QString::fromStdString(reportHtml({record}, "x"));
        const QString section = html.mid(html.indexOf("<section"));
        const QString charts = section.mid(section.indexOf("<div class=\"charts\">"));
        QCOMPARE(charts.left(charts.indexOf("</div>")).count("<svg"), 2);
    }

    void emptyReportSaysSo() { QVERIFY(reportHtml({}, "Nothing").find("no records") != std::string::npos); }
};

QTEST_APPLESS_MAIN(TestHtml)
#include "tst_html.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// What the pages remember, to the file and back; what does not fit is left out with a note, what is
// unknown is kept.
#include "app/document/study_document.h"
#include "core/base/file.h"
#include "tests/support/sample_study.h"

#include <QTemporaryDir>
#include <QTest>

using namespace memscape;

class TestStudyView : public QObject
{
    Q_OBJECT
    QTemporaryDir m_folder;

    QString fileWithView(const std::string& view) const
    {
        const QString path = m_folder.filePath(QStringLiteral("view.memscape"));
        const std::string text = R"({"format": "memscape-study", "version": 1, "records": [], "view": )" + view + "}";
        sample::mustWork(writeFileAtomically(path.toStdString(), text));
        return path;
    }

private slots:
    void everythingComesBack()
    {
        const QString path = m_folder.filePath(QStringLiteral("all.memscape"));
        Study study;
        study.title = "Strides, ünïcode";
        StudyDocument written;
        written.restore(study, {}, {});
        written.setPage("hierarchy");
        written.setSweep("stride", Sweep{"stride", {1.0, 2.0, 4.0}});
        written.setParameter("stride", "element", std::string("float64"));
        written.setDevice("stride", "nvidia-h200");
        written.setViewSetting("stride", "logY", true);
        written.setViewSetting("", "bytes", "decimal");
        QVERIFY(written.saveAs(path));

        StudyDocument read;
        QVERIFY(read.open(path));
        QVERIFY(read.page() == "hierarchy");
        QCOMPARE(read.title(), std::string("Strides, ünïcode"));
        QCOMPARE(read.parameters("stride"), written.parameters("stride"));
        QCOMPARE(read.device("stride"), std::string("nvidia-h200"));
        QCOMPARE(read.lastDevice(), std::string("nvidia-h200"));
        QVERIFY(read.viewSetting("stride", "logY") == Json(true));
        QVERIFY(read.viewSetting("", "bytes") == Json("decimal"));
        QVERIFY(read.openingNotes().empty());
        QCOMPARE(read.text(), written.text());
    }

    void unknownKeysAndPagesAreKept()
    {
        const std::string view = R"({"page": "stride", "pages": {)"
                                 R"("stride": {"device": "cpu", "lens": [1, 2]},)"
                                 R"("telepathy": {"parameters": {"range": 7}},)"
                                 R"("strange": [1]},)"
                                 R"("shape": {"round": true}})";
        StudyDocument document;
        QVERIFY(document.open(fileWithView(view)));
        const Json kept = document.study().view;
        QVERIFY(kept["pages"]["stride"]["lens"] == Json({1, 2}));
        QVERIFY(kept["pages"]["stride"]["device"] == Json("cpu"));
        QVERIFY(kept["pages"]["telepathy"]["parameters"]["range"] == Json(7));
        QVERIFY(kept["pages"]["strange"] == Json::array({1}));
        QVERIFY(kept["shape"]["round"] == Json(true));
    }

    void whatDoesNotFitIsLeftOutWithANote_data()
    {
        QTest::addColumn<QByteArray>("view");
        QTest::addColumn<QByteArray>("place");
        QTest::newRow("unknown parameter")
            << QByteArray(R"({"pages": {"stride": {"parameters": {"strid": 4}}}})") << QByteArray("strid");
        QTest::newRow("out of range") << QByteArray(R"({"pages": {"stride": {"parameters": {"stride": 1e300}}}})")
                                      << QByteArray("stride");
        QTest::newRow("text for a number")
            << QByteArray(R"({"pages": {"stride": {"parameters": {"stride": [[]]}}}})") << QByteArray("stride");
        QTest::newRow("device is no text")
            << QByteArray(R"({"pages": {"stride": {"device": {}}}})") << QByteArray("device");
    }
    void whatDoesNotFitIsLeftOutWithANote()
    {
        QFETCH(QByteArray, view);
        QFETCH(QByteArray, place);
        StudyDocument document;
        QVERIFY(document.open(fileWithView(view.toStdString())));
        QCOMPARE(document.parameters("stride"), sample::parameters());
        QCOMPARE(document.openingNotes().size(), 1u);
        QVERIFY(QByteArray::fromStdString(document.openingNotes()[0].place).contains(place));
        QVERIFY(!document.isModified());
    }

    void hostileViewsAreHarmless_data()
    {
        QTest::addColumn<QByteArray>("view");
        QTest::newRow("page is a number") << QByteArray(R"({"page": 7})");
        QTest::newRow("pages is a list") << QByteArray(R"({"pages": [1, 2]})");
        QTest::newRow("a page is null") << QByteArray(R"({"pages": {"stride": null}})");
        QTest::newRow("settings is text") << QByteArray(R"({"settings": "x", "pages": {"stride": {"settings": 3}}})");
        QTest::newRow("empty name") << QByteArray(R"({"pages": {"": {"device": "x"}}})");
    }
    void hostileViewsAreHarmless()
    {
        QFETCH(QByteArray, view);
        StudyDocument document;
        QVERIFY(document.open(fileWithView(view.toStdString())));
        QCOMPARE(document.parameters("stride"), sample::parameters());
        QVERIFY(!document.text().empty());
    }
};

QTEST_GUILESS_MAIN(TestStudyView)
#include "tst_study_view.moc"

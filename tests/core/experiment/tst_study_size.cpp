// SPDX-License-Identifier: Apache-2.0
// What is said of a study that grows heavy: which records hold its bytes, whatever the layout of the text.
#include "core/device/catalogue.h"
#include "core/experiment/study_size.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

using namespace memscape;

class TestStudySize : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        const Experiment& stride = **findExperiment("stride");
        const Record one =
            *predictRecord(stride, *findDevice("nvidia-h200"), *resolve(stride.schema(), std::vector<std::string>{}));
        m_study.title = "records"; // also a key, and with signs that mean something outside a text
        m_study.extra = {{"others", {{"records", {1, 2, 3}}}}, {"a \\\" [{", {"]}", Json::object()}}};
        for (const int letters : {10, 5000, 300, 70'000}) {
            m_study.records.push_back(one);
            m_study.records.back().name = "note of " + std::to_string(letters);
            m_study.records.back().note = std::string(std::size_t(letters), 'x') + "\"]}\\";
        }
    }

    void everyRecordsBytesAreItsOwn()
    {
        const Json json = studyToJson(m_study);
        const auto inOneLine = recordBytes(jsonLine(json));
        QCOMPARE(inOneLine.size(), m_study.records.size());
        for (std::size_t i = 0; i < inOneLine.size(); ++i)
            QCOMPARE(inOneLine[i], jsonLine(json["records"][i]).size());
        // Another program's layout: Qt's, whose objects are sorted by key.
        const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(jsonLine(json)));
        const auto indented = recordBytes(document.toJson(QJsonDocument::Indented).toStdString());
        QCOMPARE(indented.size(), m_study.records.size());
        QVERIFY(indented[3] > indented[1] && indented[1] > indented[2]);
        QCOMPARE(recordBytes("{}").size(), std::size_t(0));
        QCOMPARE(recordBytes("[1, [2]]").size(), std::size_t(0));
        QCOMPARE(recordBytes("{\"records\": [{\"a").size(), std::size_t(0));
    }

    void aHeavyStudyNamesItsLargestRecords()
    {
        const std::string text = jsonText(studyToJson(m_study));
        QVERIFY(!heavyStudyNote(text, m_study));
        QVERIFY(!heavyStudyNote(text, m_study, text.size()));
        const auto note = heavyStudyNote(text, m_study, text.size() - 1);
        QVERIFY(note);
        const QString said = QString::fromStdString(note->message);
        QVERIFY2(said.contains("KiB") && said.contains("256 MiB"), qPrintable(said));
        QVERIFY2(said.indexOf("note of 70000") < said.indexOf("note of 5000") && said.contains("note of 300"),
                 qPrintable(said));
        QVERIFY2(!said.contains("note of 10”"), qPrintable(said)); // three are enough
        QVERIFY2(note->hint.find("divide it") != std::string::npos, note->hint.c_str());
    }

private:
    Study m_study;
};

QTEST_GUILESS_MAIN(TestStudySize)
#include "tst_study_size.moc"

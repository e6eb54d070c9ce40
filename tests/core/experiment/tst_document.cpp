// SPDX-License-Identifier: Apache-2.0
// Documents as they are read: what kind they are, and large studies, whose records are read from parts of the text.
#include "core/device/catalogue.h"
#include "core/experiment/document.h"

#include <QTemporaryDir>
#include <QtTest>

using namespace memscape;

class TestDocument : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        const Experiment& stride = **findExperiment("stride");
        m_record =
            *predictRecord(stride, *findDevice("nvidia-h200"), *resolve(stride.schema(), std::vector<std::string>{}));
        m_study.title = "many";
        m_study.extra = {{"teacher", "A"}};
        m_study.view = {{"records", {1, 2}}};
        for (int i = 0; i < 120; ++i) {
            m_study.records.push_back(m_record);
            m_study.records.back().name = "record " + std::to_string(i);
        }
        m_text = jsonText(studyToJson(m_study));
        QVERIFY(m_text.size() > (1 << 20));
    }

    void aLargeStudyIsReadAsASmallOneIs()
    {
        const auto document = Document::parse(m_text);
        QVERIFY(document);
        QVERIFY(document->json()["records"][7].is_null()); // it is read from its part
        QCOMPARE(*document->format(), std::string("memscape-study"));
        const auto study = document->study();
        QVERIFY(study);
        QCOMPARE(jsonText(studyToJson(*study)), m_text);
        QCOMPARE(jsonText(studyToJson(*studyFromJson(*parseJson(m_text)))), m_text);
    }

    void aWrongRecordOfALargeStudyIsNamed()
    {
        Json json = studyToJson(m_study);
        json["records"][97]["experiment"] = 5;
        const auto study = Document::parse(jsonText(json))->study();
        QVERIFY(!study);
        QCOMPARE(study.error().place, std::string("records[97].experiment"));
        QCOMPARE(study.error().place, studyFromJson(json).error().place);
    }

    void damageInALargeStudyHasItsLine()
    {
        std::string text = m_text;
        const std::string name = "\"record 97\"";
        const std::size_t at = text.find(name);
        text.replace(at, name.size(), "5?9");
        const auto study = Document::parse(text)->study();
        QVERIFY(!study);
        QCOMPARE(study.error().code, std::string("json.syntax"));
        const auto line = std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n') + 1;
        QVERIFY2(study.error().place.starts_with("line " + std::to_string(line) + ","), study.error().place.c_str());
    }

    void aRecordOpensAsAStudy()
    {
        m_record.name = "stride sweep";
        QTemporaryDir folder;
        const std::filesystem::path file = folder.filePath("one.json").toStdString();
        QVERIFY(writeRecord(file, m_record).has_value());
        const auto study = readStudy(file);
        QVERIFY(study.has_value());
        QCOMPARE(study->records.size(), std::size_t(1));
        QCOMPARE(study->title, std::string("stride sweep"));
    }

    void foreignFilesAreNamed()
    {
        QVERIFY(documentFormat(Json::parse(R"({"model_type": "llama"})")).error().message.find("config.json")
                != std::string::npos);
        QVERIFY(!documentFormat(Json::parse("[1]")).has_value());
        QVERIFY(documentFormat(Json::parse(R"({"format": "memscape-sudy"})")).error().hint.find("memscape-study")
                != std::string::npos);
    }

private:
    Record m_record;
    Study m_study;
    std::string m_text;
};

QTEST_GUILESS_MAIN(TestDocument)
#include "tst_document.moc"

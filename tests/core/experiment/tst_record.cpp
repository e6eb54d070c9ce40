// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/experiment/record.h"

#include <QtTest>

#include <filesystem>
#include <random>

using namespace memscape;

class TestRecord : public QObject
{
    Q_OBJECT

private slots:
    void aStudySaysWhichRecordIsNone()
    {
        Json study{{"format", "memscape-study"}, {"version", 1}, {"records", {{{"experiment", "stride"}}}}};
        QCOMPARE(studyFromJson(study).error().place, std::string("records[0].format"));
        study["records"][0] = "stride";
        QCOMPARE(studyFromJson(study).error().place, std::string("records[0]"));
    }

    void initTestCase()
    {
        const auto device = findDevice("nvidia-h200");
        QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
        const Experiment* stride = *findExperiment("stride");
        m_record =
            *predictRecord(*stride, *device, *resolve(stride->schema(), std::vector<std::string>{"stride=1:8:x2"}));
        m_record.measured = m_record.predicted; // as if it had been measured exactly so
        m_record.name = "stride sweep";
        m_json = recordToJson(m_record);
    }

    void readsBackToTheByte()
    {
        const auto back = recordFromJson(*parseJson(jsonText(m_json)));
        QVERIFY2(back.has_value(), back ? "" : back.error().text().c_str());
        QCOMPARE(jsonText(recordToJson(*back)), jsonText(m_json));
        QCOMPARE(m_json.begin().key(), std::string("format")); // readers look there first
    }

    void unknownKeysAreKept()
    {
        Json json = m_json;
        json["course"] = {{"week", 3}};
        const auto back = recordFromJson(json);
        QCOMPARE(recordToJson(*back)["course"]["week"].get<int>(), 3);
        Json study = studyToJson(Study{"s", {m_record}, {}, {}, false});
        study["teacher"] = "A";
        QCOMPARE(studyToJson(*studyFromJson(study))["teacher"].get<std::string>(), std::string("A"));
    }

    void theBaselineIsWrittenOnlyWhereThereIsOne()
    {
        QVERIFY(!m_json.contains("baseline")); // documents from before stay as they are
        Record record = m_record;
        record.baseline = true;
        const auto back = recordFromJson(recordToJson(record));
        QVERIFY(back->baseline);
        QVERIFY(!back->extra.contains("baseline"));
        const std::vector<Record> records{m_record, record, record};
        QCOMPARE(baselineOf(records, "stride"), std::optional<std::size_t>(1)); // the first counts
        QVERIFY(!baselineOf(records, "hierarchy"));
        Json broken = recordToJson(record);
        broken["baseline"] = "yes";
        QCOMPARE(recordFromJson(broken).error().place, std::string("baseline"));
    }

    void theReasonOfAnOldGpuRecordIsFound()
    {
        Json old = m_json;
        old["provenance"]["grade_reason"] = "the clock sagged";
        const auto record = recordFromJson(old);
        QVERIFY(record);
        QCOMPARE(record->provenance.value("reason", std::string()), std::string("the clock sagged"));
        QVERIFY(!record->provenance.contains("grade_reason"));
    }

    void measuredNumbersJudgeTheClaims()
    {
        Record record = m_record;
        const auto verdict = [](const Outcome& outcome) {
            return outcome.detail["claims"][0]["verdict"].get<std::string>();
        };
        judgeMeasured(record);
        QCOMPARE(verdict(*record.measured), verdict(*record.predicted)); // the same numbers
        for (Figure& figure : record.measured->figures)
            if (figure.key == "useful_bandwidth")
                figure.value = figure.number() * 10;
        judgeMeasured(record);
        QVERIFY2(verdict(*record.measured).starts_with("does not hold here: a cache gives more"),
                 verdict(*record.measured).c_str());
        QVERIFY(verdict(*record.predicted) != verdict(*record.measured)); // the prediction keeps its own
    }

    void everyOutcomeHasTheSameShape()
    {
        // Overlaying, comparing and exporting rely on it: every figure has a label and a finite value or
        // a word, every series as many y as x, and the series' keys are figures' keys. On this machine's
        // CPU and on CPUs that are not in the catalogue or say little of their arithmetic, too.
        std::vector<Device> devices{*findDevice("nvidia-h200"), *findDevice("nvidia-a100-80gb"), *findDevice("cpu")};
        for (const char* host : {"arm", "hybrid", "zen4-vm", "zen5-vm"})
            devices.push_back(describeHost(std::filesystem::path(TEST_DATA) / "sysfs" / host));
        for (const Device& device : devices) {
            for (const Experiment* experiment : experiments()) {
                const auto parameters = resolve(experiment->schema(), std::vector<std::string>{});
                const auto prediction = experiment->predict(device, *parameters);
                QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
                std::vector<std::string> overParameters;
                for (const Series& series : prediction->series) {
                    const bool isSwept = findParameter(experiment->schema(), series.x.key);
                    if (isSwept)
                        overParameters.push_back(series.key); // others, a timeline, have an axis of their own
                    QCOMPARE(isSwept, findFigure(prediction->figures, series.key) != nullptr);
                    QCOMPARE(series.y.size(), series.x.values.size());
                    QVERIFY(std::is_sorted(series.x.values.begin(), series.x.values.end()));
                }
                std::vector<std::string> promised;
                for (const SeriesSpec& spec : experiment->series())
                    promised.push_back(spec.key);
                // An experiment of several operations promises the series of all of them.
                QVERIFY(!overParameters.empty());
                auto next = promised.begin();
                for (const std::string& key : overParameters) {
                    next = std::find(next, promised.end(), key);
                    QVERIFY2(next != promised.end(), key.c_str());
                }
                for (const Figure& figure : prediction->figures)
                    QVERIFY(!figure.label.empty());
            }
        }
    }

    void anUnknownExperimentIsKept()
    {
        Json json = m_json;
        json["experiment"] = "quantum";
        json["parameters"] = {{"qubits", 3}};
        const auto back = recordFromJson(json);
        QVERIFY(back.has_value());
        QCOMPARE(jsonText(recordToJson(*back)), jsonText(json));
    }

    void aNewerVersionIsSaid()
    {
        Json json = m_json;
        json["version"] = 99;
        const auto back = recordFromJson(json);
        QCOMPARE(back.error().code, std::string("document.newer"));
        Json study = studyToJson(Study{"s", {}, {}, {}, false});
        study["version"] = 99;
        const auto newer = studyFromJson(study);
        QVERIFY(newer.has_value() && newer->newer);
        QCOMPARE(writeStudy("/nonexistent/x", *newer).error().code, std::string("document.newer"));
    }

    void brokenDocumentsNameThePlace_data()
    {
        QTest::addColumn<QString>("pointer");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("place");
        const auto row = [](const char* pointer, const char* value, const char* place) {
            QTest::newRow(place) << pointer << value << place;
        };
        row("/predicted/figures/time/value", "\"12 GB\"", "predicted.figures.time.value");
        row("/predicted/figures/time/unit", "\"parsec\"", "predicted.figures.time.unit");
        row("/predicted/series/0/y/values", "[1]", "predicted.series[0].y.values");
        row("/predicted/series/0/x/values/2", "\"x\"", "predicted.series[0].x.values[2]");
        row("/measured/figures", "3", "measured.figures");
        row("/parameters/stride", "[1, -4]", "parameters.stride[1]");
        row("/device/levels", "{}", "device.levels");
        row("/device", "null", "device");
        row("/version", "\"one\"", "version");
        row("/version", "0", "version");
        row("/experiment", "[]", "experiment");
        row("/provenance", "[]", "provenance");
        row("/format", "\"memscape-recrod\"", "format");
    }
    void brokenDocumentsNameThePlace()
    {
        QFETCH(QString, pointer);
        QFETCH(QString, value);
        QFETCH(QString, place);
        Json json = m_json;
        json[Json::json_pointer(pointer.toStdString())] = Json::parse(value.toStdString());
        const auto back = recordFromJson(json);
        QVERIFY(!back.has_value());
        QVERIFY2(QString::fromStdString(back.error().text()).startsWith(place), back.error().text().c_str());
    }

    void truncationNeverCrashes()
    {
        const std::string text = jsonText(m_json);
        for (std::size_t size = 0; size < text.size() - 2; size += 97)
            QVERIFY(!parseJson(text.substr(0, size)).has_value());
    }

    void randomDamageNeverCrashes()
    {
        const std::string text = jsonText(m_json);
        std::mt19937 random(11);
        for (int i = 0; i < 200; ++i) {
            std::string damaged = text;
            for (int j = 0; j < 3; ++j)
                damaged[random() % damaged.size()] = "{}[]\",:0a-"[random() % 10];
            if (const auto json = parseJson(damaged))
                (void)recordFromJson(*json); // read or refused, either way an answer
        }
    }

private:
    Record m_record;
    Json m_json;
};

QTEST_GUILESS_MAIN(TestRecord)
#include "tst_record.moc"

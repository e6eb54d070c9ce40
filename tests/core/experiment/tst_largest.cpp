// SPDX-License-Identifier: Apache-2.0
// What may be large, at its limit: written, read back as the same, and one more of it refused. The limits of documents
// as a whole (256 MiB, 20 million elements) would take gigabytes and minutes under the sanitizers: a study is read at
// limits that are exactly its own instead, and refused one below. A line of 64 MiB is tst_message's.
#include "core/base/file.h"
#include "core/base/json_shape.h"
#include "core/checkpoint/chain.h"
#include "core/device/catalogue.h"
#include "core/experiment/document.h"
#include "core/protocol/message.h"
#include "core/timing/calibration_store.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

constexpr std::size_t keptSamples = 400'000; // of a run, as kernels/measure/kept_samples.h says

/// Doubles with all their digits.
double longNumber(std::size_t i)
{
    return std::sin(double(i) + 1) / 3;
}

Series curve(const std::string& key, const std::vector<double>& x)
{
    Series series;
    series.key = series.label = series.yLabel = key;
    series.yUnit = Unit::Second;
    series.x = {"stride", "stride", Unit::One, AxisScale::Linear, x, {}};
    for (std::size_t i = 0; i < x.size(); ++i) {
        series.y.push_back(longNumber(i));
        series.low.push_back(longNumber(i) - 1);
        series.high.push_back(longNumber(i) + 1);
    }
    return series;
}

/// As the limit counts them: arrays, objects, and what is parted by commas in them.
std::size_t elementsOf(const Json& json)
{
    if (!json.is_structured())
        return 0;
    std::size_t elements = 1 + (json.empty() ? 0 : json.size() - 1);
    for (const Json& part : json)
        elements += elementsOf(part);
    return elements;
}

/// A swept run of as many points as a sweep may have, measured with as many samples as a record keeps.
Record largestRecord()
{
    const Experiment& stride = **findExperiment("stride");
    std::string values = "0";
    std::vector<double> x{0};
    while (x.size() < sweepLimit) {
        x.push_back(double(x.size()));
        values += "," + std::to_string(x.size() - 1);
    }
    Record record;
    record.experiment = stride.id();
    record.parameters = *resolve(stride.schema(), std::vector<std::string>{"stride=" + values});
    record.device = *findDevice("nvidia-h200");
    record.predicted.emplace();
    record.predicted->detail = Json::object();
    for (const SeriesSpec& spec : stride.series()) {
        record.predicted->figures.push_back({spec.key, spec.label, Unit::Second, 1.5});
        record.predicted->series.push_back(curve(spec.key, x));
    }
    record.measured = record.predicted;
    record.provenance = programProvenance();
    Json samples = Json::array();
    for (std::size_t point = 0; point < sweepLimit; ++point) {
        std::vector<double> kept;
        for (std::size_t i = 0; i < keptSamples / sweepLimit; ++i)
            kept.push_back(longNumber(point * 1000 + i));
        samples.push_back({{"key", "stride"}, {"x", point}, {"unit", "s"}, {"count", 1'000'000}, {"values", kept}});
    }
    record.provenance["samples"] = std::move(samples);
    return record;
}

} // namespace

class TestLargest : public QObject
{
    Q_OBJECT

private slots:
    void aResultInALine()
    {
        const std::string line =
            protocol::encode(protocol::Done{1, "ok", 60, {}, outcomeToJson(*m_record.measured), m_record.provenance});
        QVERIFY2(line.size() < protocol::lineLimit / 2, std::to_string(line.size()).c_str()); // as message.h says
        protocol::LineReader reader;
        std::vector<std::string> whole;
        for (std::size_t at = 0; at < line.size() && whole.empty(); at += 65'536)
            whole = reader.feed(std::string_view(line).substr(at, 65'536)).value();
        QCOMPARE(whole.size(), std::size_t(1));
        const auto event = protocol::decodeEvent(whole.front());
        QVERIFY2(event, event ? "" : event.error().text().c_str());
        QVERIFY(protocol::encode(*event) == line);
    }

    void aRecordInAFile()
    {
        const auto path = file("record.json");
        QVERIFY(writeRecord(path, m_record));
        const auto back = readRecord(path);
        QVERIFY2(back, back ? "" : back.error().text().c_str());
        QCOMPARE(back->parameters.sweep()->values.size(), sweepLimit);
        QVERIFY(back->parameters == m_record.parameters);
        QVERIFY(jsonText(recordToJson(*back)) == *readFile(path));
    }

    void aSweepOfOnePointMore()
    {
        Json json = recordToJson(m_record);
        json["parameters"]["stride"].push_back(5);
        const auto back = recordFromJson(json);
        QCOMPARE(back.error().place, std::string("parameters.stride"));
        QVERIFY2(back.error().message.find(std::to_string(sweepLimit)) != std::string::npos,
                 back.error().text().c_str());
    }

    void aStudyAtItsOwnLimits()
    {
        Study study;
        study.title = "all";
        Record small = m_record;
        small.provenance = programProvenance();
        small.measured.reset(); // the same as what is predicted
        study.records = {small, small};
        const std::string text = jsonText(studyToJson(study));
        const std::size_t elements = elementsOf(studyToJson(study));
        const JsonLimits exact{.bytes = text.size(), .elements = elements};
        QVERIFY(checkReadable(text, exact));
        const auto json = parseJson(text, exact);
        QVERIFY2(json, json ? "" : json.error().text().c_str());
        const auto back = studyFromJson(*json);
        QVERIFY2(back, back ? "" : back.error().text().c_str());
        QVERIFY(jsonText(studyToJson(*back)) == text);
        for (const JsonLimits& less : {JsonLimits{.bytes = text.size() - 1}, JsonLimits{.elements = elements - 1}}) {
            QCOMPARE(parseJson(text, less).error().code, std::string("json.limit"));
            QCOMPARE(checkReadable(text, less).error().code, std::string("document.limit"));
        }
    }

    void keysAndDepthOfWhatIsKept_data()
    {
        QTest::addColumn<int>("keys");
        QTest::addColumn<int>("depth");
        QTest::addColumn<bool>("isSaved");
        const int keys = int(JsonLimits{}.keys), depth = JsonLimits{}.depth;
        QTest::newRow("at both limits") << keys << depth << true;
        QTest::newRow("a key more") << keys + 1 << 3 << false;
        QTest::newRow("a level more") << 1 << depth + 1 << false;
    }
    void keysAndDepthOfWhatIsKept()
    {
        QFETCH(int, keys);
        QFETCH(int, depth);
        QFETCH(bool, isSaved);
        const auto path = file("kept.json");
        QVERIFY(writeFileAtomically(path, "old"));
        Record record = m_record;
        record.measured.reset();
        record.predicted->series.clear();
        record.provenance = Json::object();
        Json nested = 1;
        for (int level = 2; level < depth; ++level) // beside the record and `extra`
            nested = Json::array({std::move(nested)});
        Json many = Json::object();
        for (int i = 0; i < keys; ++i)
            addMember(many, "key " + std::to_string(i), i);
        record.extra = {{"deep", {{"x", std::move(nested)}}}, {"many", std::move(many)}};
        const auto written = writeRecord(path, record);
        QCOMPARE(written.has_value(), isSaved);
        if (!isSaved) {
            QCOMPARE(written.error().code, std::string("document.limit"));
            QCOMPARE(*readFile(path), std::string("old"));
            return;
        }
        const auto back = readRecord(path);
        QVERIFY2(back, back ? "" : back.error().text().c_str());
        QVERIFY(back->extra == record.extra);
    }

    void aChainOfSoManyStages()
    {
        Chain chain;
        chain.name = "long";
        chain.values.assign(std::size_t(chainLengthLimit) + 1, chainSizeLimit);
        for (int i = 0; i < chainLengthLimit; ++i) {
            SaveOption all;
            all.forward = all.backward = longNumber(std::size_t(i)) + 1;
            all.saved = chainSizeLimit;
            chain.stages.push_back({"stage " + std::to_string(i), all.forward, 1, {all}});
        }
        const auto json = parseJson(jsonText(chainToJson(chain)));
        QVERIFY(json);
        const auto back = chainFromJson(JsonReader(*json));
        QVERIFY2(back, back ? "" : back.error().text().c_str());
        QVERIFY(back->stages == chain.stages && back->values == chain.values);
        Json longer = *json;
        for (const char* key :
             {"forward", "backward", "values", "saved", "forward_overhead", "backward_overhead", "names"})
            longer[key].push_back(longer[key].back());
        QCOMPARE(chainFromJson(JsonReader(longer)).error().code, std::string("chain.length"));
    }

    void aCalibrationAsLargeAsADeviceFile()
    {
        QTemporaryDir data;
        qputenv("XDG_DATA_HOME", data.path().toUtf8());
        Device device = describeHost();
        device.calibration.emplace();
        device.calibration->grade = "A";
        device.calibration->time = "2026-01-01T00:00:00Z";
        const auto size = [&] { return jsonText(deviceToJson(device)).size(); };
        device.calibration->raw = {{"notes", "x"}};
        device.calibration->raw["notes"] = std::string(deviceFileLimit - size() + 1, 'x');
        QCOMPARE(size(), deviceFileLimit);
        const auto path = keepCalibration("cpu", device, Keep::Anyway);
        QVERIFY2(path, path ? "" : path.error().text().c_str());
        const auto back = findDevice(path->string());
        QVERIFY2(back, back ? "" : back.error().text().c_str());
        QVERIFY(back->calibration->raw == device.calibration->raw);
        device.calibration->raw["notes"] = device.calibration->raw["notes"].get<std::string>() + "x";
        QCOMPARE(keepCalibration("cpu", device, Keep::Anyway).error().code, std::string("document.limit"));
        QVERIFY(findDevice(path->string())); // the one before stays
    }

private:
    std::filesystem::path file(const char* name) const { return m_folder.filePath(name).toStdString(); }
    const Record m_record = largestRecord();
    QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestLargest)
#include "tst_largest.moc"

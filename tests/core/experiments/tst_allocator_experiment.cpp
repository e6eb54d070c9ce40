// SPDX-License-Identifier: Apache-2.0
// allocator: scripts against an independent port of PyTorch's allocator (tests/data/pytorch/caching_allocator.json),
// the figures against arithmetic of their own, real networks, bad input, and what a picture reads back.
#include "core/device/catalogue.h"
#include "core/experiments/allocator/allocator.h"
#include "core/snapshot/snapshot_reader.h"
#include "core/trace/trace_script.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

#include <QTemporaryDir>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr double mib = 1 << 20;

constexpr AskedExperiment allocator{"allocator"};

/// A case of the data as lines.
std::string scriptOf(const QJsonArray& events)
{
    std::string script;
    for (const QJsonValue& event : events) {
        const QString kind = event[0].toString();
        if (kind == "empty_cache")
            script += "empty_cache\n";
        else if (kind == "f")
            script += "free b" + std::to_string(event[1].toInteger()) + "\n";
        else
            script += "alloc b" + std::to_string(event[1].toInteger()) + " " + std::to_string(event[2].toInteger())
                + " stream " + std::to_string(event[3].toInt()) + "\n";
    }
    return script;
}

/// The settings of the data that are a text of PYTORCH_CUDA_ALLOC_CONF and a limit.
struct NamedSetting
{
    std::vector<std::string> assignments;
    bool isOurs = true;
};
NamedSetting settingNamed(const QString& name, const QJsonObject& result)
{
    const std::string limit = "limit=" + std::to_string(result["limit"].toInteger());
    if (name.startsWith("gc:"))
        return {{}, false}; // its limit is a number of bytes, ours a fraction
    std::string text = name.toStdString();
    if (name == "default" || name.startsWith("device_limit"))
        text = "default";
    else if (name == "expandable,device_limit")
        text = "expandable_segments:True";
    else if (name == "max_split:32,device_limit")
        text = "max_split_size_mb:32";
    if (name.contains("device_limit"))
        return {{"setting=" + text, limit}};
    return {{"setting=" + text, "limit=1PiB"}};
}

} // namespace

class TestAllocatorExperiment : public QObject
{
    Q_OBJECT

private slots:
    void anIndependentPortAgrees_data()
    {
        QTest::addColumn<QJsonArray>("events");
        QTest::addColumn<QString>("setting");
        QTest::addColumn<QJsonObject>("expected");
        for (const QJsonValue& trace : pytorchData("caching_allocator.json")["traces"].toArray()) {
            const QJsonObject results = trace["results"].toObject();
            for (const QString& setting : results.keys())
                if (settingNamed(setting, results[setting].toObject()).isOurs)
                    QTest::addRow("seed %d %s", trace["spec"]["seed"].toInt(), qPrintable(setting))
                        << trace["events"].toArray() << setting << results[setting].toObject();
        }
    }
    void anIndependentPortAgrees()
    {
        QFETCH(QJsonArray, events);
        QFETCH(QString, setting);
        QFETCH(QJsonObject, expected);
        QTemporaryDir folder;
        const std::string path = folder.filePath("trace.txt").toStdString();
        QFile file(QString::fromStdString(path));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray::fromStdString(scriptOf(events)));
        file.close();
        std::vector<std::string> assignments = settingNamed(setting, expected).assignments;
        assignments.push_back("trace=" + path);
        const auto prediction = allocator.predict(assignments);
        QVERIFY2(prediction, prediction ? "" : prediction.error().text().c_str());
        const QJsonObject peak = expected["peak"].toObject();
        QCOMPARE(numberIn(*prediction, "peak_allocated"), peak["allocated"].toDouble());
        QCOMPARE(numberIn(*prediction, "peak_reserved"), peak["reserved"].toDouble());
        QCOMPARE(numberIn(*prediction, "wasted"), peak["reserved"].toDouble() - peak["allocated"].toDouble());
        QCOMPARE(numberIn(*prediction, "segments"), peak["segments"].toDouble());
        QCOMPARE(numberIn(*prediction, "retries"), expected["retries"].toDouble());
        QCOMPARE(numberIn(*prediction, "driver_calls"),
                 expected["device_alloc"].toDouble() + expected["device_free"].toDouble());
        const bool isRefused = !expected["oom_at"].toObject().isEmpty();
        QCOMPARE(findFigure(prediction->figures, "out_of_memory")->text() != "no", isRefused);
    }

    // 40 MiB and 30 MiB live; 20 MiB between them are free and of no use to the 25 MiB that come.
    void whyReservedIsMore()
    {
        const auto prediction =
            allocator.predict({"trace=alloc a 40MiB; alloc b 20MiB; alloc c 30MiB; free b; alloc d 25MiB"});
        QVERIFY(prediction);
        // 25 MiB take 26 MiB, and the last of them is not more than 1 MiB: it is not split off.
        QCOMPARE(numberIn(*prediction, "peak_allocated"), 96 * mib);
        QCOMPARE(numberIn(*prediction, "peak_reserved"), (40 + 20 + 30 + 26) * mib);
        QCOMPARE(numberIn(*prediction, "wasted"), 20 * mib);
        QCOMPARE(numberIn(*prediction, "bound"), 95 * mib);
        QCOMPARE(numberIn(*prediction, "unusable"), 20.0 / 116);
        QCOMPARE(numberIn(*prediction, "segments"), 4.0);
        const Json& elsewhere = prediction->detail["elsewhere"];
        const auto reserved = [&](const char* key) {
            for (const Json& one : elsewhere)
                if (one["key"] == key)
                    return one["peak_reserved"].get<double>();
            return -1.0;
        };
        QCOMPARE(reserved("first-fit"), 115 * mib); // the hole of 20 MiB stays
        QCOMPARE(reserved("powers-of-two"), (64 + 32 + 32) * mib);
        QCOMPARE(reserved("largest-first"), 95 * mib);      // d where b was, above a and c
        QCOMPARE(reserved("lifetime-colouring"), 95 * mib); // d grows b's buffer
        QCOMPARE(reserved("default"), numberIn(*prediction, "peak_reserved"));
    }

    void emptyCacheAtARequest()
    {
        const std::string trace = "trace=alloc a 40MiB; free a; alloc b 60MiB; free b";
        QCOMPARE(numberIn(*allocator.predict({trace}), "peak_reserved"), 100 * mib);
        // Before the third request the segment of 40 MiB goes back; before the first there is nothing.
        QCOMPARE(numberIn(*allocator.predict({trace, "empty_cache=3"}), "peak_reserved"), 60 * mib);
        QCOMPARE(numberIn(*allocator.predict({trace, "empty_cache=1"}), "peak_reserved"), 100 * mib);
        const auto last = allocator.predict({trace, "empty_cache=1000"}); // behind the last
        QCOMPARE(numberIn(*last, "peak_reserved"), 100 * mib);
        QCOMPARE(numberIn(*last, "notes_fragmentation"), 0.0);
        QCOMPARE(numberIn(*last, "driver_calls"), 4.0);
        const auto curves = last->findSeries("reserved");
        QVERIFY(curves && curves->y.back() == 0);
    }

    void theNotesReadHighWhereNothingIsLost()
    {
        const auto prediction = allocator.predict({"trace=alloc a 900MiB; alloc b 100MiB; free a"});
        QCOMPARE(numberIn(*prediction, "notes_fragmentation"), 0.9);
        QCOMPARE(numberIn(*prediction, "unusable"), 0.0);
        const Json& claim = prediction->detail["claims"][0];
        QVERIFY(claim["verdict"].get<std::string>().starts_with("does not hold here"));
    }

    void everySettingPlaysAStep_data()
    {
        QTest::addColumn<QString>("setting");
        for (const char* setting : {"default", "expandable_segments", "max_split_size_mb:64",
                                    "roundup_power2_divisions:8", "first-fit", "best-fit", "powers-of-two", "malloc",
                                    "cudaMalloc", "cudaMallocAsync", "largest-first", "lifetime-colouring"})
            QTest::newRow(setting) << setting;
    }
    void everySettingPlaysAStep()
    {
        QFETCH(QString, setting);
        const auto prediction =
            allocator.predict({"trace=gpt2", "batch=1", "sequence=128", "setting=" + setting.toStdString()});
        QVERIFY2(prediction, prediction ? "" : prediction.error().text().c_str());
        const double bound = numberIn(*prediction, "bound"), reserved = numberIn(*prediction, "peak_reserved");
        QVERIFY(reserved >= numberIn(*prediction, "peak_allocated")
                && numberIn(*prediction, "peak_allocated") >= bound);
        QVERIFY(reserved < 2 * bound);
        QCOMPARE(prediction->findSeries("reserved")->y.size(), prediction->findSeries("allocated")->y.size());
        const auto& curve = prediction->findSeries("reserved")->y;
        QCOMPARE(*std::max_element(curve.begin(), curve.end()), reserved);
        for (const Figure& figure : prediction->figures)
            QVERIFY2(figure.why || figure.key == "retries" || figure.key == "out_of_memory", figure.key.c_str());
        // The same bytes as on the page Memory budget.
        if (setting == "default" || setting == "expandable_segments") {
            const Experiment& memory = **findExperiment("training-memory");
            const auto figures = memory.predictPoint(
                *findDevice("nvidia-h200"),
                resolve(memory.schema(),
                        std::vector<std::string>{"model=gpt2", "batch=1", "sequence=128", "advice=none",
                                                 std::string("allocator=")
                                                     + (setting == "default" ? "default" : "expandable")})
                    .value());
            QVERIFY(figures);
            QCOMPARE(reserved, findFigure(*figures, "peak_reserved")->number());
            QCOMPARE(numberIn(*prediction, "peak_allocated"), findFigure(*figures, "peak_allocated")->number());
        }
    }

    void stepsAfterTheFirstTakeNothing()
    {
        const std::vector<std::string> once{"trace=gpt2", "batch=1", "sequence=128"};
        std::vector<std::string> thrice = once;
        thrice.emplace_back("steps=3");
        const auto one = allocator.predict(once), three = allocator.predict(thrice);
        QVERIFY(one && three);
        QCOMPARE(numberIn(*three, "bound"), numberIn(*one, "bound"));
        // All that later steps need is in the cache of the first; which block is given whole may differ.
        QCOMPARE(numberIn(*three, "peak_reserved"), numberIn(*one, "peak_reserved"));
        QCOMPARE(numberIn(*three, "driver_calls"), numberIn(*one, "driver_calls"));
        QVERIFY(three->detail["trace"]["count"].get<int>() > 2 * one->detail["trace"]["count"].get<int>());
    }

    void aHostDividesSizesUntilTheyFit()
    {
        Device small = *findDevice("cpu");
        for (MemoryLevel& level : small.levels)
            if (level.kind == LevelKind::Dram)
                level.capacity.value = 1 << 30;
        const auto parameters = allocator.with({"trace=alloc a 3GiB; alloc b 1GiB"});
        const auto prediction = allocator->predict(small, parameters);
        QVERIFY(prediction);
        QCOMPARE(prediction->detail["scale"].get<int>(), 8); // 4 GiB into half of 1 GiB
        QCOMPARE(numberIn(*prediction, "bound"), 512 * mib);
        QCOMPARE(numberIn(*prediction, "page_faults"), 512 * mib / 4096);
        QCOMPARE(numberIn(*prediction, "resident"), 512 * mib);
    }

    void timeIsWhatCallsCost()
    {
        const std::string trace = "trace=alloc a 40MiB; free a; alloc b 60MiB";
        const auto assumed = allocator.predict({trace}); // two segments, 100 us each
        QCOMPARE(numberIn(*assumed, "time"), 200e-6);
        QVERIFY(findFigure(assumed->figures, "time")->why->with.find("assumed") != std::string::npos);
        QCOMPARE(numberIn(*allocator.predict({trace}, "cpu"), "time"),
                 10e-6 * numberIn(*allocator.predict({trace}, "cpu"), "driver_calls"));
        const auto known = allocator.predict({trace, "driver_call=1ms"});
        QCOMPARE(numberIn(*known, "time"), 2e-3);
        QCOMPARE(numberIn(*known, "request_time"), 2e-3 / 3);
    }

    void theDetailIsTheTrace()
    {
        const std::string script =
            "alloc a 1MiB stream 2 as weights; record a stream 1; alloc b 3MiB; free a; synchronize; "
            "empty_cache; free b";
        const auto prediction = allocator.predict({"trace=" + script});
        const auto read = requestsFromJson(JsonReader(prediction->detail["trace"], "trace"));
        QVERIFY2(read, read ? "" : read.error().text().c_str());
        const RequestTrace expected = parseTraceScript(script).value();
        QCOMPARE(read->requests.size(), expected.requests.size());
        for (std::size_t i = 0; i < expected.requests.size(); ++i) {
            QCOMPARE(read->requests[i].kind, expected.requests[i].kind);
            QCOMPARE(read->requests[i].block, expected.requests[i].block);
            QCOMPARE(read->requests[i].phase, expected.requests[i].phase);
        }
        for (BlockId block = 1; block < expected.blocks.size(); ++block) {
            QCOMPARE(read->blocks[block].bytes, expected.blocks[block].bytes);
            QCOMPARE(read->blocks[block].stream, expected.blocks[block].stream);
            QCOMPARE(read->blocks[block].category, expected.blocks[block].category);
            QCOMPARE(read->nameOf(block), expected.nameOf(block));
        }
    }

    void brokenDetailIsRefused_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("value");
        QTest::newRow("a block that is not there") << "requests"
                                                   << "[1,9]";
        QTest::newRow("made twice") << "requests"
                                    << "[1,1]";
        QTest::newRow("freed first") << "requests"
                                     << "[-1,1]";
        QTest::newRow("no block") << "requests"
                                  << "[0]";
        QTest::newRow("not a number") << "requests"
                                      << "[\"a\"]";
        QTest::newRow("negative bytes") << "bytes"
                                        << "[-5,1]";
        QTest::newRow("other lengths") << "streams"
                                       << "[0]";
        QTest::newRow("no category") << "categories"
                                     << "[0,99]";
        QTest::newRow("no name") << "names"
                                 << "[0,7]";
        QTest::newRow("no table") << "name_table"
                                  << "[]";
        QTest::newRow("a call of nothing") << "calls"
                                           << "[[5,4,0]]";
        QTest::newRow("a call of no kind") << "calls"
                                           << "[[0,77,0]]";
        QTest::newRow("no phase") << "phases"
                                  << "[[0,99]]";
    }
    void brokenDetailIsRefused()
    {
        QFETCH(QString, key);
        QFETCH(QString, value);
        Json trace = allocator.predict({"trace=alloc a 1MiB; alloc b 2MiB"})->detail["trace"];
        QVERIFY(requestsFromJson(JsonReader(trace)));
        trace[key.toStdString()] = Json::parse(value.toStdString());
        const auto read = requestsFromJson(JsonReader(trace));
        QVERIFY(!read);
        QVERIFY(read.error().code.starts_with("json.") || read.error().code == "detail.trace");
    }

    void badInput_data()
    {
        QTest::addColumn<QStringList>("assignments");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, const QStringList& assignments, const char* code) {
            QTest::newRow(name) << assignments << code;
        };
        row("no such model", {"trace=gpt22222"}, "model.unknown");
        row("no such file", {"trace=./nowhere.txt"}, "file.missing");
        row("a folder that is no model", {"trace=/"}, "file.missing");
        row("a file by its name alone", {"trace=nowhere.txt"}, "file.missing");
        row("bad line", {"trace=alloc a 1MiB; free b"}, "script.name");
        row("unknown setting", {"setting=jemalloc"}, "allocator.setting");
        row("bad option", {"setting=max_split_size_mb:1"}, "allocator.value");
        row("negative limit", {"limit=-1"}, "parameter.range");
        row("NaN fraction", {"fraction=nan"}, "parameter.range");
        row("a million steps", {"steps=1000000"}, "parameter.range");
        row("empty_cache before nothing", {"empty_cache=-1"}, "parameter.range");
        row("no trace", {"trace="}, "parameter.range");
        row("a step was not recorded", {"trace=alloc a 1MiB", "setting=recorded"}, "allocator.recorded");
    }
    void badInput()
    {
        QFETCH(QStringList, assignments);
        std::vector<std::string> texts;
        for (const QString& one : assignments)
            texts.push_back(one.toStdString());
        const auto prediction = allocator.predict(texts);
        QVERIFY(!prediction);
        QTEST(QString::fromStdString(prediction.error().code), "code");
        QVERIFY(!prediction.error().hint.empty() || prediction.error().code == "parameter.type");
    }

    void aFileIsReadAndItsLinesAreNamed()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("mine.txt");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("alloc a 1MiB\nfree a\nfree a\n");
        file.close();
        const auto twice = allocator.predict({"trace=" + path.toStdString()});
        QVERIFY(!twice);
        QCOMPARE(QString::fromStdString(twice.error().place), path + ", line 3");
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("\x80\x04pickle");
        file.close();
        const auto broken = allocator.predict({"trace=" + path.toStdString()});
        QVERIFY(!broken);
        QVERIFY2(broken.error().code.starts_with("pickle."), broken.error().code.c_str());
        QCOMPARE(broken.error().place, std::string("trace"));
        QVERIFY(!broken.error().hint.empty());
    }

    /// What the file itself holds; a request that was refused changes neither.
    void aSnapshotIsPlayed_data()
    {
        QTest::addColumn<QString>("family");
        for (const char* family :
             {"gpt2_mid_peak_expandable", "gpt2_tiny_end", "gpt2_tiny_mid_backward", "llama_tiny_old_format",
              "random_expandable_unmap", "random_oom_pending", "vgg_small_mid"})
            QTest::newRow(family) << QString(family);
    }
    void aSnapshotIsPlayed()
    {
        QFETCH(QString, family);
        const std::string path = std::string(TEST_DATA) + "/snapshots/" + family.toStdString() + ".p4.pickle";
        const auto prediction = allocator.predict({"trace=" + path, "setting=recorded"});
        QVERIFY2(prediction, prediction ? "" : prediction.error().text().c_str());
        const auto snapshot = readSnapshot(path);
        double reserved = 0, segments = 0;
        for (const SnapshotSegment& segment : snapshot->segments) {
            reserved += double(segment.size);
            segments += segment.isExpandable ? 0 : 1;
        }
        const std::vector<double>& curve = prediction->findSeries("reserved")->y;
        QCOMPARE(curve.back(), reserved);
        if (family == "random_oom_pending") { // whose cache was emptied
            QCOMPARE(findFigure(prediction->figures, "out_of_memory")->text().substr(0, 2), std::string("at"));
            QVERIFY(numberIn(*prediction, "segments") > segments);
        } else {
            QCOMPARE(numberIn(*prediction, "segments"), segments);
            QVERIFY(family == "random_expandable_unmap" || numberIn(*prediction, "peak_reserved") == reserved);
        }
        QVERIFY(allocator.predict({"trace=" + path, "setting=best-fit"}));
        QVERIFY(allocator.predict({"trace=" + path, "setting=recorded"}, "cpu"));
    }

    void aPictureGoesOnFromARecording()
    {
        const std::string path = std::string(TEST_DATA) + "/snapshots/random_oom_pending.p4.pickle";
        const auto prediction = allocator.predict({"trace=" + path, "setting=recorded"});
        const auto read = requestsFromJson(JsonReader(prediction->detail["trace"], "trace"));
        QVERIFY2(read, read ? "" : read.error().text().c_str());
        QVERIFY(read->recording);
        PolicySetting setting = readSetting(prediction->detail["setting"]["key"].get<std::string>()).value();
        setting.options.deviceLimit = prediction->detail["setting"]["limit"].get<std::int64_t>();
        const auto replay = replayRequests(*read, setting);
        QVERIFY(replay);
        QCOMPARE(double(replay->peak.reserved), numberIn(*prediction, "peak_reserved"));
        Json broken = prediction->detail["trace"];
        for (const char* bad : {R"([[1,2]])", R"([["a",1,0,0,0,[]]])", R"([[0,512,0,0,0,[[512,0,999999]]]])",
                                R"([[0,512,70000,0,0,[[512,0,0]]]])"}) {
            broken["recording"]["segments"] = Json::parse(bad);
            QVERIFY(!requestsFromJson(JsonReader(broken)));
        }
    }

    void parametersOfAStepMeanNothingToAScript()
    {
        const Device device = *findDevice("nvidia-h200");
        const auto idle = [&](const char* trace) { return allocator->idleParameters(device, allocator.with({trace})); };
        const auto has = [](const std::vector<std::string>& keys, const char* key) {
            return std::find(keys.begin(), keys.end(), key) != keys.end();
        };
        QVERIFY(has(idle("trace=alloc a 1MiB; free a"), "batch"));
        QVERIFY(!has(idle("trace=gpt2"), "batch"));
        QVERIFY(has(idle("trace=gpt2"), "touch")); // of a host
    }
};

QTEST_APPLESS_MAIN(TestAllocatorExperiment)
#include "tst_allocator_experiment.moc"

// SPDX-License-Identifier: Apache-2.0
// How the effort grows with the size of what is read, written or predicted: each work is done at n, 2n and 4n, and
// twice the size may take at most 2^k as many allocations and allocated bytes, with k promised here. Constant parts
// make the growth smaller, never larger. What an allocator does not see, comparisons of numbers and keys, is left out:
// of the parser tst_json counts them.
#include "core/access/views/view_operation.h"
#include "core/access/views/view_step.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/checkpoint/chain.h"
#include "core/device/catalogue.h"
#include "core/experiment/record.h"
#include "core/network/inventory.h"
#include "core/network/model_config.h"
#include "core/network/safetensors.h"
#include "core/protocol/message.h"
#include "core/report/report.h"
#include "tests/support/counted_allocations.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <functional>

using namespace memscape;

namespace {

using Work = std::function<bool()>; ///< false: it failed

/// A work at sizes n, 2n and 4n, and the exponent of its growth.
struct Growth
{
    const char* name;
    int n;
    double exponent;
    std::function<Work(int)> prepared; ///< for a size, whatever is not part of the work done
};

std::string joined(int count, const std::function<std::string(int)>& part, const char* between = ",")
{
    std::string text;
    for (int i = 0; i < count; ++i)
        text += (i > 0 ? between : "") + part(i);
    return text;
}

/// {"a name longer than fits a string itself 17": VALUE, …}
std::string object(int members, const char* value)
{
    return "{"
        + joined(members,
                 [&](int i) { return fmt::format("\"a name longer than fits a string itself {}\": {}", i, value); })
        + "}";
}

Work parsing(std::string text)
{
    return [text = std::move(text)] { return parseJson(text).has_value(); };
}

Series curve(int points, const std::string& key = "time")
{
    Series series;
    series.key = series.label = series.yLabel = key;
    series.x = {"stride", "stride", Unit::One, AxisScale::Log2, {}, {}};
    for (int i = 0; i < points; ++i) {
        series.x.values.push_back(i);
        series.y.push_back(1.5 * i);
        series.low.push_back(i);
        series.high.push_back(2.0 * i);
    }
    return series;
}

Record record(int points = 8, int figures = 1, int series = 1)
{
    Record record;
    record.experiment = "stride";
    record.parameters = *resolve((*findExperiment("stride"))->schema(), std::vector<std::string>{});
    record.device = *findDevice("nvidia-h200");
    record.predicted.emplace();
    for (int i = 0; i < figures; ++i)
        record.predicted->figures.push_back({fmt::format("figure {}", i), "figure", Unit::Second, 0.5 * i});
    for (int i = 0; i < series; ++i)
        record.predicted->series.push_back(curve(points, fmt::format("series {}", i)));
    record.predicted->detail = Json::object();
    record.measured = record.predicted;
    return record;
}

Study study(int records)
{
    Study study;
    study.records.assign(std::size_t(records), record());
    return study;
}

Work readingRecord(const Record& record)
{
    return [text = jsonText(recordToJson(record))] {
        const auto json = parseJson(text);
        return json && recordFromJson(*json);
    };
}

Work writingRecord(Record record)
{
    return [record = std::move(record)] { return !jsonText(recordToJson(record)).empty(); };
}

Work reporting(ReportFormat format, std::vector<Record> records)
{
    return [format, records = std::move(records)] { return !report(format, records, "growth").empty(); };
}

Work readingModel(const std::string& extra)
{
    const std::string text =
        R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 128,
        "vocab_size": 1000, "max_position_embeddings": 128, )"
        + extra + "}";
    return [text] {
        const auto json = parseJson(text);
        const auto model =
            json ? modelFromConfig(JsonReader(*json), "growth") : Result<ModelDescription>(fail(json.error()));
        return model && inventory(*model);
    };
}

Work readingChain(int stages)
{
    const auto numbers = [](int count) {
        return "[" + joined(count, [](int i) { return std::to_string(i % 7 + 1); }) + "]";
    };
    const std::string text = fmt::format(
        R"({{"format": "memscape-chain", "version": 1, "forward": {0}, "backward": {1}, "values": {1},
        "saved": {1}, "names": [{2}]}})",
        numbers(stages), numbers(stages + 1), joined(stages, [](int i) { return fmt::format("\"stage {}\"", i); }));
    return [text] {
        const auto json = parseJson(text);
        const auto chain = json ? chainFromJson(JsonReader(*json)) : Result<Chain>(fail(json.error()));
        return chain && !jsonText(chainToJson(*chain)).empty();
    };
}

Work readingLines(int lines, int piece)
{
    std::string bytes;
    for (int i = 0; i < lines; ++i)
        bytes += protocol::encode(
            protocol::Sample{1, "stride", Point{double(i), "", {{"time", "time", Unit::Second, 1.0}}, {}}});
    return [bytes, piece] {
        protocol::LineReader reader;
        bool isRight = true;
        for (std::size_t at = 0; at < bytes.size(); at += std::size_t(piece)) {
            const auto whole = reader.feed(std::string_view(bytes).substr(at, std::size_t(piece)));
            isRight = isRight && whole;
            for (const std::string& line : whole ? *whole : std::vector<std::string>())
                isRight = isRight && protocol::decodeEvent(line);
        }
        return isRight;
    };
}

/// A result of one curve in one line, which comes in pieces as from a pipe.
Work readingResult(int points)
{
    const std::string line =
        protocol::encode(protocol::Done{1, "ok", 1, {}, outcomeToJson(*record(points).measured), Json::object()});
    return [line] {
        protocol::LineReader reader;
        std::vector<std::string> whole;
        for (std::size_t at = 0; at < line.size() && whole.empty(); at += 4096)
            whole = reader.feed(std::string_view(line).substr(at, 4096)).value();
        return whole.size() == 1 && protocol::decodeEvent(whole.front());
    };
}

Work readingViews(int operations)
{
    const std::string text = joined(
        operations, [](int) { return std::string("transpose(0, 1)"); }, ";");
    return [text] {
        const auto views = parseViews(text);
        return views && applyAll(*freshTensor({16, 8, 4}), *views);
    };
}

Work resolving(const char* experiment, std::string assignment)
{
    return [schema = (*findExperiment(experiment))->schema(), assignment = std::move(assignment)] {
        const auto parameters = resolve(schema, std::vector<std::string>{assignment});
        return parameters && parametersFromJson(schema, JsonReader(parametersToJson(*parameters)));
    };
}

Work readingDevice(int rates)
{
    Device device = *findDevice("nvidia-h200");
    device.calibration.emplace();
    device.calibration->grade = "A";
    for (int i = 0; i < rates; ++i)
        device.calibration->lineRates.push_back({Operation::Read, 64.0 * (i + 1), 1e9});
    return [text = jsonText(deviceToJson(device))] {
        const auto json = parseJson(text);
        const auto back = json ? deviceFromJson(*json) : Result<Device>(fail(json.error()));
        return back && !jsonText(deviceToJson(*back)).empty();
    };
}

Work predicting(const char* experiment, const std::vector<std::string>& assignments,
                const char* device = "nvidia-h100-sxm")
{
    const Experiment& asked = **findExperiment(experiment);
    return [&asked, device = *findDevice(device), parameters = resolve(asked.schema(), assignments)] {
        return parameters && asked.predict(device, *parameters);
    };
}

/// KEY=1,2,…,points
std::string sweep(const char* key, int points, int first = 1)
{
    return fmt::format("{}={}", key, joined(points, [&](int i) { return std::to_string(first + i); }));
}

std::string layers(int count)
{
    return fmt::format("model=from-scratch:hidden=64,layers={},heads=4,vocab=100", count);
}

} // namespace

class TestGrowth : public QObject
{
    Q_OBJECT

private slots:
    void reading_data() { addRows(readers()); }
    void reading() { asPromised(readers()); }
    void predicting_data() { addRows(predictions()); }
    void predicting() { asPromised(predictions()); }

private:
    std::vector<Growth> readers()
    {
        return {
            {"members of an object", 2000, 1, [](int n) { return parsing(object(n, "1")); }},
            {"objects in an array", 2000, 1,
             [](int n) { return parsing("[" + joined(n, [](int) { return object(3, "[]"); }) + "]"); }},
            {"arrays in arrays", 100, 1,
             [](int n) {
                 return parsing("[" + joined(n, [](int) { return std::string(60, '[') + std::string(60, ']'); }) + "]");
             }},
            {"the same key again", 2000, 1,
             [](int n) {
                 return parsing(
                     "{" + joined(n, [](int i) { return fmt::format("\"the same key as before\": \"value {}\"", i); })
                     + "}");
             }},
            {"record, points", 1000, 1, [](int n) { return readingRecord(record(n)); }},
            {"record, figures", 1000, 1, [](int n) { return readingRecord(record(8, n)); }},
            {"record, curves", 1000, 1, [](int n) { return readingRecord(record(8, 1, n)); }},
            {"record written, points", 1000, 1, [](int n) { return writingRecord(record(n)); }},
            {"record written, figures", 1000, 1, [](int n) { return writingRecord(record(8, n)); }},
            {"record written, curves", 1000, 1, [](int n) { return writingRecord(record(8, 1, n)); }},
            {"study, records", 50, 1,
             [](int n) {
                 return Work([text = jsonText(studyToJson(study(n)))] {
                     const auto json = parseJson(text);
                     return json && studyFromJson(*json);
                 });
             }},
            {"study written, records", 50, 1,
             [](int n) { return Work([one = study(n)] { return !jsonText(studyToJson(one)).empty(); }); }},
            {"CSV, points", 500, 1, [](int n) { return reporting(ReportFormat::Csv, {record(n)}); }},
            {"CSV, records", 50, 1, [](int n) { return reporting(ReportFormat::Csv, study(n).records); }},
            {"CSV, curves", 200, 1, [](int n) { return reporting(ReportFormat::Csv, {record(8, 1, n)}); }},
            {"Markdown, points", 500, 1, [](int n) { return reporting(ReportFormat::Markdown, {record(n)}); }},
            {"Markdown, records", 50, 1, [](int n) { return reporting(ReportFormat::Markdown, study(n).records); }},
            {"HTML, points", 500, 1, [](int n) { return reporting(ReportFormat::Html, {record(n)}); }},
            {"HTML, records", 50, 1, [](int n) { return reporting(ReportFormat::Html, study(n).records); }},
            {"text, records", 50, 1, [](int n) { return reporting(ReportFormat::Text, study(n).records); }},
            {"config.json, layers", 500, 1,
             [](int n) {
                 return readingModel(
                     fmt::format("\"num_hidden_layers\": {}, \"layer_types\": [{}]", n, joined(n, [](int i) {
                                     return std::string(i % 2 ? "\"full_attention\"" : "\"sliding_attention\"");
                                 })));
             }},
            {"config.json, experts", 500, 0,
             [](int n) {
                 return readingModel(
                     fmt::format("\"num_hidden_layers\": 2, \"num_local_experts\": {}, \"num_experts_per_tok\": 2", n));
             }},
            {"config.json, labels", 2000, 1,
             [](int n) { return readingModel("\"num_hidden_layers\": 2, \"id2label\": " + object(n, "\"a label\"")); }},
            {"chain, stages", 1000, 1, readingChain},
            {"safetensors, tensors", 1000, 1, [this](int n) { return readingSafetensors(n); }},
            {"device, rates", 1000, 1, readingDevice},
            {"lines of a worker", 500, 1, [](int n) { return readingLines(n, 100); }},
            {"a long line of a worker", 5000, 1, readingResult},
            {"views, operations", 16, 1, readingViews},
            {"sweep, values", 1024, 1, [](int n) { return resolving("stride", sweep("stride", n)); }},
            {"sweep, range", 1024, 1, [](int n) { return resolving("stride", fmt::format("stride=1:{}:1", n)); }},
        };
    }

    static std::vector<Growth> predictions()
    {
        return {
            {"stride, points", 256, 1, [](int n) { return ::predicting("stride", {sweep("stride", n)}); }},
            {"hierarchy, points", 256, 1,
             [](int n) { return ::predicting("hierarchy", {sweep("working_set", n, 4096)}); }},
            {"bank-conflicts, points", 16, 1,
             [](int n) { return ::predicting("bank-conflicts", {sweep("stride", n)}); }},
            {"layout, points", 16, 1,
             [](int n) {
                 return ::predicting("layout", {"shape=64,64", sweep("reads", n)});
             }},
            {"attention, points", 32, 1, [](int n) { return ::predicting("attention", {sweep("sequence", n, 64)}); }},
            {"precision, points", 32, 1, [](int n) { return ::predicting("precision", {sweep("m", n, 64)}); }},
            {"roofline, points", 32, 1, [](int n) { return ::predicting("roofline", {sweep("intensity", n)}); }},
            {"inference-memory, points", 16, 1,
             [](int n) {
                 return ::predicting("inference-memory", {"model=gpt2", "context=1024", sweep("batch", n)});
             }},
            {"training-memory, points", 4, 1,
             [](int n) {
                 return ::predicting("training-memory", {layers(2), "sequence=32", "advice=none", sweep("batch", n)});
             }},
            {"training-memory, layers", 8, 1,
             [](int n) {
                 return ::predicting("training-memory", {layers(n), "sequence=32", "batch=1", "advice=none"});
             }},
            // The step of one is repeated; the detail lists the phases of each.
            {"training-memory, micro-batches", 16, 1,
             [](int n) {
                 return ::predicting(
                     "training-memory",
                     {layers(2), "sequence=32", "batch=1", "advice=none", fmt::format("accumulation={}", n)});
             }},
            {"training-memory, very many micro-batches", 8192, 0,
             [](int n) {
                 return ::predicting(
                     "training-memory",
                     {layers(2), "sequence=32", "batch=1", "advice=none", fmt::format("accumulation={}", n)});
             }},
            {"training-memory, batch", 4, 0,
             [](int n) {
                 return ::predicting("training-memory",
                                     {layers(2), "sequence=32", "advice=none", fmt::format("batch={}", n)});
             }},
            {"batch-size, points", 4, 1, [](int n) { return ::predicting("batch-size", {sweep("batch", n)}); }},
            // Whatever the strategy, the front over every budget is made: tables over pairs of stages.
            {"checkpoint, stages all kept", 25, 2,
             [](int n) {
                 return ::predicting("checkpoint", {fmt::format("chain=mlp:{}x64", n), "strategy=none"});
             }},
            {"checkpoint, stages of segments", 25, 2,
             [](int n) {
                 return ::predicting("checkpoint", {fmt::format("chain=mlp:{}x64", n), "strategy=sqrt"});
             }},
            {"checkpoint, stages optimal", 20, 2,
             [](int n) {
                 return ::predicting("checkpoint", {fmt::format("chain=mlp:{}x64", n), "strategy=optimal"});
             }},
        };
    }

    Work readingSafetensors(int tensors)
    {
        const std::string header =
            "{"
            + joined(
                tensors,
                [](int i) {
                    return fmt::format(
                        R"("model.layers.{0}.weight": {{"dtype": "F32", "shape": [1], "data_offsets": [{1}, {2}]}})", i,
                        4 * i, 4 * i + 4);
                })
            + "}";
        std::string bytes(8, '\0');
        for (std::size_t i = 0; i < 8; ++i)
            bytes[i] = char(header.size() >> (8 * i));
        bytes += header + std::string(std::size_t(4 * tensors), '\0');
        const std::string path = m_folder.filePath(QString("%1.safetensors").arg(tensors)).toStdString();
        const bool isWritten = writeFileAtomically(path, bytes).has_value();
        return [path, isWritten] { return isWritten && readSafetensors(path); };
    }

    static void addRows(const std::vector<Growth>& all)
    {
        QTest::addColumn<int>("row");
        for (std::size_t i = 0; i < all.size(); ++i)
            QTest::newRow(all[i].name) << int(i);
    }

    static void asPromised(const std::vector<Growth>& all)
    {
        QFETCH(int, row);
        const Growth& growth = all[std::size_t(row)];
        std::vector<test::Allocations> taken;
        for (const int size : {growth.n, 2 * growth.n, 4 * growth.n}) {
            const Work work = growth.prepared(size);
            QVERIFY(work()); // whatever is made once and kept is made
            const test::Allocations before = test::allocationsSoFar();
            QVERIFY(work());
            const test::Allocations after = test::allocationsSoFar();
            taken.push_back({after.count - before.count, after.bytes - before.bytes});
        }
        const double most = 1.15 * std::pow(2, growth.exponent);
        for (std::size_t i : {1, 2}) {
            const QByteArray said = QString("%1 allocations of %2 bytes after %3 of %4 at half the size")
                                        .arg(taken[i].count)
                                        .arg(taken[i].bytes)
                                        .arg(taken[i - 1].count)
                                        .arg(taken[i - 1].bytes)
                                        .toUtf8();
            QVERIFY2(double(taken[i].count) <= most * double(taken[i - 1].count), said.constData());
            QVERIFY2(double(taken[i].bytes) <= most * double(taken[i - 1].bytes), said.constData());
        }
        if (growth.exponent > 0) // or the size is not what the work depends on
            QVERIFY(taken[2].bytes > taken[1].bytes);
    }

    QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestGrowth)
#include "tst_growth.moc"

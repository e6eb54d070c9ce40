// SPDX-License-Identifier: Apache-2.0
// loading: the sizes of published files to the byte, the notes' arithmetic for a model of 70 billion parameters, what
// each choice costs and holds, and files of the user's own.
#include "core/base/number.h"
#include "core/experiments/loading/loading.h"
#include "tests/support/devices.h"

#include <nlohmann/json.hpp>

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

const Experiment& loading()
{
    return **findExperiment("loading");
}

Result<Figures> loadingFiguresOf(const Device& device, const std::vector<std::string>& assignments)
{
    MEMSCAPE_TRY(parameters, resolve(loading().schema(), assignments));
    return loading().predictPoint(device, parameters);
}

double loadingFigure(const Device& device, const std::vector<std::string>& assignments, const char* key)
{
    const auto figures = loadingFiguresOf(device, assignments);
    const Figure* const figure = figures ? findFigure(*figures, key) : nullptr;
    return figure ? figure->number() : memscape::nan;
}

std::string loadingWord(const Device& device, const std::vector<std::string>& assignments, const char* key)
{
    const auto figures = loadingFiguresOf(device, assignments);
    return figures ? findFigure(*figures, key)->text() : figures.error().text();
}

Error loadingError(const Device& device, const std::vector<std::string>& assignments)
{
    const auto figures = loadingFiguresOf(device, assignments);
    return figures ? Error() : figures.error();
}

std::vector<std::string> with(std::vector<std::string> these, std::initializer_list<const char*> more)
{
    for (const char* one : more)
        these.emplace_back(one);
    return these;
}

bool loadingIsWithin(double found, double expected, double share)
{
    return std::fabs(found / expected - 1) <= share;
}

const std::vector<std::string> seventyBillion{"model=llama-2-70b", "dtype=fp16", "medium=nvme4", "method=parallel"};

} // namespace

class TestLoading : public QObject
{
    Q_OBJECT

private slots:
    void filesHaveTheBytesThatWerePublished();
    void seventyBillionParametersWaitForTheDisk();
    void severalGpusShareTheModelAndNotTheDisk();
    void quantizedFilesLoadSooner();
    void theSlowestStepRulesAPipeline();
    void aWarmFileComesFromThePageCache();
    void hostMemoryHoldsTheModelOnceTwiceOrNot();
    void touchedLoadsAShare();
    void calibratedRatesAreUsedAsTheyAre();
    void aFileOfOnesOwnIsTheModel();
    void aMediumOfOnesOwnIsTheDisk();
    void badInputSaysWhatToDo();
    void theDetailIsBoundedAndEndsInTime();
};

/// total_size of the publishers' model.safetensors.index.json; LLaMA 2's hold the rotary frequencies too: 64 floats a
/// layer, which are no parameters.
void TestLoading::filesHaveTheBytesThatWerePublished()
{
    const Device device = test::h200();
    const auto bytes = [&](const char* model) { return loadingFigure(device, {model, "touched=1"}, "bytes"); };
    QCOMPARE(bytes("model=llama-2-70b"), 137953316864.0 - 80 * 64 * 4);
    QCOMPARE(bytes("model=llama-2-7b"), 13476839424.0 - 32 * 64 * 4);
    QCOMPARE(bytes("model=mistral-7b"), 14483464192.0);
}

/// The notes: 140 GB; 19.7 s at 7 GB/s against 2.6 s over PCIe 5.
void TestLoading::seventyBillionParametersWaitForTheDisk()
{
    const Device gpu = *findDevice("nvidia-h100-sxm");
    QVERIFY(loadingIsWithin(loadingFigure(gpu, seventyBillion, "read_time"), 137.95e9 / 7e9, 0.01));
    QVERIFY(loadingIsWithin(loadingFigure(gpu, seventyBillion, "copy_time"), 2.6, 0.04));
    QVERIFY(loadingIsWithin(loadingFigure(gpu, seventyBillion, "time"), 19.7, 0.02));
    QCOMPARE(loadingWord(gpu, seventyBillion, "bottleneck"), std::string("disk"));
    // From the page cache, read by many, the disk is out of it.
    const auto warm = with(seventyBillion, {"cache=warm", "threads=64", "staging=pageable"});
    QVERIFY(loadingFigure(gpu, warm, "time") < 14);
    QCOMPARE(loadingWord(gpu, warm, "bottleneck"), std::string("link to the GPU"));
}

void TestLoading::severalGpusShareTheModelAndNotTheDisk()
{
    const Device gpu = *findDevice("nvidia-h100-sxm");
    const double one = loadingFigure(gpu, seventyBillion, "time");
    QVERIFY(loadingIsWithin(loadingFigure(gpu, with(seventyBillion, {"gpus=8"}), "time"), one, 0.01));
    QCOMPARE(loadingFigure(gpu, with(seventyBillion, {"gpus=8"}), "gpu_bytes"),
             loadingFigure(gpu, seventyBillion, "gpu_bytes") / 8);
    const double copy = loadingFigure(gpu, seventyBillion, "copy_time");
    const double own = loadingFigure(gpu, with(seventyBillion, {"gpus=8"}), "copy_time");
    const double shared = loadingFigure(gpu, with(seventyBillion, {"gpus=8", "host_link=shared"}), "copy_time");
    QVERIFY(own < copy / 5); // a chunk's latency stays
    QVERIFY(loadingIsWithin(shared, copy, 1e-9));
}

void TestLoading::quantizedFilesLoadSooner()
{
    const Device gpu = *findDevice("nvidia-h100-sxm");
    auto asked = seventyBillion;
    const double half = loadingFigure(gpu, asked, "time");
    asked[1] = "dtype=int8";
    const double byte = loadingFigure(gpu, asked, "time");
    asked[1] = "dtype=int4";
    const double nibble = loadingFigure(gpu, asked, "time");
    QVERIFY(loadingIsWithin(byte, half / 2, 0.02));
    QVERIFY(loadingIsWithin(nibble, half / 4, 0.08)); // embeddings stay, scales come
    // Dequantized by one core of the host, that is slower than the disk.
    QCOMPARE(loadingWord(gpu, with(asked, {"convert=bf16"}), "bottleneck"), std::string("conversion"));
    QVERIFY(loadingIsWithin(loadingFigure(gpu, with(asked, {"convert=bf16"}), "gpu_bytes"), 137.95e9, 1e-3));
}

void TestLoading::theSlowestStepRulesAPipeline()
{
    const Device gpu = test::h200();
    const auto of = [&](const std::vector<std::string>& asked, const char* key) {
        return loadingFigure(gpu, asked, key);
    };
    const std::vector<std::string> chunked{"model=gpt2", "convert=bf16", "streams=3", "chunk=4MiB"};
    const double slowest = std::max({of(chunked, "read_time"), of(chunked, "convert_time"), of(chunked, "copy_time")});
    QVERIFY(of(chunked, "time") > slowest && of(chunked, "time") < 1.05 * slowest);
    const auto serial = with({"model=gpt2", "convert=bf16", "chunk=4MiB"}, {"streams=1"});
    QVERIFY(loadingIsWithin(of(serial, "time"),
                            of(serial, "read_time") + of(serial, "convert_time") + of(serial, "copy_time"), 1e-9));
    QCOMPARE(of(serial, "hidden_time"), 0.0);
    QCOMPARE(of({"model=gpt2", "convert=bf16", "chunk=0"}, "hidden_time"), 0.0); // one piece
}

void TestLoading::aWarmFileComesFromThePageCache()
{
    const Device host = *findDevice("amd-epyc-9654");
    const double cold = loadingFigure(host, {"medium=sata"}, "time");
    QVERIFY(loadingFigure(host, {"medium=sata", "cache=warm"}, "time") < cold / 5);
    QCOMPARE(loadingFigure(host, {"medium=page-cache"}, "time"),
             loadingFigure(host, {"medium=sata", "cache=warm"}, "time"));
    QCOMPARE(loadingFigure(host, {"cache=warm"}, "disk_bytes"), 0.0);
    QCOMPARE(loadingFigure(host, {}, "disk_bytes"), loadingFigure(host, {}, "bytes"));
    // Direct I/O goes past it, warm or not.
    QCOMPARE(loadingFigure(host, {"method=direct", "cache=warm"}, "time"),
             loadingFigure(host, {"method=direct"}, "time"));
    QCOMPARE(loadingFigure(host, {"method=direct"}, "page_cache"), 0.0);
}

/// In multiples of the model: accelerate's low_cpu_mem_usage, and what it is without.
void TestLoading::hostMemoryHoldsTheModelOnceTwiceOrNot()
{
    const Device gpu = test::h200();
    const double file = loadingFigure(gpu, {"model=llama-2-7b"}, "bytes");
    const auto memory = [&](std::initializer_list<const char*> more) {
        return loadingFigure(gpu, with({"model=llama-2-7b"}, more), "peak_host_memory");
    };
    QCOMPARE(memory({}), 2.0 * (16 << 20)); // two buffers
    QCOMPARE(memory({"low_cpu_mem=once"}), file);
    QCOMPARE(memory({"low_cpu_mem=twice"}), 2 * file);
    QCOMPARE(memory({"method=mmap", "staging=pageable"}), 0.0); // the page cache's own pages
    QVERIFY(loadingIsWithin(memory({"low_cpu_mem=twice", "convert=fp32"}), 3 * file, 1e-6));
    const Device host = *findDevice("amd-epyc-9654");
    QCOMPARE(loadingFigure(host, {"model=llama-2-7b"}, "peak_host_memory"), file);
    QVERIFY(loadingIsWithin(
        loadingFigure(host, {"model=llama-2-7b", "convert=fp32", "method=mmap"}, "peak_host_memory"), 2 * file, 1e-6));
}

void TestLoading::touchedLoadsAShare()
{
    const Device host = *findDevice("amd-epyc-9654");
    const double whole = loadingFigure(host, {"method=mmap"}, "bytes");
    const double part = loadingFigure(host, {"method=mmap", "touched=0.01"}, "bytes");
    QVERIFY(part >= 0.01 * whole && part < 0.01 * whole + 4096);
    QCOMPARE(std::fmod(part, 4096), 0.0); // whole pages
    QVERIFY(loadingIsWithin(loadingFigure(host, {"method=mmap"}, "faults"), whole / 65536, 1e-3));
}

void TestLoading::calibratedRatesAreUsedAsTheyAre()
{
    Device host = test::twoCores("host");
    for (const auto& [id, rate] :
         {std::pair("disk-read", 2e9), std::pair("cached-read", 10e9), std::pair("convert-fp32-bf16", 5e9)})
        host.links.push_back({id, id, {rate, Evidence::Measured}, {1e-3, Evidence::Measured}});
    const auto of = [&](const std::vector<std::string>& asked, const char* key) {
        return loadingFigure(host, asked, key);
    };
    const double bytes = of({}, "bytes");
    QVERIFY(loadingIsWithin(of({"chunk=0"}, "read_time"), 1e-3 + bytes / 2e9, 1e-9));
    QVERIFY(loadingIsWithin(of({"chunk=0", "cache=warm"}, "read_time"), 1e-3 + bytes / 10e9, 1e-9));
    QVERIFY(loadingIsWithin(of({"chunk=0", "dtype=fp32", "convert=bf16"}, "convert_time"), 1e-3 + bytes / 5e9, 1e-9));
    QVERIFY(of({"chunk=0", "medium=hdd"}, "read_time") > 0.9 * bytes / 270e6); // another disk than the calibrated one
    // What a calibration knows of the page cache: 2048 single pages, then the windows' larger ones.
    host.calibration = Calibration();
    host.calibration->raw = {{"page_cache", {{"window", 0x1p23}, {"largest", 0x1p21}}},
                             {"piece_seconds", {{"disk-read", 2e-6}}}};
    const std::vector<std::string> sixteen{"chunk=0", "model=params:8e6", "dtype=bf16"};
    const double pieces = 2048 + 512 * (of(sixteen, "bytes") - 0x1p23) / 0x1p23;
    QVERIFY(of(sixteen, "bytes") > 0x1p23 && of(sixteen, "bytes") < 0x1p24);
    QVERIFY(loadingIsWithin(of(sixteen, "read_time"), 1e-3 + pieces * 2e-6 + of(sixteen, "bytes") / 2e9, 1e-3));
    QVERIFY(loadingIsWithin(of(with(sixteen, {"method=mmap"}), "faults"), of(sixteen, "bytes") / 65536, 0.01));
    // The kernel reads ahead over the borders of chunks: α is paid once; past the page cache by each of them.
    host.links.push_back({"disk-direct", "", {2e9, Evidence::Measured}, {1e-3, Evidence::Measured}});
    const std::vector<std::string> chunked{"chunk=1MiB", "model=params:8e6", "dtype=bf16"};
    QVERIFY(loadingIsWithin(of(chunked, "read_time"), of(sixteen, "read_time"), 1e-9));
    const double chunks = of(chunked, "chunks");
    QVERIFY(chunks > 8);
    QVERIFY(loadingIsWithin(of(with(chunked, {"method=direct"}), "read_time"),
                            chunks * 1e-3 + of(sixteen, "bytes") / 2e9, 1e-9));
    // One core cannot do both.
    host.units = host.threads = 1;
    const std::vector<std::string> both{"dtype=fp32", "convert=bf16"};
    QVERIFY(loadingIsWithin(of(both, "time"), of(both, "read_time") + of(both, "convert_time"), 1e-9));
}

void TestLoading::aMediumOfOnesOwnIsTheDisk()
{
    QTemporaryDir folder;
    QFile file(folder.filePath(QStringLiteral("nas.json")));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(R"({"format": "memscape-media", "version": 1, "media": [{"id": "nas", "name": "our file server",
        "network": true, "bandwidth": {"value": 1e8, "kind": "measured", "source": "dd"}}]})");
    file.close();
    const std::string own = "medium_file=" + file.fileName().toStdString();
    const Device gpu = test::h200();
    const double bytes = loadingFigure(gpu, {own}, "bytes");
    QVERIFY(loadingIsWithin(loadingFigure(gpu, {own, "chunk=0"}, "read_time"), bytes / 1e8, 1e-6));
    // It stands in place of the choice, and the medium is no axis any more.
    QCOMPARE(loadingFigure(gpu, {own, "medium=nvme5"}, "time"), loadingFigure(gpu, {own}, "time"));
    const Experiment& loading = **findExperiment("loading");
    const Parameters asked = resolve(loading.schema(), std::vector<std::string>{own}).value();
    const auto idle = loading.idleParameters(gpu, asked);
    QVERIFY(std::find(idle.begin(), idle.end(), "medium") != idle.end());
    QCOMPARE(loading.axis(gpu, asked).key, std::string("touched"));
    QCOMPARE(loading.predictDetail(gpu, asked)["medium"].get<std::string>(), std::string("our file server"));
}

void TestLoading::aFileOfOnesOwnIsTheModel()
{
    const Device gpu = test::h200();
    const std::string file = "file=" TEST_DATA "/models/tiny.safetensors";
    QCOMPARE(loadingFigure(gpu, {file}, "bytes"),
             double(QFile(QStringLiteral(TEST_DATA "/models/tiny.safetensors")).size()));
    QTemporaryDir folder;
    const auto written = [&](const char* name, const QByteArray& content) {
        QFile out(folder.filePath(QLatin1String(name)));
        return out.open(QIODevice::WriteOnly) && out.write(content) == content.size()
            ? "file=" + folder.filePath(QLatin1String(name)).toStdString()
            : std::string();
    };
    QCOMPARE(loadingError(gpu, {written("empty", {})}).code, std::string("predict.loading"));
    QCOMPARE(loadingError(gpu, {written("text", "no header at all")}).code, std::string("safetensors.header"));
    QCOMPARE(loadingError(gpu, {written("cut", QByteArray("GGUF\3\0\0\0", 8))}).code, std::string("gguf.header"));
    QCOMPARE(loadingError(gpu, {"file=" + folder.path().toStdString()}).code, std::string("file.kind"));
    QCOMPARE(loadingError(gpu, {"file=" + folder.filePath(QStringLiteral("none")).toStdString()}).code,
             std::string("file.missing"));
}

void TestLoading::badInputSaysWhatToDo()
{
    const Device gpu = test::h200();
    const Error direct = loadingError(gpu, {"medium=page-cache", "method=direct"});
    QCOMPARE(direct.code, std::string("predict.loading"));
    QVERIFY(direct.hint.find("method=read") != std::string::npos);
    const Error chunks = loadingError(gpu, {"model=llama-2-70b", "chunk=4KiB"});
    QCOMPARE(chunks.code, std::string("predict.chunks"));
    const QString hint = QString::fromStdString(chunks.hint);
    const std::string remedy = QRegularExpression("chunk=\\d+").match(hint).captured().toStdString();
    QVERIFY2(loadingFiguresOf(gpu, {"model=llama-2-70b", remedy}), qPrintable(hint));
    QVERIFY(!loadingError(gpu, {"touched=0"}).code.empty());
    QVERIFY(!loadingError(gpu, {"chunk=9223372036854775808"}).code.empty()); // 2^63
    QVERIFY(!loadingError(gpu, {"model=params:0"}).code.empty());
    QCOMPARE(loadingError(gpu, {"model=no-such-model"}).code, std::string("model.unknown"));
}

void TestLoading::theDetailIsBoundedAndEndsInTime()
{
    const Parameters parameters =
        resolve(loading().schema(), with(seventyBillion, {"chunk=4MiB", "streams=3"})).value();
    const Json detail = loading().predictDetail(test::h200(), parameters);
    QCOMPARE(detail["ways"].size(), std::size_t(2));
    for (const Json& way : detail["ways"]) {
        QVERIFY(way["pieces"].size() <= 192);
        double end = 0;
        for (const Json& piece : way["pieces"])
            end = std::max(end, piece[4].get<double>());
        QVERIFY(loadingIsWithin(end, way["time"].get<double>(), 1e-9));
    }
    QVERIFY(detail["ways"][1]["time"].get<double>() < detail["ways"][0]["time"].get<double>());
}

QTEST_APPLESS_MAIN(TestLoading)
#include "tst_loading.moc"

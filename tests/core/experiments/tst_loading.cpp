// SPDX-License-Identifier: Apache-2.0
// loading: the sizes of published files to the byte, the notes' arithmetic for a model of 70 billion parameters, what
// each choice costs and holds, and files of the user's own.
#include "core/base/number.h"
#include "core/experiments/loading/loading.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/devices.h"

#include <nlohmann/json.hpp>

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment loading{"loading"};

std::string loadingWord(const Device& device, const std::vector<std::string>& assignments, const char* key)
{
    const auto figures = loading.figures(device, assignments);
    return figures ? findFigure(*figures, key)->text() : figures.error().text();
}

Error loadingError(const Device& device, const std::vector<std::string>& assignments)
{
    const auto figures = loading.figures(device, assignments);
    return figures ? Error() : figures.error();
}

std::vector<std::string> with(std::vector<std::string> these, std::initializer_list<const char*> more)
{
    for (const char* one : more)
        these.emplace_back(one);
    return these;
}

const std::vector<std::string> seventyBillion{"model=llama-2-70b", "dtype=fp16", "medium=nvme4", "method=parallel"};

} // namespace

class TestLoading : public QObject
{
    Q_OBJECT

private slots:
    /// total_size of the publishers' model.safetensors.index.json; LLaMA 2's hold the rotary frequencies too: 64 floats
    /// a layer, which are no parameters.
    void filesHaveTheBytesThatWerePublished()
    {
        const Device device = test::h200();
        const auto bytes = [&](const char* model) { return loading.number(device, {model, "touched=1"}, "bytes"); };
        QCOMPARE(bytes("model=llama-2-70b"), 137953316864.0 - 80 * 64 * 4);
        QCOMPARE(bytes("model=llama-2-7b"), 13476839424.0 - 32 * 64 * 4);
        QCOMPARE(bytes("model=mistral-7b"), 14483464192.0);
    }

    /// The notes: 140 GB; 19.7 s at 7 GB/s against 2.6 s over PCIe 5.
    void seventyBillionParametersWaitForTheDisk()
    {
        const Device gpu = *findDevice("nvidia-h100-sxm");
        QVERIFY(isWithin(loading.number(gpu, seventyBillion, "read_time"), 137.95e9 / 7e9, 0.01));
        QVERIFY(isWithin(loading.number(gpu, seventyBillion, "copy_time"), 2.6, 0.04));
        QVERIFY(isWithin(loading.number(gpu, seventyBillion, "time"), 19.7, 0.02));
        QCOMPARE(loadingWord(gpu, seventyBillion, "bottleneck"), std::string("disk"));
        // From the page cache, read by many, the disk is out of it.
        const auto warm = with(seventyBillion, {"cache=warm", "threads=64", "staging=pageable"});
        QVERIFY(loading.number(gpu, warm, "time") < 14);
        QCOMPARE(loadingWord(gpu, warm, "bottleneck"), std::string("link to the GPU"));
    }

    void severalGpusShareTheModelAndNotTheDisk()
    {
        const Device gpu = *findDevice("nvidia-h100-sxm");
        const double one = loading.number(gpu, seventyBillion, "time");
        QVERIFY(isWithin(loading.number(gpu, with(seventyBillion, {"gpus=8"}), "time"), one, 0.01));
        QCOMPARE(loading.number(gpu, with(seventyBillion, {"gpus=8"}), "gpu_bytes"),
                 loading.number(gpu, seventyBillion, "gpu_bytes") / 8);
        const double copy = loading.number(gpu, seventyBillion, "copy_time");
        const double own = loading.number(gpu, with(seventyBillion, {"gpus=8"}), "copy_time");
        const double shared = loading.number(gpu, with(seventyBillion, {"gpus=8", "host_link=shared"}), "copy_time");
        QVERIFY(own < copy / 5); // a chunk's latency stays
        QVERIFY(isWithin(shared, copy, 1e-9));
    }

    void quantizedFilesLoadSooner()
    {
        const Device gpu = *findDevice("nvidia-h100-sxm");
        auto asked = seventyBillion;
        const double half = loading.number(gpu, asked, "time");
        asked[1] = "dtype=int8";
        const double byte = loading.number(gpu, asked, "time");
        asked[1] = "dtype=int4";
        const double nibble = loading.number(gpu, asked, "time");
        QVERIFY(isWithin(byte, half / 2, 0.02));
        QVERIFY(isWithin(nibble, half / 4, 0.11)); // embeddings stay, scales and zero points come
        // Dequantized by one core of the host, that is slower than the disk.
        QCOMPARE(loadingWord(gpu, with(asked, {"convert=bf16"}), "bottleneck"), std::string("conversion"));
        QVERIFY(isWithin(loading.number(gpu, with(asked, {"convert=bf16"}), "gpu_bytes"), 137.95e9, 1e-3));
    }

    void theSlowestStepRulesAPipeline()
    {
        const Device gpu = test::h200();
        const auto of = [&](const std::vector<std::string>& asked, const char* key) {
            return loading.number(gpu, asked, key);
        };
        const std::vector<std::string> chunked{"model=gpt2", "convert=bf16", "streams=3", "chunk=4MiB"};
        const double slowest =
            std::max({of(chunked, "read_time"), of(chunked, "convert_time"), of(chunked, "copy_time")});
        QVERIFY(of(chunked, "time") > slowest && of(chunked, "time") < 1.05 * slowest);
        const auto serial = with({"model=gpt2", "convert=bf16", "chunk=4MiB"}, {"streams=1"});
        QVERIFY(isWithin(of(serial, "time"),
                         of(serial, "read_time") + of(serial, "convert_time") + of(serial, "copy_time"), 1e-9));
        QCOMPARE(of(serial, "hidden_time"), 0.0);
        QCOMPARE(of({"model=gpt2", "convert=bf16", "chunk=0"}, "hidden_time"), 0.0); // one piece
    }

    void aWarmFileComesFromThePageCache()
    {
        const Device host = *findDevice("amd-epyc-9654");
        const double cold = loading.number(host, {"medium=sata"}, "time");
        QVERIFY(loading.number(host, {"medium=sata", "cache=warm"}, "time") < cold / 5);
        QCOMPARE(loading.number(host, {"medium=page-cache"}, "time"),
                 loading.number(host, {"medium=sata", "cache=warm"}, "time"));
        QCOMPARE(loading.number(host, {"cache=warm"}, "disk_bytes"), 0.0);
        QCOMPARE(loading.number(host, {}, "disk_bytes"), loading.number(host, {}, "bytes"));
        // Direct I/O goes past it, warm or not.
        QCOMPARE(loading.number(host, {"method=direct", "cache=warm"}, "time"),
                 loading.number(host, {"method=direct"}, "time"));
        QCOMPARE(loading.number(host, {"method=direct"}, "page_cache"), 0.0);
    }

    /// In multiples of the model: accelerate's low_cpu_mem_usage, and what it is without.
    void hostMemoryHoldsTheModelOnceTwiceOrNot()
    {
        const Device gpu = test::h200();
        const double file = loading.number(gpu, {"model=llama-2-7b"}, "bytes");
        const auto memory = [&](std::initializer_list<const char*> more) {
            return loading.number(gpu, with({"model=llama-2-7b"}, more), "peak_host_memory");
        };
        QCOMPARE(memory({}), 2.0 * (16 << 20)); // two buffers
        QCOMPARE(memory({"low_cpu_mem=once"}), file);
        QCOMPARE(memory({"low_cpu_mem=twice"}), 2 * file);
        QCOMPARE(memory({"method=mmap", "staging=pageable"}), 0.0); // the page cache's own pages
        QVERIFY(isWithin(memory({"low_cpu_mem=twice", "convert=fp32"}), 3 * file, 1e-6));
        const Device host = *findDevice("amd-epyc-9654");
        QCOMPARE(loading.number(host, {"model=llama-2-7b"}, "peak_host_memory"), file);
        QVERIFY(isWithin(loading.number(host, {"model=llama-2-7b", "convert=fp32", "method=mmap"}, "peak_host_memory"),
                         2 * file, 1e-6));
    }

    void touchedLoadsAShare()
    {
        const Device host = *findDevice("amd-epyc-9654");
        const double whole = loading.number(host, {"method=mmap"}, "bytes");
        const double part = loading.number(host, {"method=mmap", "touched=0.01"}, "bytes");
        QVERIFY(part >= 0.01 * whole && part < 0.01 * whole + 4096);
        QCOMPARE(std::fmod(part, 4096), 0.0); // whole pages
        QVERIFY(isWithin(loading.number(host, {"method=mmap"}, "faults"), whole / 65536, 1e-3));
    }

    void calibratedRatesAreUsedAsTheyAre()
    {
        Device host = test::twoCores("host");
        for (const auto& [id, rate] :
             {std::pair("disk-read", 2e9), std::pair("cached-read", 10e9), std::pair("convert-fp32-bf16", 5e9)})
            host.links.push_back({id, id, {rate, Evidence::Measured}, {1e-3, Evidence::Measured}});
        const auto of = [&](const std::vector<std::string>& asked, const char* key) {
            return loading.number(host, asked, key);
        };
        const double bytes = of({}, "bytes");
        QVERIFY(isWithin(of({"chunk=0"}, "read_time"), 1e-3 + bytes / 2e9, 1e-9));
        QVERIFY(isWithin(of({"chunk=0", "cache=warm"}, "read_time"), 1e-3 + bytes / 10e9, 1e-9));
        QVERIFY(isWithin(of({"chunk=0", "dtype=fp32", "convert=bf16"}, "convert_time"), 1e-3 + bytes / 5e9, 1e-9));
        QVERIFY(of({"chunk=0", "medium=hdd"}, "read_time")
                > 0.9 * bytes / 270e6); // another disk than the calibrated one
        // What a calibration knows of the page cache: 2048 single pages, then the windows' larger ones.
        host.calibration = Calibration();
        host.calibration->raw = {{"page_cache", {{"window", 0x1p23}, {"largest", 0x1p21}}},
                                 {"piece_seconds", {{"disk-read", 2e-6}}}};
        const std::vector<std::string> sixteen{"chunk=0", "model=params:8e6", "dtype=bf16"};
        const double pieces = 2048 + 512 * (of(sixteen, "bytes") - 0x1p23) / 0x1p23;
        QVERIFY(of(sixteen, "bytes") > 0x1p23 && of(sixteen, "bytes") < 0x1p24);
        QVERIFY(isWithin(of(sixteen, "read_time"), 1e-3 + pieces * 2e-6 + of(sixteen, "bytes") / 2e9, 1e-3));
        QVERIFY(isWithin(of(with(sixteen, {"method=mmap"}), "faults"), of(sixteen, "bytes") / 65536, 0.01));
        // The kernel reads ahead over the borders of chunks: α is paid once; past the page cache by each of them.
        host.links.push_back({"disk-direct", "", {2e9, Evidence::Measured}, {1e-3, Evidence::Measured}});
        const std::vector<std::string> chunked{"chunk=1MiB", "model=params:8e6", "dtype=bf16"};
        QVERIFY(isWithin(of(chunked, "read_time"), of(sixteen, "read_time"), 1e-9));
        const double chunks = of(chunked, "chunks");
        QVERIFY(chunks > 8);
        QVERIFY(isWithin(of(with(chunked, {"method=direct"}), "read_time"), chunks * 1e-3 + of(sixteen, "bytes") / 2e9,
                         1e-9));
        // One core cannot do both.
        host.units = host.threads = 1;
        const std::vector<std::string> both{"dtype=fp32", "convert=bf16"};
        QVERIFY(isWithin(of(both, "time"), of(both, "read_time") + of(both, "convert_time"), 1e-9));
    }

    void aFileOfOnesOwnIsTheModel()
    {
        const Device gpu = test::h200();
        const std::string file = "file=" TEST_DATA "/models/tiny.safetensors";
        QCOMPARE(loading.number(gpu, {file}, "bytes"),
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

    void aMediumOfOnesOwnIsTheDisk()
    {
        QTemporaryDir folder;
        QFile file(folder.filePath(QStringLiteral("nas.json")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(R"({"format": "memscape-media", "version": 1, "media": [{"id": "nas", "name": "our file server",
        "network": true, "bandwidth": {"value": 1e8, "kind": "measured", "source": "dd"}}]})");
        file.close();
        const std::string own = "medium_file=" + file.fileName().toStdString();
        const Device gpu = test::h200();
        const double bytes = loading.number(gpu, {own}, "bytes");
        QVERIFY(isWithin(loading.number(gpu, {own, "chunk=0"}, "read_time"), bytes / 1e8, 1e-6));
        // It stands in place of the choice, and the medium is no axis any more.
        QCOMPARE(loading.number(gpu, {own, "medium=nvme5"}, "time"), loading.number(gpu, {own}, "time"));
        const Experiment& loading = **findExperiment("loading");
        const Parameters asked = resolve(loading.schema(), std::vector<std::string>{own}).value();
        const auto idle = loading.idleParameters(gpu, asked);
        QVERIFY(std::find(idle.begin(), idle.end(), "medium") != idle.end());
        QCOMPARE(loading.axis(gpu, asked).key, std::string("touched"));
        QCOMPARE(loading.predictDetail(gpu, asked)["medium"].get<std::string>(), std::string("our file server"));
    }

    void badInputSaysWhatToDo()
    {
        const Device gpu = test::h200();
        const Error direct = loadingError(gpu, {"medium=page-cache", "method=direct"});
        QCOMPARE(direct.code, std::string("predict.loading"));
        QVERIFY(direct.hint.find("method=read") != std::string::npos);
        const Error chunks = loadingError(gpu, {"model=llama-2-70b", "chunk=4KiB"});
        QCOMPARE(chunks.code, std::string("predict.chunks"));
        const QString hint = QString::fromStdString(chunks.hint);
        const std::string remedy = QRegularExpression("chunk=\\d+").match(hint).captured().toStdString();
        QVERIFY2(loading.figures(gpu, {"model=llama-2-70b", remedy}), qPrintable(hint));
        QVERIFY(!loadingError(gpu, {"touched=0"}).code.empty());
        QVERIFY(!loadingError(gpu, {"chunk=9223372036854775808"}).code.empty()); // 2^63
        QVERIFY(!loadingError(gpu, {"model=params:0"}).code.empty());
        QCOMPARE(loadingError(gpu, {"model=no-such-model"}).code, std::string("model.unknown"));
    }

    void theDetailIsBoundedAndEndsInTime()
    {
        const Parameters parameters = loading.with(with(seventyBillion, {"chunk=4MiB", "streams=3"}));
        const Json detail = loading->predictDetail(test::h200(), parameters);
        QCOMPARE(detail["ways"].size(), std::size_t(2));
        for (const Json& way : detail["ways"]) {
            QVERIFY(way["pieces"].size() <= 192);
            double end = 0;
            for (const Json& piece : way["pieces"])
                end = std::max(end, piece[4].get<double>());
            QVERIFY(isWithin(end, way["time"].get<double>(), 1e-9));
        }
        QVERIFY(detail["ways"][1]["time"].get<double>() < detail["ways"][0]["time"].get<double>());
    }
};

QTEST_APPLESS_MAIN(TestLoading)
#include "tst_loading.moc"

// SPDX-License-Identifier: Apache-2.0
// placement: published speeds and sizes of offloaded training, models cut into layers, what each parameter decides, and
// errors that name the place and the remedy.
#include "core/experiments/placement/placement.h"
#include "core/network/inventory.h"
#include "core/network/model_names.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/devices.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <cmath>
#include <set>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment placement{"placement"};

Error placementError(const char* device, const std::vector<std::string>& assignments)
{
    const auto figures = placement.figures(*findDevice(device), assignments);
    return figures ? Error{"none", "it was predicted"} : figures.error();
}

const char* const ownGraph = "graph=x: input 512 4096; m@host: input 512 4096; a: matmul 512 4096 4096 <- x; "
                             "b: mul <- a m; n: item <- b; c: gelu <- b";

} // namespace

class TestPlacement : public QObject
{
    Q_OBJECT

private slots:
    /// Ren et al. 2021 (ZeRO-Offload), abstract: 40 TFLOPS on one V100 with 10 billion parameters. Our products reach
    /// what large products reach; attention and norms are counted as time but not as useful work.
    void tenBillionParametersTrainAtThePublishedSpeed()
    {
        const double rate = placement.number(
            "nvidia-v100-sxm2",
            {"graph=params:10e9", "strategy=zero-offload", "limit=32GB", "batch=4", "sequence=1024"}, "flop_rate");
        QVERIFY2(rate > 30e12 && rate < 50e12, qPrintable(QString::number(rate)));
    }

    /// The same: 13 billion on a single GPU of 32 GB, 1.4 billion without offloading.
    void thirteenBillionFitAV100WithTheirOptimizerElsewhere()
    {
        const std::vector<std::string> large{"graph=llama-2-13b", "strategy=zero-offload", "limit=32GB", "batch=1",
                                             "sequence=1024"};
        const auto figures = placement.figures(*findDevice("nvidia-v100-sxm2"), large);
        QVERIFY(figures);
        QCOMPARE(findFigure(*figures, "fits")->text(), std::string("yes"));
        const double weights = 2 * double(inventory(*readModel("llama-2-13b"))->total);
        QCOMPARE(findFigure(*figures, "transferred")->number(), 2 * weights);
        QVERIFY(findFigure(*figures, "peak")->number() > weights);
    }

    void aModelHasAllItsWeights()
    {
        for (const char* name : {"gpt2", "llama-2-7b", "bert-base-uncased"}) {
            const Parameters parameters =
                placement.with({"graph=" + std::string(name), "batch=1", "sequence=64", "strategy=host"});
            const auto asked = placementCase(*findDevice("nvidia-h200"), parameters);
            QVERIFY2(asked, name);
            const auto model = readModel(name);
            QCOMPARE(asked->graph.weightBytes(), 2 * inventory(*model)->total);
            QVERIFY(asked->graph.isChain());
            QVERIFY(asked->graph.nodes.size() >= std::size_t(model->layers) + 2);
        }
    }

    void everyLayerThatComesUpIsCopiedOnce()
    {
        const std::vector<std::string> layers{"graph=llama-2-7b", "batch=1", "sequence=128", "strategy=layers",
                                              "limit=4GiB"};
        const double moved = placement.number("nvidia-h200", layers, "transferred");
        const double streamed = placement.number("nvidia-h200", layers, "streamed");
        QVERIFY(streamed > 8e9);
        QVERIFY(moved >= streamed && moved < streamed + 1e6); // and the tokens
        const double resident = placement.number("nvidia-h200", layers, "resident");
        QCOMPARE(resident + streamed, 2.0 * double(inventory(*readModel("llama-2-7b"))->total));
    }

    /// Nothing else can hide it: one token's products are far shorter than their weights' way.
    void aTokenOfAStreamedModelTakesItsWeightsOverTheLink()
    {
        const std::vector<std::string> token{"graph=llama-2-7b", "batch=1", "sequence=1", "strategy=layers",
                                             "limit=1.5GiB"};
        const double link = findDevice("nvidia-h200")->link("host")->bandwidth.value;
        const double time = placement.number("nvidia-h200", token, "time");
        const double streamed = placement.number("nvidia-h200", token, "streamed");
        QVERIFY2(time > streamed / link && time < 1.05 * streamed / link, qPrintable(QString::number(time)));
    }

    void hiddenCopiesAreCounted()
    {
        const std::vector<std::string> own{ownGraph, "strategy=implicit", "limit=1GiB"};
        QCOMPARE(placement.number("nvidia-h200", own, "copies"), 2.0); // the mask, and .item()
        QCOMPARE(placement.number("nvidia-h200", own, "waits"), 1.0);
        QCOMPARE(placement.number("nvidia-h200", own, "transferred"), 512.0 * 4096 * 2 + 2);
    }

    void explicitPlacesAreKept()
    {
        std::vector<std::string> own{ownGraph, "strategy=device", "limit=1GiB"};
        QCOMPARE(placement.number("nvidia-h200", own, "on_host"), 0.0);
        const double before = placement.number("nvidia-h200", own, "time");
        own.emplace_back("place=b@host, c@host");
        QCOMPARE(placement.number("nvidia-h200", own, "on_host"), 2.0);
        QVERIFY(placement.number("nvidia-h200", own, "time") > before);
        own.back() = "place=m@device";
        QCOMPARE(placement.number("nvidia-h200", own, "copies"), 1.0); // .item() alone
    }

    void aDiskHoldsTheStateBack()
    {
        std::vector<std::string> infinity{"graph=llama-2-7b", "batch=1", "strategy=zero-infinity"};
        const double memory = placement.number("nvidia-h200", infinity, "time");
        infinity.emplace_back("disk=3GB/s");
        const double state = 12.0 * double(inventory(*readModel("llama-2-7b"))->total);
        const double disk = placement.number("nvidia-h200", infinity, "time");
        QVERIFY(disk > memory + 2 * state / 3e9 - placement.number("nvidia-h200", infinity, "update_time"));
        const auto figures = placement.figures(*findDevice("nvidia-h200"), infinity);
        QCOMPARE(findFigure(*figures, "bottleneck")->text(), std::string("disk"));
    }

    void partsAddUp()
    {
        for (const char* strategy :
             {"implicit", "device", "host", "cheapest", "layers", "zero-offload", "zero-infinity"}) {
            const auto figures = placement.figures(
                *findDevice("nvidia-h100-sxm"), {"strategy=" + std::string(strategy), "graph=mlp:6x512", "limit=8MiB"});
            QVERIFY2(figures, strategy);
            const auto number = [&](const char* key) { return findFigure(*figures, key)->number(); };
            QVERIFY(std::fabs(number("compute_time") + number("transfer_time") - number("hidden_time") - number("time"))
                    < 1e-9);
            QVERIFY(number("hidden_time") >= 0);
            QVERIFY(number("time") >= number("compute_time") - number("host_time") - 1e-12);
            for (const Figure& figure : *figures)
                QVERIFY2(figure.text().find("nan") == std::string::npos, figure.key.c_str());
        }
    }

    void theCurveCoversWhatFits()
    {
        for (const char* strategy : {"layers", "cheapest", "device", "zero-offload"}) {
            const Parameters parameters = placement.with({"strategy=" + std::string(strategy)});
            const auto predicted = placement->predict(test::h200(), parameters);
            QVERIFY2(predicted, predicted ? "" : predicted.error().text().c_str());
            const Series* const time = predicted->findSeries("time");
            QVERIFY(time && time->y.size() >= 5);
            for (const double seconds : time->y)
                QVERIFY(std::isfinite(seconds));
        }
    }

    void whatCannotBeSaysWhere_data()
    {
        QTest::addColumn<QStringList>("assignments");
        QTest::addColumn<QByteArray>("code");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* name, const QStringList& assignments, const char* code, const char* words) {
            QTest::newRow(name) << assignments << QByteArray(code) << QByteArray(words);
        };
        row("a limit below a layer", {"strategy=layers", "limit=1MiB", "prefetch=0"}, "placement.limit",
            "layer0 needs");
        row("no such node", {"place=layer99@host"}, "placement.name", "layer9");
        row("no place", {"place=layer1"}, "placement.name", "name@host");
        row("a copy", {ownGraph, "strategy=implicit", "place=n@host"}, "placement.name", "fixed");
        row("training of a graph that branches", {ownGraph, "strategy=zero-offload"}, "placement.training", "branches");
        row("no such model", {"graph=gpt9"}, "model.unknown", "gpt2");
        row("no graph", {"graph=a = gelu(b)"}, "model.unknown", "write a graph like");
        row("a graph with a mistake", {"graph=x: input 4; y: gelu <- z"}, "graph.undefined", "statement 2");
        row("a chain too wide", {"graph=mlp:2x999999"}, "chain.range", "65536");
        row("pinned where it does not fit", {"strategy=cheapest", "limit=1MiB", "place=layer0@device"},
            "placement.limit", "layer0");
    }
    void whatCannotBeSaysWhere()
    {
        QFETCH(QStringList, assignments);
        QFETCH(QByteArray, code);
        QFETCH(QByteArray, words);
        std::vector<std::string> all;
        for (const QString& one : assignments)
            all.push_back(one.toStdString());
        const Error error = placementError("nvidia-h200", all);
        QVERIFY2(error.code == code.toStdString(), error.text().c_str());
        QVERIFY2(error.text().find(words.toStdString()) != std::string::npos, error.text().c_str());
    }

    void aDeviceWithoutRatesIsRefused()
    {
        Device device = test::h200();
        device.links.clear();
        const auto figures = placement->predictPoint(device, placement.with({}));
        QVERIFY(!figures);
        QCOMPARE(figures.error().code, std::string("predict.device"));
    }

    void theDetailIsBounded()
    {
        const Json detail = placement->predictDetail(test::h200(), placement.with({"graph=mlp:2000x64"}));
        QCOMPARE(detail["node_count"].get<int>(), 4001);
        QVERIFY(detail["nodes"].size() <= 400);
        QVERIFY(detail["pieces"].size() <= 1200);
    }
};

QTEST_GUILESS_MAIN(TestPlacement)
#include "tst_placement.moc"

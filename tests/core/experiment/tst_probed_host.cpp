// SPDX-License-Identifier: Apache-2.0
// A processor that became slower after its calibration: the works taken in turn with the steps say how much, the model
// is asked with that, and what is written is read again, or nothing is.
#include "core/experiment/probed_host.h"
#include "core/experiment/probed_links.h"
#include "tests/support/devices.h"
#include "tests/support/operator_probes.h"

#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::test;

namespace {

Device calibratedPytorch()
{
    Device device = twoCores();
    device.id = "pytorch:cpu";
    device.framework = Framework{"pytorch", "2.15.0"};
    device.rates["fp32"] = {{400e9, Evidence::Unverified, "typical", {}}, 16, false, {}};
    const Json rows = knownProbes();
    const auto operations = fitPytorchOperations(*pytorchProbesFromJson(JsonReader(rows, "probes")), 2);
    device.calibration = Calibration();
    device.calibration->raw = Json{{"pytorch", pytorchOperationsToJson(*operations)}};
    return device;
}

/// The works took 1 ms each when it was calibrated; the mean counts.
Json worksOf(double core, double memory, double page, double call)
{
    return {{"core", {core / 2, 3 * core / 2}}, {"memory", {memory}}, {"page", {page, page}}, {"call", {call}}};
}

const Experiment& memoryBudget()
{
    return **findExperiment("training-memory");
}

Parameters smallStep()
{
    return resolve(memoryBudget().schema(),
                   std::vector<std::string>{"model=mlp:256,512,10", "batch=64", "precision=fp32", "advice=none"})
        .value();
}

double predictedStep(const Device& device)
{
    const Figures figures = memoryBudget().predictPoint(device, smallStep()).value();
    for (const Figure& figure : figures)
        if (figure.key == "step_time")
            return figure.number();
    return 0;
}

Measurement measuredStep(const Json& samples, const Device& device = calibratedPytorch())
{
    Measurement measured;
    measured.figures.push_back({"step_time", "step time", Unit::Second, 2 * predictedStep(calibratedPytorch())});
    addProbedHost(measured, memoryBudget(), device, smallStep(), samples);
    return measured;
}

} // namespace

class TestProbedHost : public QObject
{
    Q_OBJECT
private slots:
    void aProcessorAsCalibratedChangesNothing()
    {
        const auto host = probedHost(measuredStep(worksOf(1e-3, 1e-3, 1e-3, 1e-3)));
        QVERIFY(host.has_value());
        QCOMPARE(host->times.core, 1.0);
        QVERIFY(std::abs(host->stepTime / predictedStep(calibratedPytorch()) - 1) < 1e-9);
    }

    void everyPartTwiceAsSlowIsAStepTwiceAsLong()
    {
        const auto host = probedHost(measuredStep(worksOf(2e-3, 2e-3, 2e-3, 2e-3)));
        QVERIFY(std::abs(host->stepTime / predictedStep(calibratedPytorch()) - 2) < 0.02);
    }

    void eachWorkSlowsItsOwnPart()
    {
        const double before = predictedStep(calibratedPytorch());
        const auto after = [](double core, double memory, double call) {
            return probedHost(measuredStep(worksOf(core, memory, 1e-3, call)))->stepTime;
        };
        const double core = after(3e-3, 1e-3, 1e-3), memory = after(1e-3, 3e-3, 1e-3), call = after(1e-3, 1e-3, 3e-3);
        QVERIFY(core > before && memory > before && call > before);
        QVERIFY(core + memory + call - 3 * before < 2 * before * 1.001); // no part is in two of them
    }

    void theSentenceSaysWhatWasFoundAndHowFarItIs()
    {
        const std::string text = probedText(measuredStep(worksOf(2e-3, 2e-3, 2e-3, 2e-3)));
        QVERIFY2(text.find("arithmetic 2 times, memory 2 times, new pages 2 times, calls 2 times") != std::string::npos,
                 text.c_str());
        QVERIFY2(text.find(" off what it took.") != std::string::npos, text.c_str());
        QCOMPARE(probedText(Measurement()), std::string());
    }

    void whatSaysNothingAddsNothing()
    {
        const auto isEmpty = [](const Json& samples, const Device& device = calibratedPytorch()) {
            return !measuredStep(samples, device).detail.contains("probed_host");
        };
        const Json good = worksOf(1e-3, 1e-3, 1e-3, 1e-3);
        QVERIFY(!isEmpty(good));
        for (const Json& bad : {Json(), Json(7), Json::object(), Json{{"core", {1e-3}}}, worksOf(0, 1, 1, 1)})
            QVERIFY2(isEmpty(bad), bad.dump().c_str());
        Json text = good;
        text["page"] = {"soon"};
        QVERIFY(isEmpty(text));
        Device older = calibratedPytorch();
        older.calibration->raw["pytorch"].erase("state");
        QVERIFY(isEmpty(good, older));
        Device own = calibratedPytorch();
        own.framework.reset();
        QVERIFY(isEmpty(good, own));
    }

    void whatIsNotOursIsNotRead()
    {
        Measurement measured = measuredStep(worksOf(1e-3, 1e-3, 1e-3, 1e-3));
        for (const char* const key : {"core", "call", "step_time"}) {
            Measurement broken = measured;
            broken.detail["probed_host"][key] = -1;
            QVERIFY2(!probedHost(broken), key);
            broken.detail["probed_host"].erase(key);
            QVERIFY2(!probedHost(broken), key);
        }
        measured.detail["probed_host"] = "slow";
        QVERIFY(!probedHost(measured));
    }
};

QTEST_GUILESS_MAIN(TestProbedHost)
#include "tst_probed_host.moc"

// SPDX-License-Identifier: Apache-2.0
// The costs of PyTorch's operators from rows of known ones, and what operators and updates take by them.
#include "core/timing/pytorch_operations.h"

#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/reached_step.h"
#include "tests/support/devices.h"
#include "tests/support/operator_probes.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::test;

namespace {

Result<PytorchOperations> fittedFrom(const Json& rows)
{
    const auto probes = pytorchProbesFromJson(JsonReader(rows, "probes"));
    return probes ? fitPytorchOperations(*probes, 2) : fail(probes.error());
}

Device pytorchDevice(const PytorchOperations* operations)
{
    Device device = twoCores();
    device.id = "pytorch:cpu";
    device.framework = Framework{"pytorch", "2.15.0"};
    device.rates["fp32"] = {{400e9, Evidence::Unverified, "typical", {}}, 16, false, {}};
    if (operations == nullptr)
        return device;
    device.calibration = Calibration();
    device.calibration->raw = Json{{"pytorch", pytorchOperationsToJson(*operations)}};
    return device;
}

OperatorCost passCost(OperatorKind kind, double elements, bool isBackward = false)
{
    OperatorCost cost;
    cost.kind = kind;
    cost.isBackward = isBackward;
    cost.elements = elements;
    cost.bytes = 8 * elements;
    return cost;
}

OperatorCost productCost(double m, double n, double k, double count)
{
    OperatorCost cost;
    cost.isProduct = true;
    cost.flops = 2 * m * n * k * count;
    cost.products[0] = {HostOperation::Forward, {m, n, k}, count};
    return cost;
}

void expectNear(double value, double wanted, double share = 0.02)
{
    QVERIFY2(std::abs(value - wanted) <= share * wanted, qPrintable(QString("%1 is not %2").arg(value).arg(wanted)));
}

ParameterTensor parameterWith(std::int64_t elements)
{
    ParameterTensor tensor;
    tensor.elements = elements;
    tensor.shape = {elements};
    tensor.isTrained = true;
    return tensor;
}

} // namespace

class TestPytorchOperations : public QObject
{
    Q_OBJECT

    PytorchOperations m_known = fittedFrom(knownProbes()).value();

private slots:
    void theFitFindsWhatTheRowsWereMadeOf()
    {
        expectNear(m_known.parts(productCost(256, 96, 200, 1)).total(), 256.0 * 96 * 200 * knownFlop);
        expectNear(m_known.nearByte, knownByte);
        expectNear(m_known.bandwidth, 10e9);
        QCOMPARE(m_known.cache, 0x1p20);
        QCOMPARE(m_known.rateFactor(DType::BFloat16), 2.0);
        QCOMPARE(m_known.rateFactor(DType::Float16), 1.0); // not measured
        QVERIFY(m_known.evidence == Evidence::Measured);
    }

    /// Eight matrices on two threads are four turns of one thread; a single one is shared by both.
    void matricesOfABatchAreSharedOutWhole()
    {
        const double flops = 2.0 * 64 * 96 * 200;
        expectNear(m_known.parts(productCost(64, 96, 200, 8)).total(), 4 * flops * knownBatchedFlop);
        expectNear(m_known.parts(productCost(64, 96, 200, 7)).total(), 4 * flops * knownBatchedFlop);
        expectNear(m_known.parts(productCost(64, 96, 200, 1)).total(), flops / 2 * knownFlop);
    }

    void halvesMultiplyAsFastAsTheyWereMeasured()
    {
        OperatorCost cost = productCost(256, 96, 200, 1);
        cost.dtype = DType::BFloat16;
        expectNear(m_known.parts(cost).arithmetic, 256.0 * 96 * 200 * knownFlop / 2);
    }

    void aPassTakesWhatItsKindTakes()
    {
        constexpr double elements = 1 << 20;
        expectNear(m_known.parts(passCost(OperatorKind::Relu, elements)).total(), 1e-10 * elements);
        expectNear(m_known.parts(passCost(OperatorKind::Gelu, elements)).total(), 5e-10 * elements);
        expectNear(m_known.parts(passCost(OperatorKind::Gelu, elements, true)).total(), 9e-10 * elements);
        expectNear(m_known.parts(passCost(OperatorKind::Mish, elements)).total(),
                   8 * elements * knownByte); // not measured
    }

    /// at::parallel_for gives a thread 32,768 elements at least.
    void aSmallPassStaysOnOneThread()
    {
        expectNear(m_known.parts(passCost(OperatorKind::Gelu, 32768)).total(), 2 * 5e-10 * 32768);
        expectNear(m_known.parts(passCost(OperatorKind::Gelu, 65536)).total(), 5e-10 * 65536);
    }

    void whatLeftTheCachesTakesLonger()
    {
        OperatorCost cost = passCost(OperatorKind::Relu, 1 << 20), product = productCost(256, 320, 200, 1);
        const double pass = m_known.parts(cost).total(), alone = m_known.parts(product).total();
        cost.far = product.far = 1e7;
        expectNear(m_known.parts(cost).total(), pass + 1e7 * knownFarByte);
        expectNear(m_known.parts(product).total(), alone + 1e7 * knownFarByte);
    }

    void operandsInMemoryAreComparedWithTheSameOnesNear()
    {
        Json rows = knownProbes();
        for (Json& row : rows)
            if (row["kind"] == "cold forward")
                row["m"] = 65; // no product of that shape was near
        const auto fitted = fittedFrom(rows);
        QVERIFY(!fitted && fitted.error().message.find("cold forward") != std::string::npos);
        QVERIFY(!std::isfinite(m_known.retention));
        Json shared = knownProbes();
        shared.push_back(knownRow("retention", 2e-3));
        QCOMPARE(fittedFrom(shared)->retention, 2e-3);
    }

    /// Operators are measured at their best; the works of the state say what interruptions add on average.
    void aStepMeetsOperatorsAsTheyAreOnAverage()
    {
        Json rows = knownProbes();
        for (Json& row : rows)
            if (row["kind"] == "state")
                row["seconds"] = row["operator"] == "core" ? 1.5e-3 : row["operator"] == "page" ? 2e-3 : 1e-3;
        const PytorchOperations average = *fittedFrom(rows);
        const OperatorCost pass = passCost(OperatorKind::Relu, 1 << 20);
        expectNear(average.parts(pass).total(), 1.5 * m_known.parts(pass).total());
        expectNear(average.firstTouch, 2 * m_known.firstTouch);
        expectNear(average.bandwidth, m_known.bandwidth);
        expectNear(average.state->page, 2e-3);
        for (Json& row : rows)
            if (row["kind"] == "state" && row["operator"] == "core")
                row["seconds"] = 20e-3; // others compiled meanwhile
        const PytorchOperations shared = *fittedFrom(rows);
        expectNear(shared.parts(pass).total(), m_known.parts(pass).total());
        expectNear(shared.state->core, 1e-3);
    }

    void aSlowerProcessorTakesLonger()
    {
        const PytorchOperations slow = slowed(m_known, {2, 3, 5, 7});
        OperatorCost cost = passCost(OperatorKind::Relu, 1 << 20);
        const double near = m_known.parts(cost).total();
        expectNear(slow.parts(cost).total(), 2 * near);
        cost.far = 1e7;
        expectNear(slow.parts(cost).total(), 2 * near + 3 * 1e7 * knownFarByte);
        expectNear(slow.parts(productCost(256, 320, 200, 8)).total(),
                   2 * m_known.parts(productCost(256, 320, 200, 8)).total());
        expectNear(slow.firstTouch, 5 * m_known.firstTouch);
        expectNear(slow.updateCall, 7 * m_known.updateCall);
        expectNear(slow.bandwidth, m_known.bandwidth / 3);
    }

    /// torch/csrc/autograd/functions/accumulate_grad.h: a gradient in another order than its weight's is copied.
    void aGradientThatLiesTheOtherWayRoundIsCopied()
    {
        BuildOptions options;
        options.batch = 1;
        options.sequence = 8;
        const auto stepOf = [&](const char* model, double turned) {
            PytorchOperations operations = m_known;
            operations.passes["turned"] = {turned, 0};
            const Graph graph = buildNetwork(*readModel(model), options).value();
            Trace trace;
            const auto parameters = parameterTensors(graph, trace);
            return reachedStepTime(graph, parameters, Plan(), pytorchDevice(&operations), 1e9).value().backward;
        };
        const char* const byEinsum = "from-scratch:hidden=64,layers=1,heads=2,ffn=128,vocab=256";
        const double weights = 4 * 64 * 64 + 3 * 64 * 128 + 64 * 256; // attention, feed forward, head
        expectNear(stepOf(byEinsum, 1e-3) - stepOf(byEinsum, 0), weights * 1e-3);
        QCOMPARE(stepOf("mlp:64,64", 1e-3), stepOf("mlp:64,64", 0)); // linear layers make it as it is kept
    }

    void largerWindowsOfChannelsHaveCostsOfTheirOwn()
    {
        OperatorCost cost;
        cost.isProduct = cost.isConvolution = true;
        cost.flops = 2e6;
        cost.window = 9;
        expectNear(m_known.parts(cost).total(), 1e6 * 1e-10);
        cost.window = 25;
        expectNear(m_known.parts(cost).total(), 1e6 * 25.0 / 9 * 1e-10);
    }

    /// AdamW reads and writes 20 floats an element, operator by operator; 7 of them are there for the first time,
    /// and a third is written in place.
    void anUpdateReadsMemoryOnceWhereTheCacheHoldsIt()
    {
        Plan plan;
        plan.precision = Precision::Fp32;
        plan.optimizer = OptimizerKind::AdamW;
        plan.update = UpdateStyle::Loop;
        constexpr std::int64_t small = 32768, large = 1 << 22;
        const double held = 1e9;
        expectNear(m_known.updateSeconds({parameterWith(small)}, plan, held),
                   knownCall + small * (28 * 2.0 / 3 / 10e9 + 2 * 52 * knownByte));
        expectNear(m_known.updateSeconds({parameterWith(large)}, plan, held), knownCall + large * 80 * 2.0 / 3 / 10e9);
        expectNear(m_known.updateSeconds({parameterWith(small)}, plan, 1e5), knownCall + small * 2 * 80 * knownByte);
        QCOMPARE(m_known.updateSeconds({}, plan, held), 0.0);
    }

    void aStepOfADeviceThatIsPytorchTakesTheseCosts()
    {
        BuildOptions options;
        options.batch = 64;
        const Graph graph = buildNetwork(*readModel("mlp:256,512,10"), options).value();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        const auto secondsOn = [&](const PytorchOperations& operations) {
            return reachedStepTime(graph, parameters, Plan(), pytorchDevice(&operations), 1e9).value().total;
        };
        PytorchOperations slow = m_known;
        for (HostProductCost& cost : slow.products.products)
            cost.perFlop *= 10;
        const double multiplyAdds = 64.0 * (256 * 512 * 2 + 512 * 10 * 3); // the first layer's input wants no gradient
        expectNear(secondsOn(slow) - secondsOn(m_known), multiplyAdds * 9 * knownFlop, 0.1);
        PytorchOperations hesitant = m_known;
        hesitant.forwardCall += 1e-3;
        QVERIFY(secondsOn(hesitant) > secondsOn(m_known) + 3e-3); // two layers and the loss at least
        Device own = pytorchDevice(&slow);
        own.framework.reset();
        Device plain = twoCores();
        plain.rates = own.rates;
        QCOMPARE(reachedStepTime(graph, parameters, Plan(), own, 1e9)->total,
                 reachedStepTime(graph, parameters, Plan(), plain, 1e9)->total);
    }

    void costsAreKeptAndReadAgain()
    {
        const Device device = pytorchDevice(&m_known);
        const PytorchOperations kept = pytorchOperations(device);
        QVERIFY(kept.evidence == Evidence::Measured);
        QVERIFY(pytorchOperationsToJson(kept) == pytorchOperationsToJson(m_known));
    }

    void brokenCostsAreNotUsed()
    {
        const auto evidenceOf = [this](const std::function<void(Json&)>& breakIt) {
            Device device = pytorchDevice(&m_known);
            breakIt(device.calibration->raw["pytorch"]);
            return pytorchOperations(device).evidence;
        };
        QVERIFY(evidenceOf([](Json&) {}) == Evidence::Measured);
        QVERIFY(evidenceOf([](Json& json) { json = 7; }) == Evidence::Unverified);
        for (const char* const key :
             {"products", "batched", "convolutions", "passes", "rates", "channelwise", "forward_call", "bandwidth",
              "cache", "first_touch", "far_byte", "far_weight_gradient"})
            QVERIFY2(evidenceOf([key](Json& json) { json.erase(key); }) == Evidence::Unverified, key);
        QVERIFY(evidenceOf([](Json& json) { json["bandwidth"] = 0; }) == Evidence::Unverified);
        QVERIFY(evidenceOf([](Json& json) { json["first_touch"] = "soon"; }) == Evidence::Unverified);
        QVERIFY(evidenceOf([](Json& json) { json["passes"]["gelu"] = {1, -1}; }) == Evidence::Unverified);
        QVERIFY(evidenceOf([](Json& json) { json["channelwise"] = {1, 2}; }) == Evidence::Unverified);
        QVERIFY(evidenceOf([](Json& json) { json["retention"] = -1; }) == Evidence::Unverified);
        QVERIFY(evidenceOf([](Json& json) { json["state"] = 7; }) == Evidence::Unverified);
        QVERIFY(evidenceOf([](Json& json) { json["state"]["page"] = 0; }) == Evidence::Unverified);
        QVERIFY(evidenceOf([](Json& json) { json.erase("state"); }) == Evidence::Measured); // of an older calibration
    }

    void withoutACalibrationThereAreTypicalCosts()
    {
        const PytorchOperations typical = pytorchOperations(pytorchDevice(nullptr));
        QVERIFY(typical.evidence == Evidence::Unverified);
        QVERIFY(typical.forwardCall > 0 && typical.firstTouch > 0 && typical.bandwidth > 0);
        QVERIFY(typical.parts(productCost(64, 96, 200, 1)).total() > 0);
        QVERIFY(typical.parts(passCost(OperatorKind::Gelu, 1e6)).total() > 0);
    }

    void whatWasNotMeasuredIsNamed()
    {
        for (const char* const kind :
             {"first touch", "backward call", "copy", "weight gradient", "batched forward", "cold pass"}) {
            Json rows = Json::array();
            for (const Json& row : knownProbes())
                if (row["kind"] != kind)
                    rows.push_back(row);
            const auto fitted = fittedFrom(rows);
            QVERIFY2(!fitted && fitted.error().code == "calibration.probes", kind);
        }
        Json rows = knownProbes();
        rows[0]["seconds"] = "quick";
        QCOMPARE(fittedFrom(rows).error().place, std::string("probes[0].seconds"));
    }
};

QTEST_GUILESS_MAIN(TestPytorchOperations)
#include "tst_pytorch_operations.moc"

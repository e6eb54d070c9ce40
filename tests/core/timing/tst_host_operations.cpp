// SPDX-License-Identifier: Apache-2.0
// The fit against probes whose costs are known, and what a step makes of them.
#include "core/timing/host_operations.h"

#include "core/experiments/batch-size/batch_size.h"
#include "tests/support/devices.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::test;

namespace {

/// A machine of round numbers: a call of 0.5 µs, products of 1 µs and 5 ps a FLOP, 0.2 ns an operand.
HostOperations knownHost()
{
    HostOperations host;
    host.threads = 2;
    host.start = 0.3e-6;
    host.call = 0.5e-6;
    host.perByte = 4e-12;
    host.products = {{{1e-6, 5e-12, 2e-10, 1e-10}, {0, 4e-12, 0, 3e-10}, {2e-6, 6e-12, 1e-10, 0}}};
    return host;
}

std::vector<OperationProbe> probesOf(const HostOperations& host, double noise = 0)
{
    std::vector<OperationProbe> probes{{HostOperation::Start, {1, 1, 1}, host.start},
                                       {HostOperation::Call, {16, 1, 1}, host.call}};
    for (const double elements : {1e3, 1e4, 1e5})
        probes.push_back({HostOperation::Elementwise, {elements, 1, 1}, host.call + 8 * elements * host.perByte});
    int i = 0;
    for (const auto way : {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient}) {
        for (const double m : {1, 5, 24, 96, 384}) {
            for (const auto& [n, k] : {std::pair{96.0, 96.0}, {320.0, 96.0}, {96.0, 320.0}}) {
                const double off = 1 + noise * (i++ % 2 ? 1 : -1);
                probes.push_back({way, {m, n, k}, host.productSeconds(way, {m, n, k}) * off});
            }
        }
    }
    return probes;
}

void near(double value, double wanted, double share)
{
    QVERIFY2(std::abs(value - wanted) <= share * wanted, qPrintable(QString("%1 is not %2").arg(value).arg(wanted)));
}

Device hostWith(const HostOperations& operations)
{
    Device device = twoCores();
    device.rates["fp32"] = {{400e9, Evidence::Unverified, "typical", {}}, 16, false, {}};
    device.calibration = Calibration();
    device.calibration->raw = Json{{"operations", hostOperationsToJson(operations)}};
    return device;
}

} // namespace

class TestHostOperations : public QObject
{
    Q_OBJECT
private slots:
    void theFitFindsWhatTheProbesWereMadeOf()
    {
        const HostOperations wanted = knownHost();
        const auto found = fitHostOperations(probesOf(wanted), 2, 4, 32);
        QVERIFY2(found.has_value(), found ? "" : found.error().text().c_str());
        near(found->call, wanted.call, 1e-9);
        near(found->start, wanted.start, 1e-9);
        near(found->perByte, wanted.perByte, 1e-6);
        for (std::size_t i = 0; i < 3; ++i) {
            near(found->products[i].perFlop, wanted.products[i].perFlop, 1e-3);
            near(found->products[i].perProduct, wanted.products[i].perProduct, 1e-3);
            near(found->products[i].perOperand, wanted.products[i].perOperand, 1e-3);
            near(found->products[i].perResult, wanted.products[i].perResult, 1e-3);
        }
        QVERIFY(found->misfit < 1e-6);
    }

    void noiseIsNotTakenForCosts()
    {
        const HostOperations wanted = knownHost();
        const auto found = fitHostOperations(probesOf(wanted, 0.05), 2, 4, 32);
        QVERIFY(found.has_value());
        QVERIFY2(found->misfit > 0.02 && found->misfit < 0.08, qPrintable(QString::number(found->misfit)));
        for (const auto way : {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient}) {
            for (const ProductShape& shape :
                 {ProductShape{1, 256, 64}, ProductShape{64, 128, 256}, ProductShape{1000, 64, 64}})
                near(found->productSeconds(way, shape), wanted.productSeconds(way, shape), 0.1);
        }
        for (const HostProductCost& cost : found->products)
            QVERIFY(cost.perProduct >= 0 && cost.perFlop >= 0 && cost.perOperand >= 0 && cost.perResult >= 0);
    }

    void aProductIsAsLongAsItsThreadWithMost()
    {
        HostOperations host = knownHost();
        host.call = 0;
        host.products[0] = {0, 1e-9, 0, 0};
        // Four rows and whole tiles of 32 columns: 40 columns on two threads are 32 and 8.
        QCOMPARE(host.productSeconds(HostOperation::Forward, {3, 40, 10}), 2e-9 * 10 * 4 * 32);
        // More rows than columns: 50 rows each, rounded up to 52.
        QCOMPARE(host.productSeconds(HostOperation::Forward, {100, 32, 10}), 2e-9 * 10 * 52 * 32);
    }

    void whatWasNotMeasuredIsNamed()
    {
        for (const auto missing : {HostOperation::Call, HostOperation::Elementwise, HostOperation::InputGradient}) {
            std::vector<OperationProbe> probes = probesOf(knownHost());
            std::erase_if(probes, [&](const auto& probe) { return probe.operation == missing; });
            const auto found = fitHostOperations(probes, 2, 4, 32);
            QVERIFY(!found.has_value());
            QCOMPARE(found.error().code, std::string("calibration.probes"));
            QVERIFY(found.error().message.find(hostOperationText(missing)) != std::string::npos);
        }
        std::vector<OperationProbe> broken = probesOf(knownHost());
        for (OperationProbe& probe : broken)
            probe.seconds = std::numeric_limits<double>::quiet_NaN();
        QVERIFY(!fitHostOperations(broken, 2, 4, 32).has_value());
    }

    void aDeviceKeepsThem()
    {
        const HostOperations kept = hostOperations(hostWith(knownHost()));
        QVERIFY(kept.evidence == Evidence::Measured);
        QCOMPARE(kept.call, knownHost().call);
        QCOMPARE(kept.products[2].perFlop, 6e-12);
        Device broken = hostWith(knownHost());
        broken.calibration->raw["operations"]["forward"]["per_flop"] = "fast";
        QVERIFY(hostOperations(broken).evidence == Evidence::Unverified);
        broken.calibration->raw["operations"] = Json::array({1});
        QVERIFY(hostOperations(broken).evidence == Evidence::Unverified);
        const HostOperations typical = hostOperations(twoCores());
        QVERIFY(typical.evidence == Evidence::Unverified);
        QVERIFY(typical.call > 0 && typical.call < 5e-6
                && typical.productSeconds(HostOperation::Forward, {1, 64, 64}) < 1e-4);
    }

    void aStepIsTheSumOfItsOperations()
    {
        // Linear 64 → 32, batch 8: forward, loss and its gradient, weight gradient, two updates.
        const Device device = hostWith(knownHost());
        const Experiment& experiment = **findExperiment("batch-size");
        const auto parameters = resolve(experiment.schema(), std::vector<std::string>{"model=mlp:64,32", "batch=8"});
        QVERIFY(parameters.has_value());
        PredictionContext context;
        const auto study = studyBatch(device, *parameters, {}, context);
        QVERIFY2(study.has_value(), study ? "" : study.error().text().c_str());
        const HostOperations host = knownHost();
        const double loss = 4 * (8 * 32 + 8 * 32) * host.perByte, lossGradient = 4 * 3 * 8 * 32 * host.perByte;
        const double wanted = host.start + host.productSeconds(HostOperation::Forward, {8, 32, 64})
            + host.productSeconds(HostOperation::WeightGradient, {32, 64, 8}) + 2 * host.call + loss + lossGradient
            + 2 * host.call + 12 * (64 * 32 + 32) * host.perByte;
        near(study->point.time.total, wanted, 0.01);
        QVERIFY(study->point.bound == BatchBound::Launch);
        QCOMPARE(boundText(study->point.bound, study->point.isHost), std::string_view("call-bound"));
        // Enough examples, and arithmetic holds it.
        const auto large = resolve(experiment.schema(), std::vector<std::string>{"model=mlp:1024,1024", "batch=1024"});
        PredictionContext other;
        QVERIFY(studyBatch(device, *large, {}, other)->point.bound == BatchBound::Arithmetic);
    }
};

QTEST_GUILESS_MAIN(TestHostOperations)
#include "tst_host_operations.moc"

// SPDX-License-Identifier: Apache-2.0
// The closed form of an offloaded step against the step by step program of `placement`, on layers alike.
#include "core/experiments/placement/placement.h"
#include "core/timing/offload_time.h"
#include "core/timing/operator_time.h"
#include "tests/core/placement/placed_cases.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr double layerBytes = 4096, layerLink = 1024; // B, B/s

class LayerSeconds : public StepSeconds
{
public:
    double pass = 1, updateRate = 1024;

    double compute(const GraphNode& node, Way) const override { return node.computes() ? pass : 0; }
    double backward(const GraphNode&) const override { return 2 * pass; }
    double update(const GraphNode& node) const override { return 28 * double(node.updatedBytes) / 4 / updateRate; }
    double copy(double bytes, Lane) const override { return bytes / layerLink; }
};

OperatorGraph alikeLayers(std::uint32_t count)
{
    OperatorGraph graph;
    for (std::uint32_t i = 0; i <= count; ++i) {
        GraphNode node;
        node.kind = i == 0 ? NodeKind::Input : NodeKind::Layer;
        node.outputBytes = 512;
        if (i > 0) {
            node.inputs = {i - 1};
            node.weightBytes = node.updatedBytes = std::int64_t(layerBytes);
        }
        graph.nodes.push_back(node);
    }
    return graph;
}

double programSeconds(const LayerSeconds& seconds, std::uint32_t layers, bool streams)
{
    OffloadedTraining how;
    how.streamsWeights = streams;
    double last = 0;
    for (const LaneSpan& span : trainingProgram(alikeLayers(layers), how, seconds).spans(LaneSharing::Apart))
        last = std::max(last, span.end);
    return last;
}

double closedSeconds(const LayerSeconds& seconds, double layers, Offload offload, double micro = 1)
{
    OffloadWork work;
    work.offload = offload;
    work.layers = layers;
    work.forward = layers * seconds.pass;
    work.backward = 2 * layers * seconds.pass;
    work.micro = micro;
    work.down = layers * layerBytes;
    work.up = layers * layerBytes * (offload == Offload::Parameters ? 2 : 1);
    work.updateBytes = 7 * layers * layerBytes;
    const OffloadTime time = offloadTime(work, layerLink, seconds.updateRate);
    return work.forward + work.backward + time.update + time.exposed;
}

} // namespace

class TestOffloadTime : public QObject
{
    Q_OBJECT

private slots:
    void zeroOffloadIsTheProgram()
    {
        for (const double pass : {0.1, 2.0, 30.0}) {
            for (const double updateRate : {512.0, 4096.0, 1e6}) {
                LayerSeconds seconds;
                seconds.pass = pass;
                seconds.updateRate = updateRate;
                for (const std::uint32_t layers : {1U, 2U, 7U, 24U}) {
                    const double expected = programSeconds(seconds, layers, false);
                    QVERIFY(std::fabs(closedSeconds(seconds, layers, Offload::Gradients) / expected - 1) < 1e-9);
                }
            }
        }
    }

    /// The program's passes follow each other with copies on their way: what the closed form counts between them is at
    /// most two copies.
    void zeroInfinityIsTheProgram()
    {
        for (const double pass : {0.1, 2.0, 30.0}) {
            LayerSeconds seconds;
            seconds.pass = pass;
            const double expected = programSeconds(seconds, 24, true);
            const double found = closedSeconds(seconds, 24, Offload::Parameters);
            QVERIFY2(std::fabs(found - expected) <= 2 * layerBytes / layerLink + 1e-9,
                     qPrintable(QString("%1, not %2").arg(found).arg(expected)));
        }
    }

    void gradientsThatStayHideNothing()
    {
        LayerSeconds seconds;
        seconds.updateRate = 1e6; // behind a slow update both hide
        QVERIFY(closedSeconds(seconds, 12, Offload::Optimizer) > closedSeconds(seconds, 12, Offload::Gradients));
        QCOMPARE(offloadTime({}, 1e9).exposed, 0.0);
        QCOMPARE(offloadTime({}, 1e9).update, 0.0);
    }

    void nothingIsHiddenLongerThanItTakes()
    {
        for (const Offload offload : {Offload::Optimizer, Offload::Gradients, Offload::Parameters}) {
            for (const double micro : {1.0, 4.0}) {
                OffloadWork work{offload, 16, 3, 6, micro, 1000, 2000, 70};
                for (const double link : {1.0, 100.0, 1e5}) {
                    const OffloadTime time = offloadTime(work, link);
                    QVERIFY(time.exposed >= 0);
                    QVERIFY(time.exposed <= 3000 / link + 1e-9);
                }
            }
        }
    }

    void theHostIsThatOfPlacement()
    {
        const Parameters parameters =
            resolve((*findExperiment("placement"))->schema(), std::vector<std::string>{}).value();
        QCOMPARE(parameters.number("host_bandwidth"), typicalHostBandwidth);
        ParameterTensor tensor;
        tensor.elements = 1000;
        tensor.shape = {1000};
        Plan plan;
        QCOMPARE(hostUpdateBytes({tensor}, plan), updateBytes * 1000);
    }
};

QTEST_GUILESS_MAIN(TestOffloadTime)
#include "tst_offload_time.moc"

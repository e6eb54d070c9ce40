// SPDX-License-Identifier: Apache-2.0
// Every allocation and free of forward and backward, in order, against real training steps of
// PyTorch 1.13 on a CPU (tests/data/pytorch/training_traces.json).
//
// Artefacts of the CPU, left out of the measured events, the only differences that are allowed:
//   * numbers in expressions: an 8-byte host scalar and its 4-byte cast (x * 0.5);
//   * the profiler's own 4 and 288 bytes at the start of each phase;
//   * scratch that layer_norm_backward makes for its reduction over rows ("resize_");
//   * scratch of bfloat16 products and of convolutions, made and freed within the operator (MKL-DNN
//     works on blocked copies of its operands);
//   * operands of another type, which the CPU's elementwise kernels convert first;
//   * the factors that native_dropout makes of its mask, which is composite on a CPU;
//   * the host's random state that checkpoint() keeps (5056 bytes).
// Frees that follow one another are compared as a set: Python drops locals in the order of their
// names, C++ in reverse.
#include "core/training/autograd.h"
#include "core/training/prepared_network.h"
#include "tests/support/measured_networks.h"

#include <QtTest>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>

using namespace memscape;

namespace {

struct Change
{
    std::int64_t bytes = 0; ///< negative: freed
    QString source;
};

QJsonArray measuredTraces()
{
    QFile file(QString(TEST_DATA) + "/pytorch/training_traces.json");
    if (!file.open(QIODevice::ReadOnly))
        qFatal("no %s", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll())["traces"].toArray();
}

/// The blocks that exist on a CPU only.
QSet<qint64> artefacts(const QJsonArray& events)
{
    QHash<qint64, QString> freedIn;
    for (const QJsonValue& event : events)
        if (event[0] == "f")
            freedIn[event[1].toInteger()] = event[3].toString();
    QSet<qint64> found;
    const QSet<QString> products{"aten::addmm", "aten::mm", "aten::bmm", "aten::mkldnn_convolution",
                                 "aten::convolution_backward"};
    for (qsizetype i = 0; i < events.size(); ++i) {
        const QJsonValue event = events[i];
        const qint64 id = event[1].toInteger(), bytes = event[2].toInteger();
        const QString source = event[3].toString();
        const bool isNumber =
            bytes == 8 || (bytes <= 4 && source == "aten::empty_strided" && freedIn[id].startsWith("aten::"));
        const bool isProfiler = source == "aten::empty"
            && (bytes == 288 || (bytes == 4 && i + 1 < events.size() && events[i + 1][2].toInteger() == 288));
        const bool isScratch = (products.contains(source) && freedIn[id] == source)
            || freedIn[id].startsWith("aten::native_dropout")
            || (source == "aten::empty_strided" && (freedIn[id] == "aten::mul" || freedIn[id] == "aten::add"));
        if (isNumber || isProfiler || isScratch
            || (source == "aten::resize_" && freedIn[id] == "aten::native_layer_norm_backward") || bytes == 5056)
            found.insert(id);
    }
    return found;
}

std::vector<Change> measuredChanges(const QJsonArray& events, const QString& phase)
{
    const QSet<qint64> ignored = artefacts(events);
    std::vector<Change> changes;
    QString last;
    for (const QJsonValue& event : events) {
        if (event[4] != "between")
            last = event[4].toString();
        // What is freed right behind the forward pass, autocast's cache, belongs to it.
        const bool isHere = event[4] == phase || (last == "forward0" && phase == last);
        if (!isHere || ignored.contains(event[1].toInteger()))
            continue;
        const qint64 bytes = event[2].toInteger();
        changes.push_back({event[0] == "a" ? bytes : -bytes, event[3].toString()});
    }
    return changes;
}

std::vector<Change> changesOf(const Trace& trace, Phase phase)
{
    std::vector<Change> changes;
    for (const Event& event : trace.events())
        if (event.phase == phase)
            changes.push_back({event.change(), QString::fromStdString(trace.names()[event.name])});
    return changes;
}

/// Frees in a row are sorted; so are allocations in a row where the CPU has another order.
std::vector<Change> ordered(std::vector<Change> changes, bool sortsAllocations)
{
    for (auto first = changes.begin(); first != changes.end();) {
        auto last = first;
        const bool isFree = first->bytes < 0;
        while (last != changes.end() && (last->bytes < 0) == isFree && (isFree || sortsAllocations))
            ++last;
        std::sort(first, last, [](const Change& a, const Change& b) { return a.bytes < b.bytes; });
        first = last == first ? last + 1 : last;
    }
    return changes;
}

void compare(const std::vector<Change>& simulated, const std::vector<Change>& measured, bool sortsAllocations)
{
    const std::vector<Change> ours = ordered(simulated, sortsAllocations);
    const std::vector<Change> theirs = ordered(measured, sortsAllocations);
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
        QStringList around;
        for (std::size_t j = i > 3 ? i - 3 : 0; j < std::min({i + 6, ours.size(), theirs.size()}); ++j)
            around << QString("%1 %2 | %3 %4")
                          .arg(ours[j].bytes)
                          .arg(ours[j].source)
                          .arg(theirs[j].bytes)
                          .arg(theirs[j].source);
        QVERIFY2(ours[i].bytes == theirs[i].bytes,
                 qPrintable(QString("event %1 of %2:\n").arg(i).arg(theirs.size()) + around.join('\n')));
    }
    QCOMPARE(ours.size(), theirs.size());
}

} // namespace

class TestAutograd : public QObject
{
    Q_OBJECT

private slots:
    void allocatesWhatPyTorchAllocates_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        int row = 0;
        for (const QJsonValue& trace : measuredTraces())
            QTest::addRow("%d %s", row++, qPrintable(trace["name"].toString())) << trace.toObject();
    }

    void allocatesWhatPyTorchAllocates()
    {
        QFETCH(QJsonObject, measured);
        const QJsonObject config = measured["meta"].toObject();
        const QString name = measured["name"].toString();
        const BuildOptions options = measuredOptions(name, config["amp"].toString(), config);
        const auto graph = measuredNetwork(name, config, options);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());

        CheckpointPlan checkpointing;
        if (config["checkpoint"] == "reentrant")
            checkpointing = {Checkpointing::Layers, 1, true};
        const auto network = preparedNetwork(*graph);
        Trace trace(network->modules);
        Autograd autograd(*graph, checkpointing, options.rules, trace, network->moduleIds);
        const std::int64_t before = trace.liveBytes();
        trace.enter(Phase::Forward);
        autograd.forward();
        trace.enter(Phase::Backward);
        autograd.backward();

        const QJsonArray events = measured["events"].toArray();
        const bool sortsAllocations = name == "vgg_small"; // MKL-DNN: bias before weight, mask before result
        compare(changesOf(trace, Phase::Forward), measuredChanges(events, "forward0"), sortsAllocations);
        if (!QTest::currentTestFailed())
            compare(changesOf(trace, Phase::Backward), measuredChanges(events, "backward0"), sortsAllocations);
        QCOMPARE(trace.liveBytes() - before, graph->parameterBytes() + 4); // gradients and the loss
    }
};

QTEST_GUILESS_MAIN(TestAutograd)
#include "tst_autograd.moc"

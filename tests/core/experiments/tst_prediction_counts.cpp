// SPDX-License-Identifier: Apache-2.0
// What a prediction takes, counted and not timed: operators that are recorded one by one, events of a step that are
// stored, bytes of both. Every named model stays below the limits that keep its answer quick, and a model with twice
// the layers, experts or micro-batches takes no more than twice as much.
#include "core/device/catalogue.h"
#include "core/experiments/memory/memory_advice.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/training-memory/training_memory.h"
#include "core/network/model_names.h"
#include "core/training/simulation.h"

#include <QtTest>

#include <fmt/format.h>

using namespace memscape;

namespace {

struct Counts
{
    std::size_t recorded = 0; ///< operators that are not copies
    std::size_t operators = 0;
    std::size_t events = 0; ///< stored
    std::size_t bytes = 0;  ///< of network and trace
};

Result<Counts> countsOf(const ModelDescription& model, const std::vector<std::string>& assignments)
{
    MEMSCAPE_TRY(device, findDevice("nvidia-h100-sxm"));
    MEMSCAPE_TRY(parameters, resolve(trainingSchema(), assignments));
    MEMSCAPE_TRY(setup, trainingSetup(device, parameters));
    setup.step.repeatsMicroBatches = true;
    RecordedNetworks networks(model);
    MEMSCAPE_TRY(graph, networks.network(setup.build));
    const auto network = preparedNetwork(networks, *graph);
    MEMSCAPE_TRY(trace, simulateStep(*graph, *network, setup.step));
    Counts counts;
    counts.operators = graph->operators.size();
    counts.recorded = graph->recordedOperators();
    counts.events = trace.events().size();
    counts.bytes = counts.events * sizeof(Event) + graph->operators.size() * sizeof(Operator)
        + graph->operands.size() * sizeof(TensorId) + graph->tensors.size() * sizeof(Tensor)
        + graph->storages.size() * sizeof(Storage) + graph->modules.size() * sizeof(ModuleCall)
        + graph->parameters.size() * (sizeof(NamedTensor) + sizeof(ParameterTensor));
    return counts;
}

/// What an answer has taken with all its levers.
Result<RecordedNetworks::Effort> effortWithLevers(const std::string& model)
{
    MEMSCAPE_TRY(device, findDevice("nvidia-h100-sxm"));
    MEMSCAPE_TRY(parameters, resolve(trainingSchema(), {"model=" + model, "sequence=512", "batch=2", "advice=levers"}));
    MEMSCAPE_TRY(answer, answerTraining(device, parameters));
    Json detail;
    addAdvice(detail, device, parameters, answer, outOfMemoryOf(answer));
    return answer.networks->effort();
}

} // namespace

class TestPredictionCounts : public QObject
{
    Q_OBJECT

private slots:
    void everyNamedModelStaysSmall()
    {
        for (const KnownModel& known : knownModels()) {
            const auto model = readModel(known.name);
            QVERIFY2(model, known.name.c_str());
            const std::int64_t sequence = model->architecture == "whisper"
                ? model->maxPositions
                : std::max<std::int64_t>(512, model->vision.tokens());
            const auto counts = countsOf(*model, {fmt::format("sequence={}", sequence), "batch=2", "accumulation=64"});
            QVERIFY2(counts, known.name.c_str());
            // Mamba's loop over tokens is recorded token by token, in three layers; eager attention in windows one by
            // one.
            const std::size_t limit = model->family == Family::StateSpace ? 40'000
                : model->vision.window > 0                                ? 20'000
                                                                          : 10'000;
            QVERIFY2(counts->recorded < limit,
                     qPrintable(QString("%1: %2").arg(known.name.c_str()).arg(counts->recorded)));
            QVERIFY2(counts->events < 6'000'000,
                     qPrintable(QString("%1: %2").arg(known.name.c_str()).arg(counts->events)));
            QVERIFY2(counts->bytes < 300'000'000,
                     qPrintable(QString("%1: %2").arg(known.name.c_str()).arg(counts->bytes)));
        }
    }

    /// The largest models of each family.
    void allLeversOfTheLargestModelsStaySmall()
    {
        for (const char* model : {"deepseek-v3", "gpt-oss-120b", "llama-3.1-405b", "t5-v1.1-xxl", "vit-h-14"}) {
            const auto effort = effortWithLevers(model);
            QVERIFY2(effort, model);
            const auto found =
                QString("%1: %2 operators, %3 events").arg(model).arg(effort->operators).arg(effort->events);
            QVERIFY2(effort->operators > 0 && effort->operators < 120'000, qPrintable(found));
            QVERIFY2(effort->events > 0 && effort->events < 30'000'000, qPrintable(found));
        }
    }

    void twiceTheLayersAreTwiceTheEvents()
    {
        for (const char* name : {"gpt2", "llama-2-7b", "bert-base-uncased", "deepseek-v2-lite"}) {
            std::vector<Counts> all;
            for (const std::int64_t layers : {8, 16, 32}) {
                ModelDescription model = *readModel(name);
                model.layers = layers;
                if (!model.sparseLayers.empty())
                    model.sparseLayers.resize(std::size_t(layers), model.sparseLayers.back());
                const auto counts = countsOf(model, {"sequence=64", "batch=1"});
                QVERIFY2(counts, name);
                all.push_back(*counts);
            }
            QCOMPARE(all[2].events - all[1].events, 2 * (all[1].events - all[0].events));
            QCOMPARE(all[2].recorded, all[0].recorded);
        }
    }

    void twiceTheExpertsAreTwiceTheEvents()
    {
        std::vector<Counts> all;
        for (const std::int64_t experts : {64, 128, 256}) {
            ModelDescription model = *readModel("deepseek-v2-lite");
            model.layers = 4;
            model.sparseLayers.resize(4);
            model.experts.count = experts;
            const auto counts = countsOf(model, {"sequence=512", "batch=1"});
            QVERIFY(counts);
            all.push_back(*counts);
        }
        QCOMPARE(all[2].events - all[1].events, 2 * (all[1].events - all[0].events));
        QCOMPARE(all[2].recorded, all[0].recorded);
    }

    void moreMicroBatchesAreNoMoreEvents()
    {
        std::vector<std::size_t> events;
        for (const char* count : {"accumulation=3", "accumulation=6", "accumulation=12", "accumulation=65535"}) {
            const auto counts = countsOf(*readModel("gpt2"), {"sequence=64", count});
            QVERIFY(counts);
            events.push_back(counts->events);
        }
        QCOMPARE(events[1], events[0]);
        QCOMPARE(events[2], events[0]);
        QCOMPARE(events[3], events[0]);
    }
};

QTEST_GUILESS_MAIN(TestPredictionCounts)
#include "tst_prediction_counts.moc"

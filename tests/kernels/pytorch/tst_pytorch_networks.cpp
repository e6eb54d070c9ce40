// SPDX-License-Identifier: Apache-2.0
// Training steps of ten networks under many plans, run by the probe in the PyTorch of this machine on its CPU, and the
// predicted ones beside them: every allocation and free in its order and to the byte, what is there before the step,
// the peak. Frees that follow one another are compared as a set: what dies together dies in the order of C++
// destructors.
//
// What differs is listed below, with what it is at the peak: there peaks alone are compared. Updates of a library's
// model are compared as a set: its modules register their parameters in another order than they use them.
//
// Networks of live_networks.py are predicted from their network files: exported here where torch can (2.1 or newer),
// else as tests/data/pytorch/networks/live keeps them. Models of libraries are compared where those are installed.
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/training/simulation.h"
#include "kernels/pytorch/described_model.h"
#include "kernels/pytorch/measured_trace.h"
#include "kernels/worker/worker_process.h"
#include "tests/kernels/pytorch/fake_python.h"
#include "tests/kernels/pytorch/python_with_torch.h"
#include "tests/support/real_steps.h"

#include "core/device/catalogue.h"
#include "core/experiment/record.h"

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr int threadsOfSteps = 2;

/// A configuration that the probe's own GPT-2 is made of.
constexpr const char* smallGpt2 = R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 48,
    "n_layer": 2, "n_head": 4, "vocab_size": 211, "n_positions": 24, "activation_function": "relu"})";
constexpr const char* smallLlama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 120,
    "vocab_size": 203, "max_position_embeddings": 32, "tie_word_embeddings": false})";
constexpr const char* smallBert = R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 120, "vocab_size": 203,
    "max_position_embeddings": 32})";

struct LiveNetwork
{
    const char* name;
    std::string model;        ///< as the command line has it; "live:" one of live_networks.py
    const char* parameters;   ///< sizes
    const char* library = ""; ///< that it needs
    bool hasLayers = true;    ///< that the probe can checkpoint
};

struct KnownDifference
{
    const char* row;    ///< its beginning
    std::int64_t bytes; ///< between the peaks, at most
    const char* why;
    int before = 1000; ///< version of PyTorch
};

constexpr KnownDifference knownDifferences[]{
    {"recurrent", 160, "the backward of a write into a part makes zeros of that part, which are not predicted"},
    {"vit, adamw, bf16 autocast", 0, "PyTorch 1 copies what it joins to a tensor of another type", 200},
    {"gpt2, attention checkpointed", 0, "scores die in the checkpointed function, here when the method ends"},
    {"decoder of fused operators, flash, checkpointed", 0, "rms_norm frees its root at its end where nothing is kept"},
    {"decoder, selective by operator", 0, "what a mode of Python is given dies after the call"},
    {"decoder of fused operators, flash, selective", 0, "what a mode of Python is given dies after the call"},
    {"llama, ", 256, "transformers keeps frequencies of rotary positions, and makes a mask"},
    {"bert, padded", 0, "the parts of a mask, of Bool and Int64, die before the first layer"},
    {"bert, momentum, checkpointed", 0, "transformers names more results"},
    {"bert, adamw, bf16 autocast", 0, "transformers names more results"},
    // Of a processor without instructions for bf16; others have other blocks.
    {"convolutions, adam, bf16", 150'000, "oneDNN chooses the implementation by the processor"},
    {"convolutions, adamw, bf16 autocast", 150'000, "oneDNN chooses the implementation by the processor"},
    {"convolutions", 64'000, "oneDNN's scratchpads, chosen by the processor (6,192 of 1,092,868 bytes on Zen 5)"},
};

const KnownDifference* knownDifference(const QString& row, int version)
{
    for (const KnownDifference& known : knownDifferences)
        if (row.startsWith(known.row) && version < known.before)
            return &known;
    return nullptr;
}

/// A PyTorch's version as a number: 1.13 is 113, 2.4 is 204.
int versionNumber(const std::string& version)
{
    const QStringList parts = QString::fromStdString(version).split('.');
    return parts.size() < 2 ? 0 : 100 * parts[0].toInt() + parts[1].toInt();
}

std::vector<Change> changesIn(const Trace& trace, Phase phase, int microBatch)
{
    std::vector<Change> changes;
    for (const Event& event : trace.events())
        if (event.phase == phase && event.microBatch == microBatch)
            changes.push_back(
                {event.change(),
                 QString::fromStdString(trace.modules()[event.module] + " " + trace.names()[event.name])});
    return changes;
}

std::vector<Change> bySize(std::vector<Change> changes)
{
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.bytes > b.bytes; });
    return changes;
}

std::int64_t bytesBefore(const Trace& trace)
{
    std::int64_t bytes = 0;
    for (const Event& event : trace.events())
        bytes += event.phase == Phase::Setup ? event.change() : 0;
    return bytes;
}

} // namespace

class TestPytorchNetworks : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        const PythonTorch& torch = pythonWithTorch();
        if (torch.python.empty())
            QSKIP(noTorchHere);
        qInfo("PyTorch %s of %s", torch.torch.c_str(), torch.python.c_str());
        qputenv("DNNL_MAX_CPU_ISA",
                "AVX2"); // oneDNN's products in bf16 for AVX-512 have scratch, which is not modelled
        if (versionNumber(torch.torch) >= 201)
            exportNetworks();
        m_device = *findDevice("cpu");
        m_device.id = "pytorch:cpu";
        m_device.units = threadsOfSteps;
        m_device.framework = Framework{"pytorch", torch.torch};
        ChildCommand command = probeCommand(torch.python, "worker");
        command.words = {torch.python, SOURCE_FOLDER "/tests/kernels/pytorch/live_networks.py", "worker"};
        command.environment.emplace_back("OMP_NUM_THREADS", std::to_string(threadsOfSteps));
        Listener listener;
        const auto hello = m_worker.start(command, listener);
        QVERIFY2(hello, hello ? "" : hello.error().text().c_str());
    }

    void stepsAllocateWhatIsPredicted_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("parameters");
        QTest::addColumn<int>("since"); ///< version of PyTorch
        QTest::addColumn<QString>("library");
        const LiveNetwork networks[]{
            {"mlp", "mlp:20,37,41,10", "batch=9"},
            {"decoder", "from-scratch:hidden=48,layers=2,heads=4,ffn=128,vocab=200",
             "batch=2 sequence=16 operators=written-out optimizer_implementation=loop"},
            {"gpt2", written("config-gpt2.json", smallGpt2), "batch=2 sequence=20"},
            {"llama of its own", "live:llama", "batch=3 sequence=16"},
            {"recurrent", "live:recurrent", "batch=3 sequence=4", "", false},
            {"odd", "live:odd", "batch=5"},
            {"vit", "live:vit", "batch=3"},
            {"convolutions", "live:convolutions", "batch=3", "", false},
            {"llama", written("config-llama.json", smallLlama), "batch=2 sequence=20", "transformers"},
            {"bert", written("config-bert.json", smallBert), "batch=2 sequence=20", "transformers"},
        };
        const std::pair<const char*, const char*> plans[]{
            {"sgd", "precision=fp32 optimizer=sgd"},
            {"adamw, accumulation, clipping", "precision=fp32 optimizer=adamw accumulation=2 clipping=true"},
            {"momentum, checkpointed", "precision=fp32 optimizer=momentum checkpointing=block"},
            {"adam, bf16", "precision=bf16 optimizer=adam"},
            {"adamw, bf16 autocast", "precision=bf16-autocast optimizer=adamw"},
        };
        const auto add = [](const LiveNetwork& network, const char* name, const char* plan, int since = 113) {
            QTest::addRow("%s, %s", network.name, name)
                << QString::fromStdString(network.model) << QString("%1 %2").arg(network.parameters, plan) << since
                << QString(network.library);
        };
        for (const LiveNetwork& network : networks)
            for (const auto& [name, plan] : plans)
                if (network.hasLayers || !QString(plan).contains("checkpointing"))
                    add(network, name, plan);
        for (const LiveNetwork& network : networks)
            add(network, "adamw in backward", "precision=fp32 optimizer=adamw optimizer_in_backward=true", 201);
        const LiveNetwork &mlp = networks[0], &decoder = networks[1], &gpt2 = networks[2], &llama = networks[8],
                          &bert = networks[9];
        add(mlp, "adam, all tensors at once", "precision=fp32 optimizer=adam optimizer_implementation=foreach");
        add(mlp, "loss alone", "precision=fp32 optimizer=sgd accumulation=3 keeps_logits=false");
        add(decoder, "attention checkpointed", "precision=fp32 optimizer=adam checkpointing=selective");
        add(decoder, "every second block", "precision=fp32 optimizer=adam checkpointing=second");
        add(decoder, "selective by operator", "precision=fp32 optimizer=adam checkpointing=operators", 204);
        add(decoder, "selective by operator, autocast", "precision=bf16-autocast optimizer=sgd checkpointing=operators",
            204);
        add(decoder, "forward alone", "precision=fp32 phase=forward");
        add(gpt2, "attention checkpointed", "precision=fp32 optimizer=adam attention=eager checkpointing=selective");
        for (const LiveNetwork* const network : {&gpt2, &llama}) {
            add(*network, "written out", "precision=fp32 optimizer=adamw attention=eager accumulation=2");
            add(*network, "written out, bf16 autocast", "precision=bf16-autocast optimizer=adamw attention=eager");
        }
        add(llama, "no gradients", "precision=bf16 phase=inference");
        add(llama, "Trainer of TRL", "precision=bf16-autocast optimizer=adamw library=trl clipping=true");
        // A processor's kernel has no dropout, and takes one width: the math path, which computes in fp32.
        add(gpt2, "dropout", "precision=fp32 optimizer=adamw dropout=0.1", 205);
        add(gpt2, "dropout, bf16", "precision=bf16 optimizer=sgd dropout=0.1", 205);
        add(gpt2, "dropout, bf16 autocast", "precision=bf16-autocast optimizer=adamw dropout=0.1", 205);
        add(gpt2, "dropout, checkpointed", "precision=fp32 optimizer=sgd dropout=0.1 checkpointing=block");
        for (const LiveNetwork* const network :
             {&llama, &bert}) { // a mask, which each layer keeps in its queries' type
            add(*network, "padded", "precision=fp32 optimizer=adamw padding=true", 205);
            add(*network, "padded, bf16 autocast", "precision=bf16-autocast optimizer=sgd padding=true", 205);
        }
        add(bert, "padded, written out", "precision=fp32 optimizer=sgd padding=true attention=eager", 205);
        add(gpt2, "two blocks a segment", "precision=fp32 optimizer=sgd checkpointing=every:2");
        add(gpt2, "no gradients", "precision=bf16-autocast phase=inference");
        add(gpt2, "flash", "precision=fp32 optimizer=adamw attention=flash", 203);
        add(gpt2, "flash, bf16 autocast", "precision=bf16-autocast optimizer=sgd attention=flash", 203);
        LiveNetwork fused = decoder;
        fused.name = "decoder of fused operators";
        fused.parameters = "batch=2 sequence=16";
        add(fused, "sgd", "precision=fp32 optimizer=sgd", 204);
        add(fused, "flash, selective by operator",
            "precision=fp32 optimizer=adamw attention=flash checkpointing=operators", 204);
        add(fused, "flash, checkpointed", "precision=fp32 optimizer=adamw attention=flash checkpointing=block", 204);
    }
    void stepsAllocateWhatIsPredicted()
    {
        QFETCH(QString, model);
        QFETCH(QString, parameters);
        QFETCH(int, since);
        QFETCH(QString, library);
        const int version = versionNumber(pythonWithTorch().torch);
        if (version < since)
            QSKIP("this PyTorch is older than what the plan needs");
        if (!library.isEmpty() && !hasLibrary(library.toUtf8()))
            QSKIP(qPrintable("no " + library + " here"));
        std::vector<std::string> assignments{"model=" + networkFile(model.toStdString())};
        for (const QString& one : parameters.split(' '))
            assignments.push_back(one.toStdString());
        const Parameters resolved = parametersOf(training(), assignments);
        const auto ours = predicted(model.toStdString(), resolved);
        QVERIFY2(ours, ours ? "" : ours.error().text().c_str());
        const auto theirs = measured(model.toStdString(), resolved);
        if (!theirs && theirs.error().code == "run.skipped")
            QSKIP(theirs.error().text().c_str());
        QVERIFY2(theirs, theirs ? "" : theirs.error().text().c_str());

        if (const KnownDifference* const known = knownDifference(QTest::currentDataTag(), version)) {
            const std::int64_t difference = theirs->peakBytes() - ours->peakBytes();
            QVERIFY2(std::abs(difference) <= known->bytes, qPrintable(QString::number(difference)));
            return;
        }
        QCOMPARE(bytesBefore(*ours), bytesBefore(*theirs));
        for (int microBatch = 0; microBatch < int(resolved.integer("accumulation")); ++microBatch) {
            for (const Phase phase : {Phase::Forward, Phase::Backward, Phase::Optimizer, Phase::ZeroGrad}) {
                std::vector<Change> here = changesIn(*ours, phase, microBatch),
                                    there = changesIn(*theirs, phase, microBatch);
                if (!library.isEmpty() && phase == Phase::Optimizer) {
                    here = bySize(std::move(here));
                    there = bySize(std::move(there));
                }
                compareChanges(here, there);
                if (QTest::currentTestFailed())
                    QFAIL(qPrintable(QString("in %1 %2").arg(phaseText(phase).data()).arg(microBatch)));
            }
        }
        QCOMPARE(ours->peakBytes(), theirs->peakBytes());
    }

private:
    void exportNetworks()
    {
        const auto said = outputOf({{pythonWithTorch().python, SOURCE_FOLDER "/tests/kernels/pytorch/live_networks.py",
                                     "export", m_folder.path().toStdString()}},
                                   240);
        QVERIFY2(said, said ? "" : said.error().text().c_str());
    }

    std::string written(const char* name, const char* text) const
    {
        const QString path = m_folder.filePath(name);
        QFile file(path);
        if (!file.open(QFile::WriteOnly) || file.write(text) < 0)
            qFatal("cannot write %s", qPrintable(path));
        return path.toStdString();
    }

    std::string networkFile(const std::string& model) const
    {
        if (!model.starts_with("live:"))
            return model;
        const QString name = QString::fromStdString(model.substr(5)) + ".json";
        const QString made = m_folder.filePath(name);
        return (QFile::exists(made) ? made : QString(TEST_DATA) + "/pytorch/networks/live/" + name).toStdString();
    }

    bool hasLibrary(const char* name) const
    {
        const std::string code =
            std::string("import importlib.util as u; print(u.find_spec('") + name + "') is not None)";
        const auto said = outputOf({{pythonWithTorch().python, "-c", code}}, 20);
        return said && said->starts_with("True");
    }

    Result<Trace> measured(const std::string& model, const Parameters& parameters)
    {
        Json words = parametersToJson(parameters);
        words["model"] = model;
        words["described"] = describedModel(model);
        Listener listener;
        MEMSCAPE_TRY(done,
                     m_worker.run({++m_runs, "training-memory", "pytorch:cpu", std::move(words), true}, listener));
        if (done.error)
            return fail(*done.error);
        for (const Json& note : done.result["detail"]["notes"])
            qWarning("%s", note.dump().c_str());
        return traceFromProbe(done.result["detail"]["trace"]);
    }

    Result<Trace> predicted(const std::string& model, const Parameters& parameters) const
    {
        MEMSCAPE_TRY(description, readModel(networkFile(model)));
        MEMSCAPE_TRY(setup, trainingSetup(m_device, parameters));
        MEMSCAPE_TRY(made, simulate(description, setup));
        return std::move(made.trace);
    }

    QTemporaryDir m_folder;
    Device m_device;
    WorkerProcess m_worker{5};
    std::int64_t m_runs = 0;
};

QTEST_GUILESS_MAIN(TestPytorchNetworks)
#include "tst_pytorch_networks.moc"

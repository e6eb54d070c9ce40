// SPDX-License-Identifier: Apache-2.0
// One rule says which parameters a page leaves out, so it must be true: whatever is put into a parameter that
// is left out, no figure and no curve changes, and it is refused where it can't be put in. One that is shown
// changes something, somewhere among these choices.
#include "core/base/number.h"
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QtTest>

#include <algorithm>
#include <map>
#include <set>

using namespace memscape;

namespace {

using Texts = std::vector<std::string>;

struct Choice
{
    const char* experiment;
    const char* device;
    Texts assignments;
};

std::vector<Choice> trainingChoices()
{
    const std::string models[] = {
        "mlp:256,64",        "resnet18", "alexnet", "vit-b-16",
        "bert-base-uncased", "t5-small", "gpt2",    "from-scratch:hidden=256,layers=2,heads=4,ffn=512,vocab=1000",
        "olmoe-1b-7b"};
    std::vector<Choice> choices;
    for (const std::string& model : models)
        choices.push_back(
            {"training-memory", "nvidia-h200", {"model=" + model, "batch=2", "sequence=32", "advice=none"}});
    choices.back().assignments.push_back("data_parallel=2"); // its experts can be shared
    choices.push_back({"training-memory", "nvidia-h200", {"model=resnet18", "batch=256", "advice=none"}}); // of the GPU
    choices.push_back(
        {"training-memory", "nvidia-h200", {"model=resnet18", "batch=256", "precision=fp32", "advice=none"}});
    const char* more[] = {"phase=inference",       "phase=forward",
                          "optimizer=none",        "optimizer=sgd",
                          "optimizer=adafactor",   "precision=fp32",
                          "precision=fp8",         "adapter=lora",
                          "adapter=qlora",         "optimizer=adam-8bit",
                          "offload=optimizer",     "data_parallel=4",
                          "tensor_parallel=2",     "optimizer_implementation=fused",
                          "operators=written-out", "accumulation=2",
                          "optimizer=galore",      "optimizer=lomo"};
    for (const char* one : more) {
        choices.push_back(
            {"training-memory", "nvidia-h200", {"model=gpt2", "batch=2", "sequence=32", "advice=none", one}});
        const bool isTransformers = std::string_view(one).starts_with("tensor");
        if (!isTransformers)
            choices.push_back({"training-memory", "cpu", {"model=mlp:256,64", "batch=2", "advice=none", one}});
    }
    choices.push_back({"training-memory",
                       "nvidia-h200",
                       {"model=llama-2-7b", "batch=2", "sequence=32", "advice=none", "adapter=qlora"}}); // its own head
    choices.push_back({"training-memory",
                       "nvidia-h200",
                       {"model=gpt2", "batch=2", "sequence=32", "advice=none", "zero=3", "offload=gradients",
                        "sharding_implementation=deepspeed"}}); // what is swapped to an NVMe
    const Texts ranks[] = {
        {"model=gpt2", "attention=flash", "data_parallel=4", "zero=1"},
        {"model=gpt2", "data_parallel=4", "zero=3", "accumulation=2"},
        {"model=gpt2", "data_parallel=4", "zero=3", "sharding_implementation=fsdp1", "fsdp_wrap=size"},
        {"model=gpt2", "data_parallel=4", "zero=3", "sharding_implementation=fsdp1", "fsdp_wrap=whole"},
        {"model=gpt2", "tensor_parallel=4", "sequence_parallel=true"},
        {"model=gpt2", "pipeline_parallel=2", "accumulation=4"},
        {"model=gpt2", "pipeline_parallel=2", "pipeline_schedule=interleaved", "virtual_stages=3", "accumulation=4"}};
    for (const Texts& one : ranks) {
        for (const char* experiment : {"training-memory", "batch-size"}) {
            Texts assignments = one;
            assignments.insert(assignments.end(), {"batch=2", "sequence=32"});
            if (experiment == std::string_view("training-memory"))
                assignments.push_back("advice=none");
            choices.push_back({experiment, "nvidia-h200", assignments});
        }
    }
    return choices;
}

std::vector<Choice> otherChoices()
{
    std::vector<Choice> choices;
    for (const char* model : {"model=mlp:256,64", "model=resnet18", "model=vit-b-16", "model=bert-base-uncased",
                              "model=t5-small", "model=gpt2"})
        choices.push_back({"inference-memory", "nvidia-h200", {model, "sequence=16", "context=72", "batch=2"}});
    choices.push_back({"inference-memory", "cpu", {"model=gpt2", "sequence=16", "context=72", "tensor_parallel=2"}});
    choices.push_back({"inference-memory", "nvidia-h200", {"model=llama-2-7b", "sequence=16", "weight_precision=nf4"}});
    for (const char* one :
         {"schedule=constant", "schedule=linear", "schedule=adaptive", "noise_scale=1000", "optimizer=adam"})
        choices.push_back({"batch-size", "cpu", {one}});
    choices.push_back({"batch-size", "nvidia-h200", {"model=gpt2", "batch=2", "sequence=32"}});
    for (const char* one : {"zero=0", "zero=1", "zero=3", "offload=optimizer", "tensor_parallel=2"})
        choices.push_back({"sharding", "nvidia-h200", {"model=gpt2", "sequence=32", "data_parallel=4", one}});
    choices.push_back({"sharding", "cpu", {"model=mlp:256,64,32", "zero=1", "data_parallel=2"}});
    choices.push_back({"sharding", "cpu", {"model=mlp:256,64,32", "zero=3", "data_parallel=2"}});
    for (const char* one : {"operation=matmul", "operation=train"}) {
        choices.push_back({"precision", "nvidia-h200", {one}});
        choices.push_back({"precision", "cpu", {one, "distribution=normal"}});
    }
    for (const char* strategy : {"none", "sqrt", "every:3", "optimal", "selective"}) {
        choices.push_back({"checkpoint", "cpu", {"chain=mlp:12x64", "strategy=" + std::string(strategy)}});
        choices.push_back({"checkpoint", "cpu", {"chain=uniform:12", "strategy=" + std::string(strategy)}});
    }
    for (const char* chain : {"chain=model:gpt2", "chain=model:resnet18", "chain=model:mlp:64,64,64"})
        choices.push_back({"checkpoint", "cpu", {chain, "sequence=32", "batch=1"}});
    choices.push_back({"checkpoint", "cpu", {"chain=model:gpt2", "sequence=32", "batch=1", "attention=eager"}});
    return choices;
}

std::vector<Choice> choices()
{
    std::vector<Choice> all = trainingChoices();
    for (Choice& one : otherChoices())
        all.push_back(std::move(one));
    return all;
}

/// Other values that a parameter may have: all words, ends and middle of numbers.
Texts otherValues(const ParameterSpec& spec, const std::string& now)
{
    Texts values;
    if (spec.kind == ParameterKind::Flag)
        values = {"true", "false"};
    else if (spec.kind == ParameterKind::Choice)
        for (const ChoiceValue& choice : spec.choices)
            values.push_back(choice.key);
    else if (spec.kind != ParameterKind::Text)
        for (const double value : {spec.minimum, std::min(spec.maximum, 2.0), std::min(spec.maximum, 16.0)})
            if (value >= spec.minimum)
                values.push_back(numberText(value));
    std::erase(values, now);
    return values;
}

/// Figures and curves as text; the time that our own solver took is no answer. Empty: refused.
std::string answer(const Experiment& experiment, const Device& device, const Parameters& parameters)
{
    const auto prediction = experiment.predict(device, parameters);
    if (!prediction)
        return {};
    std::string text;
    for (const Figure& figure : prediction->figures)
        if (figure.key != "solver_time")
            text += figure.key + "=" + (figure.isNumber() ? numberText(figure.number()) : figure.text()) + "\n";
    for (const Series& series : prediction->series) {
        text += series.key;
        for (const double y : series.y)
            text += series.key == "solver_time" ? std::string() : " " + numberText(y);
    }
    return text;
}

std::string nowText(const Parameters& parameters, const std::string& key)
{
    for (const auto& [name, value] : parameters.values())
        if (name == key)
            return valueText(value);
    return {};
}

} // namespace

class TestIdleParameters : public QObject
{
    Q_OBJECT

private slots:
    void whatIsLeftOutChangesNothing_data()
    {
        QTest::addColumn<int>("index");
        int index = 0;
        for (const Choice& choice : choices()) {
            std::string name = choice.experiment + std::string(" on ") + choice.device;
            for (const std::string& one : choice.assignments)
                name += " " + one;
            QTest::newRow(name.c_str()) << index++;
        }
    }

    void whatIsLeftOutChangesNothing()
    {
        QFETCH(int, index);
        const Choice choice = choices()[std::size_t(index)];
        const Experiment& experiment = **findExperiment(choice.experiment);
        const Device device = *findDevice(choice.device);
        const auto parameters = resolve(experiment.schema(), choice.assignments);
        QVERIFY(parameters);
        const std::string before = answer(experiment, device, *parameters);
        QVERIFY2(!before.empty(), experiment.id().c_str());
        for (const std::string& key : experiment.idleParameters(device, *parameters)) {
            const ParameterSpec* spec = findParameter(experiment.schema(), key);
            QVERIFY2(spec, key.c_str());
            const Texts values = otherValues(*spec, nowText(*parameters, key));
            if (values.empty())
                continue;
            const std::string& text = values[std::size_t(index) % values.size()]; // in turn, one at each choice
            const std::string after = answer(experiment, device, parameters->at(key, *parseValue(*spec, text)));
            const std::string what = key + "=" + text;
            QVERIFY2(after.empty() || after == before, what.c_str());
        }
    }

    void whatIsShownChangesSomethingSomewhere()
    {
        // Asked of a measurement alone, of the picture, or of the page's own; see the help of each.
        const std::set<std::string> elsewhere{
            "training-memory advice", "checkpoint slots",           "inference-memory allocator",
            "precision steps",        "precision growth_interval",  "batch-size schedule",
            "batch-size batch_limit", "batch-size schedule_growth", "batch-size schedule_smoothing",
            "precision distribution", "precision gradient_median",  "precision gradient_spread"};
        std::map<std::string, bool> moves; // "experiment key": shown somewhere, and it changed something there
        for (const Choice& choice : choices()) {
            const Experiment& experiment = **findExperiment(choice.experiment);
            const Device device = *findDevice(choice.device);
            const auto parameters = resolve(experiment.schema(), choice.assignments);
            const Texts idle = experiment.idleParameters(device, *parameters);
            std::string before;
            for (const ParameterSpec& spec : experiment.schema()) {
                const std::string name = choice.experiment + std::string(" ") + spec.key;
                const bool isHidden = std::find(idle.begin(), idle.end(), spec.key) != idle.end();
                if (isHidden || spec.kind == ParameterKind::Text || moves[name] || elsewhere.contains(name))
                    continue;
                if (before.empty())
                    before = answer(experiment, device, *parameters);
                const Texts values = otherValues(spec, nowText(*parameters, spec.key));
                moves[name] = std::any_of(values.begin(), values.end(), [&](const std::string& text) {
                    const std::string after =
                        answer(experiment, device, parameters->at(spec.key, *parseValue(spec, text)));
                    return !after.empty() && after != before;
                });
            }
        }
        for (const auto& [name, does] : moves) {
            const Experiment& experiment = **findExperiment(name.substr(0, name.find(' ')));
            const ParameterSpec& spec = *findParameter(experiment.schema(), name.substr(name.find(' ') + 1));
            if (spec.kind != ParameterKind::Text && !elsewhere.contains(name))
                QVERIFY2(does, name.c_str());
        }
    }

    void whatOneIssueNamedIsLeftOut()
    {
        const auto idle = [](const char* device, const Texts& assignments) {
            const Experiment& experiment = **findExperiment("training-memory");
            const auto keys =
                experiment.idleParameters(*findDevice(device), *resolve(experiment.schema(), assignments));
            return std::set<std::string>(keys.begin(), keys.end());
        };
        const auto mlp = idle("nvidia-h200", {"model=mlp:784,512,10"});
        for (const char* key :
             {"sequence", "attention", "tensor_parallel", "sequence_parallel", "logits_fp32", "adapter_rank"})
            QVERIFY2(mlp.contains(key), key);
        const auto gpt = idle("nvidia-h200", {"model=gpt2"});
        for (const char* key : {"sequence", "attention", "tensor_parallel", "zero", "device_context"})
            QVERIFY2(!gpt.contains(key), key);
        QVERIFY(idle("cpu", {"model=gpt2"}).contains("device_context"));
        // What would be refused and is set stays, to be taken back.
        QVERIFY(!idle("nvidia-h200", {"model=gpt2", "sequence_parallel=true"}).contains("sequence_parallel"));
        QVERIFY(!idle("nvidia-h200", {"model=mlp:8,8", "tensor_parallel=2"}).contains("tensor_parallel"));
        // A model that can't be read leaves everything that hangs on it.
        QVERIFY(!idle("nvidia-h200", {"model=nosuchmodel"}).contains("sequence"));
    }

    void anUnknownArchitectureIsAssumedWhereItIsAsked()
    {
        QTemporaryDir folder;
        QFile file(folder.filePath(QStringLiteral("config.json")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(R"({"model_type": "frob", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                       "intermediate_size": 128, "vocab_size": 512})");
        file.close();
        const std::string path = file.fileName().toStdString();
        const std::map<std::string, std::string> askedBy{{"training-memory", "model="}, {"inference-memory", "model="},
                                                         {"batch-size", "model="},      {"loading", "model="},
                                                         {"sharding", "model="},        {"placement", "graph="},
                                                         {"allocator", "trace="},       {"checkpoint", "chain=model:"}};
        std::size_t asking = 0;
        for (const Experiment* experiment : experiments())
            asking += findParameter(experiment->schema(), "assume") != nullptr;
        QCOMPARE(asking, askedBy.size());
        const Device gpu = *findDevice("nvidia-h200");
        for (const auto& [id, key] : askedBy) {
            const Experiment& experiment = **findExperiment(id);
            const auto asked = [&, &id = id, &key = key](const std::string& model, const char* assume) {
                Texts texts{key + model, std::string("assume=") + assume};
                if (id == "placement") // whose device is small
                    texts.emplace_back("limit=1GiB");
                return *resolve(experiment.schema(), texts);
            };
            const auto refused = experiment.predictPoint(gpu, asked(path, "none"));
            QVERIFY2(!refused && refused.error().remedy.has_value(), id.c_str());
            QCOMPARE(refused.error().remedy->value, std::string("llama"));
            const auto assumed = experiment.predictPoint(gpu, asked(path, "llama"));
            QVERIFY2(assumed.has_value(), assumed ? "" : assumed.error().text().c_str());
            const auto isIdle = [&](const std::string& model) {
                const Texts idle = experiment.idleParameters(gpu, asked(model, "none"));
                return std::find(idle.begin(), idle.end(), "assume") != idle.end();
            };
            QVERIFY2(!isIdle(path) && isIdle("gpt2"), id.c_str());
        }
    }

    void whatADeviceHasNotIsLeftOutEverywhere()
    {
        for (const Experiment* experiment : experiments()) {
            for (const char* id : {"cpu", "nvidia-h200"}) {
                const Device device = *findDevice(id);
                const Texts idle = experiment->idleParameters(device, standardParameters(*experiment, device));
                for (const ParameterSpec& spec : experiment->schema()) {
                    const AppliesTo elsewhere = device.isGpu() ? AppliesTo::Hosts : AppliesTo::Gpus;
                    if (spec.appliesTo == elsewhere || spec.appliesTo == AppliesTo::Pytorch)
                        QVERIFY2(std::find(idle.begin(), idle.end(), spec.key) != idle.end(), spec.key.c_str());
                }
            }
        }
    }

    void aPageOpensWithWhatItsDeviceCanHold()
    {
        const Experiment& memory = **findExperiment("training-memory");
        const Device host = *findDevice("cpu"), gpu = *findDevice("nvidia-h200");
        QCOMPARE(standardParameters(memory, gpu), *resolve(memory.schema(), Texts{}));
        QCOMPARE(standardParameters(memory, host).text("model"), std::string("gpt2"));
        for (const Experiment* experiment : experiments())
            for (const Device& device : {host, gpu})
                QVERIFY2(resolve(experiment->schema(), experiment->standardOn(device)), experiment->id().c_str());
        // It has to be there, and be a step that an ordinary machine of 32 GB can run.
        const auto figures = memory.predictPoint(host, standardParameters(memory, host));
        QVERIFY(figures);
        QVERIFY(findFigure(*figures, "device_total")->number() < 32e9);
    }

    /// GPT-2 has 1,024 positions, BERT 512, Whisper's decoder 448 (their config.json): a sequence that is not given
    /// is not longer; one that is given is refused.
    void tokensThatAreNotGivenStayWithinTheModelsPositions()
    {
        const auto tokens = [](const char* experiment, Texts given, const char* key) {
            return askedParameters(**findExperiment(experiment), given)->integer(key);
        };
        QCOMPARE(tokens("training-memory", {"model=gpt2"}, "sequence"), 1024);
        QCOMPARE(tokens("batch-size", {"model=bert-base-uncased"}, "sequence"), 512);
        QCOMPARE(tokens("sharding", {"model=gpt2"}, "sequence"), 1024);
        QCOMPARE(tokens("inference-memory", {"model=whisper-small"}, "context"), 448);
        QCOMPARE(tokens("inference-memory", {"model=whisper-small"}, "sequence"), 448);
        QCOMPARE(tokens("training-memory", {"model=gpt2", "sequence=4096"}, "sequence"), 4096);
        QCOMPARE(tokens("training-memory", {"model=llama-2-7b"}, "sequence"), 2048); // rotary: no table ends it
        const Experiment& inference = **findExperiment("inference-memory");
        const auto refused = inference.predictPoint(*findDevice("nvidia-h200"),
                                                    *resolve(inference.schema(), Texts{"model=gpt2", "context=4096"}));
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, std::string("network.shape"));
        QCOMPARE(refused.error().remedy->value, std::string("1024"));
    }

    void headlinesAreFiguresOfTheirExperiment()
    {
        for (const Experiment* experiment : experiments()) {
            const Device device = *findDevice("nvidia-h200");
            const auto figures = experiment->predictPoint(device, standardParameters(*experiment, device));
            QVERIFY(figures);
            for (const std::string& key : experiment->headlines())
                QVERIFY2(findFigure(*figures, key), (experiment->id() + " " + key).c_str());
            const auto chosen = headlineFigures(*experiment, *figures);
            QCOMPARE(chosen.size(), std::size_t(4));
            if (!experiment->headlines().empty())
                QCOMPARE(chosen.front()->key, experiment->headlines().front());
        }
    }

    void headlinesThatAreNotThereGiveWayToOthers()
    {
        const Experiment& attention = **findExperiment("attention");
        const Device device = *findDevice("nvidia-h200");
        const auto figures =
            attention.predictPoint(device, *resolve(attention.schema(), Texts{"implementation=flash"}));
        QVERIFY(figures);
        const auto chosen = headlineFigures(attention, *figures);
        QCOMPARE(chosen.size(), std::size_t(4));
        QCOMPARE(chosen.front()->key, std::string("flash_time"));
    }
};

QTEST_MAIN(TestIdleParameters)
#include "tst_idle_parameters.moc"

// SPDX-License-Identifier: Apache-2.0
// The functions that write a schema: what each kind is without further words, and an enumeration's words, which
// are the choices and what they mean at once.
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/experiment/schema.h"

#include <QTest>

#include <map>

using namespace memscape;

class TestSchema : public QObject
{
    Q_OBJECT

private slots:
    void aNumberIsWhatItsRangeSays()
    {
        const ParameterSpec spec = integerSpec("width", "width", "Bytes.",
                                               {.least = 1,
                                                .most = 16,
                                                .standard = "4",
                                                .unit = Unit::Byte,
                                                .scale = Scale::Log2,
                                                .appliesTo = AppliesTo::Gpus});
        QCOMPARE(spec.kind, ParameterKind::Integer);
        QCOMPARE(spec.minimum, 1.0);
        QCOMPARE(spec.maximum, 16.0);
        QCOMPARE(spec.scale, Scale::Log2);
        QCOMPARE(spec.appliesTo, AppliesTo::Gpus);
        QCOMPARE(std::get<double>(*parseValue(spec, "8 B")), 8.0);
        QVERIFY(!parseValue(spec, "17"));
        QVERIFY(!parseValue(spec, "1.5"));
        QCOMPARE(std::get<double>(*parseValue(realSpec("dropout", "dropout", "", {.most = 0.99}), "0.5")), 0.5);
    }

    void aFlagIsOffUnlessItIsOn()
    {
        QCOMPARE(flagSpec("causal", "causal", "").standard, std::string("false"));
        QCOMPARE(flagSpec("frees", "frees", "", true).standard, std::string("true"));
    }

    void aTextHasItsLength()
    {
        const ParameterSpec spec = textSpec("shape", "shape", "", "2,3", 1, 4);
        QVERIFY(parseValue(spec, "2,34"));
        QVERIFY(!parseValue(spec, "2,345"));
        QVERIFY(!parseValue(spec, ""));
    }

    void theFirstChoiceIsTheStandard()
    {
        QCOMPARE(choiceSpec("order", "order", "", {{"row", "row", ""}, {"column", "column", ""}}).standard,
                 std::string("row"));
        QCOMPARE(choiceSpec("order", "order", "", {{"row", "row", ""}, {"column", "column", ""}}, "column").standard,
                 std::string("column"));
    }

    void aTableHasTheChoicesAndTheirMeanings()
    {
        const ChoiceTable<int> sides{{-1, {"left", "left", "to the left"}}, {1, {"right", "right", "to the right"}}};
        QCOMPARE(sides.choices().size(), std::size_t(2));
        QCOMPARE(sides.choices()[1].help, std::string("to the right"));
        QCOMPARE(sides.of("left"), -1);
        QCOMPARE(sides.of("right"), 1);
    }

    void everyChoiceCanBePredicted_data()
    {
        QTest::addColumn<QString>("experiment");
        QTest::addColumn<QString>("assignment");
        for (const Experiment* experiment : experiments()) {
            for (const ParameterSpec& spec : experiment->schema()) {
                if (spec.kind != ParameterKind::Choice || spec.key == "advice")
                    continue;
                for (const ChoiceValue& choice : spec.choices) {
                    const std::string assignment = spec.key + "=" + choice.key;
                    QTest::addRow("%s %s", experiment->id().c_str(), assignment.c_str())
                        << QString::fromStdString(experiment->id()) << QString::fromStdString(assignment);
                }
            }
        }
    }

    /// No choice is one that the model behind the schema does not know.
    void everyChoiceCanBePredicted()
    {
        QFETCH(QString, experiment);
        QFETCH(QString, assignment);
        const Experiment& asked = **findExperiment(experiment.toStdString());
        std::vector<std::string> assignments{assignment.toStdString()};
        if (findParameter(asked.schema(), "advice"))
            assignments.push_back("advice=none");
        const char* model = assignment == "library=litgpt" ? "model=smollm2-135m" : "model=gpt2";
        if (experiment == "training-memory" || experiment == "inference-memory")
            assignments.push_back(model);
        if (experiment == "training-memory")
            assignments.push_back("sequence=64");
        const bool needsTokens =
            assignment.startsWith("loss=") || assignment.startsWith("adapter=") || assignment == "library=litgpt";
        if (experiment == "batch-size" && needsTokens) {
            assignments.push_back(model);
            assignments.push_back("sequence=512");
            assignments.push_back("precision=bf16");
        }
        static const std::map<QString, std::string> together{
            {"strategy=exhaustive", "chain=uniform:5"},
            {"order=channels-last", "shape=2,3,4,5"},
            {"offload=parameters", "zero=3"},
            {"sharding_implementation=fsdp1", "zero=3"},
            {"sharding_implementation=fsdp2", "zero=3"},
            {"optimizer=adafactor", "zero=0"},
            {"optimizer=muon", "zero=0"},
            {"optimizer=galore", "zero=0"},
            {"optimizer=galore-8bit", "zero=0"},
            {"optimizer=apollo", "zero=0"},
            {"fp8_scaling=current", "precision=fp8"},
            {"fp8_scaling=tensorwise", "precision=fp8"},
            {"tf32=all", "precision=fp32"},
            {"tf32=none", "precision=fp32"},
            {"dtype=float32", "implementation=standard"},
            {"optimizer_implementation=written-out", "optimizer=adamw"},
            {"operators=written-out", "optimizer=adamw"}};
        // Ways within a host, which its calibration measures.
        static const QStringList ofHosts{"kind=copy",   "kind=stream", "kind=fresh",  "kind=huge",
                                         "kind=thread", "kind=pipe",   "kind=shared", "kind=numa"};
        // What a choice is only offered with.
        const auto other = together.find(assignment);
        if (other != together.end() && findParameter(asked.schema(), other->second.substr(0, other->second.find('='))))
            assignments.push_back(other->second);
        const auto parameters = askedParameters(asked, assignments);
        QVERIFY2(parameters, parameters ? "" : parameters.error().text().c_str());
        static const auto gpu = findDevice("nvidia-h100-sxm");
        QVERIFY(gpu);
        auto device = gpu;
        if (experiment == "transfer" && ofHosts.contains(assignment)) {
            device = findDevice("amd-epyc-9654");
            const std::string kind = assignment.mid(5).toStdString();
            device->links.insert(device->links.begin(),
                                 Link{kind, kind, {8e9, Evidence::Measured}, {1e-6, Evidence::Measured}});
        }
        if (experiment == "sharding" && (assignment == "link=threads" || assignment == "link=processes"))
            device = findDevice("amd-epyc-9654");
        const auto predicted = asked.predict(*device, *parameters);
        QVERIFY2(predicted, predicted ? "" : predicted.error().text().c_str());
    }
};

QTEST_MAIN(TestSchema)
#include "tst_schema.moc"

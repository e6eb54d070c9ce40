// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/experiment.h"
#include "core/experiment/parameter_text.h"
#include "core/experiment/schema.h"

#include <QtTest>

using namespace memscape;

namespace {

const Schema& stride()
{
    return (*findExperiment("stride"))->schema();
}

/// A schema with a free text: what a model parameter looks like.
Schema withText()
{
    return {{"model", "model", "Which one.", ParameterKind::Text, Unit::One, 1, 40, Scale::Linear, {}, "gpt2"},
            {"batch", "batch", "How many.", ParameterKind::Integer, Unit::One, 1, 64, Scale::Log2, {}, "1"}};
}

QString text(const std::vector<ParameterValue>& values)
{
    QStringList all;
    for (const ParameterValue& value : values)
        all << QString::fromStdString(valueText(value));
    return all.join(' ');
}

ParameterSpec real()
{
    return {"value", "value", "Any.", ParameterKind::Real, Unit::One, -1.7e308, 1.7e308, Scale::Linear, {}, "1"};
}

} // namespace

class TestParameter : public QObject
{
    Q_OBJECT

private slots:
    void defaultsAreValid()
    {
        for (const Experiment* experiment : experiments()) {
            const auto parameters = resolve(experiment->schema(), std::vector<std::string>{});
            QVERIFY(parameters.has_value());
            QCOMPARE(parameters->values().size(), experiment->schema().size());
            for (const ParameterSpec& spec : experiment->schema()) {
                QVERIFY2(!spec.help.empty(), spec.key.c_str());
                for (const ChoiceValue& choice : spec.choices)
                    QVERIFY2(!choice.help.empty(), choice.key.c_str());
            }
        }
    }

    void readsSweeps_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("sweep");
        QTest::addColumn<QString>("values");
        const auto row = [](const char* name, const char* key, const char* sweep, const char* values) {
            QTest::newRow(name) << key << sweep << values;
        };
        row("factor", "stride", "1:128:x2", "1 2 4 8 16 32 64 128");
        row("step", "stride", "0:64:16", "0 16 32 48 64");
        row("list", "stride", "1,2,5", "1 2 5");
        row("list keeps its order", "stride", "5,1", "5 1");
        row("step of one", "stride", "3:5", "3 4 5");
        row("end not reached", "stride", "1:10:4", "1 5 9");
        row("bytes", "bytes", "1MiB:4MiB:x2", "1048576 2097152 4194304");
        row("bytes by a step", "bytes", "1MiB:3MiB:1MiB", "1048576 2097152 3145728");
        row("small factor repeats no integer", "stride", "1:4:x1.2", "1 2 3 4");
        row("decimal comma", "bytes", "1,5 GiB", "1610612736");
        row("decimal comma, no blank", "bytes", "1,5MiB", "1572864");
        row("two sizes, not a decimal comma", "bytes", "1MiB,5MiB", "1048576 5242880");
        row("choices", "element", "int8,float64", "int8 float64");
        row("one value", "stride", "7", "7");
    }
    void readsSweeps()
    {
        QFETCH(QString, key);
        QFETCH(QString, sweep);
        QFETCH(QString, values);
        const auto read = parseSweep(*findParameter(stride(), key.toStdString()), sweep.toStdString());
        QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
        QCOMPARE(text(*read), values);
    }

    void realsAreSweptToo_data()
    {
        QTest::addColumn<QString>("sweep");
        QTest::addColumn<QString>("values");
        const auto row = [](const char* name, const char* sweep, const char* values) {
            QTest::newRow(name) << sweep << values;
        };
        row("negative", "-4:4:2", "-4 -2 0 2 4");
        row("the end up to rounding", "0:0.3:0.1", "0 0.1 0.2 0.3");
        row("tiny", "0:1e-12:5e-13", "0 5e-13 1e-12");
        row("large", "1e37:2e37:1e37", "1e+37 2e+37");
        row("over the whole range", "-1.7e308:1.7e308:1.7e308", "-1.7e+308 0 1.7e+308");
        row("by a factor over the whole range", "1e-300:1e300:x1e300", "1e-300 1 1e+300");
        row("the step is beyond the end", "1e308:1.7e308:1e308", "1e+308");
        row("the factor is beyond any number", "1e300:1.7e308:x1e300", "1e+300");
        row("one point, however small the step", "1e37:1e37:1", "1e+37");
    }
    void realsAreSweptToo()
    {
        QFETCH(QString, sweep);
        QFETCH(QString, values);
        const auto read = parseSweep(real(), sweep.toStdString());
        QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
        QCOMPARE(text(*read), values);
    }

    void aStepThatLeadsNowhereIsRefused_data()
    {
        QTest::addColumn<ParameterSpec>("spec");
        QTest::addColumn<QString>("sweep");
        QTest::addColumn<QString>("code");
        const ParameterSpec bytes = *findParameter(stride(), "bytes"), count = *findParameter(stride(), "stride");
        QTest::newRow("too small to be seen") << real() << "1e37:1e38:1"
                                              << "sweep.limit";
        QTest::newRow("too small to be seen, few of them") << real() << "1e16:10000000000000004:1"
                                                           << "sweep.step";
        QTest::newRow("negative") << real() << "-1e38:-1e37:1"
                                  << "sweep.limit";
        QTest::newRow("the distance overflows") << real() << "-1.7e308:1.7e308:1"
                                                << "sweep.limit";
        QTest::newRow("the smallest number") << real() << "0:1:5e-324"
                                             << "sweep.limit";
        QTest::newRow("the smallest factor") << real() << "1:2:x1.0000000000000002"
                                             << "sweep.limit";
        QTest::newRow("the ratio overflows") << real() << "1e-308:1e308:x1.1"
                                             << "sweep.limit";
        QTest::newRow("bytes") << bytes << "4096:1TiB:x1.0000000000000003"
                               << "sweep.limit";
        QTest::newRow("bytes by a step") << bytes << "4096:1TiB:1"
                                         << "sweep.limit";
        QTest::newRow("integers that repeat") << count << "1:8:0.0001"
                                              << "sweep.limit";
        QTest::newRow("integers that repeat by a factor") << count << "1:8:x1.0001"
                                                          << "sweep.limit";
    }
    /// Refused before a point is made, with what was typed and a step that would do.
    void aStepThatLeadsNowhereIsRefused()
    {
        QFETCH(ParameterSpec, spec);
        QFETCH(QString, sweep);
        QFETCH(QString, code);
        const auto read = parseSweep(spec, sweep.toStdString());
        QVERIFY(!read);
        QCOMPARE(QString::fromStdString(read.error().code), code);
        QCOMPARE(read.error().place, spec.key);
        QVERIFY2(read.error().message.find(sweep.toStdString()) != std::string::npos, read.error().message.c_str());
        if (code != "sweep.limit")
            return;
        const QString step = QString::fromStdString(read.error().hint).section(' ', 4, 4);
        const QStringList parts = sweep.split(':');
        const auto better = parseSweep(spec, QStringList{parts[0], parts[1], step}.join(':').toStdString());
        QVERIFY2(better.has_value(), better ? "" : better.error().text().c_str());
        QVERIFY(better->size() > sweepLimit / 2 || spec.kind == ParameterKind::Integer);
    }

    /// A value leaves the experiment its own axis; a range measures that point alone.
    void aRangeOfOneIsASweep()
    {
        const auto range = resolve(stride(), std::vector<std::string>{"stride=7:7", "offset=4"});
        QVERIFY2(range.has_value(), range ? "" : range.error().text().c_str());
        QVERIFY(range->sweep().has_value());
        QCOMPARE(text(range->sweep()->values), QString("7"));
        QCOMPARE(range->integer("stride"), std::int64_t(7));
        QVERIFY(!resolve(stride(), std::vector<std::string>{"stride=7"})->sweep());
        const Json written = parametersToJson(*range);
        const auto read = parametersFromJson(stride(), JsonReader(written, "parameters"));
        QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
        QVERIFY(read->sweep().has_value());
        QCOMPARE(parametersToJson(*read), written);
    }

    // dropout=0,1 is one tenth in half of the world and a sweep in the other.
    void aCommaThatMayBeEitherIsRefused()
    {
        const ParameterSpec dropout{
            "dropout", "dropout", "Probability.", ParameterKind::Real, Unit::One, 0, 1, Scale::Linear, {}, "0"};
        const auto either = parseSweep(dropout, "0,1");
        QVERIFY(!either);
        QCOMPARE(either.error().code, std::string("sweep.syntax"));
        QVERIFY2(either.error().hint.find("0.1") != std::string::npos, either.error().hint.c_str());
        QVERIFY2(either.error().hint.find("0, 1") != std::string::npos, either.error().hint.c_str());
        QCOMPARE(text(*parseSweep(dropout, "0, 1")), QStringLiteral("0 1"));
        QCOMPARE(text(*parseSweep(dropout, "0,0.1")), QStringLiteral("0 0.1"));
        QCOMPARE(text(*parseSweep(dropout, "0,0,1")), QStringLiteral("0 0 1"));
    }

    void refuses_data()
    {
        QTest::addColumn<QStringList>("assignments");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("mentions");
        const auto row = [](const char* name, QStringList all, const char* code, const char* mentions) {
            QTest::newRow(name) << all << code << mentions;
        };
        row("unknown key", {"strde=4"}, "parameter.unknown", "stride");
        row("no value", {"stride"}, "parameter.syntax", "KEY=VALUE");
        row("empty value", {"stride="}, "parameter.type", "stride");
        row("text", {"stride=four"}, "parameter.type", "stride");
        row("fraction", {"stride=1.5"}, "parameter.type", "whole");
        row("negative", {"stride=-1"}, "parameter.range", "0");
        row("huge", {"stride=1e300"}, "parameter.range", "allowed");
        row("beyond double", {"stride=1e999"}, "parameter.range", "stride");
        row("nan", {"bytes=nan"}, "parameter.range", "bytes");
        row("choice", {"element=float31"}, "parameter.choice", "float32");
        row("wrong unit", {"bytes=3 ms"}, "parameter.type", "MiB");
        row("bare G", {"bytes=1G"}, "parameter.type", "GiB");
        row("twice", {"stride=1", "stride=2"}, "parameter.twice", "once");
        row("two sweeps", {"stride=1,2", "offset=0,4"}, "sweep.several", "stride");
        row("backwards", {"stride=8:1:x2"}, "sweep.syntax", "below");
        row("factor one", {"stride=1:8:x1"}, "sweep.syntax", "above 1");
        row("factor from zero", {"stride=0:8:x2"}, "sweep.syntax", "0");
        row("no step", {"stride=1:8:0"}, "sweep.syntax", "above 0");
        row("too many", {"stride=0:1048576:1"}, "sweep.limit", "4096");
        row("range of choices", {"element=int8:float64:1"}, "sweep.syntax", "list");
        row("empty part", {"stride=1,,2"}, "sweep.syntax", "empty");
    }
    void refuses()
    {
        QFETCH(QStringList, assignments);
        QFETCH(QString, code);
        QFETCH(QString, mentions);
        std::vector<std::string> all;
        for (const QString& one : assignments)
            all.push_back(one.toStdString());
        const auto parameters = resolve(stride(), all);
        QVERIFY(!parameters.has_value());
        QCOMPARE(QString::fromStdString(parameters.error().code), code);
        QVERIFY2(QString::fromStdString(parameters.error().text()).contains(mentions),
                 parameters.error().text().c_str());
    }

    void jsonReadsBack()
    {
        for (const auto& assignments : {std::vector<std::string>{"stride=8", "element=float4", "bytes=1GiB"},
                                        std::vector<std::string>{"stride=1:128:x2", "operation=copy"},
                                        std::vector<std::string>{"element=int8,float32"}}) {
            const auto parameters = resolve(stride(), assignments);
            const Json json = parametersToJson(*parameters);
            const auto back = parametersFromJson(stride(), JsonReader(json));
            QVERIFY(back.has_value());
            QVERIFY(*back == *parameters);
        }
    }

    void jsonErrorsNameThePlace()
    {
        const auto refused = [](const char* text) {
            const Json json = Json::parse(text);
            const auto read = parametersFromJson(stride(), JsonReader(json, "parameters"));
            return read ? std::string("accepted") : read.error().text();
        };
        QVERIFY(refused(R"({"stride": "many"})").starts_with("parameters.stride: "));
        QVERIFY(refused(R"({"stride": -1})").starts_with("parameters.stride: "));
        QVERIFY(refused(R"({"stride": [1, 1e30]})").starts_with("parameters.stride[1]: "));
        QVERIFY(refused(R"({"stride": []})").starts_with("parameters.stride: expected 1 to"));
        QVERIFY(refused(R"({"element": 4})").starts_with("parameters.element: expected one of"));
        QVERIFY(refused(R"({"strid": 4})").find("stride") != std::string::npos);
        QVERIFY(refused(R"([])").starts_with("parameters: expected an object"));
    }

    void aTextKeepsItsCommasAndEqualsSigns()
    {
        QCOMPARE(resolve(withText(), std::vector<std::string>{})->text("model"), std::string("gpt2"));
        for (const char* value : {"from-scratch:hidden=1,layers=2", "1:128:x2", "a,b", "params:7.5e9",
                                  "/home/a b/config.json", "h\xc3\xa9llo", "4096", "say \"no\""}) {
            const auto parameters = resolve(withText(), std::vector<std::string>{std::string("model=") + value});
            QVERIFY2(parameters.has_value(), value);
            QVERIFY2(!parameters->sweep(), value);
            QCOMPARE(parameters->text("model"), std::string(value));
        }
    }

    void textsInQuotesAreASweep()
    {
        const ParameterSpec spec = withText().front();
        QCOMPARE(text(*parseSweep(spec, R"("gpt2","from-scratch:hidden=1,layers=2")")),
                 QString("gpt2 from-scratch:hidden=1,layers=2"));
        QCOMPARE(text(*parseSweep(spec, R"( "a b" , "c" )")), QString("a b c"));
        QCOMPARE(parseSweep(spec, R"("gpt2")")->size(), std::size_t(1));
        const auto parameters = resolve(withText(), std::vector<std::string>{R"(model="b","a")"});
        QCOMPARE(parameters->sweep()->values.size(), std::size_t(2));
        QCOMPARE(parameters->text("model"), std::string("b"));
    }

    void textsThatAreRefused_data()
    {
        QTest::addColumn<QByteArray>("value");
        QTest::addColumn<QString>("code");
        QTest::newRow("empty") << QByteArray("") << "parameter.range";
        QTest::newRow("blank") << QByteArray("   ") << "parameter.range";
        QTest::newRow("too long") << QByteArray(41, 'x') << "parameter.range";
        QTest::newRow("not UTF-8") << QByteArray("gpt\xff") << "parameter.type";
        QTest::newRow("two lines") << QByteArray("gpt2\ngpt3") << "parameter.type";
        QTest::newRow("open quote") << QByteArray("\"gpt2") << "sweep.syntax";
        QTest::newRow("text after a quote") << QByteArray("\"gpt2\" too") << "sweep.syntax";
        QTest::newRow("nothing after a comma") << QByteArray("\"gpt2\",") << "sweep.syntax";
        QTest::newRow("an empty one") << QByteArray("\"gpt2\",\"\"") << "parameter.range";
        QTest::newRow("too many") << QByteArray("\"a\",").repeated(int(sweepLimit)) + "\"a\""
                                  << "sweep.limit";
    }
    void textsThatAreRefused()
    {
        QFETCH(QByteArray, value);
        QFETCH(QString, code);
        const auto parameters =
            resolve(withText(), std::vector<std::pair<std::string, std::string>>{{"model", value.toStdString()}});
        QVERIFY(!parameters.has_value());
        QCOMPARE(QString::fromStdString(parameters.error().code), code);
        QCOMPARE(parameters.error().place, std::string("model"));
    }

    void aTextInJson()
    {
        for (const char* assignment : {"model=from-scratch:hidden=1,layers=2", R"(model="a,b","c")"}) {
            const auto parameters = resolve(withText(), std::vector<std::string>{assignment});
            const Json json = parametersToJson(*parameters);
            QVERIFY(*parametersFromJson(withText(), JsonReader(json)) == *parameters);
        }
        const Json number{{"model", 4}};
        QCOMPARE(parametersFromJson(withText(), JsonReader(number)).error().code, std::string("json.type"));
        const Json schema = schemaToJson(withText());
        QCOMPARE(schema[0]["kind"].get<std::string>(), std::string("text"));
        QCOMPARE(schema[0]["maximum_length"].get<int>(), 40);
        QVERIFY(!schema[0].contains("maximum"));
    }

    void aChoiceMayBeCounted()
    {
        ParameterSpec spec{"checkpointing",
                           "checkpointing",
                           "Which blocks.",
                           ParameterKind::Choice,
                           Unit::One,
                           0,
                           0,
                           Scale::Linear,
                           {{"none", "none", ""}, {"block", "every block", ""}},
                           "none"};
        QCOMPARE(parseSweep(spec, "every:4").error().code, std::string("sweep.syntax"));
        spec.counted = "every";
        const auto four = parseSweep(spec, "every:4");
        QVERIFY(four && four->size() == 1);
        QCOMPARE(std::get<std::string>(four->front()), std::string("every:4"));
        QCOMPARE(std::get<std::string>(*parseValue(spec, "every:007")), std::string("every:7"));
        const auto several = parseSweep(spec, "none,every:2,every:8");
        QVERIFY(several && several->size() == 3);
        for (const char* wrong : {"every:0", "every:", "every:-1", "every:1.5", "every:x", "every:1e9", "evry:2"}) {
            const auto refused = parseValue(spec, wrong);
            QVERIFY2(!refused, wrong);
            QCOMPARE(refused.error().code, std::string("parameter.choice"));
            QVERIFY2(!refused.error().hint.empty(), wrong);
        }
    }

    void oneOfThemIsSingular()
    {
        ParameterSpec spec{"zero",        "zero", "How many.", ParameterKind::Integer, Unit::One, 0, 64,
                           Scale::Linear, {},     "1"};
        const auto label = [&spec](const char* suffix, double count) {
            spec.suffix = suffix;
            return valueLabel(spec, count);
        };
        QCOMPARE(label("GPUs", 1), std::string("1 GPU"));
        QCOMPARE(label("GPUs", 8), std::string("8 GPUs"));
        QCOMPARE(label("GPUs", 0), std::string("0 GPUs"));
        QCOMPARE(label("micro-batches", 1), std::string("1 micro-batch"));
        QCOMPARE(label("", 1), std::string("1"));
    }

    void aNumberMayHaveAWord()
    {
        const ParameterSpec& threads = *findParameter(stride(), "threads");
        QCOMPARE(valueLabel(threads, 0.0), std::string("all"));
        QCOMPARE(valueLabel(threads, 4.0), std::string("4"));
        QCOMPARE(valueText(ParameterValue(0.0)), std::string("0")); // documents keep the number
        for (const char* text : {"all", "0"}) {
            const auto value = parseValue(threads, text);
            QVERIFY2(value && *value == ParameterValue(0.0), text);
        }
        QVERIFY(!parseValue(threads, "every"));
        QCOMPARE(numbersText(threads), std::string("0 (all) to 1024"));
        QVERIFY(numbersText(*findParameter(stride(), "offset")).starts_with("0 B to ")); // without a word
    }

    void groupsStandInTheOrderOfTheirFirstParameter()
    {
        Schema some(4);
        for (std::size_t i = 0; i < some.size(); ++i)
            some[i].key = std::string(1, char('a' + i));
        setGroup(some, "second", {"d", "b"});
        setGroup(some, "third", {"c"});
        const std::vector<std::string> groups{"", "second", "third"};
        QVERIFY(groupsOf(some) == groups);
        QCOMPARE(some[0].group, std::string());
        const Json json = schemaToJson(some);
        QVERIFY(!json[0].contains("group"));
        QCOMPARE(json[1]["group"].get<std::string>(), std::string("second"));
    }

    void aVersionBehavesAsTheLastChangeBeforeIt()
    {
        const ParameterSpec spec = choiceSpec("pytorch", "PyTorch", "Which version.",
                                              {{"2.14", "2.14", ""}, {"2.1", "2.1", ""}, {"1.13", "1.13", ""}}, "2.14");
        const std::pair<const char*, const char*> versions[] = {{"2.14", "2.14"}, {"2.15", "2.14"}, {"3.0.1", "2.14"},
                                                                {"2.13", "2.1"},  {"2.9.1", "2.1"}, {"2.0", "1.13"}};
        for (const auto& [given, taken] : versions)
            QCOMPARE(std::get<std::string>(*parseValue(spec, given)), std::string(taken));
        for (const char* wrong : {"1.12", "2", "2.", "2.x", "-2.1", "2.1.1.1", "v2.1", "99999999999.1"})
            QVERIFY2(!parseValue(spec, wrong), wrong);
        const ParameterSpec words =
            choiceSpec("form", "form", "Not versions alone.", {{"2.1", "", ""}, {"auto", "", ""}}, "auto");
        QVERIFY(!parseValue(words, "2.2"));
    }

    void aLineNamesWhatIsBasicOrChosen()
    {
        Schema schema = withText();
        setGroup(schema, "more", {"batch"});
        QVERIFY(isNamed(schema[0], std::string("gpt2"))); // basic, and as by default
        QVERIFY(!isNamed(schema[1], 1.0));
        QVERIFY(isNamed(schema[1], 2.0));
    }

    void operationsAreCountedInFlop()
    {
        const Figure flops{"standard_flops", "standard operations", Unit::One, 120259084288.0};
        QCOMPARE(flops.text(), std::string("120 GFLOP"));
        QCOMPARE(Figure({"flops", "operations", Unit::One, 12.0}).text(), std::string("12 FLOP"));
        // Other counts keep their digits: a number of parameters is not rounded.
        QCOMPARE(Figure({"parameter_count", "parameters", Unit::One, 6738415616.0}).text(),
                 std::string("6\u202f738\u202f415\u202f616"));
        QCOMPARE(Figure({"fits", "fits", Unit::One, 1.0}).text(), std::string("yes")); // 1 in documents
        QCOMPARE(Figure({"fits", "fits", Unit::One, 0.0}).text(), std::string("no"));
    }

    void sharesFactorsAndEstimatesAreSaidAsSuch()
    {
        const auto text = [](const char* key, double value) { return Figure({key, key, Unit::One, value}).text(); };
        QCOMPARE(text("efficiency", 0.125), std::string("12.5 %"));
        QCOMPARE(text("efficiency", 1), std::string("100 %"));
        QCOMPARE(text("unusable", 0), std::string("0 %"));
        QCOMPARE(text("memory_ratio", 32.0 / 11), std::string("2.91×"));
        QCOMPARE(text("speedup", 1), std::string("1×"));
        QCOMPARE(text("speedup", memscape::nan), std::string("–"));
        QCOMPARE(text("throughput", 1279348.86), std::string("1.28 M")); // no more digits than a model has
        QCOMPARE(text("throughput", 12793.5), std::string("12794"));
        const Figure share{"unusable", "not usable", Unit::One, 0.25, 0.2, 0.3};
        QCOMPARE(share.rangeText(), std::string("20 to 30 %"));
    }

    void aFlagIsOnOrOff()
    {
        const ParameterSpec causal = flagSpec("causal", "causal", "", true);
        QCOMPARE(valueLabel(causal, true), std::string("on"));
        QCOMPARE(valueLabel(causal, false), std::string("off"));
    }
};

QTEST_GUILESS_MAIN(TestParameter)
#include "tst_parameter.moc"

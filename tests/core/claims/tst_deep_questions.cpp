// SPDX-License-Identifier: Apache-2.0
// The deep questions: all six of the note are there in its words, every step resolves, every sentence is filled with
// numbers on processors and GPUs, some of them checked against arithmetic that is done here; and a broken file says
// where.
#include "core/base/file.h"
#include "core/claims/claim_verdicts.h"
#include "core/claims/question_answers.h"
#include "core/device/catalogue.h"

#include <QTemporaryDir>
#include <QtTest>

using namespace memscape;

namespace {

const std::vector<DeepQuestion>& shippedQuestions()
{
    static const auto questions = readQuestions(questionsFile());
    if (!questions)
        qFatal("%s", questions.error().text().c_str());
    return *questions;
}

std::vector<AnsweredQuestion> answersOn(const char* device)
{
    std::vector<const DeepQuestion*> asked;
    for (const DeepQuestion& question : shippedQuestions())
        asked.push_back(&question);
    const auto answers = answerQuestions(asked, *findDevice(device));
    if (!answers)
        qFatal("%s: %s", device, answers.error().text().c_str());
    return *answers;
}

Json goodQuestion()
{
    return {{"id", "good"},
            {"line", 1},
            {"heading", "Heading"},
            {"question", "Why?"},
            {"answer", "Because."},
            {"claim", "contiguous-optimal"},
            {"true", "{{one.efficiency | percent}}"},
            {"not", "never"},
            {"steps",
             Json::array({{{"name", "one"},
                           {"experiment", "stride"},
                           {"parameters", Json::array({"stride=2"})},
                           {"says", "{{efficiency | percent}}"}}})}};
}

Result<std::vector<DeepQuestion>> readChanged(const char* key, const Json& value)
{
    QTemporaryDir folder;
    Json question = goodQuestion();
    if (value.is_null())
        question.erase(key);
    else
        question[key] = value;
    const std::string path = folder.filePath("broken.json").toStdString();
    const Json file{{"format", "memscape-questions"},
                    {"version", 1},
                    {"source", "broken"},
                    {"title", "Broken"},
                    {"questions", Json::array({question})}};
    if (!writeFileAtomically(path, jsonText(file)))
        qFatal("no temporary file");
    return readQuestions(path);
}

} // namespace

class TestDeepQuestions : public QObject
{
    Q_OBJECT

private slots:
    /// Their first words, as the note has them.
    void allSixOfTheNoteAreThere()
    {
        const char* const beginnings[] = {
            "Explain why GPU memory bandwidth",     "Analyze the trade-offs between implicit",
            "Why does tensor contiguity",           "Derive the memory complexity reduction",
            "Compare the memory and computational", "Explain how memory pool management"};
        QCOMPARE(shippedQuestions().size(), std::size(beginnings));
        for (std::size_t i = 0; i < std::size(beginnings); ++i) {
            const DeepQuestion& question = shippedQuestions()[i];
            QVERIFY2(question.question.starts_with(beginnings[i]), question.question.c_str());
            QVERIFY2(question.answer.size() > 150, question.id.c_str());
            QVERIFY2(question.steps.size() >= 3, question.id.c_str());
        }
    }

    void theAnswersAreJudgedByTheTable()
    {
        const auto table = sharedClaimTable();
        QVERIFY(table);
        for (const DeepQuestion& question : shippedQuestions()) {
            const auto entry = std::find_if((*table)->begin(), (*table)->end(),
                                            [&](const ClaimEntry& one) { return one.id == question.claim; });
            QVERIFY2(entry != (*table)->end(), question.claim.c_str());
            QCOMPARE(entry->source, question.source);
            QCOMPARE(entry->line, question.line + 1); // the claim is a sentence of the answer
            QVERIFY2(question.answer.find(entry->quote) != std::string::npos, entry->quote.c_str());
        }
    }

    void everyStepResolvesAndEveryFigureIsComputed_data()
    {
        QTest::addColumn<QByteArray>("device");
        for (const char* device : {"cpu", "amd-epyc-9654", "nvidia-v100-sxm2", "nvidia-a100-80gb", "nvidia-h200"})
            QTest::newRow(device) << QByteArray(device);
    }
    void everyStepResolvesAndEveryFigureIsComputed()
    {
        QFETCH(QByteArray, device);
        const std::vector<AnsweredQuestion> answers = answersOn(device.constData());
        QCOMPARE(answers.size(), std::size_t(6));
        for (const AnsweredQuestion& answer : answers) {
            const DeepQuestion& question = *answer.question;
            QCOMPARE(answer.says.size(), question.steps.size());
            QCOMPARE(answer.devices.size(), question.steps.size());
            QVERIFY2(answer.instead.empty() == (answer.device == findDevice(device.toStdString())->id),
                     answer.instead.c_str());
            std::vector<std::string> texts = answer.says;
            texts.insert(texts.end(), {answer.isTrue, answer.isNot});
            for (const std::string& text : texts) {
                QVERIFY2(text.find_first_of("{}") == std::string::npos, text.c_str());
                QVERIFY2(text.find("–") == std::string::npos, text.c_str()); // not known
                QVERIFY2(text.find("nan") == std::string::npos && text.find("inf ") == std::string::npos, text.c_str());
                QVERIFY2(text.find_first_of("0123456789") != std::string::npos, text.c_str());
            }
        }
    }

    void independentArithmeticAgrees()
    {
        const std::vector<AnsweredQuestion> answers = answersOn("nvidia-h200");
        const auto says = [](const std::string& text, const std::string& words) {
            const bool found = text.find(words) != std::string::npos;
            if (!found)
                qWarning("\"%s\" is not in: %s", words.c_str(), text.c_str());
            return found;
        };
        // A product of m × k by k × n in two bytes: 2 m n k operations, 2 (m k + k n + m n) bytes.
        const double n = 16384, m = 16;
        QVERIFY(says(answers[0].says[1], quantityText(2 * m * n * n / (2 * (m * n + n * n + m * n)), Unit::One)));
        QVERIFY(says(answers[0].says[2], quantityText(8192 / 3.0, Unit::One)));
        // 4 bytes of a sector of 32.
        QVERIFY(says(answers[2].isTrue, "12.5 %"));
        // n/k inputs of segments, k stages of the live one, and its gradients: least at √n.
        const auto peakOf = [&](std::size_t step) {
            const std::string& text = answers[3].says[step];
            return std::stod(text.substr(text.find(": ") + 2));
        };
        QVERIFY(peakOf(1) < peakOf(0) && peakOf(1) < peakOf(2));
        QVERIFY(says(answers[3].says[1], "56 forwards")); // 64 − 8
        // GPT-2 has 124,439,808 parameters of 4 bytes, also under autocast.
        QVERIFY(says(answers[4].says[5], quantityText(124439808 * 4.0, Unit::Byte, ByteStyle::Decimal)));
        QVERIFY(says(answers[4].isNot, "70144")); // the nearest of BF16: steps of 512 from 65536 on
    }

    void aDeviceOfTheOtherKindIsStoodInFor()
    {
        const std::vector<AnsweredQuestion> answers = answersOn("amd-epyc-9654");
        QCOMPARE(answers[4].device, std::string("nvidia-h200"));
        QVERIFY2(answers[4].instead.find("about GPUs") != std::string::npos, answers[4].instead.c_str());
        QCOMPARE(answers[3].device, std::string("amd-epyc-9654")); // units have no device
    }

    void numbersFollowTheDevice()
    {
        QVERIFY(answersOn("nvidia-a100-80gb")[0].isTrue != answersOn("nvidia-h200")[0].isTrue);
    }

    void theDocumentHasEveryKey()
    {
        const Json json = answeredJson(answersOn("nvidia-h200").front());
        for (const char* key : {"id", "place", "question", "answer", "claim", "true", "not", "device", "steps"})
            QVERIFY2(json.contains(key), key);
        for (const char* key : {"name", "says", "experiment", "parameters", "device"})
            QVERIFY2(json["steps"][0].contains(key), key);
    }

    void brokenFilesSayWhere_data()
    {
        QTest::addColumn<QByteArray>("key");
        QTest::addColumn<QByteArray>("value");
        QTest::addColumn<QByteArray>("word");
        const auto row = [](const char* name, const char* key, const Json& value, const char* word) {
            QTest::newRow(name) << QByteArray(key) << QByteArray::fromStdString(jsonLine(value)) << QByteArray(word);
        };
        for (const char* key : {"line", "heading", "question", "answer", "claim", "true", "not", "steps"})
            row(key, key, {}, key);
        const auto withStep = [](const char* key, const Json& value) {
            Json steps = goodQuestion()["steps"];
            steps[0][key] = value;
            return steps;
        };
        row("no steps", "steps", Json::array(), "no steps");
        row("experiment", "steps", withStep("experiment", "strid"), "did you mean stride");
        row("parameter", "steps", withStep("parameters", Json::array({"strde=2"})), "stride");
        row("sweep", "steps", withStep("parameters", Json::array({"stride=1:8:x2"})), "sweeps");
        row("sentence", "steps", withStep("says", "{efficiency"), "lone brace");
        row("key of a step", "steps", withStep("say", "x"), "did you mean says");
        row("key", "anwser", "x", "did you mean answer");
        row("kind", "on", "tpu", "gpu or host");
        Json twice = goodQuestion()["steps"];
        twice.push_back(twice[0]);
        row("two of a name", "steps", twice, "\"one\"");
    }
    void brokenFilesSayWhere()
    {
        QFETCH(QByteArray, key);
        QFETCH(QByteArray, value);
        QFETCH(QByteArray, word);
        const auto read = readChanged(key.constData(), *parseJson(value.toStdString()));
        QVERIFY(!read);
        const std::string text = read.error().text();
        QVERIFY2(text.find(word.constData()) != std::string::npos, text.c_str());
        QVERIFY2(text.find("broken.json, \"good\"") != std::string::npos, text.c_str());
    }

    void anUnknownFigureNamesTheQuestion()
    {
        const auto questions = readChanged("true", "{{one.eficiency | percent}}");
        QVERIFY2(questions, questions ? "" : questions.error().text().c_str());
        const auto answers = answerQuestions({&questions->front()}, *findDevice("nvidia-h200"));
        QVERIFY(!answers);
        QVERIFY2(answers.error().text().find("\"good\"") != std::string::npos, answers.error().text().c_str());
        QVERIFY2(answers.error().text().find("efficiency") != std::string::npos, answers.error().text().c_str());
    }
};

QTEST_APPLESS_MAIN(TestDeepQuestions)
#include "tst_deep_questions.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// What a refusal proposes, from the words of its hint: the refusals of the experiments themselves are read here.
#include "app/pages/remedies.h"
#include "core/experiment/experiment.h"

#include <QTest>

using namespace memscape;

namespace {

const Experiment& training()
{
    return **findExperiment("training-memory");
}

QStringList labelsOf(const std::vector<Proposal>& proposals)
{
    QStringList labels;
    for (const Proposal& proposal : proposals)
        labels << proposal.label;
    return labels;
}

/// Of a hint of no remedy.
QStringList proposed(const std::string& hint)
{
    return labelsOf(proposalsOf(Error{"plan.combination", "no", {}, hint}, training().schema(), ByteStyle::Binary));
}

} // namespace

class TestRemedies : public QObject
{
    Q_OBJECT

private slots:
    void alternativesAreProposalsOfTheirOwn()
    {
        QCOMPARE(proposed("choose loss=library or tensor_parallel=1"),
                 (QStringList{"loss: as its library", "tensor parallel: 1 GPU"}));
        QCOMPARE(proposed("choose tensor_parallel=2, or tensor_parallel=4: it divides 28"),
                 (QStringList{"tensor parallel: 2 GPUs", "tensor parallel: 4 GPUs"}));
        QCOMPARE(proposed("choose loss=chunked:8"), QStringList{"loss: in 8 chunks"});
        QCOMPARE(proposed("choose compile=none, or leave the other as it is by default"), QStringList{"compile: none"});
    }

    void whatGoesTogetherIsOne()
    {
        const auto proposals =
            proposalsOf(Error{"plan.combination",
                              "no",
                              {},
                              "choose zero=3 and sharding_implementation=deepspeed, or nvme_bandwidth=0"},
                        training().schema(), ByteStyle::Binary);
        QCOMPARE(proposals.size(), std::size_t(2));
        QCOMPARE(proposals[0].changes, (ParameterChanges{{"zero", "3"}, {"sharding_implementation", "deepspeed"}}));
        QCOMPARE(proposals[1].changes, (ParameterChanges{{"nvme_bandwidth", "0"}}));
    }

    void otherWordsProposeNothing()
    {
        QVERIFY(proposed("choose heads that divide hidden").isEmpty());
        QVERIFY(proposed("choose compile=sideways").isEmpty());
        QVERIFY(proposed("choose colour=red").isEmpty());
        QVERIFY(proposed("").isEmpty());
    }

    void aRemedyComesBeforeTheHint()
    {
        const Error error{"network.shape", "too long", "sequence", "take sequence=512", Remedy{"sequence", "1024"}};
        QCOMPARE(labelsOf(proposalsOf(error, training().schema(), ByteStyle::Binary)),
                 QStringList{"sequence: 1024 tokens"});
    }

    /// What is proposed takes the refusal away.
    void proposalsHelp_data()
    {
        QTest::addColumn<QStringList>("asked");
        QTest::newRow("compile beside checkpointing") << QStringList{"compile=inductor", "checkpointing=block"};
        QTest::newRow("beyond the positions") << QStringList{"sequence=4096"};
        QTest::newRow("QLoRA in int8") << QStringList{"adapter=qlora", "base_precision=int8"};
        QTest::newRow("prefixes beside checkpointing")
            << QStringList{"adapter=prefix", "checkpointing=block", "sequence=512"};
        QTest::newRow("five devices for twelve heads") << QStringList{"tensor_parallel=5"};
        QTest::newRow("factors beside NF4") << QStringList{"adapter=ia3", "base_precision=nf4"};
    }
    void proposalsHelp()
    {
        QFETCH(QStringList, asked);
        std::vector<std::string> texts{"model=gpt2", "advice=none"};
        for (const QString& text : asked)
            texts.push_back(text.toStdString());
        const Device device = *findDevice("nvidia-h200");
        const Parameters parameters = *standardParameters(training(), device, texts);
        const auto refused = training().predictPoint(device, parameters);
        QVERIFY(!refused);
        const auto proposals = proposalsOf(refused.error(), training().schema(), ByteStyle::Binary);
        QVERIFY2(!proposals.empty(), refused.error().text().c_str());
        for (const Proposal& proposal : proposals) {
            Parameters changed = parameters;
            for (const auto& [key, text] : proposal.changes)
                changed.set(key, *parseValue(*findParameter(training().schema(), key), text));
            const auto answer = training().predictPoint(device, changed);
            QVERIFY2(answer,
                     qPrintable(proposal.label + ": " + QString::fromStdString(answer ? "" : answer.error().text())));
        }
    }
};

QTEST_GUILESS_MAIN(TestRemedies)
#include "tst_remedies.moc"

// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/mlp_chain.h"
#include "core/checkpoint/replay.h"

#include <QtTest>

using namespace memscape;

class TestMlpChain : public QObject
{
    Q_OBJECT

private slots:
    void theExerciseOfTheNotesHasItsBytes()
    {
        const MlpShape shape; // 48 × Linear 4096, batch 512
        const auto chain = mlpChain(shape);
        QVERIFY(chain && checkChain(*chain));
        QCOMPARE(chain->length(), 48);
        QCOMPARE(chain->values.front(), std::int64_t(8) << 20); // 512 · 4096 · 4 B = 8 MiB
        QCOMPARE(chain->stages.front().options.front().saved, std::int64_t(16) << 20);
        QCOMPARE(mlpForwardWork(shape, true).flops, 2.0 * 512 * 4096 * 4096);
        QCOMPARE(mlpBackwardWork(shape, MlpSave::All).flops, 2 * mlpForwardWork(shape, true).flops);
    }

    void everyArrayIsRoundedAsThePoolRounds()
    {
        const auto chain = mlpChain({3, 5, 7}); // 140 B
        QVERIFY(chain.has_value());
        for (const std::int64_t value : chain->values)
            QCOMPARE(value, std::int64_t(512));
        QCOMPARE(mlpArrayBytes({1, 129, 1}), std::int64_t(1024));
        QCOMPARE(mlpArrayBytes({1, 128, 1}), std::int64_t(512));
    }

    void keepingEverythingPeaksInTheLastBackward()
    {
        const auto chain = mlpChain({4, 128, 1});
        Schedule schedule;
        for (int i = 0; i < 4; ++i)
            schedule.push_back({OperationKind::ForwardSave, i, 0});
        schedule.push_back({OperationKind::Loss, 4, 0});
        for (int i = 3; i >= 0; --i)
            schedule.push_back({OperationKind::Backward, i, 0});
        const auto replayed = replay(*chain, schedule);
        QVERIFY(replayed.has_value());
        // x_0, four pairs of z and x, y_4 and y_3.
        QCOMPARE(replayed->peak, std::int64_t(512 * (1 + 8 + 2)));
    }

    void aSavedResultPaysInTheBackward()
    {
        const auto chain = mlpChain({1, 128, 1});
        const Schedule schedule{
            {OperationKind::ForwardSave, 0, 1}, {OperationKind::Loss, 1, 0}, {OperationKind::Backward, 0, 0}};
        const auto replayed = replay(*chain, schedule);
        QVERIFY(replayed.has_value());
        QCOMPARE(replayed->peak, std::int64_t(512 * 5)); // x_0, x_1, y_1, y_0 and z
    }

    void textsAreReadAndRefused_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("code");
        QTest::newRow("as in the notes") << "mlp:48x4096"
                                         << "";
        QTest::newRow("smallest") << "mlp:1x1"
                                  << "";
        QTest::newRow("nothing") << ""
                                 << "chain.syntax";
        QTest::newRow("no cross") << "mlp:48"
                                  << "chain.syntax";
        QTest::newRow("other chain") << "uniform:8"
                                     << "chain.syntax";
        QTest::newRow("more behind") << "mlp:4x8x2"
                                     << "chain.syntax";
        QTest::newRow("beyond 64 bits") << "mlp:99999999999999999999x8"
                                        << "chain.syntax";
        QTest::newRow("no stage") << "mlp:0x8"
                                  << "chain.range";
        QTest::newRow("negative") << "mlp:4x-8"
                                  << "chain.range";
        QTest::newRow("too wide") << "mlp:4x65537"
                                  << "chain.range";
        QTest::newRow("too deep") << "mlp:10001x8"
                                  << "chain.range";
    }
    void textsAreReadAndRefused()
    {
        QFETCH(QString, text);
        QFETCH(QString, code);
        const auto shape = parseMlpShape(text.toStdString(), 16);
        QCOMPARE(shape ? QString() : QString::fromStdString(shape.error().code), code);
        if (shape)
            QCOMPARE(QString::fromStdString(mlpText(*shape)), text);
    }

    void sizesOutsideAreRefused()
    {
        QCOMPARE(mlpChain({4, 8, 0}).error().code, std::string("chain.range"));
        QVERIFY(mlpChain({mlpLengthLimit, mlpWidthLimit, mlpBatchLimit}).has_value()); // nothing overflows
    }
};

QTEST_APPLESS_MAIN(TestMlpChain)
#include "tst_mlp_chain.moc"

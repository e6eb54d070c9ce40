// SPDX-License-Identifier: Apache-2.0
// The loss scaler against PyTorch's own GradScaler: scale, growth tracker and whether the optimizer
// stepped, step by step (data/precision/make_grad_scaler.py).
#include "core/precision/loss_scaler.h"

#include <QtTest>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

using namespace memscape;

namespace {

QJsonArray sequences()
{
    QFile file(QString(TEST_DATA) + "/precision/grad_scaler.json");
    if (!file.open(QIODevice::ReadOnly))
        qFatal("no %s", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll()).object()["sequences"].toArray();
}

} // namespace

class TestLossScaler : public QObject
{
    Q_OBJECT

private slots:
    void stepsAsGradScalerDoes_data()
    {
        QTest::addColumn<QJsonObject>("sequence");
        for (const QJsonValue& value : sequences())
            QTest::newRow(qPrintable(value["name"].toString())) << value.toObject();
    }
    void stepsAsGradScalerDoes()
    {
        QFETCH(QJsonObject, sequence);
        const QJsonObject given = sequence["options"].toObject();
        LossScaler scaler({float(given["init_scale"].toDouble()), given["growth_factor"].toDouble(),
                           given["backoff_factor"].toDouble(), given["growth_interval"].toInt()});
        const QJsonArray steps = sequence["steps"].toArray();
        QVERIFY(steps.size() > 0);
        int skipped = 0;
        for (const QJsonValue& step : steps) { // [infinite, stepped, scale, growth tracker]
            const QJsonArray expected = step.toArray();
            QCOMPARE(scaler.update(expected[0].toBool()), expected[1].toBool());
            skipped += !expected[1].toBool();
            QCOMPARE(scaler.scale(), float(expected[2].toDouble()));
            QCOMPARE(scaler.growthTracker(), expected[3].toInt());
            QCOMPARE(scaler.skipped(), skipped);
        }
    }

    void startsAsGradScalerDoes()
    {
        const QJsonObject standard = sequences()[0].toObject();
        QCOMPARE(standard["name"].toString(), QString("defaults"));
        const QJsonObject options = standard["options"].toObject();
        const LossScalerOptions ours;
        QCOMPARE(double(ours.initialScale), options["init_scale"].toDouble());
        QCOMPARE(ours.growthFactor, options["growth_factor"].toDouble());
        QCOMPARE(ours.backoffFactor, options["backoff_factor"].toDouble());
        QCOMPARE(ours.growthInterval, options["growth_interval"].toInt());
    }

    void skipsWhileTheScaledGradientOverflows()
    {
        QCOMPARE(skipsAtStart({}, 0.5, 65520), 0);
        QCOMPARE(skipsAtStart({}, 1, 65520), 1);  // 65536 overflows, 32768 does not
        QCOMPARE(skipsAtStart({}, 10, 65520), 4); // 65536 / 2^4 × 10 = 40960
        QCOMPARE(skipsAtStart({}, 0, 65520), 0);
    }
};

QTEST_APPLESS_MAIN(TestLossScaler)
#include "tst_loss_scaler.moc"

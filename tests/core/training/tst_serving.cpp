// SPDX-License-Identifier: Apache-2.0
// Quantized weights against the bytes that bitsandbytes, AutoAWQ, AutoGPTQ and PyTorch itself hold for
// a linear layer (tests/data/pytorch/quantized_bytes.py).
#include "core/training/serving.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

using namespace memscape;

class TestServing : public QObject
{
    Q_OBJECT

private slots:
    void matricesTakeWhatTheLibrariesHold_data()
    {
        QTest::addColumn<QString>("form");
        for (const char* form : {"nf4", "int8", "awq", "gptq", "fp8"})
            QTest::newRow(form) << form;
    }
    void matricesTakeWhatTheLibrariesHold()
    {
        QFETCH(QString, form);
        const QJsonArray cases = pytorchData("quantized_bytes.json")["cases"].toArray();
        QVERIFY(cases.size() >= 7);
        for (const QJsonValue& one : cases)
            QCOMPARE(
                matrixBytes(one["out"].toInteger(), one["in"].toInteger(), *storedFormFromText(form.toStdString()), 2),
                one[form].toInteger());
    }

    void aModelIsItsMatricesAndTheRest()
    {
        // One layer of LLaMA: four matrices of 128 × 128, three of 256 × 128; embedding, head and
        // norms stay in bf16.
        ModelDescription model;
        model.family = Family::Decoder;
        model.architecture = "llama";
        model.layers = 1;
        model.hidden = 128;
        model.heads = model.kvHeads = 4;
        model.headDim = 32;
        model.ffn = 256;
        model.vocab = 1000;
        model.gated = true;
        model.norm = NormKind::RmsNorm;
        model.positions = PositionKind::Rotary;
        model.biases = {};
        model.tied = false;
        const auto bytes = [&](StoredForm form) { return servedWeights(model, form, 2, 1).value(); };
        const auto layer = [](StoredForm form) {
            return 4 * matrixBytes(128, 128, form, 2) + 2 * matrixBytes(256, 128, form, 2)
                + matrixBytes(128, 256, form, 2);
        };
        const std::int64_t rest = bytes(StoredForm::BFloat16) - layer(StoredForm::BFloat16);
        QCOMPARE(rest, std::int64_t(2 * (2 * 1000 * 128 + 3 * 128)));
        for (const StoredForm form :
             {StoredForm::NormalFloat4, StoredForm::Awq, StoredForm::Gptq, StoredForm::Int8, StoredForm::Float8})
            QCOMPARE(bytes(form), rest + layer(form));
    }
};

QTEST_GUILESS_MAIN(TestServing)
#include "tst_serving.moc"

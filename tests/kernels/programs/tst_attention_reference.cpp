// SPDX-License-Identifier: Apache-2.0
// The reference against PyTorch's float64 autograd (tests/data/attention/gradients.py makes its
// inputs from their definition again), and its bounds against a plain program in float: correct
// arithmetic stays within them in every format, small mistakes do not.
#include "kernels/programs/attention/attention_reference.h"
#include "kernels/programs/common/half.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

QJsonObject fixture()
{
    QFile file(QStringLiteral(TEST_DATA "/attention/gradients.json"));
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}

AttentionTask taskOf(const AttentionShape& shape, DType dtype, AttentionKind kind)
{
    return {{shape, dtype, kind, AttentionPass::Both}, attentionVersions(kind, false).front()};
}

void compareWith(const QJsonObject& theirs, int step, const std::vector<double>& ours)
{
    double sum = 0, squares = 0;
    for (const double value : ours) {
        sum += value;
        squares += value * value;
    }
    const double size = std::sqrt(squares) + 1e-12;
    QVERIFY2(std::abs(sum - theirs["sum"].toDouble()) < 1e-9 * size * std::sqrt(double(ours.size())),
             qPrintable(QString::number(sum - theirs["sum"].toDouble())));
    QVERIFY(std::abs(squares - theirs["squares"].toDouble()) < 1e-9 * squares + 1e-20);
    const QJsonArray values = theirs["values"].toArray();
    for (qsizetype i = 0; i < values.size(); ++i)
        QVERIFY(std::abs(values[i].toDouble() - ours[std::size_t(i * step)]) < 1e-9 * size);
}

/// Forward in float, keys in pieces of `tile` with a running maximum, S and P rounded where the
/// kind does. `dropped` keys at the end are forgotten; without `raises` no maximum is subtracted.
std::vector<float> plainForward(const AttentionTask& task, AttentionInputs inputs, std::int64_t tile,
                                std::int64_t dropped = 0, bool raises = true)
{
    const AttentionShape& shape = task.problem.shape;
    const DType dtype = task.problem.dtype;
    const auto d = std::uint64_t(shape.headDim);
    const auto input = [&](AttentionTensor tensor, std::int64_t row, std::uint64_t j) {
        return roundedTo(attentionInput(tensor, std::uint64_t(row) * d + j, d, inputs), dtype);
    };
    const auto round = [&](float value) {
        return task.problem.kind == AttentionKind::Standard ? roundedTo(value, dtype) : value;
    };
    const float scale = 1 / std::sqrt(float(d));
    std::vector<float> result;
    for (std::int64_t row = 0; row < shape.queryRows(); ++row) {
        const std::int64_t plane = row / shape.queries, query = row % shape.queries;
        const std::int64_t first = attentionKeyPlane(plane, shape.heads, shape.kvHeads) * shape.keys;
        const std::int64_t keys = attentionVisibleKeys(query, shape.queries, shape.keys, shape.causal) - dropped;
        RunningSoftmax softmax;
        std::vector<float> sums(d, 0.0F);
        for (std::int64_t begin = 0; begin < keys; begin += tile) {
            std::vector<float> s;
            for (std::int64_t k = begin; k < std::min(begin + tile, keys); ++k) {
                float sum = 0;
                for (std::uint64_t j = 0; j < d; ++j)
                    sum += input(AttentionTensor::Query, row, j) * input(AttentionTensor::Key, first + k, j);
                s.push_back(round(sum * scale));
            }
            const float most = raises ? *std::ranges::max_element(s) : 0.0F;
            const float factor = raisedTo(softmax, most, [](float x) { return std::exp(x); });
            for (float& sum : sums)
                sum *= factor;
            for (std::size_t i = 0; i < s.size(); ++i) {
                const float p = std::exp(s[i] - softmax.maximum);
                softmax.sum += p;
                for (std::uint64_t j = 0; j < d; ++j)
                    sums[j] += roundedTo(p, dtype) * input(AttentionTensor::Value, first + begin + std::int64_t(i), j);
            }
        }
        for (const float sum : sums)
            result.push_back(roundedTo(sum / softmax.sum, dtype));
    }
    return result;
}

Check compareForward(const AttentionTask& task, AttentionInputs inputs, const std::vector<float>& found)
{
    AttentionTask forward = task;
    forward.problem.pass = AttentionPass::Forward;
    Check check({1, 0});
    compareTensor(check, 0, found, attentionReference(forward, inputs).output);
    return check;
}

constexpr AttentionShape someShape{1, 4, 2, 40, 70, 64, true};

} // namespace

class TestAttentionReference : public QObject
{
    Q_OBJECT

private slots:
    void equalsPyTorch()
    {
        const QJsonObject data = fixture();
        const QJsonArray cases = data["cases"].toArray();
        QCOMPARE(cases.size(), qsizetype(5));
        for (const QJsonValue& entry : cases) {
            const auto size = [&](int i) { return entry["shape"][i].toInteger(); };
            const AttentionShape shape{size(0), size(1), size(2), size(3), size(4), size(5), entry["causal"].toBool()};
            const DType dtype = *dtypeFromText(entry["dtype"].toString().toStdString());
            const AttentionInputs inputs =
                entry["extreme"].toBool() ? AttentionInputs::Extreme : AttentionInputs::Normal;
            const AttentionReference ours = attentionReference(taskOf(shape, dtype, AttentionKind::Flash), inputs);
            const int step = data["step"].toInt();
            compareWith(entry["output"].toObject(), step, ours.output.values);
            compareWith(entry["log_sum_exp"].toObject(), step, ours.logSumExp.values);
            compareWith(entry["query_gradient"].toObject(), step, ours.queryGradient.values);
            compareWith(entry["key_gradient"].toObject(), step, ours.keyGradient.values);
            compareWith(entry["value_gradient"].toObject(), step, ours.valueGradient.values);
        }
    }

    void correctProgramsAreWithinTheBounds()
    {
        for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16}) {
            for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
                for (const AttentionInputs inputs : {AttentionInputs::Normal, AttentionInputs::Extreme}) {
                    const AttentionTask task = taskOf(someShape, dtype, kind);
                    const std::int64_t tile = kind == AttentionKind::Flash ? 16 : someShape.keys;
                    const Check check = compareForward(task, inputs, plainForward(task, inputs, tile));
                    QVERIFY2(check.passed(), check.text().c_str());
                }
            }
        }
    }

    void aForgottenKeyIsNot()
    {
        for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16}) {
            const AttentionTask task = taskOf(someShape, dtype, AttentionKind::Flash);
            const auto found = plainForward(task, AttentionInputs::Normal, 16, 1);
            QVERIFY(!compareForward(task, AttentionInputs::Normal, found).passed());
        }
    }

    void overflowWithoutAMaximumIsNot()
    {
        const AttentionTask task = taskOf(someShape, DType::Float32, AttentionKind::Flash);
        const auto normal = plainForward(task, AttentionInputs::Normal, 16, 0, false);
        QVERIFY(compareForward(task, AttentionInputs::Normal, normal).passed());
        const auto extreme = plainForward(task, AttentionInputs::Extreme, 16, 0, false);
        QVERIFY(!compareForward(task, AttentionInputs::Extreme, extreme).passed());
    }

    void boundsOfFloatAreNarrow()
    {
        // Errors of a program in float are 10⁻⁶ of the values; bounds within a thousandth of the
        // largest value catch every mistake that is not rounding.
        const AttentionReference reference =
            attentionReference(taskOf(someShape, DType::Float32, AttentionKind::Flash), AttentionInputs::Normal);
        for (const BoundedTensor* tensor :
             {&reference.output, &reference.queryGradient, &reference.keyGradient, &reference.valueGradient}) {
            double largest = 0, widest = 0;
            for (std::size_t i = 0; i < tensor->values.size(); ++i) {
                largest = std::max(largest, std::abs(tensor->values[i]));
                widest = std::max(widest, tensor->bounds[i]);
            }
            QVERIFY2(widest < 2e-3 * largest, qPrintable(QString::number(widest / largest)));
        }
    }

    void visibleKeysAndQueriesAgree()
    {
        for (const bool causal : {false, true}) {
            for (std::int64_t query = 0; query < 5; ++query) {
                const std::int64_t visible = attentionVisibleKeys(query, 5, 9, causal);
                for (std::int64_t key = 0; key < 9; ++key)
                    QCOMPARE(query >= attentionFirstQuery(key, 5, 9, causal), key < visible);
            }
        }
        QCOMPARE(attentionVisibleKeys(4, 5, 9, true), std::int64_t(9)); // the last sees all
    }

    void headsShareKeysInGroups()
    {
        // Two batches of six heads over three kv heads.
        const std::vector<std::int64_t> expected{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
        for (std::int64_t plane = 0; plane < 12; ++plane)
            QCOMPARE(attentionKeyPlane(plane, 6, 3), expected[std::size_t(plane)]);
    }
};

QTEST_APPLESS_MAIN(TestAttentionReference)
#include "tst_attention_reference.moc"

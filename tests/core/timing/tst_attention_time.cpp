// SPDX-License-Identifier: Apache-2.0
// Bytes and time of attention against what was published: the bars of FlashAttention-2 and PyTorch
// on H100 and A100 (arXiv:2407.08608, figures 5 and 6; arXiv:2307.08691, figures 4 to 6, read from
// the figures), within errors that are stated here; and bytes against sums by hand.
#include "core/device/catalogue.h"
#include "core/timing/attention_time.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace memscape;

namespace {

const std::vector<std::int64_t> lengths{512, 1024, 2048, 4096, 8192, 16384};

/// Hidden size 2048 and 16k tokens, as in the papers.
AttentionShape published(std::int64_t sequence, std::int64_t headDim, bool causal)
{
    const std::int64_t heads = 2048 / headDim;
    return {16384 / sequence, heads, heads, sequence, sequence, headDim, causal};
}

/// Predicted / published − 1 at every length; their causal bars count half of all scores.
std::vector<double> errors(const Device& device, AttentionKind kind, AttentionPass pass, std::int64_t headDim,
                           bool causal, const std::vector<double>& bars)
{
    std::vector<double> all;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const AttentionProblem problem{published(lengths[i], headDim, causal), DType::Float16, kind, pass};
        const AttentionVersion& version = attentionVersions(kind, true).back();
        AttentionShape whole = problem.shape;
        whole.causal = false;
        const double flops = attentionFlops(whole, pass) / (causal ? 2 : 1);
        const double seconds = attentionCost(device, version, problem)->seconds;
        all.push_back(flops / seconds / 1e12 / bars[i] - 1);
    }
    return all;
}

double median(std::vector<double> values)
{
    for (double& value : values)
        value = std::abs(value);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double largest(const std::vector<double>& values)
{
    double most = 0;
    for (const double value : values)
        most = std::max(most, std::abs(value));
    return most;
}

} // namespace

class TestAttentionTime : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        m_h100 = *findDevice("nvidia-h100-sxm");
        m_a100 = *findDevice("nvidia-a100-80gb");
    }

    void flashOnAnH100_data()
    {
        QTest::addColumn<int>("pass");
        QTest::addColumn<int>("headDim");
        QTest::addColumn<bool>("causal");
        QTest::addColumn<QList<double>>("bars");
        QTest::addColumn<double>("within"); // median of |error|
        using L = QList<double>;
        const int forward = int(AttentionPass::Forward), backward = int(AttentionPass::Backward);
        QTest::newRow("forward 64") << forward << 64 << false << L{282, 306, 318, 321, 322, 324} << 0.04;
        QTest::newRow("forward 128") << forward << 128 << false << L{309, 350, 362, 368, 370, 370} << 0.04;
        QTest::newRow("forward 64 causal") << forward << 64 << true << L{180, 229, 262, 284, 295, 299} << 0.05;
        QTest::newRow("forward 128 causal") << forward << 128 << true << L{191, 260, 298, 319, 333, 335} << 0.04;
        QTest::newRow("backward 64") << backward << 64 << false << L{198, 238, 264, 279, 287, 291} << 0.04;
        QTest::newRow("backward 128") << backward << 128 << false << L{214, 260, 291, 310, 318, 322} << 0.04;
    }

    void flashOnAnH100()
    {
        QFETCH(int, pass);
        QFETCH(int, headDim);
        QFETCH(bool, causal);
        QFETCH(QList<double>, bars);
        QFETCH(double, within);
        const auto off =
            errors(m_h100, AttentionKind::Flash, AttentionPass(pass), headDim, causal, {bars.begin(), bars.end()});
        QVERIFY2(median(off) < within, qPrintable(QString::number(median(off))));
        QVERIFY2(largest(off) < 0.10, qPrintable(QString::number(largest(off))));
    }

    void standardOnAnH100_data()
    {
        QTest::addColumn<int>("pass");
        QTest::addColumn<int>("headDim");
        QTest::addColumn<QList<double>>("bars");
        using L = QList<double>;
        const int forward = int(AttentionPass::Forward), backward = int(AttentionPass::Backward);
        QTest::newRow("forward 64") << forward << 64 << L{52, 63, 67, 72, 73};
        QTest::newRow("forward 128") << forward << 128 << L{74, 100, 119, 133, 139};
        QTest::newRow("backward 64") << backward << 64 << L{68, 76, 88, 92, 95};
        QTest::newRow("backward 128") << backward << 128 << L{104, 131, 159, 174, 181};
    }

    void standardOnAnH100()
    {
        QFETCH(int, pass);
        QFETCH(int, headDim);
        QFETCH(QList<double>, bars);
        const auto off =
            errors(m_h100, AttentionKind::Standard, AttentionPass(pass), headDim, false, {bars.begin(), bars.end()});
        QVERIFY2(median(off) < 0.10, qPrintable(QString::number(median(off))));
        QVERIFY2(largest(off) < 0.12, qPrintable(QString::number(largest(off))));
    }

    void flashOnAnA100_data()
    {
        QTest::addColumn<int>("headDim");
        QTest::addColumn<QList<double>>("bars");
        using L = QList<double>;
        QTest::newRow("64") << 64 << L{132, 153, 162, 171, 175, 176};
        QTest::newRow("128") << 128 << L{150, 173, 187, 196, 201, 203};
    }

    void flashOnAnA100()
    {
        QFETCH(int, headDim);
        QFETCH(QList<double>, bars);
        const auto off =
            errors(m_a100, AttentionKind::Flash, AttentionPass::Both, headDim, false, {bars.begin(), bars.end()});
        QVERIFY2(median(off) < 0.05, qPrintable(QString::number(median(off))));
        QVERIFY2(largest(off) < 0.12, qPrintable(QString::number(largest(off))));
    }

    void bytesAreSumsByHand()
    {
        // 2 heads of 3 × 5 scores, 8 numbers a row, 4 B: S = 120 B, Q = 192 B, K = 320 B, L = 24 B.
        const AttentionShape shape{1, 2, 2, 3, 5, 8, false};
        const auto bytes = [&](AttentionKind kind, AttentionPass pass) {
            const AttentionProblem problem{shape, DType::Float32, kind, pass};
            return attentionCost(m_h100, attentionVersions(kind, true).back(), problem)->bytes;
        };
        const double s = 120, q = 192, k = 320, l = 24;
        QCOMPARE(bytes(AttentionKind::Standard, AttentionPass::Forward), 4 * s + 2 * q + 2 * k);
        QCOMPARE(bytes(AttentionKind::Standard, AttentionPass::Backward), 7 * s + 4 * q + 4 * k);
        QCOMPARE(bytes(AttentionKind::Flash, AttentionPass::Forward), 2 * q + 2 * k + l);
        QCOMPARE(bytes(AttentionKind::Flash, AttentionPass::Backward), 5 * q + 4 * k + 3 * l);
    }

    /// Seven products and nothing beside dQ, or five and sums of dQ in floats: two heads of 256 × 512 scores.
    void onePassMultipliesLessAndMovesMore()
    {
        const AttentionShape shape{1, 2, 2, 256, 512, 128, false};
        const AttentionProblem problem{shape, DType::Float16, AttentionKind::Flash, AttentionPass::Backward};
        const auto cost = [&](int number) {
            return *attentionCost(m_h100, *attentionVersion(number, problem, true, 9.0), problem);
        };
        const AttentionCost two = cost(7), one = cost(9);
        const double product = 2.0 * 2 * 256 * 512 * 128, q = 2 * 256 * 128;
        QCOMPARE(two.steps.size(), std::size_t(2));
        QCOMPARE(two.steps[1].flops, 7 * product);
        QCOMPARE(one.steps[1].flops, 5 * product);
        QCOMPARE(one.steps.size(), std::size_t(3)); // delta, tiles, dQ from floats
        QCOMPARE(one.bytes - two.bytes, 16 * q);    // cleared, read and written, read
        const auto term = [](const AttentionCost& of, const std::string& symbol) {
            const auto found =
                std::find_if(of.terms.begin(), of.terms.end(), [&](const Term& any) { return any.symbol == symbol; });
            return found == of.terms.end() ? -1 : found->value;
        };
        QCOMPARE(term(one, "A"), 4 * q * (512.0 / 128)); // four tiles of keys add to every number of dQ
        QCOMPARE(term(two, "A"), -1.0);
        const double clocks = 2 * 256 * 512 / 4096.0,
                     rate = m_h100.units * m_h100.tensorClock.valueOr(m_h100.clock.value);
        QCOMPARE(term(one, "S"), 2560 * clocks / rate);
        QCOMPARE(term(two, "S"), 3968 * clocks / rate);
    }

    void whatStandardMovesIsMostlyTheMatrix()
    {
        // 4096 × 4096 at d = 128 in halves: standard 4 N² + 4 N d, flash 4 N d and two halves' worth of
        // L.
        const AttentionShape shape{1, 1, 1, 4096, 4096, 128, false};
        const auto bytes = [&](AttentionKind kind) {
            const AttentionProblem problem{shape, DType::Float16, kind, AttentionPass::Forward};
            return attentionCost(m_h100, attentionVersions(kind, true).back(), problem)->bytes;
        };
        QCOMPARE(bytes(AttentionKind::Standard), 2.0 * (4.0 * 4096 * 4096 + 4.0 * 4096 * 128));
        QCOMPARE(bytes(AttentionKind::Flash), 2.0 * 4 * 4096 * 128 + 4.0 * 4096);
    }

    void whatTheLastCacheLosesIsReadAgain()
    {
        // One head's K and V of 1 M keys are 512 MiB: no cache of an H100 keeps them between two tiles.
        const auto bytesAt = [&](std::int64_t keys) {
            const AttentionProblem problem{
                {1, 1, 1, keys, keys, 128, false}, DType::Float16, AttentionKind::Flash, AttentionPass::Forward};
            return attentionCost(m_h100, attentionVersions(AttentionKind::Flash, true).back(), problem)->bytes;
        };
        QCOMPARE(bytesAt(16384), 2.0 * 4 * 16384 * 128 + 4.0 * 16384);
        QVERIFY(bytesAt(1 << 20) > 1000 * (2.0 * 4 * (1 << 20) * 128));
    }

    void aLongerSequenceNeverTakesLess()
    {
        for (const Device& device : {m_h100, *findDevice("amd-epyc-zen4-vm")}) {
            for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
                double before = 0;
                for (std::int64_t n = 16; n <= (1 << 17); n *= 2) {
                    const AttentionProblem problem{
                        {1, 8, 2, n, n, 64, true}, DType::Float16, kind, AttentionPass::Both};
                    const auto cost = attentionCost(device, attentionVersions(kind, device.isGpu()).back(), problem);
                    QVERIFY(cost && std::isfinite(cost->seconds) && cost->seconds > before);
                    before = cost->seconds;
                }
            }
        }
    }

    void aDeviceWithoutTheFormatSaysSo()
    {
        const AttentionProblem problem{
            {1, 8, 8, 512, 512, 64, false}, DType::BFloat16, AttentionKind::Flash, AttentionPass::Forward};
        const auto cost =
            attentionCost(*findDevice("nvidia-t4"), attentionVersions(AttentionKind::Flash, true).back(), problem);
        QVERIFY(!cost);
        QCOMPARE(cost.error().code, std::string("predict.device"));
        QVERIFY(cost.error().hint.find("float16") != std::string::npos);
    }

    void theFirstFlashTilesFitTheChip()
    {
        // Algorithm 1: K and V of a tile, Q and O of one, d numbers a row, are at most M.
        for (const std::int64_t d : {32, 64, 128, 256}) {
            const double chip = onChipBytes(m_h100);
            const AttentionTile tile = firstFlashTile(chip, d, DType::Float16);
            QVERIFY(tile.queries <= d && tile.queries <= tile.keys);
            QVERIFY(double((tile.keys - 1) * 4 * d * 2) <= chip);
        }
    }

private:
    Device m_h100, m_a100;
};

QTEST_APPLESS_MAIN(TestAttentionTime)
#include "tst_attention_time.moc"

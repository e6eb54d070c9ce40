// SPDX-License-Identifier: Apache-2.0
// What attention computes and keeps, against the FlashAttention papers: their way to count
// operations, the shape of their memory table, and sums by hand; and what a version answers when it
// can't.
#include "core/timing/attention_memory.h"

#include <QtTest>

using namespace memscape;

namespace {

constexpr AttentionShape square(std::int64_t sequence, bool causal = false)
{
    return {16, 8, 8, sequence, sequence, 64, causal};
}

AttentionProblem problemOf(AttentionShape shape, DType dtype = DType::Float16, AttentionPass pass = AttentionPass::Both)
{
    return {shape, dtype, AttentionKind::Flash, pass};
}

} // namespace

class TestAttentionProblem : public QObject
{
    Q_OBJECT

private slots:
    void operationsAreCountedAsTheirBenchmarkDoes()
    {
        // Dao-AILab/flash-attention, benchmark_flash_attention.py: f = 4 b n² h d // (2 if causal else
        // 1), 2.5 f backward, 3.5 f together.
        const AttentionShape shape{2, 16, 16, 8192, 8192, 128, false};
        const double f = 4.0 * 2 * 8192 * 8192 * 16 * 128;
        QCOMPARE(attentionFlops(shape, AttentionPass::Forward), f);
        QCOMPARE(attentionFlops(shape, AttentionPass::Backward), 2.5 * f);
        QCOMPARE(attentionFlops(shape, AttentionPass::Both), 3.5 * f);
        AttentionShape causal = shape;
        causal.causal = true;
        // They take half; the diagonal makes it (n + 1) / 2n.
        QCOMPARE(attentionFlops(causal, AttentionPass::Forward), f * 8193 / (2 * 8192));
    }

    void aCausalMaskLeavesTheLowerTriangle()
    {
        QCOMPARE((AttentionShape{1, 1, 1, 4, 4, 8, true}).visibleScores(), 10.0);
        QCOMPARE((AttentionShape{1, 1, 1, 1, 9, 8, true}).visibleScores(), 9.0);
        QCOMPARE((AttentionShape{3, 2, 1, 3, 5, 8, true}).visibleScores(), 6.0 * (3 + 4 + 5));
        QCOMPARE((AttentionShape{3, 2, 1, 3, 5, 8, false}).visibleScores(), 90.0);
    }

    void versionsAreNumberedFromOneWithALesson()
    {
        for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
            for (const bool gpu : {false, true}) {
                int number = 0;
                for (const AttentionVersion& version : attentionVersions(kind, gpu)) {
                    QCOMPARE(version.number, ++number);
                    QVERIFY(version.kind == kind);
                    QVERIFY(!version.name.empty() && version.teaches.size() > 20);
                    QVERIFY(!version.dtypes.empty());
                    QVERIFY(std::is_sorted(version.headDims.begin(), version.headDims.end()));
                }
                QVERIFY(number > 0);
            }
        }
    }

    void whatIsNotSupportedSaysWhatIs()
    {
        const AttentionVersion vectors = attentionVersions(AttentionKind::Flash, false).back();
        const auto odd = supports(vectors, problemOf({1, 1, 1, 64, 64, 72, false}), false);
        QVERIFY(!odd);
        QCOMPARE(odd.error().code, std::string("attention.unsupported"));
        QCOMPARE(odd.error().place, std::string("head_dim"));
        QCOMPARE(odd.error().hint, std::string("choose head_dim=64, or version=1"));

        AttentionVersion forwardOnly = vectors;
        forwardOnly.hasBackward = false;
        forwardOnly.dtypes = {DType::BFloat16};
        const auto pass = supports(forwardOnly, problemOf(square(64), DType::BFloat16), false);
        QCOMPARE(pass.error().place, std::string("pass"));
        const auto dtype = supports(forwardOnly, problemOf(square(64), DType::Float32), false);
        QCOMPARE(dtype.error().place, std::string("dtype"));
        QVERIFY(dtype.error().hint.starts_with("choose dtype=bfloat16"));
        AttentionVersion hopper = vectors;
        hopper.computeCapability = 9;
        QCOMPARE(supports(hopper, problemOf(square(64)), true, 8.6).error().place, std::string("version"));
        QVERIFY(supports(hopper, problemOf(square(64)), true, 9.0));
    }

    void theBestVersionIsTheLastThatCan()
    {
        const auto& all = attentionVersions(AttentionKind::Flash, false);
        QCOMPARE(attentionVersion(0, problemOf(square(64)), false)->number, all.back().number);
        AttentionShape odd = square(64);
        odd.headDim = 72; // only the plain one
        QCOMPARE(attentionVersion(0, problemOf(odd), false)->number, 1);
        QCOMPARE(attentionVersion(99, problemOf(odd), false).error().code, std::string("attention.version"));
    }

    /// On any GPU, in any format and pass: an answer, or a remedy that is one.
    void whereNoVersionCanTheRemedyCan()
    {
        int remedies = 0;
        for (const double capability : {7.5, 8.0, 8.6, 9.0, 12.0}) {
            for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32}) {
                for (const AttentionPass pass :
                     {AttentionPass::Forward, AttentionPass::Backward, AttentionPass::Both}) {
                    const auto found = attentionVersion(0, problemOf(square(64), dtype, pass), true, capability);
                    if (found)
                        continue;
                    const std::string& hint = found.error().hint;
                    QVERIFY2(hint.starts_with("choose "), hint.c_str());
                    const DType other = hint.find("dtype=float16") != std::string::npos ? DType::Float16
                        : hint.find("dtype=bfloat16") != std::string::npos              ? DType::BFloat16
                        : hint.find("dtype=float32") != std::string::npos               ? DType::Float32
                                                                                        : dtype;
                    const bool forward = hint.find("pass=forward") != std::string::npos;
                    const auto remedied = attentionVersion(
                        0, problemOf(square(64), other, forward ? AttentionPass::Forward : pass), true, capability);
                    QVERIFY2(remedied.has_value(), hint.c_str());
                    ++remedies;
                }
            }
        }
        QVERIFY(remedies > 0);
        // Older than all of them.
        const auto old = attentionVersion(0, problemOf(square(64)), true, 7.0);
        QVERIFY2(old.error().message.find("needs compute capability 7.5") != std::string::npos,
                 old.error().message.c_str());
    }

    void theBestIsTheRecordedOneOrTheNewestThatNeedsNoRecord()
    {
        const auto best = [](double capability, int recorded, std::int64_t headDim = 64) {
            AttentionShape shape = square(64);
            shape.headDim = headDim;
            return attentionVersion(0, problemOf(shape, DType::BFloat16, AttentionPass::Both), true, capability,
                                    recorded)
                ->number;
        };
        QCOMPARE(best(9.0, 0), 7); // version 8 has to show first that it is faster
        QCOMPARE(best(9.0, 8), 8);
        QCOMPARE(best(9.0, 6), 6);     // also when an older one has won
        QCOMPARE(best(9.0, 8, 96), 7); // it has no such head dimension
        QCOMPARE(best(10.0, 8), 7);    // a record of another kind of GPU
        QCOMPARE(best(8.0, 99), 7);
        QCOMPARE(best(8.0, 9), 9); // the one-pass backward, too
        // What goes on for one that fails is none that has to show first that it is faster.
        const AttentionProblem problem = problemOf(square(64), DType::BFloat16, AttentionPass::Both);
        const auto older =
            olderAttentionVersion(attentionVersions(AttentionKind::Flash, true).back(), problem, true, 9.0);
        QVERIFY(older && older->number == 7);
        QVERIFY(attentionVersion(8, problemOf(square(64), DType::BFloat16, AttentionPass::Both), true, 9.0));
        const auto newer = attentionVersion(8, problemOf(square(64), DType::BFloat16, AttentionPass::Both), true, 10.0);
        QCOMPARE(newer.error().code, std::string("attention.unsupported"));
        QVERIFY2(newer.error().message.find("9.0 and no other") != std::string::npos, newer.error().message.c_str());
        QVERIFY2(newer.error().hint.find("version=7") != std::string::npos, newer.error().hint.c_str());
    }

    void wrongShapesNameThePlaceAndARemedy()
    {
        QCOMPARE(checkShape({1, 12, 5, 8, 8, 64, false}).error().hint, std::string("choose kv_heads=4"));
        QCOMPARE(checkShape({1, 1, 1, 8, 4, 64, true}).error().code, std::string("attention.causal"));
        QCOMPARE(checkShape({0, 1, 1, 8, 8, 64, false}).error().place, std::string("batch"));
        QCOMPARE(checkShape({1, 1, 1, 8, 8, 257, false}).error().place, std::string("head_dim"));
        QVERIFY(checkShape({1, 1, 1, 8, 4, 64, false}));
    }

    void standardKeepsTheMatrixAndFlashANumberARow()
    {
        // 4096 × 4096 in a half: 32 MiB a head; the log-sum-exp: 16 KiB a head. 2048 times.
        const AttentionShape shape{1, 16, 16, 4096, 4096, 128, true};
        const auto bytes = [&](AttentionKind kind) {
            const AttentionVersion& version = attentionVersions(kind, false).front();
            return *attentionMemory(version, shape, DType::BFloat16, AttentionPass::Both, 16);
        };
        const AttentionMemory standard = bytes(AttentionKind::Standard), flash = bytes(AttentionKind::Flash);
        QCOMPARE(standard.saved, std::int64_t(16) * (32 << 20));
        QCOMPARE(flash.saved, std::int64_t(16) * (16 << 10));
        QCOMPARE(standard.saved / flash.saved, std::int64_t(2048));
        QCOMPARE(standard.forward, 2 * standard.saved);
        QCOMPARE(standard.backward, 3 * standard.saved);
        QCOMPARE(standard.peak(AttentionPass::Both), standard.backward);
        QCOMPARE(flash.forward, flash.saved);
        // Q, K, V, O, dO, dQ, dK, dV.
        QCOMPARE(standard.tensors, std::int64_t(8) * 16 * 4096 * 128 * 2);
    }

    void everyArrayOfAPassIsCounted()
    {
        AttentionVersion version = attentionVersions(AttentionKind::Standard, false).front();
        const AttentionShape shape{1, 2, 1, 3, 5, 8, false}; // 30 scores
        QCOMPARE(attentionMemory(version, shape, DType::Float32, AttentionPass::Both, 1)->forward,
                 std::int64_t(2 * 512)); // each rounded up
        version.inPlace = true;
        version.workspace = 1000;
        const AttentionMemory inPlace = *attentionMemory(version, shape, DType::Float32, AttentionPass::Both, 1);
        QCOMPARE(inPlace.forward, std::int64_t(512 + 1024));
        QCOMPARE(inPlace.saved, std::int64_t(512));
        QCOMPARE(inPlace.backward, std::int64_t(2 * 512 + 1024));

        AttentionVersion flash = attentionVersions(AttentionKind::Flash, false).back();
        flash.queryGradient = QueryGradient::Atomic;
        const AttentionShape large{1, 8, 2, 1024, 1024, 64, false};
        const auto backward = [&](DType dtype) {
            return attentionMemory(flash, large, dtype, AttentionPass::Both, 1)->backward;
        };
        const std::int64_t rows = 8 * 1024;
        QCOMPARE(backward(DType::Float32), 2 * 4 * rows);
        QCOMPARE(backward(DType::Float16), 2 * 4 * rows + 4 * rows * 64);
        flash.expandsKeyGradients = true;
        QCOMPARE(backward(DType::Float16), 2 * 4 * rows + 4 * rows * 64 + 2 * 2 * rows * 64);
    }

    void rangesOfKeysAreAsManyAsThreadsNeed()
    {
        AttentionVersion version = attentionVersions(AttentionKind::Flash, false).back();
        version.tiles = {{256, {64, 64}, {64, 64}}};
        QCOMPARE(attentionSplits(version, {1, 16, 16, 4096, 4096, 64, false}, 2), std::int64_t(1));
        QCOMPARE(attentionSplits(version, {1, 8, 2, 4096, 4096, 64, false}, 16), std::int64_t(8));
        QCOMPARE(attentionSplits(version, {1, 1, 1, 100, 100, 64, false}, 16), std::int64_t(2));
    }

    void moreBytesThanANumberHoldsAreAnError()
    {
        const AttentionShape huge{
            attentionBatchLimit, attentionHeadLimit, 1, attentionSequenceLimit, attentionSequenceLimit, 128, false};
        QVERIFY(checkShape(huge));
        const auto bytes = attentionMemory(attentionVersions(AttentionKind::Standard, true).front(), huge,
                                           DType::Float16, AttentionPass::Forward, 1);
        QVERIFY(!bytes);
        QCOMPARE(bytes.error().code, std::string("attention.bytes"));
    }
};

QTEST_APPLESS_MAIN(TestAttentionProblem)
#include "tst_attention_problem.moc"

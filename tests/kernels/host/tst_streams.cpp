// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/streams.h"

#include <cstring>
#include <numeric>

#include <QTest>

using namespace memscape;
using namespace memscape::host;

namespace {

constexpr Operation allOperations[] = {Operation::Read, Operation::Write, Operation::Copy, Operation::Triad};

std::uint64_t forgetsTheLastWord(const StreamSlice& slice, std::size_t)
{
    std::memcpy(slice.a, slice.b, slice.bytes - 8);
    return 0;
}

std::uint64_t writesTooFar(const StreamSlice& slice, std::size_t)
{
    std::memcpy(slice.a, slice.b, slice.bytes);
    std::memset(slice.a + slice.bytes, 0, 8);
    return 0;
}

std::uint64_t readsNothing(const StreamSlice&, std::size_t)
{
    return 0;
}

} // namespace

class TestStreams : public QObject
{
    Q_OBJECT
private slots:
    void everyVersionIsRight()
    {
        for (const Operation operation : allOperations) {
            const auto kernels = streamKernels(operation);
            QVERIFY(kernels.size() >= 3);
            for (const StreamKernel& kernel : kernels) {
                const Check check = checkStream(kernel);
                QVERIFY2(check.passed(), (kernel.name() + ": " + check.text()).c_str());
                QVERIFY(check.compared() > 10);
            }
        }
    }

    void readSumIsThatOfTheNumbers()
    {
        // 0 ^ 1 ^ … ^ 1023 = 0; with 1024 more it is 1024.
        std::vector<std::uint64_t> words(1025);
        std::iota(words.begin(), words.end(), 0u);
        for (const StreamKernel& kernel : streamKernels(Operation::Read)) {
            StreamSlice slice{reinterpret_cast<std::byte*>(words.data()), nullptr, nullptr, 1024 * 8};
            QCOMPARE(kernel.run(slice, 1), std::uint64_t{0});
            slice.bytes = 1025 * 8;
            QCOMPARE(kernel.run(slice, 1), std::uint64_t{1024});
            QCOMPARE(kernel.run(slice, 3), std::uint64_t{1024});
        }
    }

    void checkCatchesWrongKernels()
    {
        QVERIFY(!checkStream({Operation::Copy, 9, Isa::Scalar, forgetsTheLastWord}).passed());
        QVERIFY(!checkStream({Operation::Copy, 9, Isa::Scalar, writesTooFar}).passed());
        QVERIFY(!checkStream({Operation::Read, 9, Isa::Scalar, readsNothing}).passed());
    }

    void theBestIsTheWidestWithOrdinaryStores()
    {
        for (const Operation operation : allOperations) {
            const StreamKernel best = bestStream(operation);
            QCOMPARE(best.version, 3);
            QCOMPARE(static_cast<int>(best.isa), static_cast<int>(widestIsa()));
        }
    }
};

QTEST_APPLESS_MAIN(TestStreams)
#include "tst_streams.moc"

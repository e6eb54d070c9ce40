// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/stride/stride_kernels.h"

#include <cstring>

#include <QTest>

using namespace memscape;
using namespace memscape::host;

namespace {

constexpr StrideWalk allWalks[] = {StrideWalk::Strided, StrideWalk::Random, StrideWalk::Contiguous};
constexpr Operation everyOperation[] = {Operation::Read, Operation::Write, Operation::Copy};

std::uint64_t touchesOneTooFew(const StrideWork& work)
{
    for (std::size_t i = 0; i + 1 < work.count; ++i)
        std::memset(work.target + i * work.stride * 4, strideFill, 4);
    return 0;
}

std::uint64_t ignoresTheStride(const StrideWork& work)
{
    std::memset(work.target, strideFill, work.count * 4);
    return 0;
}

} // namespace

class TestStrideKernels : public QObject
{
    Q_OBJECT
private slots:
    void everyVersionIsRight()
    {
        int kernels = 0;
        for (const StrideWalk walk : allWalks) {
            for (const Operation operation : everyOperation) {
                for (const int element : {1, 2, 4, 8, 16}) {
                    for (const StrideKernel& kernel : strideKernels(walk, operation, element)) {
                        const Check check = checkStride(kernel);
                        QVERIFY2(check.passed(), (kernel.name() + ": " + check.text()).c_str());
                        ++kernels;
                    }
                }
            }
        }
        QVERIFY(kernels >= 105); // more with wider vectors
    }

    void everyThirdElementAndNoOther()
    {
        // By hand: twelve shorts, stride 3, four elements.
        for (const StrideKernel& kernel : strideKernels(StrideWalk::Strided, Operation::Write, 2)) {
            std::uint16_t target[12] = {};
            StrideWork work;
            work.target = reinterpret_cast<std::byte*>(target);
            work.stride = 3;
            work.count = 4;
            kernel.run(work);
            for (int i = 0; i < 12; ++i)
                QCOMPARE(int{target[i]}, i % 3 == 0 ? 0xa5a5 : 0);
        }
    }

    void sumOfWhatIsRead()
    {
        // By hand: the first, third and fifth byte.
        const std::uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
        for (const StrideKernel& kernel : strideKernels(StrideWalk::Strided, Operation::Read, 1)) {
            StrideWork work;
            work.source = reinterpret_cast<const std::byte*>(bytes);
            work.stride = 2;
            work.count = 3;
            QCOMPARE(kernel.run(work), std::uint64_t{1 ^ 3 ^ 5});
        }
    }

    void checkCatchesWrongKernels()
    {
        const auto wrong = [](StrideFunction run) {
            return checkStride({StrideWalk::Strided, Operation::Write, 4, 9, Isa::Scalar, run});
        };
        QVERIFY(!wrong(touchesOneTooFew).passed());
        QVERIFY(!wrong(ignoresTheStride).passed());
    }

    void neighboursGetTheWidestVectors()
    {
        const StrideKernel best = bestStride(StrideWalk::Contiguous, Operation::Read, 4);
        QCOMPARE(best.version, 3);
        QCOMPARE(static_cast<int>(best.isa), static_cast<int>(widestIsa()));
        QVERIFY(strideKernels(StrideWalk::Strided, Operation::Read, 3).empty()); // no such element
    }
};

QTEST_APPLESS_MAIN(TestStrideKernels)
#include "tst_stride_kernels.moc"

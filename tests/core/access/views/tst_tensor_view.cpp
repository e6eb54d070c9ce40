// SPDX-License-Identifier: Apache-2.0
// Flags and strides on the cases that PyTorch's headers name: ambiguous sizes of 1, tensors of no
// elements, overlapping memory. The answers are PyTorch 2.15's.
#include "core/access/views/tensor_view.h"

#include <QtTest>

using namespace memscape;

class TestTensorView : public QObject
{
    Q_OBJECT

private slots:
    void sizesOfOneAreAmbiguous()
    {
        // torch.empty(2, 1, 4, 4): both at once, since a single channel lies anywhere.
        const TensorView single = *freshTensor({2, 1, 4, 4});
        QVERIFY(single.isContiguous() && single.isChannelsLast());
        // torch.empty(2, 3, 1, 1): the same for a single pixel.
        const TensorView pixel = *freshTensor({2, 3, 1, 1});
        QVERIFY(pixel.isContiguous() && pixel.isChannelsLast());
        const TensorView image = *freshTensor({2, 3, 4, 4});
        QVERIFY(image.isContiguous() && !image.isChannelsLast());
        // Strides of dimensions of size 1 do not matter.
        QVERIFY((TensorView{{1, 5}, {77, 1}, 0, 5}).isContiguous());
        QVERIFY(!(TensorView{{2, 5}, {77, 1}, 0, 82}).isContiguous());
    }

    void nothingIsContiguous()
    {
        const TensorView nothing{{8, 0, 4, 1}, {24, 4, 1, 1}, 4, 192};
        QVERIFY(nothing.isContiguous() && nothing.isDense());
        QVERIFY(!nothing.isChannelsLast());
        QCOMPARE(freshTensor({0, 3})->stride, Sizes({3, 1}));
        QCOMPARE(freshTensor({3, 0})->stride, Sizes({1, 1}));
        QCOMPARE(freshTensor({3, 0})->storage, std::int64_t(0));
    }

    void dense()
    {
        QVERIFY((TensorView{{3, 2}, {1, 3}, 0, 6}).isDense());   // transposed
        QVERIFY(!(TensorView{{3, 2}, {2, 2}, 0, 7}).isDense());  // overlaps
        QVERIFY(!(TensorView{{3, 2}, {0, 1}, 0, 2}).isDense());  // expanded
        QVERIFY(!(TensorView{{3, 2}, {4, 1}, 0, 10}).isDense()); // holes
        QVERIFY((TensorView{{}, {}, 5, 6}).isDense());
    }

    void formats()
    {
        QCOMPARE(stridesOf({2, 3, 4, 5}, MemoryFormat::ChannelsLast), Sizes({60, 1, 15, 3}));
        QCOMPARE(stridesOf({2, 3, 4, 5, 6}, MemoryFormat::ChannelsLast3d), Sizes({360, 1, 90, 18, 3}));
        QCOMPARE(stridesOf({2, 3, 4}, MemoryFormat::ColumnMajor), Sizes({1, 2, 6}));
        QVERIFY(freshTensor({2, 3, 4}, MemoryFormat::ColumnMajor)->is(MemoryFormat::ColumnMajor));
        QVERIFY(!freshTensor({2, 3, 4})->is(MemoryFormat::ColumnMajor));
        QVERIFY(freshTensor({2, 3, 4, 5}, MemoryFormat::ChannelsLast)->isChannelsLast());
        QVERIFY(freshTensor({2, 3, 4, 5, 6}, MemoryFormat::ChannelsLast3d)->isChannelsLast3d());
    }

    void extent()
    {
        QCOMPARE((TensorView{{2, 3}, {10, 2}, 5, 99}).extent(), std::int64_t(5 + 10 + 4 + 1));
        QCOMPARE((TensorView{{2, 0}, {10, 2}, 5, 99}).extent(), std::int64_t(0));
        QCOMPARE((TensorView{{}, {}, 5, 99}).extent(), std::int64_t(6));
    }
};

QTEST_APPLESS_MAIN(TestTensorView)
#include "tst_tensor_view.moc"

// SPDX-License-Identifier: Apache-2.0
// Views and strides against torch.Tensor: the strides in this file were printed by PyTorch.
#include "core/network/shape.h"

#include <QtTest>

using namespace memscape;

namespace {

QString strides(const Layout& layout)
{
    QStringList parts;
    for (int i = 0; i < layout.rank(); ++i)
        parts << QString::number(layout.strides[std::size_t(i)]);
    return parts.join(' ');
}

} // namespace

class TestShape : public QObject
{
    Q_OBJECT

private slots:
    void countsElements()
    {
        QCOMPARE(Shape({2, 3, 4}).elements(), 24);
        QCOMPARE(Shape().elements(), 1);
        QCOMPARE(Shape({5, 0}).elements(), 0);
        QVERIFY(!Shape({-1, 4}).elements());
        QVERIFY(!Shape({INT64_MAX, 2}).elements());
        QVERIFY(!Shape({std::int64_t(1) << 40, std::int64_t(1) << 40}).elements());
    }

    void broadcasts()
    {
        QVERIFY(Shape::broadcast({2, 1, 4}, {3, 1}) == Shape({2, 3, 4}));
        QVERIFY(!Shape::broadcast({2, 3}, {2, 4}));
    }

    void seesOtherSizes()
    {
        const Layout heads = Layout(Shape{2, 5, 4, 8}).transposed(1, 2); // (2, 4, 5, 8)
        QCOMPARE(strides(heads), "160 8 32 1");
        QVERIFY(!heads.viewed({8, 5, 8}));
        QVERIFY(!heads.viewed({2, 4, 40}));
        QCOMPARE(strides(*heads.viewed({2, 2, 2, 5, 8})), "160 16 8 32 1");
        // One sequence: its heads are a batch of matrices as they are.
        const Layout one = Layout(Shape{1, 5, 4, 8}).transposed(1, 2);
        QCOMPARE(strides(*one.viewed({4, 5, 8})), "8 32 1");
        // The gradient of keys, (B, H, D, S) dense, seen as (B, S, H·D): no copy.
        const Layout keys = Layout(Shape{2, 4, 8, 5}).transposed(2, 3).transposed(1, 2);
        QCOMPARE(strides(*keys.viewed({2, 5, 32})), "160 1 5");
        QVERIFY(heads.isDense());
        QVERIFY(!heads.isContiguous());
        QVERIFY(!heads.narrowed(2, 3).isDense());
        QVERIFY(!Layout(Shape{1, 4}).expanded({3, 4}).isDense());
    }

    void imitatesTheOrderOfItsInputs()
    {
        const Layout heads = Layout(Shape{2, 5, 4, 8}).transposed(1, 2);
        const Layout table(Shape{1, 1, 5, 8});
        const std::array<const Layout*, 2> inputs{&heads, &table};
        QCOMPARE(strides(elementwiseLayout(heads.shape, inputs)), "160 8 32 1");
        // A part of a wider tensor becomes dense in the same order.
        const Layout part = heads.narrowed(3, 4);
        const Layout* const only = &part;
        QCOMPARE(strides(elementwiseLayout(part.shape, {&only, 1})), "80 4 16 1");
        // An expanded dimension follows in its place.
        const Layout expanded = Layout(Shape{2, 1, 8}).expanded({2, 5, 8});
        const Layout* const wide = &expanded;
        QCOMPARE(strides(elementwiseLayout(expanded.shape, {&wide, 1})), "40 8 1");
    }
};

QTEST_GUILESS_MAIN(TestShape)
#include "tst_shape.moc"

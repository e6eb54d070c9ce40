// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/blas.h"
#include "kernels/host/common/product.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::host;

class TestProduct : public QObject
{
    Q_OBJECT

private slots:
    void everyVersionMultiplies_data()
    {
        QTest::addColumn<int>("index");
        const auto kernels = productKernels();
        for (int i = 0; i < int(kernels.size()); ++i)
            QTest::newRow(kernels[std::size_t(i)].name.c_str()) << i;
    }
    void everyVersionMultiplies()
    {
        QFETCH(int, index);
        const Check check = checkProduct(productKernels()[std::size_t(index)]);
        QVERIFY2(check.passed(), check.text().c_str());
        QVERIFY(check.compared() > 100'000);
    }

    void aWrongKernelIsFound()
    {
        const ProductKernel right = productKernels().front();
        const ProductKernel forgetful{"forgets the last term", [&](ProductWork work, ProductScratch& scratch) {
                                          work.inner = work.inner > 1 ? work.inner - 1 : 1;
                                          right.run(work, scratch);
                                      }};
        QVERIFY(!checkProduct(forgetful).passed());
        const ProductKernel wide{"writes one column too many", [&](ProductWork work, ProductScratch& scratch) {
                                     right.run(work, scratch);
                                     work.c[work.columns] = 0;
                                 }};
        QVERIFY(!checkProduct(wide).passed());
    }

    void theLibraryIsPreferredWhereItIs()
    {
        const auto blas = openBlas();
        if (!blas)
            QSKIP("no OpenBLAS with threads on this machine");
        QCOMPARE(bestProduct().name, blas->name);
        QVERIFY(QString::fromStdString(blas->name).startsWith("product OpenBLAS 0."));
    }
};

QTEST_APPLESS_MAIN(TestProduct)
#include "tst_product.moc"

// SPDX-License-Identifier: Apache-2.0
// The products and the softmax of standard attention, thread by thread on the emulated GPU, compared
// with double.
#include "kernels/cuda/attention/standard.h"
#include "kernels/cuda/attention/tensor_product.h"

#include "tests/support/attention_cases.h"

#include <QtTest>

using namespace memscape::cuda;
using namespace memscape::emulated;
using memscape::emulated::Launch;
using memscape::emulated::Machine;

namespace {

struct ProductRun
{
    LaunchCount count;
    double error = 0;
    std::uint64_t untouched = 0;
};

/// A machine that waits for one group of copies less than it is asked to.
struct Hasty : Machine
{
    explicit Hasty(const Machine& machine)
        : Machine(machine)
    { }
    template <int pending> void waitForCopies() { Machine::waitForCopies<pending + 1>(); }
};
/// A machine whose threads do not wait for each other.
struct Unruly : Machine
{
    explicit Unruly(const Machine& machine)
        : Machine(machine)
    { }
    void syncThreads() { }
};

/// Matrices of the shape, each `more` elements wider in memory than it is.
template <typename Tile, typename TheMachine = Machine>
ProductRun runProduct(const ProductSizes& sizes, int more, float factor = 1)
{
    using Element = typename Tile::Element;
    TensorProductArguments w;
    w.sizes = sizes;
    w.factor = factor;
    const int aHeight = Tile::aTransposed ? sizes.inner : sizes.rows,
              bHeight = Tile::bTransposed ? sizes.columns : sizes.inner;
    w.aStride = (Tile::aTransposed ? sizes.rows : sizes.inner) + more;
    w.bStride = (Tile::bTransposed ? sizes.inner : sizes.columns) + more;
    w.cStride = sizes.columns;
    w.aBatch = w.aStride * aHeight;
    w.bBatch = w.bStride * bHeight;
    w.cBatch = w.cStride * sizes.rows;
    const bool isAligned = alignedForChunks(w, Tile::aTransposed, Tile::bTransposed);
    const auto elements = [&](std::int64_t perMatrix) { return std::size_t(perMatrix * sizes.batch); };
    const Array<Element> a(drawn(Drawn::Normal, elements(w.aBatch), 1, 1)),
        b(drawn(Drawn::Normal, elements(w.bBatch), 1, 2));
    auto c = poisoned<Element>(elements(w.cBatch));
    w.a = a.elements.data();
    w.b = b.elements.data();
    w.c = c.data();

    GlobalMemory memory;
    memory.readable("A", w.a, a.bytes());
    memory.readable("B", w.b, b.bytes());
    memory.writable("C", w.c, c.size() * sizeof(Element));
    Launch launch;
    launch.blocksX = over(sizes.rows, Tile::side) * over(sizes.columns, Tile::side);
    launch.blocksY = sizes.batch;
    launch.threads = Tile::threads;
    launch.sharedBytes = Tile::sharedBytes;
    launch.isTuring = !Tile::isAsync;
    ProductRun run;
    run.count = memscape::emulated::run(launch, memory, [&](Machine& machine) {
        TheMachine m(machine);
        if (isAligned)
            tensorProduct<Tile, true>(m, w);
        else
            tensorProduct<Tile, false>(m, w);
    });
    run.untouched = memory.elementsUntouched();

    std::vector<double> exact(c.size());
    for (int n = 0; n < sizes.batch; ++n) {
        for (int row = 0; row < sizes.rows; ++row) {
            for (int column = 0; column < sizes.columns; ++column) {
                double sum = 0;
                for (int k = 0; k < sizes.inner; ++k)
                    sum += a.exact[std::size_t(n * w.aBatch
                                               + (Tile::aTransposed ? k * w.aStride + row : row * w.aStride + k))]
                        * b.exact[std::size_t(n * w.bBatch
                                              + (Tile::bTransposed ? column * w.bStride + k : k * w.bStride + column))];
                exact[std::size_t(n * w.cBatch + row * w.cStride + column)] = double(factor) * sum;
            }
        }
    }
    run.error = worstError(c, exact);
    return run;
}

template <typename Element, bool isAsync>
ProductRun runProduct(bool aTransposed, bool bTransposed, const ProductSizes& sizes, int more)
{
    if (aTransposed)
        return bTransposed ? runProduct<ProductTile<Element, true, true, isAsync>>(sizes, more)
                           : runProduct<ProductTile<Element, true, false, isAsync>>(sizes, more);
    return bTransposed ? runProduct<ProductTile<Element, false, true, isAsync>>(sizes, more)
                       : runProduct<ProductTile<Element, false, false, isAsync>>(sizes, more);
}

struct SoftmaxRun
{
    LaunchCount count;
    double error = 0;
    std::uint64_t untouched = 0, bytesRead = 0, bytesWritten = 0;
};

/// Rows of scores, or of P and dP, and what comes of them; `inPlace` over the scores or over dP.
template <typename Element, bool isGradient> SoftmaxRun runSoftmax(const AttentionSizes& s, Drawn kind, bool inPlace)
{
    const int rows = s.batch * s.heads * s.queries, n = s.keys;
    Array<Element> scores(drawn(kind, std::size_t(rows * n), std::size_t(n), 1));
    if (isGradient)
        for (std::size_t i = 0; i < scores.exact.size(); ++i) {
            scores.elements[i] = fromFloat<Element>(float(std::abs(scores.exact[i]) / n));
            scores.exact[i] = double(toFloat(scores.elements[i]));
        }
    Array<Element> gradient(drawn(Drawn::Normal, std::size_t(rows * n), std::size_t(n), 2));
    auto result = poisoned<Element>(std::size_t(rows * n));
    std::vector<Element>& over = isGradient ? gradient.elements : scores.elements;
    SoftmaxArguments w;
    w.scores = scores.elements.data();
    w.gradient = isGradient ? gradient.elements.data() : nullptr;
    w.result = inPlace ? over.data() : result.data();
    w.scale = 0.5F;

    GlobalMemory memory;
    memory.writable("result", w.result, result.size() * sizeof(Element));
    if (!inPlace || isGradient)
        memory.readable("scores", scores.elements.data(), scores.bytes());
    if (!inPlace && isGradient)
        memory.readable("dP", gradient.elements.data(), gradient.bytes());
    Launch launch;
    launch.blocksX = rows;
    launch.threads = softmaxThreads;
    launch.sharedBytes = softmaxSharedBytes;
    SoftmaxRun run;
    run.count =
        memscape::emulated::run(launch, memory, [&](Machine& m) { standardSoftmax<Element, isGradient>(m, s, w); });
    run.untouched = memory.elementsUntouched();
    run.bytesRead = memory.bytesRead;
    run.bytesWritten = memory.bytesWritten;

    std::vector<double> exact(result.size(), 0);
    for (int row = 0; row < rows; ++row) {
        const auto at = std::size_t(row) * std::size_t(n);
        const int seen = s.causal ? row % s.queries + 1 + s.keys - s.queries : n;
        double most = -1e300, sum = 0, delta = 0;
        for (int j = 0; j < n; ++j)
            delta += scores.exact[at + std::size_t(j)] * gradient.exact[at + std::size_t(j)];
        for (int j = 0; j < seen; ++j)
            most = std::max(most, scores.exact[at + std::size_t(j)]);
        for (int j = 0; j < seen; ++j)
            sum += std::exp(0.5 * (scores.exact[at + std::size_t(j)] - most));
        for (int j = 0; j < n; ++j) {
            const std::size_t i = at + std::size_t(j);
            if (isGradient)
                exact[i] = 0.5 * scores.exact[i] * (gradient.exact[i] - delta);
            else if (j < seen)
                exact[i] = std::exp(0.5 * (scores.exact[i] - most)) / sum;
        }
    }
    run.error = worstError(inPlace ? over : result, exact);
    return run;
}

} // namespace

class TestStandardAttention : public QObject
{
    Q_OBJECT

private slots:
    void productsAreAsInDouble_data()
    {
        QTest::addColumn<bool>("aTransposed");
        QTest::addColumn<bool>("bTransposed");
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("columns");
        QTest::addColumn<int>("inner");
        QTest::addColumn<int>("batch");
        QTest::addColumn<int>("more");
        for (const bool a : {false, true}) {
            for (const bool b : {false, true}) {
                const auto add = [&](int rows, int columns, int inner, int batch, int more) {
                    QTest::addRow("%s%s %dx%dx%d of %d, +%d", a ? "T" : "N", b ? "T" : "N", rows, columns, inner, batch,
                                  more)
                        << a << b << rows << columns << inner << batch << more;
                };
                add(128, 128, 64, 1, 0);
                add(136, 72, 136, 2, 0); // aligned, tails everywhere
                add(131, 7, 77, 1, 0);   // odd rows in memory
                add(8, 130, 200, 1, 8);
                add(1, 1, 1, 3, 1);
            }
        }
    }
    void productsAreAsInDouble()
    {
        QFETCH(bool, aTransposed);
        QFETCH(bool, bTransposed);
        QFETCH(int, rows);
        QFETCH(int, columns);
        QFETCH(int, inner);
        QFETCH(int, batch);
        QFETCH(int, more);
        const ProductSizes sizes{rows, columns, inner, batch};
        const ProductRun half = runProduct<Half, true>(aTransposed, bTransposed, sizes, more);
        QVERIFY2(half.error < 1e-3, qPrintable(QString::number(half.error)));
        QCOMPARE(half.untouched, std::uint64_t(0));
        const ProductRun turing = runProduct<Half, false>(aTransposed, bTransposed, sizes, more);
        QVERIFY2(turing.error < 1e-3, qPrintable(QString::number(turing.error)));
        const ProductRun bfloat = runProduct<Bfloat, true>(aTransposed, bTransposed, sizes, more);
        QVERIFY2(bfloat.error < 8e-3, qPrintable(QString::number(bfloat.error)));
    }

    void productsScale()
    {
        const auto run = runProduct<ProductTile<Half, false, true, true>>({16, 16, 64, 1}, 0, 0.125F);
        QVERIFY(run.error < 1e-3);
    }

    void productsDoNotConflict()
    {
        for (const bool a : {false, true}) {
            for (const bool b : {false, true}) {
                const LaunchCount count = runProduct<Half, true>(a, b, {128, 128, 128, 1}, 0).count;
                QCOMPARE(count.matrixLoads.conflicts(), std::uint64_t(0));
                QCOMPARE(count.copies.conflicts(), std::uint64_t(0));
                QCOMPARE(count.products, std::uint64_t(128 * 128 * 128 / (16 * 8 * 16)));
            }
        }
    }

    void faultsAreCaught()
    {
        const auto hasty = [] { runProduct<ProductTile<Half, false, true, true>, Hasty>({16, 16, 128, 1}, 0); };
        QVERIFY_THROWS_EXCEPTION(Fault, hasty());
        const auto unruly = [] { runProduct<ProductTile<Half, true, false, true>, Unruly>({16, 16, 160, 1}, 0); };
        QVERIFY_THROWS_EXCEPTION(Fault, unruly());
        const auto unrulyTuring = [] {
            runProduct<ProductTile<Half, false, false, false>, Unruly>({16, 16, 128, 1}, 0);
        };
        QVERIFY_THROWS_EXCEPTION(Fault, unrulyTuring());
    }

    void everyTileComesOnce()
    {
        for (const int rows : {1, 7, 8, 9, 20}) {
            for (const int columns : {1, 3, 16}) {
                std::set<std::pair<int, int>> seen;
                for (int i = 0; i < rows * columns; ++i) {
                    const TilePlace tile = productTile(i, rows, columns);
                    QVERIFY(tile.row < rows && tile.column < columns);
                    seen.insert({tile.row, tile.column});
                }
                QCOMPARE(int(seen.size()), rows * columns);
            }
        }
    }

    void softmaxIsAsInDouble_data()
    {
        QTest::addColumn<int>("keys");
        QTest::addColumn<bool>("causal");
        for (const int keys : {1, 5, 8, 131, 512, 2056}) {
            QTest::addRow("%d full", keys) << keys << false;
            QTest::addRow("%d causal", keys) << keys << true;
        }
    }
    void softmaxIsAsInDouble()
    {
        QFETCH(int, keys);
        QFETCH(bool, causal);
        AttentionSizes s;
        s.heads = 2;
        s.queries = std::min(keys, 3);
        s.keys = keys;
        s.causal = causal;
        for (const bool inPlace : {false, true}) {
            const auto wide = runSoftmax<float, false>(s, Drawn::Normal, inPlace);
            QVERIFY2(wide.error < 1e-6, qPrintable(QString::number(wide.error)));
            QCOMPARE(wide.untouched, std::uint64_t(0));
            const auto half = runSoftmax<Half, false>(s, Drawn::Normal, inPlace);
            QVERIFY2(half.error < 1e-3, qPrintable(QString::number(half.error)));
            const auto bfloat = runSoftmax<Bfloat, false>(s, Drawn::Normal, inPlace);
            QVERIFY2(bfloat.error < 8e-3, qPrintable(QString::number(bfloat.error)));
            const auto gradient = runSoftmax<float, true>(s, Drawn::Normal, inPlace);
            QVERIFY2(gradient.error < 2e-6, qPrintable(QString::number(gradient.error)));
            const auto halfGradient = runSoftmax<Bfloat, true>(s, Drawn::Normal, inPlace);
            QVERIFY2(halfGradient.error < 8e-3, qPrintable(QString::number(halfGradient.error)));
        }
    }

    void softmaxOfExtremeRows()
    {
        AttentionSizes s;
        s.queries = 16;
        s.keys = 40;
        for (const Drawn kind : {Drawn::Large, Drawn::Equal, Drawn::Outliers}) {
            const auto run = runSoftmax<float, false>(s, kind, false);
            QVERIFY2(run.error < 1e-5, qPrintable(QString::number(run.error)));
        }
    }

    void softmaxReadsTwiceAndWritesOnce()
    {
        // The second reading comes from the caches: a row is at most some dozens of KB.
        AttentionSizes s;
        s.queries = 3;
        s.keys = 512;
        const auto run = runSoftmax<Half, false>(s, Drawn::Normal, false);
        QCOMPARE(run.bytesRead, std::uint64_t(2 * 3 * 512 * 2));
        QCOMPARE(run.bytesWritten, std::uint64_t(3 * 512 * 2));
    }
};

QTEST_APPLESS_MAIN(TestStandardAttention)
#include "tst_standard_attention.moc"

// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the GPU's transposition, thread by thread on the host: each element of a view is copied once and
// to its place, whatever the sizes; the tiles' words meet in as many banks as the versions say.
#include "core/access/banks.h"
#include "core/access/views/view_step.h"
#include "core/access/views/tensor_walk.h"
#include "kernels/cuda/layout_plan.h"

#include <QtTest>

#include <vector>

using namespace memscape;
using namespace memscape::cuda;

namespace {

ViewNest nestOf(const Sizes& shape, const char* views)
{
    const auto steps = applyAll(*freshTensor(shape), *parseViews(views));
    const TensorWalk walk = walkOf(steps->empty() ? *freshTensor(shape) : steps->back().view, WalkOrder::LastFastest, 4);
    ViewNest nest;
    nest.rank = int(walk.loops.size());
    nest.offset = std::uint64_t(walk.offset);
    nest.elements = std::uint64_t(walk.elements);
    for (std::size_t i = 0; i < walk.loops.size(); ++i) {
        nest.count[i] = std::uint64_t(walk.loops[i].count);
        nest.stride[i] = std::uint64_t(walk.loops[i].stride);
    }
    return nest;
}

/// Where each element of the target came from, by the tiles of versions 2 and 3 (`quads`: of version 4).
std::vector<std::int64_t> turned(const ViewNest& nest, bool quads)
{
    const TurnPlan plan = turnPlanOf(nest);
    const int bSide = quads ? turnQuadTiles * turnSide : turnSide;
    std::vector<std::int64_t> from(nest.elements, -1);
    for (std::uint64_t block = 0; block < turnBlocks(plan, turnSide, bSide); ++block) {
        const TurnTile tile = turnTile(plan, block, turnSide, bSide);
        for (int a = 0; a < turnSide; ++a) {
            for (int b = 0; b < bSide; ++b) {
                if (tile.a + std::uint64_t(a) >= plan.aCount || tile.b + std::uint64_t(b) >= plan.bCount)
                    continue;
                const std::uint64_t to = tile.to + (tile.b + std::uint64_t(b)) * plan.bTo + tile.a + std::uint64_t(a);
                if (from.at(to) != -1)
                    return {};
                from[to] = std::int64_t(tile.from + (tile.a + std::uint64_t(a)) * plan.aFrom
                                        + (tile.b + std::uint64_t(b)) * plan.bFrom);
            }
        }
    }
    return from;
}

int wavefronts(const std::vector<std::uint32_t>& words, std::uint32_t width = 4)
{
    std::vector<std::uint32_t> addresses;
    for (const std::uint32_t word : words)
        addresses.push_back(word * 4);
    return resolveBanks(addresses, width)->wavefronts;
}

} // namespace

class TestLayoutPlan : public QObject
{
    Q_OBJECT

private slots:
    void everyElementOnce_data()
    {
        QTest::addColumn<QString>("views");
        QTest::addColumn<QList<int>>("shape");
        QTest::newRow("a matrix") << "t()" << QList<int>{64, 96};
        QTest::newRow("odd sides") << "t()" << QList<int>{67, 33};
        QTest::newRow("planes") << "permute(0,2,3,1)" << QList<int>{3, 40, 5, 7};
        QTest::newRow("an offset") << "narrow(0,3,40);narrow(1,5,37);t()" << QList<int>{50, 60};
        QTest::newRow("overlapping windows") << "unfold(0,9,4);t()" << QList<int>{400};
        QTest::newRow("quads") << "t()" << QList<int>{160, 96};
    }

    void everyElementOnce()
    {
        QFETCH(QString, views);
        QFETCH(QList<int>, shape);
        const ViewNest nest = nestOf(Sizes(shape.begin(), shape.end()), views.toUtf8().constData());
        const TurnPlan plan = turnPlanOf(nest);
        QVERIFY(plan.turns);
        for (const bool quads : {false, true}) {
            if (quads && !hasQuads(plan))
                continue;
            const auto from = turned(nest, quads);
            QCOMPARE(from.size(), std::size_t(nest.elements));
            for (std::uint64_t i = 0; i < nest.elements; ++i) {
                QCOMPARE(from[i], std::int64_t(elementAt<std::uint64_t>(nest, i)));
                QCOMPARE(elementAt<std::uint32_t>(nest, std::uint32_t(i)), elementAt<std::uint64_t>(nest, i));
            }
        }
    }

    void quadsNeedWholeQuads()
    {
        QVERIFY(hasQuads(turnPlanOf(nestOf({160, 96}, "t()"))));
        QVERIFY(!hasQuads(turnPlanOf(nestOf({160, 95}, "t()"))));
        QVERIFY(!hasQuads(turnPlanOf(nestOf({161, 96}, "t()"))));
        QVERIFY(!hasQuads(turnPlanOf(nestOf({164, 96}, "narrow(1,1,92);t()")))); // the offset
        QVERIFY(!turnPlanOf(nestOf({64, 64}, "")).turns);
        QVERIFY(!turnPlanOf(nestOf({1, 45}, "expand(70,-1);t()")).turns); // one place, read many times
    }

    /// What the versions teach: 32 wavefronts down a column, one with padding, one with the exchange.
    void banks()
    {
        std::vector<std::uint32_t> column2, column3, row2;
        for (int lane = 0; lane < 32; ++lane) {
            column2.push_back(std::uint32_t(tileWord(2, lane, 5)));
            column3.push_back(std::uint32_t(tileWord(3, lane, 5)));
            row2.push_back(std::uint32_t(tileWord(2, 5, lane)));
        }
        QCOMPARE(wavefronts(row2), 1);
        QCOMPARE(wavefronts(column2), 32);
        QCOMPARE(wavefronts(column3), 1);
        for (int warp = 0; warp < 8; ++warp) {
            for (int k = 0; k < 4; ++k) { // element k of a quad, as the kernel's lanes read it
                std::vector<std::uint32_t> words;
                for (int lane = 0; lane < 32; ++lane) {
                    const int thread = warp * 32 + lane;
                    words.push_back(std::uint32_t(tileWord(4, thread % 8 * 4 + k, thread / 8)));
                }
                QCOMPARE(wavefronts(words), 1);
            }
            std::vector<std::uint32_t> stored; // 16 bytes a lane: four phases of eight
            for (int lane = 0; lane < 32; ++lane) {
                const int thread = warp * 32 + lane;
                stored.push_back(std::uint32_t(tileWord(4, thread / 8, thread % 8 * 4)));
            }
            QCOMPARE(wavefronts(stored, 16), 4);
        }
        // The exchange loses no word.
        std::vector<bool> used(32 * 32);
        for (int a = 0; a < 32; ++a) {
            for (int b = 0; b < 32; ++b)
                used[std::size_t(tileWord(4, a, b))] = true;
        }
        QVERIFY(std::all_of(used.begin(), used.end(), [](bool one) { return one; }));
    }
};

QTEST_APPLESS_MAIN(TestLayoutPlan)
#include "tst_layout_plan.moc"

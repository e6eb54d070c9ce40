// SPDX-License-Identifier: Apache-2.0
// Requests, granules and misses of a walk against visiting every element of it, for views of every
// kind and for sizes that the closed forms are made for.
#include "core/access/views/tensor_walk.h"
#include "core/access/views/view_step.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <set>

using namespace memscape;

namespace {

TensorView viewOf(const Sizes& shape, const char* views)
{
    const auto steps = applyAll(*freshTensor(shape), *parseViews(views));
    return steps->empty() ? *freshTensor(shape) : steps->back().view;
}

/// Addresses of all elements by nested indices, written without TensorWalk.
std::vector<std::uint64_t> addressesOf(const TensorView& view, WalkOrder order, std::uint64_t item)
{
    std::vector<std::uint64_t> addresses;
    Sizes index(view.size.size());
    const std::size_t rank = index.size();
    for (std::int64_t n = view.elements(); n > 0; --n) {
        std::int64_t at = view.offset;
        for (std::size_t i = 0; i < rank; ++i)
            at += index[i] * view.stride[i];
        addresses.push_back(std::uint64_t(at) * item);
        for (std::size_t k = 0; k < rank; ++k) {
            const std::size_t i = order == WalkOrder::LastFastest ? rank - 1 - k : k;
            if (++index[i] < view.size[i])
                break;
            index[i] = 0;
        }
    }
    return addresses;
}

struct Case
{
    Sizes shape;
    const char* views;
};

const std::vector<Case> cases{
    {{6, 8}, ""},
    {{6, 8}, "transpose(0,1)"},
    {{64, 96}, "transpose(0,1)"},
    {{33, 65}, "transpose(0,1)"},
    {{2, 3, 4}, "transpose(0,1);narrow(2,1,2)"},
    {{7, 5, 9}, "permute(2,0,1);slice(0,1,none,2)"},
    {{1, 40}, "expand(30,-1)"},
    {{200}, "unfold(0,7,3)"},
    {{200}, "unfold(0,3,7)"},
    {{30, 30}, "diagonal()"},
    {{4, 6, 10, 12}, "permute(0,2,3,1)"},
    {{4, 6, 10, 12}, "contiguous(channels_last)"},
    {{100}, "as_strided([5,4],[3,2],7)"},
    {{3, 0}, "t()"},
    {{}, ""},
    {{128, 32}, "narrow(1,3,20)"},
    {{16, 1024}, "slice(1,0,none,16);transpose(0,1)"},
};

} // namespace

class TestTensorWalk : public QObject
{
    Q_OBJECT

private slots:
    void addresses()
    {
        for (const Case& one : cases) {
            const TensorView view = viewOf(one.shape, one.views);
            for (const WalkOrder order : {WalkOrder::LastFastest, WalkOrder::FirstFastest}) {
                const TensorWalk walk = walkOf(view, order, 4);
                const auto expected = addressesOf(view, order, 4);
                QCOMPARE(walk.elements, std::int64_t(expected.size()));
                for (std::size_t i = 0; i < expected.size(); ++i)
                    QVERIFY2(walk.address(std::int64_t(i)) == expected[i], one.views);
            }
        }
        // Any contiguous tensor is one loop, in the order in which it lies.
        QVERIFY(walkOf(viewOf({2, 3, 4, 5}, ""), WalkOrder::LastFastest, 4).isSequential());
        QVERIFY(!walkOf(viewOf({2, 3, 4, 5}, ""), WalkOrder::FirstFastest, 4).isSequential());
        QVERIFY(walkOf(viewOf({2, 3, 4}, "permute(2,1,0)"), WalkOrder::FirstFastest, 4).isSequential());
    }

    void requests()
    {
        for (const Case& one : cases) {
            for (const std::int64_t item : {1, 2, 4, 8, 16}) {
                const TensorView view = viewOf(one.shape, one.views);
                const auto addresses = addressesOf(view, WalkOrder::LastFastest, std::uint64_t(item));
                double sectors = 0, lines = 0, used = 0, count = 0;
                for (std::size_t first = 0; first < addresses.size(); first += 32) {
                    const auto end = std::min(first + 32, addresses.size());
                    const WarpRequest request{
                        {addresses.begin() + std::ptrdiff_t(first), addresses.begin() + std::ptrdiff_t(end)},
                        std::uint64_t(item)};
                    const WarpAccess access = *resolveRequest(request);
                    sectors += double(access.sectors.size());
                    lines += double(access.lines.size());
                    used += double(access.usedBytes);
                    ++count;
                }
                const WalkRequests found = *walkRequests(walkOf(view, WalkOrder::LastFastest, item));
                QVERIFY(found.isExact);
                QCOMPARE(found.requests, count);
                if (count == 0)
                    continue;
                QCOMPARE(found.sectors * count, sectors);
                QCOMPARE(found.lines * count, lines);
                QCOMPARE(found.usedBytes * count, used);
                QCOMPARE(found.efficiency(), used / (sectors * 32));
            }
        }
    }

    /// Beyond the budget: a period and its remainders, or a sample that says so.
    void requestsOfLargeWalks()
    {
        const std::vector<Case> large{
            {{1024, 1024}, "transpose(0,1)"}, // one remainder for every row
            {{1024, 1001}, "transpose(0,1)"}, // all of them
            {{700, 32, 33}, "permute(2,0,1)"},      {{4096, 200}, "narrow(1,3,160)"},
            {{64, 24, 28, 28}, "permute(0,2,3,1)"}, // 24 is no multiple of 32, 24 × 28 is
        };
        for (const Case& one : large) {
            const TensorView view = viewOf(one.shape, one.views);
            const TensorWalk walk = walkOf(view, WalkOrder::LastFastest, 4);
            QVERIFY(walk.elements > 32 * 16384);
            const WalkRequests found = *walkRequests(walk);
            QVERIFY2(found.isExact, one.views);
            double sectors = 0, used = 0;
            for (std::int64_t first = 0; first < walk.elements; first += 32) {
                std::set<std::uint64_t> touched, elements;
                for (std::int64_t i = first; i < std::min(first + 32, walk.elements); ++i) {
                    touched.insert(walk.address(i) / 32);
                    elements.insert(walk.address(i));
                }
                sectors += double(touched.size());
                used += double(elements.size()) * 4;
            }
            QVERIFY2(std::fabs(found.sectors * found.requests - sectors) < 0.5, one.views);
            QVERIFY2(std::fabs(found.usedBytes * found.requests - used) < 0.5, one.views);
        }
        // 31 × 1999: no product of inner loops is a multiple of 32 before the last.
        const TensorWalk odd = walkOf(viewOf({1999, 31, 17}, "permute(2,1,0)"), WalkOrder::LastFastest, 4);
        const WalkRequests sampled = *walkRequests(odd);
        QVERIFY(!sampled.isExact);
        double sectors = 0;
        for (std::int64_t first = 0; first < odd.elements; first += 32) {
            std::set<std::uint64_t> touched;
            for (std::int64_t i = first; i < std::min(first + 32, odd.elements); ++i)
                touched.insert(odd.address(i) / 32);
            sectors += double(touched.size());
        }
        QVERIFY(std::fabs(sampled.sectors * sampled.requests / sectors - 1) < 0.01);
        // 2^40 elements are as quick.
        const WalkRequests huge = *walkRequests(walkOf(viewOf({1 << 20, 1 << 20}, "t()"), WalkOrder::LastFastest, 4));
        QVERIFY(huge.isExact);
        QCOMPARE(huge.sectors, 32.0);
        QCOMPARE(huge.efficiency(), 0.125);
    }

    void granules()
    {
        for (const Case& one : cases) {
            const TensorView view = viewOf(one.shape, one.views);
            for (const std::int64_t item : {1, 4, 8}) {
                const TensorWalk walk = walkOf(view, WalkOrder::FirstFastest, item);
                for (const std::uint64_t granule :
                     {std::uint64_t(item), std::uint64_t(32), std::uint64_t(64), std::uint64_t(4096)}) {
                    std::set<std::uint64_t> touched;
                    for (const std::uint64_t address : addressesOf(view, WalkOrder::FirstFastest, std::uint64_t(item)))
                        touched.insert(address / granule);
                    QCOMPARE(distinctGranules(walk, granule), double(touched.size()));
                }
            }
        }
    }

    void misses()
    {
        const std::vector<CacheGeometry> levels{{"L1", 1024, 2, 64}, {"L2", 8192, 4, 64}};
        for (const Case& one : cases) {
            const TensorView view = viewOf(one.shape, one.views);
            CacheSimulator simulator = *CacheSimulator::create(levels);
            for (int pass = 0; pass < 2; ++pass) {
                simulator.resetCounters();
                for (const std::uint64_t address : addressesOf(view, WalkOrder::LastFastest, 4))
                    QVERIFY(simulator.step({address, 4, false}));
            }
            const WalkMisses found = *walkMisses(walkOf(view, WalkOrder::LastFastest, 4), levels);
            QVERIFY(found.isWhole);
            for (std::size_t i = 0; i < levels.size(); ++i)
                QCOMPARE(found.misses[i], double(simulator.counters()[i].misses()));
        }
    }

    void longWalks()
    {
        const std::vector<CacheGeometry> levels{{"L1", 32 << 10, 8, 64}, {"L2", 1 << 20, 8, 64}};
        for (const Case& one : {Case{{1000, 1100}, "t()"}, Case{{1000, 1100}, ""}}) {
            const TensorWalk walk = walkOf(viewOf(one.shape, one.views), WalkOrder::LastFastest, 4);
            const WalkMisses sampled = *walkMisses(walk, levels);
            const WalkMisses whole = *walkMisses(walk, levels, walk.elements);
            QVERIFY(!sampled.isWhole && whole.isWhole);
            for (std::size_t i = 0; i < levels.size(); ++i)
                QVERIFY2(std::fabs(sampled.misses[i] / whole.misses[i] - 1) < 0.05, one.views);
        }
    }

    void reuse()
    {
        // A column of 1000 rows brings 1000 lines before the first is used again.
        QCOMPARE(reuseBytes(walkOf(viewOf({1000, 1100}, "t()"), WalkOrder::LastFastest, 4), 64), 64000.0);
        QCOMPARE(reuseBytes(walkOf(viewOf({1000, 1100}, ""), WalkOrder::LastFastest, 4), 64), 0.0);
        // One element of every line: nothing comes back.
        QCOMPARE(reuseBytes(walkOf(viewOf({1000, 1600}, "slice(1,0,none,16)"), WalkOrder::LastFastest, 4), 64), 0.0);
    }
};

QTEST_APPLESS_MAIN(TestTensorWalk)
#include "tst_tensor_walk.moc"

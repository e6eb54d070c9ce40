// SPDX-License-Identifier: Apache-2.0
// Lines and pages of a host walk against visiting every byte of it.
#include "core/access/host_lines.h"
#include "core/access/random.h"

#include <QtTest>

#include <cmath>
#include <set>

using namespace memscape;

namespace {

/// The walk of HostWalk's docstring, element by element.
HostFootprint visited(const HostWalk& walk, const HostSizes& sizes)
{
    std::set<std::uint64_t> lines, pages, bytes;
    HostFootprint footprint;
    const std::uint64_t step = walk.strideBytes > 0 ? walk.strideBytes : walk.elementBytes;
    for (std::uint64_t at = walk.offsetBytes; at + walk.elementBytes <= walk.bytes; at += step) {
        const std::uint64_t first = walk.strideBytes > 0 ? at : walk.offsetBytes;
        const std::uint64_t last = first + walk.elementBytes - 1;
        for (std::uint64_t byte = first; byte <= last; ++byte) {
            lines.insert(byte / sizes.line);
            pages.insert(byte / sizes.page);
            bytes.insert(byte);
        }
        footprint.accesses += 1;
        footprint.lineVisits += double(last / sizes.line - first / sizes.line + 1);
    }
    footprint.lines = double(lines.size());
    footprint.pages = double(pages.size());
    footprint.usedBytes = double(bytes.size());
    footprint.movedBytes = footprint.lines * double(sizes.line);
    return footprint;
}

QString text(const HostFootprint& footprint)
{
    return QString("accesses %1 lines %2 pages %3 visits %4 used %5 moved %6")
        .arg(footprint.accesses)
        .arg(footprint.lines)
        .arg(footprint.pages)
        .arg(footprint.lineVisits)
        .arg(footprint.usedBytes)
        .arg(footprint.movedBytes);
}

QString codeOf(const Result<HostFootprint>& result)
{
    return QString::fromStdString(result ? "" : result.error().code);
}

} // namespace

class TestHostLines : public QObject
{
    Q_OBJECT

private slots:
    void countsWhatAWalkVisits()
    {
        const HostSizes small{64, 256}; // small pages, so that short walks cross many
        for (const std::uint64_t element : {1u, 2u, 4u, 8u, 12u, 16u})
            for (std::uint64_t stride = 0; stride <= 400; stride += stride < 20 ? 1 : 13)
                for (const std::uint64_t offset : {0u, 1u, 3u, 60u, 63u, 250u}) {
                    const HostWalk walk{2000, element, stride, offset};
                    QCOMPARE(text(stridedFootprint(walk, small).value()), text(visited(walk, small)));
                }
    }

    void namesTheUsualCases()
    {
        // 1 MiB of floats: contiguous uses all of every line, a stride of 16 floats 4 B of each, and a
        // stride of 32 floats leaves every second line alone.
        const auto contiguous = stridedFootprint({1 << 20, 4, 4, 0}).value();
        QCOMPARE(contiguous.lines, 16384.0);
        QCOMPARE(contiguous.pages, 256.0);
        QCOMPARE(contiguous.efficiency(), 1.0);
        const auto everyLine = stridedFootprint({1 << 20, 4, 64, 0}).value();
        QCOMPARE(everyLine.lines, 16384.0);
        QCOMPARE(everyLine.efficiency(), 4.0 / 64);
        QCOMPARE(stridedFootprint({1 << 20, 4, 128, 0}).value().lines, 8192.0);
        // Field 1 of structures of three doubles: 8 of every 24 B, all lines.
        const auto field = stridedFootprint({24 * 1024, 8, 24, 8}).value();
        QCOMPARE(field.accesses, 1024.0);
        QCOMPARE(field.lines, 384.0);
        // Doubles 60 B into their lines: each straddles, and is fetched twice if nothing stays.
        const auto straddling = stridedFootprint({1 << 20, 8, 64, 60}).value();
        QCOMPARE(straddling.lineVisits, 2 * straddling.accesses);
        // A broadcast stays on its line.
        QCOMPARE(stridedFootprint({1 << 20, 4, 0, 0}).value().lines, 1.0);
        QCOMPARE(stridedFootprint({1 << 20, 4, 0, 0}).value().accesses, 262144.0);
    }

    void costsNothingForHugeArrays()
    {
        const std::uint64_t huge = std::uint64_t(1) << 60;
        const auto walk = stridedFootprint({huge, 8, 72, 0}, {64, 2u << 20}).value();
        QCOMPARE(walk.accesses, std::floor((double(huge) - 8) / 72) + 1);
        QCOMPARE(walk.pages, double(huge >> 21));
        QCOMPARE(stridedFootprint({UINT64_MAX, 1, 1, 0}).value().lines, std::ldexp(1, 58));
    }

    void expectsWhatDrawingShows()
    {
        const std::uint64_t bytes = 40000, element = 12, accesses = 300;
        const int trials = 3000;
        SplitMix64 random(5);
        double lines = 0, pages = 0, visits = 0, used = 0;
        for (int trial = 0; trial < trials; ++trial) {
            std::set<std::uint64_t> lineSet, pageSet, elementSet;
            for (std::uint64_t i = 0; i < accesses; ++i) {
                const std::uint64_t index = random.below(bytes / element);
                const std::uint64_t first = index * element, last = first + element - 1;
                for (std::uint64_t line = first / 64; line <= last / 64; ++line, ++visits)
                    lineSet.insert(line);
                for (std::uint64_t page = first / 4096; page <= last / 4096; ++page)
                    pageSet.insert(page);
                elementSet.insert(index);
            }
            lines += double(lineSet.size());
            pages += double(pageSet.size());
            used += double(elementSet.size() * element);
        }
        const HostFootprint expected = randomFootprint(bytes, element, accesses).value();
        const auto near = [&](double value, double sum) {
            return std::abs(value / (sum / trials) - 1) < 0.002; // about five standard deviations
        };
        QVERIFY(near(expected.lines, lines));
        QVERIFY(near(expected.pages, pages));
        QVERIFY(near(expected.lineVisits, visits));
        QVERIFY(near(expected.usedBytes, used));
        QCOMPARE(expected.movedBytes, expected.lines * 64);
    }

    void refuses()
    {
        QCOMPARE(codeOf(stridedFootprint({100, 0, 4, 0})), QString("access.element"));
        QCOMPARE(codeOf(stridedFootprint({3, 4, 4, 0})), QString("access.bytes"));
        QCOMPARE(codeOf(stridedFootprint({0, 4, 4, 0})), QString("access.bytes"));
        QCOMPARE(codeOf(stridedFootprint({100, 4, 4, 97})), QString("access.bytes"));
        QCOMPARE(codeOf(stridedFootprint({100, 4, 4, UINT64_MAX})), QString("access.bytes"));
        QCOMPARE(codeOf(stridedFootprint({100, 4, 4, 0}, {0, 4096})), QString("access.granule"));
        QCOMPARE(codeOf(stridedFootprint({100, 4, 4, 0}, {64, 0})), QString("access.granule"));
        QCOMPARE(codeOf(randomFootprint(100, 0, 1)), QString("access.element"));
        QCOMPARE(codeOf(randomFootprint(3, 4, 1)), QString("access.bytes"));
        QCOMPARE(codeOf(randomFootprint(100, 4, 0)), QString("access.count"));
        QCOMPARE(codeOf(randomFootprint(100, 4, 1, {0, 1})), QString("access.granule"));
        // A stride larger than the array is one element, not an error.
        QCOMPARE(stridedFootprint({100, 4, UINT64_MAX, 0}).value().accesses, 1.0);
    }
};

QTEST_GUILESS_MAIN(TestHostLines)
#include "tst_host_lines.moc"

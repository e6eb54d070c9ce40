// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/stride/stride_walk.h"

#include "core/device/catalogue.h"
#include "tests/support/listener.h"

#include <QTest>

using namespace memscape;
using namespace memscape::host;

namespace {

StoppingOptions quick()
{
    StoppingOptions options;
    options.minimumSamples = 1;
    options.minimumTime = 0;
    options.wallLimit = 0.05;
    return options;
}

} // namespace

class TestStrideWalk : public QObject
{
    Q_OBJECT
private slots:
    // No store may leave its array whatever the pattern; the mapping goes on behind it, so it can be seen.
    void everyPatternStaysInside_data()
    {
        QTest::addColumn<int>("pattern");
        QTest::addColumn<int>("operation");
        QTest::addColumn<quint64>("stride");
        QTest::addColumn<bool>("cold");
        const Pattern patterns[] = {Pattern::Contiguous, Pattern::Strided, Pattern::Random,
                                    Pattern::Misaligned, Pattern::Aos,     Pattern::Soa};
        for (const Pattern pattern : patterns) {
            for (const quint64 stride : {0, 1, 7, 1000, 1048576}) {
                QTest::addRow("pattern %d stride %llu", static_cast<int>(pattern), stride)
                    << static_cast<int>(pattern) << static_cast<int>(stride % 3) << stride << (stride != 7);
            }
        }
    }
    void everyPatternStaysInside()
    {
        QFETCH(const int, pattern);
        QFETCH(const int, operation);
        QFETCH(const quint64, stride);
        QFETCH(const bool, cold);
        const Device device = describeHost();
        test::Listener sink;
        HostSession session(device, sink);
        StrideArrays arrays;
        StrideCase walk;
        walk.pattern = static_cast<Pattern>(pattern);
        walk.operation = static_cast<Operation>(operation);
        walk.elementBytes = 8;
        walk.stride = stride;
        walk.offsetBytes = 13;
        walk.arrayBytes = 100003; // odd, so that the last element does not fill it
        walk.cold = cold;
        const auto complete = completed(walk);
        QVERIFY(complete.has_value());
        const auto seconds = measureStride(session, arrays, *complete, quick());
        QVERIFY2(seconds.has_value(), seconds ? "" : seconds.error().text().c_str());
        QVERIFY(!seconds->empty());
        for (const double one : *seconds)
            QVERIFY(one >= 0 && one < 10);
        for (std::size_t i = walk.arrayBytes; i < walk.arrayBytes + 8192; ++i)
            QCOMPARE(std::to_integer<int>(arrays.target()[i]), 0);
        QCOMPARE(session.memory().highWater(), std::int64_t(walk.arrayBytes) * walk.arrays());
    }

    void stopIsAnError()
    {
        const Device device = describeHost();
        test::Listener sink;
        HostSession session(device, sink);
        sink.stop = true;
        StrideArrays arrays;
        StrideCase walk;
        walk.arrayBytes = 1 << 20;
        const auto seconds = measureStride(session, arrays, *completed(walk), quick());
        QCOMPARE(seconds.error().code, std::string("run.cancelled"));
    }

    void tooLargeIsRefusedBeforeAnythingIsTouched()
    {
        const Device device = describeHost();
        test::Listener sink;
        HostSession session(device, sink);
        StrideArrays arrays;
        StrideCase walk;
        walk.arrayBytes = std::uint64_t{1} << 50;
        const auto seconds = measureStride(session, arrays, *completed(walk), quick());
        QCOMPARE(seconds.error().code, std::string("run.memory"));
        QVERIFY(!seconds.error().hint.empty());
    }

    void neighboursTakeTheContiguousKernel()
    {
        StrideCase walk;
        walk.arrayBytes = 4096;
        walk.stride = 1;
        QCOMPARE(static_cast<int>(kernelFor(*completed(walk)).walk), static_cast<int>(StrideWalk::Contiguous));
        walk.stride = 2;
        QCOMPARE(static_cast<int>(kernelFor(*completed(walk)).walk), static_cast<int>(StrideWalk::Strided));
        walk.pattern = Pattern::Soa;
        QCOMPARE(static_cast<int>(kernelFor(*completed(walk)).walk), static_cast<int>(StrideWalk::Contiguous));
    }
};

QTEST_GUILESS_MAIN(TestStrideWalk)
#include "tst_stride_walk.moc"

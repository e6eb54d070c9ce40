// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/timing/stride_time.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

class TestStrideTime : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        const auto device = findDevice("nvidia-h200");
        QVERIFY(device.has_value());
        m_h200 = *device;
    }

    void contiguousCopyReachesWhatWasMeasuredElsewhere()
    {
        // yencal/gpu-bandwidth-benchmark: 4.11 TB/s copy on an H200 with 16 B per thread.
        const double rate = useful(m_h200, walk(Operation::Copy, 1, 16, 4ull << 30));
        QVERIFY2(std::fabs(rate / 4.11e12 - 1) < 0.03, QByteArray::number(rate).constData());
    }

    void usefulBandwidthHalvesWithEachDoubling()
    {
        const double one = useful(m_h200, walk(Operation::Read, 1, 4, 4ull << 30));
        const double four = useful(m_h200, walk(Operation::Read, 4, 4, 4ull << 30));
        QVERIFY(std::fabs(one / four / 4 - 1) < 0.05);
    }

    void pastTheSectorNothingMoreIsLost()
    {
        const double at8 = useful(m_h200, walk(Operation::Read, 8, 4, 8ull << 30));
        const double at64 = useful(m_h200, walk(Operation::Read, 64, 4, 64ull << 30));
        QVERIFY(std::fabs(at8 / at64 - 1) < 0.05); // 32 sectors either way
    }

    void aCalibrationReplacesTheCatalogue()
    {
        Device device = describeHost();
        device.calibration = Calibration{};
        device.calibration->lineRates = {{Operation::Read, 64, 4e8}, {Operation::Read, 4096, 1e8}};
        device.calibration->issueRates = {{Operation::Read, 4, false, 1e12}};
        const auto time = strideTime(device, walk(Operation::Read, 16, 4, 1 << 28)); // 64 B apart
        QVERIFY(time.has_value());
        QCOMPARE(time->limit, StrideLimit::Memory);
        QVERIFY(std::fabs(time->seconds - double(1 << 22) / 4e8) < 1e-6);
        // 512 B apart: half way in the logarithm.
        const auto between = strideTime(device, walk(Operation::Read, 128, 4, 1 << 28));
        QVERIFY(std::fabs(between->memoryRate / 2e8 - 1) < 1e-6);
    }

    void unknownBandwidthIsAnAnswer()
    {
        Device device;
        device.id = "empty";
        const auto time = strideTime(device, walk(Operation::Read, 1, 4, 1 << 20));
        QVERIFY(!time.has_value());
        QCOMPARE(time.error().code, std::string("predict.device"));
        QVERIFY(!time.error().hint.empty());
    }

    void tinyAndHugeArraysAreFinite()
    {
        for (const std::uint64_t bytes : {4096ull, 1ull << 40}) {
            for (const std::uint64_t stride : {0ull, 1ull, 1048576ull}) {
                for (const Operation operation : {Operation::Read, Operation::Write, Operation::Copy}) {
                    for (const Device& device : {m_h200, describeHost()}) {
                        const auto time = strideTime(device, walk(operation, stride, 8, bytes));
                        QVERIFY(time.has_value());
                        QVERIFY(std::isfinite(time->seconds) && time->seconds > 0);
                    }
                }
            }
        }
    }

private:
    static StrideCase walk(Operation operation, std::uint64_t stride, std::uint64_t element, std::uint64_t bytes)
    {
        StrideCase one;
        one.operation = operation;
        one.stride = stride;
        one.elementBytes = element;
        one.arrayBytes = bytes;
        return *completed(one);
    }

    static double useful(const Device& device, const StrideCase& walk)
    {
        return walk.usefulBytes() / strideTime(device, walk)->seconds;
    }

    Device m_h200;
};

QTEST_GUILESS_MAIN(TestStrideTime)
#include "tst_stride_time.moc"

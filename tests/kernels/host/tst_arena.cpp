// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/arena.h"

#include <cstdint>
#include <cstring>

#include <QTest>

using namespace memscape;
using namespace memscape::host;

class TestArena : public QObject
{
    Q_OBJECT
private slots:
    void countsWhatItHolds()
    {
        MemoryMeter meter;
        {
            auto first = allocate(1000, Pages::Small, meter);
            QCOMPARE(meter.used(), 1000);
            Buffer second = std::move(*first);
            QCOMPARE(meter.used(), 1000); // moved, not copied
            second = *allocate(500, Pages::Small, meter);
            QCOMPARE(meter.used(), 500);
        }
        QCOMPARE(meter.used(), 0);
        QCOMPARE(meter.highWater(), 1500);
    }

    void startsOnAHugePageAndIsZero()
    {
        MemoryMeter meter;
        const auto buffer = allocate(12345, Pages::Huge, meter);
        QCOMPARE(reinterpret_cast<std::uintptr_t>(buffer->data()) % (2u << 20), std::uintptr_t{0});
        for (std::size_t i = 0; i < buffer->bytes(); i += 100)
            QCOMPARE(std::to_integer<int>(buffer->data()[i]), 0);
        std::memset(buffer->data(), 7, buffer->bytes());
    }

    void smallPagesStaySmall()
    {
        MemoryMeter meter;
        const auto buffer = allocate(std::size_t{16} << 20, Pages::Small, meter);
        std::memset(buffer->data(), 1, buffer->bytes());
        QCOMPARE(buffer->hugeShare(), 0.0);
    }

    void hugePagesAreToldWhenGranted()
    {
        MemoryMeter meter;
        const auto buffer = allocate(std::size_t{16} << 20, Pages::Huge, meter);
        QCOMPARE(buffer->hugeShare(), 0.0); // nothing is touched yet
        std::memset(buffer->data(), 1, buffer->bytes());
        const double share = buffer->hugeShare();
        QVERIFY(share >= 0 && share <= 1); // the system may refuse
    }

    void impossibleSizesAreErrors()
    {
        MemoryMeter meter;
        for (const std::size_t bytes : {std::size_t{0}, SIZE_MAX - 5, std::size_t{1} << 62}) {
            const auto buffer = allocate(bytes, Pages::Small, meter);
            QVERIFY(!buffer);
            QCOMPARE(buffer.error().code, std::string("run.memory"));
        }
        QCOMPARE(meter.used(), 0);
    }

    void fourFifthsOfWhatIsAvailable()
    {
        QVERIFY(checkFits(80, 100).has_value());
        const auto tooMuch = checkFits(81e9, 100e9);
        QCOMPARE(tooMuch.error().code, std::string("run.memory"));
        QVERIFY(!tooMuch.error().hint.empty());
        QVERIFY(!checkFits(1e18));
    }
};

QTEST_APPLESS_MAIN(TestArena)
#include "tst_arena.moc"

// SPDX-License-Identifier: Apache-2.0
// Pieces of files in the page cache against faults that Linux 6.18 took (getrusage) for files that were read through
// it: ext4, 8 MiB read ahead, a byte of each page touched through a fresh mapping.
#include "core/timing/link_time.h"
#include "core/timing/page_cache.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

const PageCache eightMebibytes{0x1p23, 0x1p21};

double faultsOf(double bytes)
{
    return pageCachePieces(eightMebibytes, bytes, faultAround);
}

} // namespace

class TestPageCache : public QObject
{
    Q_OBJECT

private slots:
    void faultsAreThoseThatWereCounted()
    {
        const int counted[] = {64, 64, 64, 64, 64, 64, 16, 16, 4, 4, 2, 2, 2, 2, 2, 2}; // of each 4 MiB
        double all = 0;
        for (int i = 0; i < 16; ++i) {
            all += counted[i];
            QCOMPARE(faultsOf((i + 1) * 0x1p22), all);
        }
        QCOMPARE(faultsOf(0x1p27), 468.0); // 128 MiB
        QCOMPARE(faultsOf(1), 1.0);
        QCOMPARE(faultsOf(0), 0.0);
    }

    void readsMeetSmallerPieces()
    {
        QCOMPARE(pageCachePieces(eightMebibytes, 0x1p23, filePage), 2048.0);
        QCOMPARE(pageCachePieces(eightMebibytes, 0x1p24, filePage), 2048.0 + 512);
        // No larger piece than what a fault maps around it: single pages.
        QCOMPARE(pageCachePieces({0x1p23, faultAround}, 0x1p26, filePage), 0x1p26 / 4096);
    }

    void theLargestPieceIsFoundAgain()
    {
        QCOMPARE(largestPiece(0x1p23, 0x1p26, 436), 0x1p21);       // as counted
        QCOMPARE(largestPiece(0x1p23, 0x1p26, 1024), faultAround); // a kernel that maps 16 pages at a fault
    }

    void aSmallWindowHasSmallPieces()
    {
        // 128 KiB read ahead, as is usual: no piece is larger.
        const PageCache usual{131072, 0x1p21};
        QVERIFY(std::fabs(pageCachePieces(usual, 0x1p26, faultAround) / (0x1p26 / 131072) - 1) < 0.01);
    }

    void piecesAreFoundInTimes()
    {
        constexpr double alpha = 3e-4, each = 2e-6, rate = 2.7e9;
        LinkProbes probes{"disk-read", "disk-read", {}, 0};
        for (const double bytes : {0x1p20, 0x1p22, 12 * 0x1p20, 24 * 0x1p20, 40 * 0x1p20, 0x1p26}) {
            const double pieces = pageCachePieces(eightMebibytes, bytes, filePage);
            probes.points.push_back({bytes, alpha + pieces * each + bytes / rate, {}, pieces});
        }
        const FittedLink fitted = fitLink(probes).value();
        QVERIFY(std::fabs(fitted.piece / each - 1) < 1e-6);
        QVERIFY(std::fabs(fitted.link.bandwidth.value / rate - 1) < 1e-6);
        QVERIFY(std::fabs(fitted.link.latency.value / alpha - 1) < 1e-6);
        QVERIFY(fitted.link.latency.method.find("pieces") != std::string::npos);
    }

    void aCalibrationKeepsThem()
    {
        Device host = test::twoCores("host");
        QVERIFY(!pageCacheOf(host));
        host.calibration = Calibration();
        host.calibration->raw = {{"page_cache", pageCacheToJson(eightMebibytes)},
                                 {"piece_seconds", {{"disk-read", 2e-6}}}};
        const auto found = pageCacheOf(host);
        QVERIFY(found.has_value());
        QCOMPARE(found->window, 0x1p23);
        QCOMPARE(pieceSeconds(host, "disk-read"), 2e-6);
        QCOMPARE(pieceSeconds(host, "disk-mmap"), 0.0);
    }

    void nonsenseInAFileIsNoPageCache()
    {
        Device host = test::twoCores("host");
        host.calibration = Calibration();
        for (const char* text :
             {"[]", R"({"window": "8MiB", "largest": 2097152})", R"({"window": 0, "largest": 2097152})",
              R"({"window": 8388608, "largest": 1e300})", R"({"window": -1})"}) {
            host.calibration->raw = {{"page_cache", *parseJson(text)}};
            QVERIFY2(!pageCacheOf(host), text);
        }
        for (const char* text : {"[]", R"({"disk-read": -1})", R"({"disk-read": "2"})", R"({"disk-read": 1e300})"}) {
            host.calibration->raw = {{"piece_seconds", *parseJson(text)}};
            QVERIFY2(pieceSeconds(host, "disk-read") == 0, text);
        }
    }
};

QTEST_APPLESS_MAIN(TestPageCache)
#include "tst_page_cache.moc"

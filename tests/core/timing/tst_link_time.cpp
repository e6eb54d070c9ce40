// SPDX-License-Identifier: Apache-2.0
// α and β: found again in times that were made with them, and in published ones.
#include "core/device/catalogue.h"
#include "core/timing/link_time.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace memscape;

namespace {

constexpr double linkAlpha = 2e-6, ownRate = 5e9, nearRate = 8e9, farRate = 3e9; // s, B/s

/// Times of a link with caches, up to `noise` too long.
LinkProbes madeLinkProbes(double noise)
{
    std::mt19937 random(11);
    std::uniform_real_distribution<double> longer(0, noise);
    LinkProbes probes{"pipe", "pipe", {}};
    for (double bytes = 4; bytes <= 0x1p26; bytes *= 4) {
        const CachedShares cached{bytes <= 0x1p20 ? 1 : bytes <= 0x1p22 ? 0.4 : 0, bytes <= 0x1p16 ? 1.0 : 0.0, 0.0};
        const double seconds = linkAlpha
            + bytes * (cached.own / ownRate + (cached.last - cached.own) / nearRate + (1 - cached.last) / farRate);
        probes.points.push_back({bytes, seconds * (1 + longer(random)), cached});
    }
    return probes;
}

bool linkIsWithin(double found, double expected, double share)
{
    return std::fabs(found / expected - 1) <= share;
}

} // namespace

class TestLinkTime : public QObject
{
    Q_OBJECT

private slots:
    void theTermsAreFoundAgain()
    {
        const FittedLink fitted = fitLink(madeLinkProbes(0)).value();
        QVERIFY(linkIsWithin(fitted.link.latency.value, linkAlpha, 1e-6));
        QVERIFY(linkIsWithin(fitted.link.bandwidth.value, nearRate, 1e-6));
        QVERIFY(linkIsWithin(fitted.link.farBandwidth->value, farRate, 1e-6));
        QVERIFY(linkIsWithin(fitted.link.ownBandwidth->value, ownRate, 1e-6));
        QVERIFY(fitted.residual < 1e-9);
        QVERIFY(linkIsWithin(secondsPerByte(fitted.link, {0.5, 0.2}), 0.2 / ownRate + 0.3 / nearRate + 0.5 / farRate,
                             1e-6));
    }

    void noiseMovesThemLittleAndIsSaid()
    {
        const FittedLink fitted = fitLink(madeLinkProbes(0.1)).value();
        QVERIFY(linkIsWithin(fitted.link.latency.value, linkAlpha * 1.05, 0.05));
        QVERIFY(linkIsWithin(fitted.link.bandwidth.value, nearRate / 1.05, 0.1));
        QVERIFY(fitted.residual > 0.005 && fitted.residual < 0.1);
        QVERIFY2(fitted.link.latency.method.find("typical residual") != std::string::npos,
                 fitted.link.latency.method.c_str());
    }

    /// A V100 over PCIe 3: 12.35 GB/s at large sizes and 30 µs whatever the size (a published table of copies).
    void aPublishedLinkIsFitted()
    {
        LinkProbes probes{"host", "PCIe 3.0 x16", {}};
        for (const double bytes : {1e3, 1e4, 1e5, 1e6, 1e7, 1e8})
            probes.points.push_back({bytes, 30e-6 + bytes / 12.35e9, {}});
        const FittedLink fitted = fitLink(probes).value();
        QVERIFY(linkIsWithin(fitted.link.bandwidth.value, 12.35e9, 1e-6));
        QVERIFY(linkIsWithin(fitted.link.latency.value, 30e-6, 1e-6));
        // Half of the bandwidth is reached at α β: 370.5 kB.
        const double half = fitted.link.latency.value * fitted.link.bandwidth.value;
        QVERIFY(linkIsWithin(half / (fitted.link.latency.value + half / 12.35e9), 12.35e9 / 2, 1e-6));
    }

    void noTermIsBelowZero()
    {
        // Faster per byte at the smaller size: a straight line through both would have α < 0.
        const FittedLink fitted = fitLink({"x", "x", {{1000, 1e-6, {}}, {1e6, 2e-3, {}}}}).value();
        QVERIFY(fitted.link.latency.value >= 0);
        QVERIFY(fitted.link.bandwidth.value > 0);
    }

    void tooFewProbesAreRefused()
    {
        QCOMPARE(fitLink({"x", "x", {}}).error().code, std::string("calibration.probes"));
        QCOMPARE(fitLink({"x", "x", {{4, 1e-6, {}}}}).error().code, std::string("calibration.probes"));
        QCOMPARE(fitLink({"x", "x", {{4, 0, {}}, {64, std::nan(""), {}}, {128, -1, {}}}}).error().code,
                 std::string("calibration.probes"));
    }

    void cachesServeWhatTheyHold()
    {
        const Device host = test::twoCores("host");
        QCOMPARE(cachedShares(host, 4096).last, 1.0);
        QCOMPARE(cachedShares(host, 4096).own, 1.0);
        QVERIFY(cachedShares(host, 0x1p23).own < 0.01 && cachedShares(host, 0x1p23).last > 0.99); // 8 MiB: the L3 alone
        QCOMPARE(cachedShares(host, 1e12).last, 0.0);
        QCOMPARE(cachedShares(Device(), 1e12).last, 1.0);
        Link link;
        link.bandwidth.value = 2e9;
        QCOMPARE(secondsPerByte(link, {0.3, 0.1}), 0.5e-9); // one rate alone
        QVERIFY(std::isnan(secondsPerByte(Link())));
    }

    void piecesOfPipesAndCores()
    {
        QCOMPARE(linkPieces("pipe", 4, {}), 0.0);
        QCOMPARE(linkPieces("pipe", 65536, {}), 0.0);
        QCOMPARE(linkPieces("pipe", 0x1p20, {}), 15.0);
        QCOMPARE(linkPieces("stream", 0x1p20, {1, 1, 0}), 0.0);
        // Lines that the first cache has lost and the second one holds.
        QCOMPARE(linkPieces("thread", 640, {1, 0.75, 0.25}), 5.0);
        QCOMPARE(linkPieces("shared", 640, {1, 1, 1}), 0.0);
        // γ is found again in times as a pipe takes them.
        LinkProbes probes{"pipe", "pipe", {}};
        for (const double bytes : {4.0, 0x1p12, 0x1p15, 0x1p16, 0x1p18, 0x1p20, 0x1p22}) {
            const double pieces = linkPieces("pipe", bytes, {});
            probes.points.push_back({bytes, 23e-6 + bytes / 4e9 + pieces * 22e-6, {}, pieces});
        }
        const FittedLink fitted = fitLink(probes).value();
        QVERIFY(linkIsWithin(fitted.piece, 22e-6, 1e-6));
        QVERIFY(linkIsWithin(fitted.link.latency.value, 23e-6, 1e-6));
        // The nearest cache is the first that a core has; its own caches hold at least as much.
        const Device host = *findDevice("amd-epyc-zen4-vm");
        for (double bytes = 0x1p10; bytes <= 0x1p28; bytes *= 2) {
            const CachedShares shares = cachedShares(host, bytes);
            QVERIFY(shares.first <= shares.own && shares.own <= shares.last);
        }
        QCOMPARE(cachedShares(host, 0x1p12).first, 1.0);
        QCOMPARE(cachedShares(host, 0x1p18).first, 0.0);
    }
};

QTEST_APPLESS_MAIN(TestLinkTime)
#include "tst_link_time.moc"

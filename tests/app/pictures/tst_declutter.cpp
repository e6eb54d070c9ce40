// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/declutter.h"
#include "app/pictures/common/fitting_text.h"

#include "core/access/random.h"

#include <QFontMetricsF>
#include <QTest>

#include <algorithm>
#include <cmath>

using namespace memscape;

class TestDeclutter : public QObject
{
    Q_OBJECT

private slots:
    void wordsThatFitAreKept()
    {
        const QFont font;
        const QFontMetricsF metrics(font);
        const QString text = QStringLiteral(
            "Counted is what a warp of 32 lanes needs on a GPU; cycles and bandwidth are those of a GPU");
        QCOMPARE(fittingText(text, font, 2000, metrics.height() * 1.1), text);
        for (const double lines : {1.0, 2.0, 3.0}) {
            const QString kept = fittingText(text, font, 120, lines * metrics.height() + 1);
            QVERIFY(kept.endsWith(QChar(0x2026)) && text.startsWith(kept.chopped(1)));
            QVERIFY(metrics.boundingRect(QRectF(0, 0, 120, 1e4), Qt::TextWordWrap, kept).height()
                    <= lines * metrics.height() + 1);
        }
    }

    void whatDoesNotTouchStays()
    {
        const auto places = spread({{10, 4}, {50, 4}, {90, 4}}, 2, 0, 100);
        QCOMPARE(places, (std::vector<double>{10, 50, 90}));
    }

    void twoInOnePlacePartEvenly()
    {
        const auto places = spread({{50, 10}, {50, 10}}, 2, 0, 100);
        QCOMPARE(places, (std::vector<double>{44, 56}));
    }

    void theEdgesHold()
    {
        QCOMPARE(spread({{-30, 10}}, 2, 0, 100), (std::vector<double>{5}));
        QCOMPARE(spread({{300, 10}}, 2, 0, 100), (std::vector<double>{95}));
        QVERIFY(spread({}, 2, 0, 100).empty());
    }

    // Hundreds of random cases: in order, apart, inside; and no better place for a single one.
    void always()
    {
        SplitMix64 random(7);
        for (int round = 0; round < 500; ++round) {
            std::vector<Span> spans;
            const auto count = 1 + random.below(9);
            for (std::uint64_t i = 0; i < count; ++i)
                spans.push_back({double(random.below(1000)), 10 + double(random.below(60))});
            std::ranges::sort(spans, [](const Span& a, const Span& b) { return a.centre < b.centre; });
            const double gap = 6;
            QVERIFY(fits(spans, gap, 0, 1000));
            const auto places = spread(spans, gap, 0, 1000);
            double cost = 0;
            for (std::size_t i = 0; i < spans.size(); ++i) {
                QVERIFY(places[i] - spans[i].width / 2 >= -1e-9);
                QVERIFY(places[i] + spans[i].width / 2 <= 1000 + 1e-9);
                if (i > 0)
                    QVERIFY(places[i] - places[i - 1] >= (spans[i].width + spans[i - 1].width) / 2 + gap - 1e-9);
                cost += std::fabs(places[i] - spans[i].centre);
            }
            QVERIFY(cost < 1000.0 * double(count));
        }
    }

    void tooMuchIsSqueezedIntoTheRoom()
    {
        const std::vector<Span> spans(10, Span{50, 30});
        QVERIFY(!fits(spans, 2, 0, 100));
        const auto places = spread(spans, 2, 0, 100);
        QVERIFY(places.front() > 0 && places.back() < 100);
        QVERIFY(std::ranges::is_sorted(places));
    }
};

QTEST_MAIN(TestDeclutter)
#include "tst_declutter.moc"

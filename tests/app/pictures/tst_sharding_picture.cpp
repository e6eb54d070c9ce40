// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `sharding`: columns as high as the figures say, lanes as long as the timeline, what a hand and keys
// change, what a foreign document leaves out; both themes and sizes are kept to look at (samples/).
#include "app/pictures/sharding/sharding_picture.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <nlohmann/json.hpp>

#include <QtTest>

using namespace memscape;

namespace {

struct ShardingValues : PictureCase
{
    explicit ShardingValues(std::vector<std::string> assignments, const char* on = "nvidia-h200")
        : PictureCase("sharding", withModel(std::move(assignments)), on)
    { }
    ShardingState state() const { return readSharding(&prediction, nullptr, ByteStyle::Binary); }

private:
    static std::vector<std::string> withModel(std::vector<std::string> texts)
    {
        texts.emplace_back("model=from-scratch:hidden=256,layers=4,heads=4,ffn=1024,vocab=4096");
        texts.emplace_back("sequence=256");
        return texts;
    }
};

double heightOf(const ShardingLayout& layout, std::int64_t rank)
{
    double sum = 0;
    for (const ShardingBox& box : layout.boxes)
        sum += box.rank == rank ? box.rect.height() : 0;
    return sum;
}

} // namespace

class TestShardingPicture : public QObject
{
    Q_OBJECT

private slots:
    void columnsAreAsHighAsTheirBytes()
    {
        const ShardingValues values({"zero=1", "data_parallel=8"});
        const ShardingState state = values.state();
        const ShardingLayout layout = layoutSharding(state, {0, 0, 900, 400}, 1, 0);
        QCOMPARE(layout.columns.size(), std::size_t(9)); // one alone, and eight
        const double rank = values.figure("stored") + values.figure("activations");
        const double alone = values.figure("stored") * values.figure("memory_ratio") + values.figure("activations");
        for (std::int64_t i = 0; i < 8; ++i)
            QVERIFY(std::abs(heightOf(layout, i) / heightOf(layout, -1) - rank / alone) < 1e-9);
        QVERIFY(std::abs(heightOf(layout, -1) - layout.columns.front().rect.height()) < 1e-6); // the highest fills it
    }

    void ofManyRanksTheFirstAndTheLastAreShown()
    {
        const ShardingState sixteen = ShardingValues({"zero=3", "data_parallel=16"}).state();
        QCOMPARE(layoutSharding(sixteen, {0, 0, 900, 400}, 1, 0).columns.size(), std::size_t(17));
        const ShardingState many = ShardingValues({"zero=3", "data_parallel=1000"}).state();
        const ShardingLayout layout = layoutSharding(many, {0, 0, 900, 400}, 1, 0);
        QCOMPARE(layout.columns.size(), std::size_t(16));
        QCOMPARE(layout.columns.back().rank, std::int64_t(999));
        QVERIFY(!layout.gap.isEmpty());
        QVERIFY(layout.gap.left() > layout.columns[layout.columns.size() - 2].rect.right());
        QVERIFY(layout.gap.right() < layout.columns.back().rect.left());
    }

    void lanesAreAsLongAsTheirTimes()
    {
        const ShardingState state = ShardingValues({"zero=3", "data_parallel=8"}).state();
        const ShardingLayout layout = layoutSharding(state, {0, 0, 1200, 400}, 1, 0);
        QVERIFY(state.spans.size() > 15);
        QCOMPARE(layout.spans.size(), state.spans.size());
        for (std::size_t i = 0; i < state.spans.size(); ++i) {
            QVERIFY(std::abs(layout.secondsAt(layout.spans[i].left()) - state.spans[i].begin) < 1e-6 * state.end);
            if (layout.spans[i].width() > 1)
                QVERIFY(std::abs(layout.secondsAt(layout.spans[i].right()) - state.spans[i].end) < 1e-6 * state.end);
        }
    }

    void nothingIsOutside()
    {
        for (const char* ranks : {"data_parallel=1", "data_parallel=8", "data_parallel=1024"}) {
            const ShardingState state = ShardingValues({"zero=3", ranks}).state();
            for (const QRectF& rect : {QRectF(0, 0, 420, 260), QRectF(0, 0, 840, 340), QRectF(0, 0, 1500, 700)}) {
                const ShardingLayout layout = layoutSharding(state, rect, 1, state.gathered);
                for (const ShardingBox& box : layout.boxes)
                    QVERIFY(layout.columnsArea.adjusted(-1, -1, 1, 1).contains(box.rect));
                for (const QRectF& span : layout.spans)
                    QVERIFY(rect.contains(span.topLeft()) && span.bottom() < layout.foot.top() + 1);
                QVERIFY(layout.columns.back().rect.right() < layout.legend.left());
                QVERIFY(layout.track.bottom() < layout.times.top());
                QVERIFY(rect.contains(layout.handle));
            }
        }
    }

    void whatIsGatheredComesAndGoes()
    {
        const ShardingValues values({"zero=3", "data_parallel=8"});
        ShardingPicture picture;
        picture.resize(900, 400);
        values.show(picture);
        const ShardingState& state = picture.state();
        double highest = 0;
        for (int step = 0; step < 240; ++step) {
            picture.setCursor(step);
            const double gathered = state.gatheredAt(picture.cursorSeconds());
            highest = std::max(highest, gathered);
            const ShardingLayout layout = picture.layoutNow();
            const double stored = (values.figure("stored") + values.figure("activations")) * layout.bytesHeight;
            QVERIFY(std::abs(heightOf(layout, 3) - stored - gathered * layout.bytesHeight) < 1e-6);
            QVERIFY(!picture.cursorText().isEmpty());
        }
        QVERIFY(highest > 0 && highest <= values.figure("gathered"));
        QCOMPARE(state.gatheredAt(state.end), 0.0);
    }

    void aHandleSetsTheRanks()
    {
        const ShardingValues values({"data_parallel=8"});
        ShardingPicture picture;
        picture.resize(900, 400);
        values.show(picture);
        QSignalSpy edited(&picture, &Picture::parameterEdited), editing(&picture, &Picture::editing);
        QSignalSpy hover(&picture, &Picture::hoverText);
        const ShardingLayout layout = picture.layoutNow();
        for (const std::int64_t ranks : {1, 8, 64, 1024})
            QCOMPARE(layout.ranksAt(layout.trackX(ranks)), ranks);
        test::mouse(picture, QEvent::MouseButtonPress, layout.handle.center(), Qt::LeftButton);
        test::mouse(picture, QEvent::MouseMove, {layout.trackX(256), layout.handle.center().y()}, Qt::LeftButton);
        QCOMPARE(hover.last()[0].toString(), QStringLiteral("256 data-parallel ranks"));
        test::mouse(picture, QEvent::MouseButtonRelease, {layout.trackX(256), layout.handle.center().y()}, {});
        QCOMPARE(edited.size(), 1); // pressing where it stands changes nothing
        QCOMPARE(edited[0][0].toString(), QStringLiteral("data_parallel"));
        QCOMPARE(edited[0][1].toString(), QStringLiteral("256"));
        QCOMPARE(editing.size(), 2);
    }

    void keysChangeRanksAndStage()
    {
        const ShardingValues values({"data_parallel=8", "zero=1"});
        ShardingPicture picture;
        picture.resize(900, 400);
        values.show(picture);
        QSignalSpy edited(&picture, &Picture::parameterEdited);
        QTest::keyClick(&picture, Qt::Key_Plus);
        QTest::keyClick(&picture, Qt::Key_Minus);
        QTest::keyClick(&picture, Qt::Key_3);
        QTest::keyClick(&picture, Qt::Key_1); // it is that already
        QCOMPARE(edited.size(), 3);
        QCOMPARE(edited[0][1].toString(), QStringLiteral("16"));
        QCOMPARE(edited[1][1].toString(), QStringLiteral("4"));
        QCOMPARE(edited[2][0].toString(), QStringLiteral("zero"));
        QCOMPARE(edited[2][1].toString(), QStringLiteral("3"));
    }

    void hoverNamesBytes()
    {
        const ShardingValues values({"data_parallel=8"});
        ShardingPicture picture;
        picture.resize(900, 400);
        values.show(picture);
        QSignalSpy hover(&picture, &Picture::hoverText);
        const ShardingLayout layout = picture.layoutNow();
        for (const ShardingBox& box : layout.boxes)
            test::mouse(picture, QEvent::MouseMove, box.rect.center(), {});
        test::mouse(picture, QEvent::MouseMove, layout.spans.back().center(), {});
        QString all;
        for (const auto& arguments : hover)
            all += arguments[0].toString() + QLatin1Char('\n');
        const QString weights = QString::fromStdString(quantityText(values.figure("weights"), Unit::Byte));
        QVERIFY2(all.contains(QStringLiteral("rank 7: %1 of weights").arg(weights)), qPrintable(all));
        QVERIFY(all.contains(QStringLiteral("one rank alone")));
        QVERIFY(all.contains(QStringLiteral("each rank sends")));
    }

    void aMeasuredTimeIsNamed()
    {
        const ShardingValues values({"data_parallel=2", "precision=fp32"}, "amd-epyc-9654");
        Measurement measured;
        measured.figures.push_back({"communication_time", "collectives", Unit::Second, 0.0125, {}, {}, {}});
        ShardingPicture picture;
        values.show(picture, &measured);
        QCOMPARE(picture.state().measured.value_or(0), 0.0125);
        QCOMPARE(picture.state().mostRanks, std::int64_t(8)); // as many as are measured there
        QVERIFY(picture.state().isSerial);
    }

    void foreignDetailDrawsNothing_data()
    {
        QTest::addColumn<QByteArray>("detail");
        QTest::newRow("nothing") << QByteArray("{}");
        QTest::newRow("no object") << QByteArray("[1, 2]");
        QTest::newRow("no ranks") << QByteArray(R"({"lanes": ["a"], "spans": [{"lane": 0, "begin": 0, "end": 1}]})");
        QTest::newRow("a lane that is not there")
            << QByteArray(R"({"ranks": 2, "lanes": ["a"], "spans": [{"lane": 7, "begin": 0, "end": 1}]})");
        QTest::newRow("backwards") << QByteArray(
            R"({"ranks": 2, "lanes": ["a"], "spans": [{"lane": 0, "begin": 2, "end": 1}]})");
        QTest::newRow("words for numbers")
            << QByteArray(R"({"ranks": "two", "rank": 3, "lanes": 5, "spans": "all", "gathered": [[1], ["x", 2]]})");
    }
    void foreignDetailDrawsNothing()
    {
        QFETCH(QByteArray, detail);
        ShardingValues values({"data_parallel=2"});
        values.prediction.detail = Json::parse(detail.toStdString());
        ShardingPicture picture;
        picture.resize(600, 300);
        values.show(picture);
        QVERIFY(picture.state().empty());
        QCOMPARE(picture.cursor(), -1);
        exported(picture, {600, 300}, lightTheme());
        QVERIFY(!picture.summary().isEmpty());
    }

    void bothThemesAndSizes_data() { bothThemesIn({QSize(720, 330), QSize(1320, 640)}); }
    void bothThemesAndSizes()
    {
        QFETCH(bool, isDark);
        QFETCH(QSize, size);
        const Theme& theme = isDark ? darkTheme() : lightTheme();
        int number = 0;
        for (const std::vector<std::string>& texts :
             {std::vector<std::string>{"zero=1", "data_parallel=8"},
              {"zero=3", "data_parallel=512"},
              {"zero=2", "data_parallel=4", "tensor_parallel=2", "offload=gradients"}}) {
            const ShardingValues values(texts);
            ShardingPicture picture;
            values.show(picture);
            QVERIFY(exported(picture, size, theme)
                        .save(QStringLiteral(SAMPLES "/sharding-%1-%2-%3.png")
                                  .arg(theme.name)
                                  .arg(size.width())
                                  .arg(number++)));
        }
    }
};

QTEST_MAIN(TestShardingPicture)
#include "tst_sharding_picture.moc"

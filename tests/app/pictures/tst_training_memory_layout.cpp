// SPDX-License-Identifier: GPL-3.0-or-later
// The memory budget and the moment on paper: nothing overlaps, nothing leaves the picture, and a detail
// that came from a strange file does no harm.
#include "app/pictures/training-memory/moment_layout.h"
#include "app/pictures/training-memory/training_memory_layout.h"
#include "app/pictures/training-memory/training_memory_picture.h"
#include "app/settings/theme.h"
#include "tests/support/areas.h"
#include "tests/support/memory_detail.h"

#include <QApplication>
#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

TrainingMemoryState budget(const Json& detail)
{
    TrainingMemoryState state;
    state.memory = readMemoryState(detail);
    state.title = QStringLiteral("Llama-2-7B · batch 8 · 4096 tokens · AdamW · bf16 mixed");
    return state;
}

bool inside(const std::vector<QRectF>& rects, const QRectF& area)
{
    for (const QRectF& rect : rects) {
        if (!area.adjusted(-0.5, -0.5, 0.5, 0.5).contains(rect)) {
            qWarning() << rect << "is not in" << area;
            return false;
        }
    }
    return true;
}

} // namespace

class TestTrainingMemoryLayout : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }

    void budgetStaysInsideAndApart_data()
    {
        QTest::addColumn<QSizeF>("size");
        QTest::addColumn<double>("capacity");
        for (const QSizeF& size :
             {QSizeF(420, 210), QSizeF(620, 230), QSizeF(760, 296), QSizeF(1240, 296), QSizeF(1500, 360)}) {
            for (const double capacity : {3e9, 80e9, 141e9, 185e9, 187e9, 900e9})
                QTest::addRow("%gx%g, %g GB", size.width(), size.height(), capacity / 1e9) << size << capacity;
        }
    }

    void budgetStaysInsideAndApart()
    {
        QFETCH(QSizeF, size);
        QFETCH(double, capacity);
        Json detail = memoryDetail();
        detail["capacity"]["bytes"] = capacity;
        detail["fits"] = capacity > 186e9;
        const QRectF area(QPointF(7, 11), size);
        const TrainingMemoryLayout layout = layoutTrainingMemory(budget(detail), area);
        QVERIFY(inside(layout.pieces(), area));
        QVERIFY(test::areApart(layout.pieces()));
        for (const PartBox& box : layout.parts)
            QVERIFY(layout.bar.adjusted(-0.5, -0.5, 1, 0.5).contains(box.rect));
    }

    void aLongNameLeavesRoomForWhatIsAsked()
    {
        TrainingMemoryState state = budget(memoryDetail());
        state.title =
            QStringLiteral("llama-3.1-8b-instruct-finetuned-on-something/config.json · batch 8 · 1024 tokens");
        const QString title = layoutTrainingMemory(state, QRectF(0, 0, 620, 230)).titleText;
        QVERIFY2(title.startsWith("llama-3.1") && title.endsWith("batch 8 · 1024 tokens"), qPrintable(title));
        QVERIFY(title.contains(QChar(0x2026)));
    }

    void ranksOfAPipelineStandUnderTheBar()
    {
        Json detail = memoryDetail();
        detail["pipeline"] = {{"rank", 1},
                              {"ranks",
                               {{{"device_total", 60e9}, {"in_flight", 2}},
                                {{"device_total", 120e9}, {"in_flight", 3}},
                                {{"device_total", 30e9}, {"in_flight", 1}}}}};
        for (const QSizeF& size : {QSizeF(420, 210), QSizeF(760, 296), QSizeF(1500, 360)}) {
            const QRectF area(QPointF(7, 11), size);
            const TrainingMemoryLayout layout = layoutTrainingMemory(budget(detail), area);
            QVERIFY(inside(layout.pieces(), area));
            QVERIFY(test::areApart(layout.pieces()));
            QCOMPARE(layout.rankText, QString("rank 1 of 3 needs most: 3 passes in flight, at most"));
            for (const QRectF& rank : layout.ranks)
                QVERIFY(area.contains(rank));
        }
        const auto ranks = layoutTrainingMemory(budget(detail), QRectF(0, 0, 1500, 360)).ranks;
        QCOMPARE(ranks.size(), 3u);
        QCOMPARE(ranks[1].height(), 2 * ranks[0].height());
        QCOMPARE(ranks[0].bottom(), ranks[2].bottom());
        detail["pipeline"]["ranks"][0] = "broken";
        QVERIFY(layoutTrainingMemory(budget(detail), QRectF(0, 0, 1500, 360)).ranks.empty());
    }

    void withoutLeversTheReachStandsUnderTheBar()
    {
        for (const QSizeF& size : {QSizeF(420, 132), QSizeF(760, 134), QSizeF(1400, 134)}) {
            TrainingMemoryState state = budget(memoryDetail());
            state.advises = false;
            state.reach = QStringLiteral("At batch 8 up to 4096 tokens fit, at 4096 tokens up to batch 31.");
            const QRectF area(QPointF(7, 11), size);
            const TrainingMemoryLayout layout = layoutTrainingMemory(state, area);
            QVERIFY(inside(layout.pieces(), area));
            QVERIFY(test::areApart(layout.pieces()));
            QCOMPARE(layout.messageText, state.reach);
        }
    }

    void partsAreAsLongAsTheirBytes()
    {
        const TrainingMemoryState state = budget(memoryDetail());
        const TrainingMemoryLayout layout = layoutTrainingMemory(state, QRectF(0, 0, 1000, 300));
        QCOMPARE(layout.parts.size(), 5u);
        const double scale = layout.bar.width() / 186e9;
        for (const PartBox& box : layout.parts) {
            const double bytes = state.memory.parts[std::size_t(box.part)].bytes;
            QVERIFY(std::abs(box.rect.width() - bytes * scale) <= 1.01);
        }
        QVERIFY(std::abs(*layout.capacityX - layout.bar.left() - 141e9 * scale) < 0.01);
    }

    void whatFitsLeavesRoomInTheBar()
    {
        Json detail = memoryDetail();
        detail["capacity"]["bytes"] = 372e9;
        detail["fits"] = true;
        const TrainingMemoryLayout layout = layoutTrainingMemory(budget(detail), QRectF(0, 0, 1000, 300));
        QVERIFY(std::abs(layout.parts.back().rect.right() - layout.bar.center().x()) < 2);
        QVERIFY(layout.neededText.contains(QStringLiteral("186 GB needed: fits, 186 GB free")));
        for (const MemoryButton& button : layout.buttons)
            QVERIFY(button.item != MemoryItem::MakeItFit);
    }

    void tightIsSaid()
    {
        Json detail = memoryDetail();
        detail["capacity"]["bytes"] = 187e9;
        detail["fits"] = true;
        detail["fit"] = "tight";
        QCOMPARE(neededText(readMemoryState(detail), ByteStyle::Decimal),
                 QStringLiteral("186 GB needed: tight, 1 GB free, and predictions may be 3 % off"));
    }

    void whatChangesTheTrainingIsOfferedWhereNothingElseFits()
    {
        Json detail = memoryDetail();
        Json lora = leverJson("adapter", "lora", "LoRA, rank 16", 150e9, 0.1, true);
        lora["keeps_training"] = false;
        detail["make_it_fit"] = {{"combinations", Json::array()},
                                 {"tried", 64},
                                 {"smallest", leverJson("zero", "3", "ZeRO-3", 10e9, 0.1, false)},
                                 {"changing_training", {lora}}};
        TrainingMemoryState state = budget(detail);
        state.view = TrainingMemoryView::Fit;
        const TrainingMemoryLayout layout = layoutTrainingMemory(state, QRectF(0, 0, 1000, 300));
        QCOMPARE(layout.headingText, QStringLiteral("Only a change of the training makes it fit"));
        const auto card = std::ranges::find(layout.buttons, MemoryItem::Card, &MemoryButton::item);
        QVERIFY(card != layout.buttons.end());
        QCOMPARE(cardOf(state, *card)->label, QStringLiteral("LoRA, rank 16"));
    }

    void neededInWords()
    {
        QCOMPARE(neededText(readMemoryState(memoryDetail()), ByteStyle::Decimal),
                 QStringLiteral("186 GB needed: 45 GB too many"));
        Json detail = memoryDetail();
        detail["capacity"] = Json();
        QCOMPARE(neededText(readMemoryState(detail), ByteStyle::Binary), QStringLiteral("173 GiB needed"));
    }

    void leversComeOneByOne()
    {
        TrainingMemoryPicture picture;
        const auto lever = [](const char* key, double saving) {
            return Json{{"key", key}, {"label", key}, {"saving", saving}};
        };
        const auto shown = [&] {
            QStringList keys;
            for (const LeverCard& card : picture.state().memory.levers)
                keys << card.key;
            return keys;
        };
        for (const auto& [key, saving] : {std::pair("flash", 2e9), std::pair("lora", 5e9), std::pair("fused", 1e9)})
            picture.addLever(lever(key, saving));
        QCOMPARE(shown(), QStringList({"lora", "flash", "fused"})); // best saving first
        QVERIFY(picture.state().isFilling);
        picture.setSettled(false); // something moves: the next answer's first lever begins anew
        QCOMPARE(shown().size(), 3);
        picture.addLever(lever("zero", 3e9));
        QCOMPARE(shown(), QStringList({"zero"}));
    }

    void cardsThatDoNotFitAreOnTheNextPage()
    {
        TrainingMemoryState state = budget(memoryDetail());
        const TrainingMemoryLayout small = layoutTrainingMemory(state, QRectF(0, 0, 640, 300));
        const auto cards = [&](const TrainingMemoryLayout& layout) {
            return std::ranges::count_if(layout.buttons,
                                         [&](const MemoryButton& one) { return cardOf(state, one) != nullptr; });
        };
        const auto shown = cards(small);
        QVERIFY(shown >= 2 && shown < 7);
        QVERIFY(
            std::ranges::any_of(small.buttons, [](const MemoryButton& one) { return one.item == MemoryItem::Next; }));
        state.firstCard = int(shown);
        const TrainingMemoryLayout next = layoutTrainingMemory(state, QRectF(0, 0, 640, 300));
        QCOMPARE(cards(next), 7 - shown);
        QVERIFY(
            std::ranges::none_of(next.buttons, [](const MemoryButton& one) { return one.item == MemoryItem::Next; }));
    }

    void momentStaysInsideAndApart_data()
    {
        QTest::addColumn<QSizeF>("size");
        for (const QSizeF& size :
             {QSizeF(330, 200), QSizeF(404, 380), QSizeF(420, 150), QSizeF(760, 600), QSizeF(1400, 1060)})
            QTest::addRow("%gx%g", size.width(), size.height()) << size;
    }

    void momentStaysInsideAndApart()
    {
        QFETCH(QSizeF, size);
        MomentState state;
        const Json detail = memoryDetail();
        state.moment = readMoment(detail["peak"]);
        state.timeline = readTimeline(detail["timeline"]);
        const QRectF area(QPointF(3, 5), size);
        const MomentLayout layout = layoutMoment(state, area, QStringLiteral("37 found, up to 12.1 GiB at once"));
        QVERIFY(inside(layout.pieces(), area));
        QVERIFY(test::areApart(layout.pieces()));
        QVERIFY(layout.chart.height() > 0.3 * size.height() || size.height() < 210);
        QVERIFY(size.height() < 400 || layout.rows.size() >= 4);
    }

    void listScrollsToItsEnd()
    {
        MomentState state;
        state.moment = readMoment(memoryDetail()["peak"]);
        state.firstRow = 1000;
        const MomentLayout layout = layoutMoment(state, QRectF(0, 0, 760, 420));
        QCOMPARE(layout.rowsInAll, 33);
        QCOMPARE(layout.rows.back().live, 32);
        QVERIFY(layout.rows.back().nameText.contains(QStringLiteral("99")));
    }

    void strangeDetailsAreSurvived_data()
    {
        QTest::addColumn<QString>("text");
        QTest::newRow("null") << QStringLiteral("null");
        QTest::newRow("a list") << QStringLiteral("[1,2]");
        QTest::newRow("wrong kinds") << QStringLiteral(
            R"({"model":3,"parts":{"a":"b"},"capacity":"big","fits":"no","levers":[1,"x",{"changes":[1],"saving":"much"}],)"
            R"("timeline":{"event":[1,2],"categories":[{"bytes":[1]}],"phases":[null],"peak":-5,"out_of_memory":[]},)"
            R"("peak":{"live":[{"bytes":null}]},"tree":{"children":[{"children":7}]},"textbook":"none"})");
        QTest::newRow("no bytes") << QStringLiteral(
            R"({"parts":[{"key":"weights","label":"weights","bytes":-1}],"capacity":{"bytes":0}})");
    }

    void strangeDetailsAreSurvived()
    {
        QFETCH(QString, text);
        const Json detail = *parseJson(text.toStdString());
        const Json none;
        const auto part = [&](const char* key) -> const Json& {
            return detail.is_object() && detail.contains(key) ? detail[key] : none;
        };
        const TrainingMemoryState state = budget(detail);
        QVERIFY(state.memory.parts.empty());
        QVERIFY(layoutTrainingMemory(state, QRectF(0, 0, 700, 300)).parts.empty());
        QVERIFY(readTimeline(part("timeline")).categories.empty());
        MomentState moment;
        moment.moment = readMoment(part("peak"));
        moment.timeline = readTimeline(part("timeline"));
        for (const LiveRow& row : layoutMoment(moment, QRectF(0, 0, 700, 500)).rows)
            QVERIFY(row.live <= int(moment.moment.live.size()));
        QVERIFY(readTextbook(part("textbook")).empty());
    }
};

QTEST_MAIN(TestTrainingMemoryLayout)
#include "tst_training_memory_layout.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// Where the parts of a snapshot lie: the outline of all bands is the allocated memory at any zoom, peaks stay, blocks
// tile their segments to the byte, boxes of the flame graph are as wide as their bytes. The file is the example that
// ships with the program; its sums are those that its writer noted beside it.
#include "app/pages/snapshot/blocks_layout.h"
#include "app/pages/snapshot/flame_layout.h"
#include "app/pages/snapshot/groups_pane.h"
#include "app/pages/snapshot/plan_guess.h"
#include "app/pages/snapshot/snapshot_opener.h"
#include "app/pages/snapshot/timeline_layout.h"
#include "core/device/catalogue.h"
#include "core/network/model_names.h"
#include "core/snapshot/snapshot_reader.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace memscape;

namespace {

// What the writer of the file noted of it.
constexpr std::int64_t allocatedAtEnd = 6546432, reservedAtEnd = 16777216;
constexpr std::size_t segmentsAtEnd = 8, entriesOfTrace = 1767;
const QRectF wholeScreen(0, 0, 900, 400);

std::shared_ptr<const SnapshotDevice> exampleDevice()
{
    static const std::shared_ptr<const SnapshotDevice> device = [] {
        auto snapshot = std::make_shared<const Snapshot>(
            std::move(*readSnapshot(resourcesFolder() / "records" / "gpt2-tiny.pickle")));
        return *SnapshotDevice::analyse(snapshot, busiestDevice(*snapshot));
    }();
    return device;
}

TimelineChart chartOf(const TimelineSight& sight, std::size_t bands = mostBands, bool byTime = false)
{
    return layoutTimeline(*exampleDevice(), sight, wholeScreen, byTime, ByteStyle::Binary, bands);
}

/// The top of the stack in every column, in bytes.
std::vector<double> stackTops(const TimelineChart& chart)
{
    std::vector<double> tops(chart.columns.size(), chart.area.bottom());
    for (const TimelineShape& shape : chart.shapes) {
        for (std::size_t i = 0; i < shape.high.size(); ++i)
            tops[shape.column + i] = std::min(tops[shape.column + i], shape.high[i]);
    }
    for (double& top : tops)
        top = chart.sight.bottom
            + (chart.area.bottom() - top) / chart.area.height() * (chart.sight.top - chart.sight.bottom);
    return tops;
}

double piecesWidth(const std::vector<BlockPiece>& pieces, std::size_t block)
{
    double width = 0;
    for (const BlockPiece& piece : pieces)
        width += piece.block == block ? piece.rect.width() : 0;
    return width;
}

} // namespace

class TestSnapshotLayout : public QObject
{
    Q_OBJECT

private slots:
    void theFileIsTheOneThatItsWriterDescribed()
    {
        const Lifetimes& lifetimes = exampleDevice()->lifetimes();
        QCOMPARE(lifetimes.events(), entriesOfTrace);
        QCOMPARE(lifetimes.bytesAt(lifetimes.events()).allocated, allocatedAtEnd);
        QCOMPARE(lifetimes.bytesAt(lifetimes.events()).reserved, reservedAtEnd);
    }

    void theOutlineIsTheActiveMemoryAtAnyZoom_data()
    {
        QTest::addColumn<double>("first");
        QTest::addColumn<double>("last");
        QTest::addColumn<int>("bands");
        QTest::newRow("all") << 0.0 << 1.0 << 400;
        QTest::newRow("few bands") << 0.0 << 1.0 << 3;
        QTest::newRow("no bands") << 0.0 << 1.0 << 0;
        QTest::newRow("a quarter") << 0.5 << 0.75 << 400;
        QTest::newRow("single events") << 0.5 << 0.51 << 400;
    }
    void theOutlineIsTheActiveMemoryAtAnyZoom()
    {
        QFETCH(double, first);
        QFETCH(double, last);
        QFETCH(int, bands);
        TimelineSight sight = wholeSight(*exampleDevice());
        const double events = double(exampleDevice()->lifetimes().events());
        sight.first = std::size_t(first * events);
        sight.last = std::size_t(last * events);
        const TimelineChart chart = chartOf(sight, std::size_t(bands));
        const std::vector<double> tops = stackTops(chart);
        QVERIFY(tops.size() > 5);
        const double pixel = (sight.top - sight.bottom) / chart.area.height();
        for (std::size_t i = 0; i < tops.size(); ++i) {
            // Blocks that a stream still uses lie there too.
            const SnapshotBytes bytes = exampleDevice()->lifetimes().bytesAt(chart.columns[i].peak);
            QVERIFY2(
                tops[i] >= double(bytes.allocated) - pixel && tops[i] <= double(bytes.active) + pixel,
                qPrintable(QStringLiteral("column %1: %2, allocated %3").arg(i).arg(tops[i]).arg(bytes.allocated)));
        }
    }

    // A peak of one event among thousands in a column is drawn.
    void peaksStay()
    {
        const SnapshotDevice& device = *exampleDevice();
        const TimelineSight whole = wholeSight(device);
        const std::size_t peak = device.timeline().peakAllocated(0, whole.last);
        const TimelineChart narrow = layoutTimeline(device, whole, QRectF(0, 0, 120, 300), false, ByteStyle::Binary);
        const auto highest = std::max_element(
            narrow.columns.begin(), narrow.columns.end(),
            [](const TimelineColumn& a, const TimelineColumn& b) { return a.highAllocated < b.highAllocated; });
        QCOMPARE(highest->highAllocated, device.lifetimes().bytesAt(peak).allocated);
    }

    void zoomKeepsWhatIsUnderThePointer()
    {
        const SnapshotDevice& device = *exampleDevice();
        TimelineSight sight = wholeSight(device);
        for (int i = 0; i < 30; ++i) {
            const double share = 0.3;
            const double before = double(sight.first) + share * double(sight.last - sight.first);
            const TimelineSight next = zoomedSight(device, sight, false, share, 0.8);
            QVERIFY(next.last - next.first >= fewestMoments);
            QVERIFY(next.last <= device.lifetimes().events());
            const double after = double(next.first) + share * double(next.last - next.first);
            QVERIFY(std::abs(after - before) <= double(fewestMoments));
            sight = next;
        }
        for (int i = 0; i < 60; ++i)
            sight = zoomedSight(device, sight, false, 0.3, 1.25);
        QCOMPARE(sight.first, std::size_t(0));
        QCOMPARE(sight.last, device.lifetimes().events());
    }

    void panningEndsAtTheEnds()
    {
        const SnapshotDevice& device = *exampleDevice();
        TimelineSight sight = wholeSight(device);
        sight.first = 100;
        sight.last = 300;
        for (int i = 0; i < 100; ++i)
            sight = pannedSight(device, sight, false, 0.5);
        QCOMPARE(sight.last, device.lifetimes().events());
        QCOMPARE(sight.last - sight.first, std::size_t(200));
        for (int i = 0; i < 100; ++i)
            sight = pannedSight(device, sight, false, -0.5);
        QCOMPARE(sight.first, std::size_t(0));
        QCOMPARE(sight.last, std::size_t(200));
    }

    void placesAndMomentsBelongTogether()
    {
        for (const bool byTime : {false, true}) {
            const TimelineChart chart = chartOf(wholeSight(*exampleDevice()), 50, byTime);
            for (double x = chart.area.left() + 1; x < chart.area.right(); x += 37) {
                const std::size_t moment = chart.momentAt(x);
                QVERIFY(moment <= exampleDevice()->lifetimes().events());
                if (!byTime) // times may stand still
                    QVERIFY(std::abs(chart.x(double(moment)) - x)
                            <= chart.area.width() / double(chart.columns.size()) + 1);
            }
        }
    }

    void aPredictedStepFillsTheStepOfTheSnapshot()
    {
        const TimelineChart chart = chartOf(wholeSight(*exampleDevice()), 0);
        const QPolygonF line = layoutPrediction(chart, {0, 100, 4000, 50}, 100, 300);
        QVERIFY(line.size() >= 2);
        QCOMPARE(line.front().x(), chart.x(100));
        QCOMPARE(line.back().x(), chart.x(300));
        double highest = chart.area.bottom();
        for (const QPointF& point : line)
            highest = std::min(highest, point.y());
        QCOMPARE(highest, chart.y(4000));
        QVERIFY(layoutPrediction(chart, {}, 100, 300).isEmpty());
        QVERIFY(layoutPrediction(chart, {1, 2}, 300, 300).isEmpty());
    }

    void blocksTileTheirSegments()
    {
        const Lifetimes& lifetimes = exampleDevice()->lifetimes();
        const SnapshotLayout layout = lifetimes.layoutAt(lifetimes.events());
        QCOMPARE(layout.segments.size(), segmentsAtEnd);
        const BlocksChart chart = layoutBlocks(layout, {}, wholeScreen);
        QVERIFY(chart.rows >= 10);
        const double scale = chart.area.width() / chart.bytesPerRow;
        double all = 0;
        for (const QRectF& frame : chart.frames) {
            QVERIFY(chart.area.adjusted(-1, -1, 1, 1).contains(frame));
            all += frame.width() / scale;
        }
        QVERIFY(std::abs(all / double(reservedAtEnd) - 1) < 1e-6);
        const auto largest = std::ranges::max_element(
            layout.blocks, [](const LaidBlock& a, const LaidBlock& b) { return a.size < b.size; });
        const double width = piecesWidth(chart.pieces, std::size_t(largest - layout.blocks.begin()));
        QVERIFY(std::abs(width - double(largest->size) * scale) < 1.5);
    }

    void zoomedBlocksStayWhereThePointerIs()
    {
        const Lifetimes& lifetimes = exampleDevice()->lifetimes();
        const SnapshotLayout layout = lifetimes.layoutAt(lifetimes.events());
        const BlocksChart chart = layoutBlocks(layout, {}, wholeScreen);
        const BlockPiece& piece = chart.pieces[chart.pieces.size() / 2];
        const BlocksSight near = zoomedBlocks(chart, {}, piece.rect.center(), 0.5);
        QVERIFY(near.zoom > 1.9);
        const BlocksChart closer = layoutBlocks(layout, near, wholeScreen);
        const bool isThere =
            std::ranges::any_of(closer.pieces, [&](const BlockPiece& one) { return one.block == piece.block; });
        QVERIFY(isThere);
        const BlocksSight far = zoomedBlocks(closer, near, piece.rect.center(), 100);
        QCOMPARE(far.zoom, 1.0);
        QCOMPARE(far.firstRow, 0.0);
    }

    void nothingIsDrawnOfNothing()
    {
        QVERIFY(layoutBlocks({}, {}, wholeScreen).pieces.empty());
        QVERIFY(layoutItems({}, 0, wholeScreen, {}).empty());
        QVERIFY(layoutTimeline(*exampleDevice(), wholeSight(*exampleDevice()), QRectF(0, 0, 10, 10), false,
                               ByteStyle::Binary)
                    .shapes.empty());
    }

    void flameBoxesAreAsWideAsTheirBytes()
    {
        const std::vector<SnapshotGroup> modules{{"model.layers.0.mlp", 600, 3, 300, noLifetime},
                                                 {"model.layers.1.mlp", 300, 2, 200, noLifetime},
                                                 {"model.head", 100, 1, 100, noLifetime}};
        const std::vector<FlameItem> items = moduleItems(modules);
        QCOMPARE(items[0].bytes, 1000.0);
        QCOMPARE(items[0].blocks, std::size_t(6));
        const std::vector<ItemBox> boxes = layoutItems(items, 0, QRectF(0, 0, 1000, 400), {});
        const auto widthOf = [&](const char* name) {
            const auto box = std::ranges::find_if(
                boxes, [&](const ItemBox& one) { return items[one.item].text == QLatin1String(name); });
            return box == boxes.end() ? 0.0 : box->rect.width();
        };
        QCOMPARE(widthOf("model"), 1000.0);
        QCOMPARE(widthOf("layers"), 900.0);
        QCOMPARE(widthOf("0"), 600.0);
        QCOMPARE(widthOf("head"), 100.0);
        const auto layer = std::ranges::find(items, QString("1"), &FlameItem::text);
        const std::vector<ItemBox> alone =
            layoutItems(items, std::uint32_t(layer - items.begin()), QRectF(0, 0, 1000, 400), {});
        for (const ItemBox& box : alone) // what it is part of stands above it, as wide as all
            QCOMPARE(box.rect.width(), 1000.0);
        QCOMPARE(alone.size(), std::size_t(5)); // all, model, layers, 1, mlp
    }

    void theStackTreeSumsToWhatIsAlive()
    {
        const Lifetimes& lifetimes = exampleDevice()->lifetimes();
        const std::vector<LifetimeId> alive = lifetimes.aliveAt(lifetimes.events());
        const std::vector<FlameItem> items =
            stackItems(exampleDevice()->snapshot(), flameTree(exampleDevice()->snapshot(), lifetimes, alive));
        QCOMPARE(items[0].bytes, double(lifetimes.bytesAt(lifetimes.events()).active));
        for (const FlameItem& item : items) {
            double below = 0;
            for (const std::uint32_t child : item.children)
                below += items[child].bytes;
            QVERIFY(below <= item.bytes);
        }
    }

    void theTableSharesAddUp()
    {
        const Lifetimes& lifetimes = exampleDevice()->lifetimes();
        const std::vector<LifetimeId> alive = lifetimes.aliveAt(lifetimes.events());
        const auto groups = groupLifetimes(exampleDevice()->snapshot(), lifetimes, exampleDevice()->steps(),
                                           exampleDevice()->categories(), alive, SnapshotGrouping::Category);
        const Numbers numbers = numbersOf(groups, SnapshotGrouping::Category, exampleDevice()->categories());
        double bytes = 0, share = 0;
        for (const NumbersRow& row : numbers.rows) {
            bytes += row.values[0];
            share += row.values[1];
        }
        QCOMPARE(bytes, double(lifetimes.bytesAt(lifetimes.events()).active));
        QVERIFY(std::abs(share - 1) < 1e-9);
    }

    void thePlanIsGuessedFromFramesAndSizes()
    {
        PlanClues clues;
        clues.frames = {"/lib/transformers/models/gpt2/modeling_gpt2.py:forward", "/lib/torch/optim/adamw.py:step",
                        "/lib/torch/optim/adam.py:_multi_tensor_adam", "/lib/torch/utils/checkpoint.py:checkpoint"};
        clues.weights = 124439808LL * 4;
        clues.counts = {{"bert-base", 124440000}, {"gpt2", 124439808}, {"gpt2-medium", 354823168}};
        std::map<std::string, std::string> guessed;
        for (const PlanGuess& guess : guessFrom(clues)) {
            guessed[guess.key] = guess.value;
            QVERIFY(!guess.why.empty());
        }
        QCOMPARE(guessed["model"], std::string("gpt2"));
        QCOMPARE(guessed["optimizer"], std::string("adamw"));
        QCOMPARE(guessed["optimizer_implementation"], std::string("foreach"));
        QCOMPARE(guessed["checkpointing"], std::string("block"));
        QVERIFY(!guessed.contains("precision"));
        QVERIFY(!guessed.contains("batch"));
    }

    void nothingIsGuessedFromNothing()
    {
        QVERIFY(guessFrom({}).empty());
        PlanClues odd; // weights that no model has: a decoder of that size
        odd.weights = 50'000'000LL * 4;
        const auto guesses = guessFrom(odd);
        QCOMPARE(guesses.size(), std::size_t(1));
        QVERIFY(guesses.front().value.starts_with("params:"));
        QVERIFY(readModel(guesses.front().value));
    }
};

QTEST_MAIN(TestSnapshotLayout)
#include "tst_snapshot_layout.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `placement`: nodes in the band where they run, bars as long as the program says, what a hand and keys
// place, what a foreign document leaves out; both themes and sizes are kept to look at (samples/).
#include "app/pictures/placement/placement_picture.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <QImage>

using namespace memscape;

namespace {

struct PlacementValues : PictureCase
{
    explicit PlacementValues(const std::vector<std::string>& assignments, const char* on = "nvidia-h200")
        : PictureCase("placement", assignments, on)
    { }
    PlacementState state() const { return readPlacement(parameters, &prediction, nullptr, ByteStyle::Binary); }
};

const std::vector<std::string> ownPlacement{
    "graph=x: input 512 4096; m@host: input 512 4096; a: matmul 512 4096 4096 <- x; b: mul <- a m; n: item <- b; "
    "c: gelu <- b; d: matmul 512 1024 4096 <- c",
    "strategy=implicit", "limit=1GiB", "place=c@host"};
const std::vector<std::string> streamedPlacement{"graph=llama-2-7b", "batch=1", "limit=8GiB"};

std::size_t nodeNamed(const PlacementState& state, const char* name)
{
    for (std::size_t i = 0; i < state.nodes.size(); ++i)
        if (state.nodes[i].name == QLatin1String(name))
            return i;
    return SIZE_MAX;
}

} // namespace

class TestPlacementPicture : public QObject
{
    Q_OBJECT

private slots:
    void nodesStandWhereTheyRun()
    {
        for (const auto& assignments : {ownPlacement, streamedPlacement}) {
            const PlacementState state = PlacementValues(assignments).state();
            const PlacementLayout layout = layoutPlacement(state, {0, 0, 900, 320}, 1);
            QVERIFY(state.nodes.size() > 5);
            for (std::size_t i = 0; i < state.nodes.size(); ++i) {
                QVERIFY(layout.bands[state.nodes[i].isOnHost].contains(layout.nodes[i]));
                const bool comesUp = state.nodes[i].isStreamed && state.nodes[i].weights > 0;
                QCOMPARE(layout.bands[1].contains(layout.homes[i]), comesUp);
                QVERIFY(i == 0 || layout.nodes[i].left() > layout.nodes[i - 1].left());
            }
        }
        const PlacementState own = PlacementValues(ownPlacement).state();
        for (const char* name : {"m", "n", "c"})
            QVERIFY2(own.nodes[nodeNamed(own, name)].isOnHost, name);
        QVERIFY(own.nodes[nodeNamed(own, "c")].isPinned);
    }

    void barsAreAsLongAsTheirTimes()
    {
        const PlacementState state = PlacementValues(streamedPlacement).state();
        const PlacementLayout layout = layoutPlacement(state, {0, 0, 900, 320}, 1);
        QCOMPARE(layout.pieces.size(), state.pieces.size());
        QVERIFY(state.pieces.size() > 40);
        for (std::size_t i = 0; i < state.pieces.size(); ++i) {
            const QRectF& box = layout.pieces[i];
            QVERIFY(std::abs(layout.secondsAt(box.left()) - state.pieces[i].begin) < 2e-3 * state.time);
            if (box.width() > 1)
                QVERIFY(std::abs(layout.secondsAt(box.right()) - state.pieces[i].end) < 2e-3 * state.time);
        }
    }

    void nothingIsOutside()
    {
        for (const auto& assignments :
             {ownPlacement, streamedPlacement, std::vector<std::string>{"strategy=zero-infinity", "disk=3GB/s"},
              std::vector<std::string>{"graph=mlp:250x64", "strategy=host"}}) {
            const PlacementState state = PlacementValues(assignments).state();
            for (const QSizeF size : {QSizeF(420, 240), QSizeF(840, 300), QSizeF(1500, 520)}) {
                const QRectF whole(QPointF(0, 0), size);
                const PlacementLayout layout = layoutPlacement(state, whole, 1);
                for (const auto* boxes : {&layout.nodes, &layout.pieces, &layout.lanes})
                    for (const QRectF& box : *boxes)
                        QVERIFY(whole.contains(box));
                QVERIFY(layout.times.bottom() <= layout.foot.top());
                QVERIFY(layout.bands[1].bottom() < layout.times.top());
            }
        }
    }

    void whatCrossesSaysBytesAndTime()
    {
        const PlacementState state = PlacementValues(ownPlacement).state();
        QVERIFY2(state.copyWords(nodeNamed(state, "m")).startsWith(QStringLiteral("4 MiB, ")),
                 qPrintable(state.copyWords(nodeNamed(state, "m"))));
        QVERIFY(state.copyWords(nodeNamed(state, "x")).isEmpty());
        QVERIFY(state.nodeWords(state.nodes[nodeNamed(state, "a")])
                    .contains(QStringLiteral("weights of 32 MiB stay there")));
    }

    void draggingPlacesByHand()
    {
        PlacementPicture picture;
        picture.resize(900, 320);
        PlacementValues(ownPlacement).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        const PlacementLayout layout = picture.layoutNow();
        const auto drag = [&](const char* name, int band) {
            const QPointF from = layout.nodes[nodeNamed(picture.state(), name)].center();
            const QPointF to(from.x(), layout.bands[std::size_t(band)].center().y());
            test::drag(picture, from, to);
        };
        drag("b", 1);
        QCOMPARE(edits.size(), 1);
        QCOMPARE(edits[0][0].toString(), QStringLiteral("place"));
        QCOMPARE(edits[0][1].toString(), QStringLiteral("c@host,b@host"));
        drag("c", 0);
        QCOMPARE(edits.takeLast()[1].toString(), QStringLiteral("c@device"));
        edits.clear();
        drag("b", 0); // where it is
        drag("n", 0); // a copy: where it ends is fixed
        QVERIFY(edits.isEmpty());
    }

    void keysPlaceTheSame()
    {
        PlacementPicture picture;
        picture.resize(900, 320);
        PlacementValues(ownPlacement).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited), words(&picture, &Picture::hoverText);
        QTest::keyClick(&picture, Qt::Key_Down); // no node is chosen
        QVERIFY(edits.isEmpty());
        for (std::size_t i = 0; i <= nodeNamed(picture.state(), "c"); ++i)
            QTest::keyClick(&picture, Qt::Key_Right);
        QVERIFY(words.last()[0].toString().startsWith(QStringLiteral("c: gelu on the host")));
        QTest::keyClick(&picture, Qt::Key_Delete);
        QCOMPARE(edits.takeLast()[1].toString(), QStringLiteral("none"));
        std::vector<std::string> asTheStrategyHasIt = ownPlacement;
        asTheStrategyHasIt.back() = "place=none";
        PlacementValues(asTheStrategyHasIt).show(picture); // the words follow
        QVERIFY(words.last()[0].toString().startsWith(QStringLiteral("c: gelu on the device")));
        QTest::keyClick(&picture, Qt::Key_Up);
        QCOMPARE(edits.takeLast()[1].toString(), QStringLiteral("c@device"));
        QTest::keyClick(&picture, Qt::Key_Right);
        QTest::keyClick(&picture, Qt::Key_Right);
        QTest::keyClick(&picture, Qt::Key_Right); // no further than the last
        QCOMPARE(picture.chosen(), int(picture.state().nodes.size()) - 1);
        QVERIFY(!PlacementPicture::shortcuts().isEmpty());
    }

    void copiesAndTrainingStayWhereTheyAre()
    {
        PlacementPicture picture;
        picture.resize(900, 320);
        PlacementValues({"strategy=zero-offload"}).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        QTest::keyClick(&picture, Qt::Key_Right);
        QTest::keyClick(&picture, Qt::Key_Right);
        QTest::keyClick(&picture, Qt::Key_Down);
        QVERIFY(edits.isEmpty());
        QVERIFY(picture.hint().contains(QStringLiteral("training")));
        QVERIFY(picture.state().lanes.contains(QStringLiteral("copies down")));
    }

    void measuredTimesStandAtTheirValueAlone()
    {
        const PlacementValues values({"limit=16MiB"});
        Measurement measured;
        measured.series.push_back({"time",
                                   "time",
                                   {"limit", "limit", Unit::Byte, AxisScale::Log2, {0x1p24}, {}},
                                   "time",
                                   Unit::Second,
                                   {0.0234},
                                   {},
                                   {}});
        QVERIFY(readPlacement(values.parameters, &values.prediction, &measured, ByteStyle::Binary).measured);
        const PlacementValues other({"limit=32MiB"});
        QVERIFY(!readPlacement(other.parameters, &other.prediction, &measured, ByteStyle::Binary).measured);
    }

    void foreignDetailDrawsNothing()
    {
        PlacementValues values(ownPlacement);
        const Json whole = values.prediction.detail;
        for (const char* text :
             {"null", "[]", R"({"nodes": 3, "time": 1})", R"({"time": -1, "nodes": [{"name": "a"}]})",
              R"({"time": 1, "nodes": [{"kind": "gelu"}], "pieces": [[9, "x", 0, 1, 0, 0]]})",
              R"({"time": 1e999, "nodes": [{"name": "a", "inputs": [7, -1, "x"]}]})"}) {
            values.prediction.detail = Json::parse(text, nullptr, false);
            PlacementPicture picture;
            picture.resize(900, 320);
            values.show(picture);
            QVERIFY2(picture.state().empty(), text);
            QVERIFY(!picture.grab().isNull());
            QTest::keyClick(&picture, Qt::Key_Right);
        }
        values.prediction.detail = Json::parse(
            R"({"time": 1, "lanes": ["device"], "nodes": [{"name": "a", "inputs": [7, -1, "x", 0]}, {"name": "b"}],
            "pieces": [[0, "x", 0, 1, 5, 0], [0, "x", 1, 0, 0, 0], [4, "x", 0, 1, 0, 0], ["a"], [0, 3, 0, 1, 0, 0]]})");
        const PlacementState state = values.state();
        QCOMPARE(state.nodes.size(), std::size_t(2));
        QVERIFY(state.nodes[0].inputs.empty());
        QVERIFY(state.pieces.empty());
        PlacementPicture picture;
        picture.resize(900, 320);
        values.show(picture);
        QVERIFY(!picture.grab().isNull());
        values.prediction.detail = whole;
        QVERIFY(!values.state().empty());
    }

    void bothThemesAndSizes_data() { bothThemesIn({QSize(738, 300), QSize(1300, 480)}); }

    void bothThemesAndSizes()
    {
        QFETCH(bool, isDark);
        QFETCH(QSize, size);
        const Theme& theme = isDark ? darkTheme() : lightTheme();
        int number = 0;
        for (const auto& assignments :
             {ownPlacement, streamedPlacement, std::vector<std::string>{"strategy=zero-offload"},
              std::vector<std::string>{"graph=mlp:60x64", "limit=100KiB"}}) {
            PlacementPicture picture;
            PlacementValues(assignments).show(picture);
            const QImage image = exported(picture, size, theme);
            QVERIFY(image.save(
                QStringLiteral(SAMPLES "/placement-%1-%2-%3.png").arg(theme.name).arg(size.width()).arg(number++)));
            QVERIFY(pixelsOf(image, theme.series(1)) > 200); // the device computes
        }
    }
};

QTEST_MAIN(TestPlacementPicture)
#include "tst_placement_picture.moc"

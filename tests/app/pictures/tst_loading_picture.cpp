// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `loading`: no byte is lost between the vessels, bars are as long as their times, what a hand and keys
// change, what a foreign document leaves out; both themes and sizes are kept to look at (samples/).
#include "app/pictures/loading/loading_picture.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <QImage>

using namespace memscape;

namespace {

struct LoadingValues : PictureCase
{
    explicit LoadingValues(const std::vector<std::string>& assignments, const char* on = "nvidia-h200")
        : PictureCase("loading", assignments, on)
    { }
    LoadingState state() const { return readLoading(&prediction, nullptr, ByteStyle::Binary); }
};

const std::vector<std::string> seventyOnGpu{"model=llama-2-70b", "dtype=int4", "convert=bf16", "medium=nvme4",
                                            "chunk=1GiB"};

bool isNear(double a, double b, double scale)
{
    return std::abs(a - b) < 1e-6 * scale;
}

} // namespace

class TestLoadingPicture : public QObject
{
    Q_OBJECT

private slots:
    void vesselsEmptyAndFill()
    {
        const LoadingState state = LoadingValues(seventyOnGpu).state();
        const LoadingLevels begin = state.levelsAt(0), end = state.levelsAt(state.askedWay().time);
        QVERIFY(isNear(begin.unread, state.bytes, state.bytes) && begin.gpu == 0 && begin.process == 0);
        QVERIFY(isNear(end.unread, 0, state.bytes) && isNear(end.gpu, state.converted, state.converted));
        QVERIFY(isNear(end.pageCache, state.bytes, state.bytes));
        double unread = state.bytes, gpu = 0;
        for (int step = 1; step <= 50; ++step) {
            const LoadingLevels levels = state.levelsAt(state.askedWay().time * step / 50);
            QVERIFY(levels.unread <= unread && levels.gpu >= gpu);
            unread = levels.unread;
            gpu = levels.gpu;
        }
    }

    void buffersHoldNoMoreThanTheyAre()
    {
        const LoadingState state = LoadingValues(seventyOnGpu).state();
        bool isUsed = false;
        for (int step = 0; step <= 100; ++step) {
            const LoadingLevels levels = state.levelsAt(state.askedWay().time * step / 100);
            QVERIFY(levels.process <= state.hostMemory * (1 + 1e-9));
            isUsed = isUsed || levels.process > 0.2 * state.hostMemory;
        }
        QVERIFY(isUsed);
    }

    void aWarmFileIsThereFromTheStart()
    {
        const LoadingState warm = LoadingValues({"cache=warm"}).state();
        QVERIFY(isNear(warm.levelsAt(0).pageCache, warm.bytes, warm.bytes));
        QCOMPARE(LoadingValues({"method=direct"}).state().levelsAt(1e9).pageCache, 0.0);
    }

    void barsAreAsLongAsTheirTimes()
    {
        const LoadingState state = LoadingValues(seventyOnGpu).state();
        const LoadingLayout layout = layoutLoading(state, {0, 0, 900, 340}, 1);
        QVERIFY(layout.bars.size() > 100);
        for (const LaneBar& bar : layout.bars) {
            const LanePiece& piece = state.ways[bar.way].pieces[bar.piece];
            if (bar.rect.width() <= 1)
                continue;
            QVERIFY(isNear(layout.secondsAt(bar.rect.left()), piece.begin, state.longest));
            QVERIFY(isNear(layout.secondsAt(bar.rect.right()), piece.end, state.longest));
        }
    }

    void nothingIsOutside()
    {
        for (const auto& assignments :
             {seventyOnGpu, std::vector<std::string>{"gpus=64"}, {"chunk=0"}, {"method=mmap"}}) {
            const LoadingState state = LoadingValues(assignments).state();
            for (const QSizeF size : {QSizeF(420, 240), QSizeF(840, 320), QSizeF(1500, 560)}) {
                const QRectF whole(QPointF(0, 0), size);
                const LoadingLayout layout = layoutLoading(state, whole, 1);
                for (const LaneBar& bar : layout.bars)
                    QVERIFY(whole.contains(bar.rect));
                for (const LoadingVessel& vessel : layout.vessels) {
                    QVERIFY(whole.contains(vessel.label) && whole.contains(vessel.box) && whole.contains(vessel.words));
                    QVERIFY(vessel.box.height() > 30);
                    QVERIFY(vessel.words.bottom() <= layout.blocks.front().head.top());
                }
                QVERIFY(layout.blocks.back().lanes.back().bottom() <= layout.foot.top() + 0.5);
            }
        }
    }

    void aHostHasTwoVessels()
    {
        QCOMPARE(layoutLoading(LoadingValues({}, "amd-epyc-9654").state(), {0, 0, 900, 340}, 1).vessels.size(),
                 std::size_t(2));
        QCOMPARE(layoutLoading(LoadingValues({}).state(), {0, 0, 900, 340}, 1).vessels.size(), std::size_t(3));
        // One memory: nothing is copied to the GPU.
        QCOMPARE(
            layoutLoading(LoadingValues({}, "nvidia-jetson-agx-orin-64gb").state(), {0, 0, 900, 340}, 1).vessels.size(),
            std::size_t(2));
    }

    void aPressChoosesTheWay()
    {
        LoadingPicture picture;
        picture.resize(900, 340);
        LoadingValues(seventyOnGpu).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        const auto press = [&](std::size_t way) {
            test::mouse(picture, QEvent::MouseButtonPress, picture.layoutNow().blocks[way].head.center(),
                        Qt::LeftButton);
        };
        press(1); // it is so already
        QCOMPARE(edits.size(), 0);
        press(0);
        QCOMPARE(edits.size(), 1);
        QCOMPARE(edits[0][0].toString(), QStringLiteral("streams"));
        QCOMPARE(edits[0][1].toString(), QStringLiteral("1"));
        std::vector<std::string> serial = seventyOnGpu;
        serial.emplace_back("streams=1");
        LoadingValues(serial).show(picture);
        press(1);
        QCOMPARE(edits.takeLast()[1].toString(), QStringLiteral("2"));
    }

    void keysChangeBuffersAndChunks()
    {
        LoadingPicture picture;
        picture.resize(900, 340);
        LoadingValues(seventyOnGpu).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        QTest::keyClick(&picture, Qt::Key_Minus);
        QCOMPARE(edits.takeLast()[1].toString(), QString::number(std::int64_t(512) << 20));
        QTest::keyClick(&picture, Qt::Key_Plus);
        QCOMPARE(edits.takeLast()[1].toString(), QString::number(std::int64_t(2) << 30));
        QTest::keyClick(&picture, Qt::Key_5);
        QCOMPARE(edits.takeLast()[1].toString(), QStringLiteral("5"));
        QVERIFY(!LoadingPicture::shortcuts().isEmpty());
    }

    void theCursorSaysWhatIsWhere()
    {
        LoadingPicture picture;
        picture.resize(900, 340);
        LoadingValues(seventyOnGpu).show(picture);
        picture.setCursor(0);
        QVERIFY2(picture.cursorText().contains(QStringLiteral("0 B of")), qPrintable(picture.cursorText()));
        picture.setCursor(100000);
        const QString whole = picture.state().bytesText(picture.state().converted);
        QVERIFY2(picture.cursorText().contains(QStringLiteral("%1 of %1 on the GPU").arg(whole)),
                 qPrintable(picture.cursorText()));
        QVERIFY(picture.summary().contains(QStringLiteral("bottleneck is the conversion")));
    }

    void measuredTimeStandsAtWhatWasAsked()
    {
        const LoadingValues values(seventyOnGpu);
        Measurement measured;
        measured.figures.push_back({"time", "time", Unit::Second, 9.5, {}, {}, {}});
        const LoadingState state = readLoading(&values.prediction, &measured, ByteStyle::Binary);
        QVERIFY(!state.ways[0].measured);
        QCOMPARE(state.ways[1].measured.value(), 9.5);
    }

    void foreignDetailDrawsNothing()
    {
        LoadingValues values(seventyOnGpu);
        const Json whole = values.prediction.detail;
        for (const char* text : {"null", "[]", R"({"ways": 3})", R"({"bytes": 5, "chunks": 2, "ways": [{"time": -1}]})",
                                 R"({"bytes": -5, "chunks": 2,
                                     "ways": [{"time": 1, "lanes": ["x"], "pieces": [[0, 0, 0, 0, 1]]}]})",
                                 R"({"bytes": 5, "chunks": 0,
                                     "ways": [{"time": 1, "lanes": ["x"], "pieces": [[0, 0, 0, 0, 1]]}]})",
                                 R"({"bytes": 5, "chunks": 1,
                                     "ways": [{"time": 1, "lanes": ["x"], "pieces": [[7, 0, 0, 0, 1], "a", 4]}]})"}) {
            values.prediction.detail = Json::parse(text, nullptr, false);
            LoadingPicture picture;
            picture.resize(900, 340);
            values.show(picture);
            QVERIFY2(picture.state().empty(), text);
            QVERIFY(!picture.grab().isNull());
            QTest::keyClick(&picture, Qt::Key_3);
        }
        // Lanes without steps and pieces without order are drawn as far as they make sense.
        values.prediction.detail = Json::parse(
            R"({"bytes": 5, "chunks": 1, "depth": 99, "gpus": 1000, "ways": [{"time": 1, "lanes": ["x", "y"],
            "steps": ["read"], "pieces": [[1, 0, 0, 0, 1], [0, 0, 0, 0, 1]]}]})");
        LoadingPicture picture;
        picture.resize(900, 340);
        values.show(picture);
        QVERIFY(!picture.state().empty() && !picture.grab().isNull());
        values.prediction.detail = whole;
        QVERIFY(!values.state().empty());
    }

    void bothThemesAndSizes_data() { bothThemesIn({QSize(738, 320), QSize(1300, 500)}); }

    void bothThemesAndSizes()
    {
        QFETCH(bool, isDark);
        QFETCH(QSize, size);
        const Theme& theme = isDark ? darkTheme() : lightTheme();
        int number = 0;
        for (const auto& assignments : {seventyOnGpu, std::vector<std::string>{"model=llama-2-70b", "gpus=8"},
                                        std::vector<std::string>{"cache=warm", "low_cpu_mem=twice"},
                                        std::vector<std::string>{"method=mmap", "staging=pageable"}}) {
            LoadingPicture picture;
            LoadingValues(assignments).show(picture);
            const QImage image = exported(picture, size, theme);
            QVERIFY(image.save(
                QStringLiteral(SAMPLES "/loading-%1-%2-%3.png").arg(theme.name).arg(size.width()).arg(number++)));
            QVERIFY(pixelsOf(image, theme.series(0)) > 500); // copies
        }
    }
};

QTEST_MAIN(TestLoadingPicture)
#include "tst_loading_picture.moc"

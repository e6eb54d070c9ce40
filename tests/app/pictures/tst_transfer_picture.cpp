// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `transfer`: bars as long as the pipeline says, what a hand and keys change, what a foreign document
// leaves out; both themes and sizes are kept to look at (samples/).
#include "app/pictures/transfer/transfer_picture.h"
#include "core/timing/pipeline.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <QImage>

using namespace memscape;

namespace {

struct TransferValues : PictureCase
{
    explicit TransferValues(const std::vector<std::string>& assignments, const char* on = "nvidia-h200")
        : PictureCase("transfer", assignments, on)
    { }
    TransferState state() const { return readTransfer(parameters, &prediction, nullptr, ByteStyle::Binary); }
};

const std::vector<std::string> overlappedTransfer{"bytes=1GiB", "chunk=128MiB", "streams=2", "work=1024"};

const TransferWay* wayOf(const TransferState& state, const char* key)
{
    for (const TransferWay& way : state.ways)
        if (way.key == QLatin1String(key))
            return &way;
    return nullptr;
}

} // namespace

class TestTransferPicture : public QObject
{
    Q_OBJECT

private slots:
    void barsAreAsLongAsTheirTimes()
    {
        const TransferState state = TransferValues(overlappedTransfer).state();
        const TransferLayout layout = layoutTransfer(state, {0, 0, 900, 320}, 1);
        QVERIFY(layout.bars.size() > 20);
        for (const LaneBar& bar : layout.bars) {
            const LanePiece& piece = state.ways[bar.way].pieces[bar.piece];
            QVERIFY(std::abs(layout.secondsAt(bar.rect.left()) - piece.begin) < 1e-6 * state.longest);
            if (bar.rect.width() > 1)
                QVERIFY(std::abs(layout.secondsAt(bar.rect.right()) - piece.end) < 1e-6 * state.longest);
        }
    }

    void nothingIsOutside()
    {
        for (const auto& assignments : {overlappedTransfer, std::vector<std::string>{"direction=both", "chunk=1MiB"},
                                        std::vector<std::string>{"kind=mapped"}, std::vector<std::string>{"chunk=0"}}) {
            const TransferState state = TransferValues(assignments).state();
            for (const QSizeF size : {QSizeF(420, 240), QSizeF(840, 300), QSizeF(1500, 520)}) {
                const QRectF whole(QPointF(0, 0), size);
                const TransferLayout layout = layoutTransfer(state, whole, 1);
                for (const LaneBar& bar : layout.bars)
                    QVERIFY(whole.contains(bar.rect));
                for (const LaneBlock& block : layout.blocks) {
                    QVERIFY(whole.contains(block.head));
                    for (const QRectF& lane : block.lanes)
                        QVERIFY(lane.bottom() <= layout.foot.top() + 0.5);
                }
            }
        }
    }

    void everyWayIsThereAndTheBestOneWhereItIsNotAsked()
    {
        const TransferState asked = TransferValues(overlappedTransfer).state();
        for (const char* key : {"naive", "whole", "chunked", "overlapped"})
            QVERIFY2(wayOf(asked, key), key);
        QVERIFY(!wayOf(asked, "best"));
        QVERIFY(wayOf(asked, "overlapped")->time < wayOf(asked, "whole")->time);
        QVERIFY(wayOf(asked, "whole")->time < wayOf(asked, "naive")->time);
        const TransferState whole = TransferValues({"bytes=1GiB", "chunk=0", "work=1024"}).state();
        QVERIFY(wayOf(whole, "best"));
        QVERIFY(wayOf(whole, "best")->time < wayOf(whole, "whole")->time);
    }

    void aHandleSetsTheChunks()
    {
        TransferPicture picture;
        picture.resize(900, 320);
        TransferValues(overlappedTransfer).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited), editing(&picture, &Picture::editing);
        const QPointF handle = picture.layoutNow().handle.center();
        test::mouse(picture, QEvent::MouseButtonPress, handle, Qt::LeftButton);
        QCOMPARE(edits.size(), 0); // where it is
        const TransferWay& way = picture.state().ways[std::size_t(picture.state().draggedWay())];
        const double quarter = way.fixed + way.perByte * double(way.chunk) / 4;
        test::mouse(picture, QEvent::MouseMove, {picture.layoutNow().x(quarter), handle.y()}, Qt::LeftButton);
        QCOMPARE(edits.size(), 1);
        QCOMPARE(edits[0][0].toString(), QStringLiteral("chunk"));
        QCOMPARE(edits[0][1].toString(), QString::number(std::int64_t(32) << 20));
        test::mouse(picture, QEvent::MouseButtonRelease, handle, Qt::LeftButton);
        QCOMPARE(editing.size(), 2);
        QCOMPARE(editing[1][0].toBool(), false);
    }

    void boxesSetTheBuffers()
    {
        TransferPicture picture;
        picture.resize(900, 320);
        TransferValues(overlappedTransfer).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        test::mouse(picture, QEvent::MouseButtonPress, picture.layoutNow().depths[4].center(), Qt::LeftButton);
        QCOMPARE(edits.size(), 1);
        QCOMPARE(edits[0][0].toString(), QStringLiteral("streams"));
        QCOMPARE(edits[0][1].toString(), QStringLiteral("5"));
    }

    void keysChangeTheSame()
    {
        TransferPicture picture;
        picture.resize(900, 320);
        TransferValues(overlappedTransfer).show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        QTest::keyClick(&picture, Qt::Key_Minus);
        QCOMPARE(edits.takeLast()[1].toString(), QString::number(std::int64_t(64) << 20));
        QTest::keyClick(&picture, Qt::Key_Plus);
        QCOMPARE(edits.takeLast()[1].toString(), QString::number(std::int64_t(256) << 20));
        QTest::keyClick(&picture, Qt::Key_B);
        QCOMPARE(edits.takeLast()[1].toString(), QString::number(picture.state().bestChunk));
        QTest::keyClick(&picture, Qt::Key_3);
        QCOMPARE(edits.takeLast()[1].toString(), QStringLiteral("3"));
        QVERIFY(!TransferPicture::shortcuts().isEmpty());
    }

    void theCursorSaysWhatIsAtWork()
    {
        TransferPicture picture;
        picture.resize(900, 320);
        TransferValues(overlappedTransfer).show(picture);
        picture.setCursor(0);
        QVERIFY2(picture.cursorText().contains(QStringLiteral("copy in")), qPrintable(picture.cursorText()));
        QVERIFY(!picture.cursorText().contains(QStringLiteral("done")));
        picture.setCursor(100000);
        QVERIFY(picture.cursorText().contains(QStringLiteral("done")));
        const TransferState& state = picture.state();
        const TransferWay* const way = wayOf(state, "overlapped");
        const LanePiece& second = way->pieces[2]; // the second chunk's copy, beside the first one's kernel
        QVERIFY(state.wordsAt((second.begin + second.end) / 2).contains(QStringLiteral("copy in and kernel")));
    }

    void measuredTimesStandAtTheirSizeAlone()
    {
        const TransferValues values(overlappedTransfer);
        Measurement measured;
        measured.series.push_back({"time",
                                   "time",
                                   {"bytes", "bytes", Unit::Byte, AxisScale::Log2, {0x1p30}, {}},
                                   "time",
                                   Unit::Second,
                                   {0.0234},
                                   {},
                                   {}});
        const TransferState same = readTransfer(values.parameters, &values.prediction, &measured, ByteStyle::Binary);
        QVERIFY(wayOf(same, "overlapped")->measured);
        QVERIFY(!wayOf(same, "whole")->measured);
        const TransferValues other({"bytes=512MiB", "chunk=128MiB", "work=1024"});
        const TransferState another = readTransfer(other.parameters, &other.prediction, &measured, ByteStyle::Binary);
        QVERIFY(!wayOf(another, "overlapped")->measured);
    }

    void foreignDetailDrawsNothing()
    {
        TransferValues values(overlappedTransfer);
        const Json whole = values.prediction.detail;
        for (const char* text :
             {"null", "[]", R"({"ways": 3})", R"({"ways": [{"time": -1}]})",
              R"({"ways": [{"time": 1, "lanes": ["x"], "pieces": [[7, 0, 0, 0, 1], [0, 0, 0, 2, 1], ["a"], 4]}]})",
              R"({"bytes": -5, "ways": [{"time": 1e999, "lanes": [3], "pieces": [[0, 0, 0, 0, 1]]}]})"}) {
            values.prediction.detail = Json::parse(text, nullptr, false);
            TransferPicture picture;
            picture.resize(900, 320);
            values.show(picture);
            QVERIFY2(picture.state().empty(), text);
            QVERIFY(!picture.grab().isNull());
            QTest::keyClick(&picture, Qt::Key_B);
        }
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
             {overlappedTransfer, std::vector<std::string>{"chunk=0", "work=1024"},
              std::vector<std::string>{"direction=both", "chunk=8MiB", "work=512", "streams=4"},
              std::vector<std::string>{"kind=pageable", "work=512"}}) {
            TransferPicture picture;
            TransferValues(assignments).show(picture);
            const QImage image = exported(picture, size, theme);
            QVERIFY(image.save(
                QStringLiteral(SAMPLES "/transfer-%1-%2-%3.png").arg(theme.name).arg(size.width()).arg(number++)));
            QVERIFY(pixelsOf(image, theme.series(0)) > 500); // copies
        }
    }
};

QTEST_MAIN(TestTransferPicture)
#include "tst_transfer_picture.moc"

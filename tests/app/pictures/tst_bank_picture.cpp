// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes over banks: which lane is served in which wavefront, what keys, drags and clicks on a cure ask for, and
// that nothing is drawn outside.
#include "app/pictures/bank-conflicts/bank_picture.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <QSignalSpy>
#include <QtTest>

using namespace memscape;

namespace {

BankPicture* bankShown(QWidget& parent, const std::vector<std::string>& assignments, const char* device = "nvidia-h200")
{
    auto* picture = new BankPicture(&parent);
    picture->resize(760, 300);
    PictureCase("bank-conflicts", assignments, device).show(*picture);
    return picture;
}

} // namespace

class TestBankPicture : public QObject
{
    Q_OBJECT

private slots:
    void aWavefrontOpensAWordOfEachBank()
    {
        QWidget window;
        const auto* picture = bankShown(window, {"stride=8"});
        const BankState& state = picture->state();
        QCOMPARE(state.wavefronts, 8);
        int served = 0;
        for (int i = 0; i < state.wavefronts; ++i) {
            QCOMPARE(state.servedIn(i), 4); // lanes 0, 4, 8 … share bank 0, 1, 5, 9 … bank 8
            QCOMPARE(state.banksBusyIn(i), 4);
            served += state.servedIn(i);
        }
        QCOMPARE(served, 32);
        const auto* wide = bankShown(window, {"stride=1", "width=16"});
        QCOMPARE(wide->state().banksBusyIn(0), 32); // eight lanes of four words
        QCOMPARE(wide->state().servedIn(0), 8);
        QCOMPARE(wide->state().phaseWords(1), QStringLiteral("lanes 8 to 15, phase 2 of 4"));
        QVERIFY(state.phaseWords(0).isEmpty());
        const auto* broadcast = bankShown(window, {"stride=0"});
        QCOMPARE(broadcast->state().banksBusyIn(0), 1);
        QCOMPARE(broadcast->state().servedIn(0), 32);
    }

    void paddingIsSeen()
    {
        QWidget window;
        const BankState& state = bankShown(window, {"pattern=column", "padding=1"})->state();
        QVERIFY(state.isPadding(32) && state.isPadding(65)); // rows of 33
        QVERIFY(!state.isPadding(31) && !state.isPadding(33));
        QVERIFY(!bankShown(window, {"pattern=column"})->state().isPadding(32));
    }

    void everyWordThatIsAskedForIsInTheGrid_data()
    {
        QTest::addColumn<QString>("given");
        for (const char* given :
             {"stride=0", "stride=1", "stride=128 width=16", "pattern=column padding=1", "pattern=random",
              "pattern=column width=2 columns=64 swizzle=xor16", "lanes=3 stride=64"})
            QTest::newRow(given) << QString::fromUtf8(given);
    }
    void everyWordThatIsAskedForIsInTheGrid()
    {
        QFETCH(QString, given);
        std::vector<std::string> assignments;
        for (const QString& one : given.split(u' '))
            assignments.push_back(one.toStdString());
        QWidget window;
        const auto* picture = bankShown(window, assignments);
        const BankState& state = picture->state();
        const BankLayout layout = picture->layoutNow();
        QVERIFY(state.lines.size() >= 4);
        for (const PicturedLane& lane : state.lanes) {
            QVERIFY(state.lineOf(lane.word) >= 0);
            const QRectF cell = layout.cell((lane.word + lane.words - 1) % 32, state.lineOf(lane.word));
            QVERIFY(layout.grid.adjusted(-1, -1, 1, 1).contains(cell));
        }
        QCOMPARE(layout.lanes.size(), state.lanes.size());
    }

    void keysStepTheWavefrontsAndTheStride()
    {
        QWidget window;
        auto* picture = bankShown(window, {"stride=8"});
        QCOMPARE(picture->cursor(), 0);
        QTest::keyClick(picture, Qt::Key_Right);
        QCOMPARE(picture->cursor(), 1);
        QTest::keyClick(picture, Qt::Key_End);
        QCOMPARE(picture->cursor(), 7);
        QSignalSpy edited(picture, &Picture::parameterEdited);
        QTest::keyClick(picture, Qt::Key_Up);
        QTest::keyClick(picture, Qt::Key_Down);
        QCOMPARE(edited.size(), qsizetype(2));
        QCOMPARE(edited[0].at(1).toString(), QStringLiteral("9"));
        QCOMPARE(edited[1].at(1).toString(), QStringLiteral("7"));
        auto* zero = bankShown(window, {"stride=0"});
        QSignalSpy none(zero, &Picture::parameterEdited);
        QTest::keyClick(zero, Qt::Key_Down);
        QCOMPARE(none.size(), qsizetype(0)); // there is no stride below
        const BankLayout layout = picture->layoutNow();
        QTest::mouseClick(picture, Qt::LeftButton, {}, layout.wavefront(3, 8).center().toPoint());
        QCOMPARE(picture->cursor(), 3);
        QTest::mouseClick(picture, Qt::LeftButton, {}, layout.playButton.center().toPoint());
        QVERIFY(picture->isPlaying());
    }

    void aDragChangesTheStride()
    {
        QWidget window;
        for (const int width : {4, 16}) {
            auto* picture = bankShown(window, {"stride=4", "width=" + std::to_string(width)});
            QSignalSpy edited(picture, &Picture::parameterEdited), editing(picture, &Picture::editing);
            const BankLayout layout = picture->layoutNow();
            const QPointF from = layout.cell(4, 0).center();
            test::drag(*picture, from, from + QPointF(3.0 * layout.cellWidth * width / 4, 0));
            QCOMPARE(edited.size(), qsizetype(1));
            QCOMPARE(edited[0].at(0).toString(), QStringLiteral("stride"));
            QCOMPARE(edited[0].at(1).toString(), QStringLiteral("7")); // three elements further
            QCOMPARE(editing.size(), qsizetype(2));                    // one step of the history
            QVERIFY(editing[0].at(0).toBool() && !editing[1].at(0).toBool());
        }
        auto* column = bankShown(window, {"pattern=column"});
        QSignalSpy none(column, &Picture::parameterEdited);
        const QPointF from = column->layoutNow().cell(0, 0).center();
        test::drag(*column, from, from + QPointF(100, 0));
        QCOMPARE(none.size(), qsizetype(0)); // a column's stride is its row
    }

    void aClickChoosesACure()
    {
        QWidget window;
        auto* picture = bankShown(window, {"pattern=column"});
        QCOMPARE(picture->state().chosenCure(), 0);
        QSignalSpy wanted(picture, &Picture::changesWanted);
        const BankLayout layout = picture->layoutNow();
        QTest::mouseClick(picture, Qt::LeftButton, {}, layout.cures[0].center().toPoint());
        QCOMPARE(wanted.size(), qsizetype(0)); // it is that already
        QTest::mouseClick(picture, Qt::LeftButton, {}, layout.cures[1].center().toPoint());
        QCOMPARE(wanted.size(), qsizetype(1));
        const auto changes = wanted[0].at(0).value<ParameterChanges>();
        QCOMPARE(changes, (ParameterChanges{{"padding", "1"}, {"swizzle", "none"}}));
        QCOMPARE(bankShown(window, {"pattern=column", "padding=1"})->state().chosenCure(), 1);
        QCOMPARE(bankShown(window, {"pattern=column", "swizzle=xor"})->state().chosenCure(), 2);
        QCOMPARE(bankShown(window, {"pattern=column", "swizzle=xor16"})->state().chosenCure(), 3);
        QCOMPARE(bankShown(window, {"pattern=column", "padding=2"})->state().chosenCure(), -1);
    }

    void wordsSayWhoAsks()
    {
        QWidget window;
        const BankState& state = bankShown(window, {"stride=16"})->state();
        QVERIFY2(state.laneWords(2).contains(QStringLiteral("bytes 128 to 131, bank 0; served in wavefront 2 of 16")),
                 qPrintable(state.laneWords(2)));
        QVERIFY(state.wordWords(16).contains(QStringLiteral("lane 1")));
        QVERIFY(state.wordWords(1).contains(QStringLiteral("no lane accesses")));
        QVERIFY(bankShown(window, {"stride=0"})->state().wordWords(0).contains(QStringLiteral("broadcast")));
        QVERIFY(bankShown(window, {"pattern=column", "padding=1"})
                    ->state()
                    .wordWords(32)
                    .contains(QStringLiteral("padding")));
        QVERIFY(state.laneWords(99).isEmpty());
        const BankState& phases = bankShown(window, {"stride=0", "width=16"})->state(); // the same word in every phase
        QVERIFY2(phases.wordWords(3).contains(QStringLiteral("wavefronts 1 to 4")), qPrintable(phases.wordWords(3)));
    }

    void aCpuSaysWhatItLacks()
    {
        QWidget window;
        auto* picture = bankShown(window, {}, "cpu");
        QVERIFY(picture->state().notHere.contains(QStringLiteral("no shared memory")));
        QVERIFY(picture->summary().contains(QStringLiteral("no shared memory")));
        QVERIFY(picture->layoutNow().note.height() > 0);
        QVERIFY(bankShown(window, {})->state().notHere.isEmpty());
    }

    void nothingIsOutside_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<QString>("device");
        for (const char* device : {"nvidia-h200", "amd-mi300x", "cpu"}) {
            QTest::addRow("smallest, %s", device) << QSize(480, 220) << device;
            QTest::addRow("1280 × 800, %s", device) << QSize(760, 300) << device;
            QTest::addRow("wide, %s", device) << QSize(1500, 420) << device;
        }
    }
    void nothingIsOutside()
    {
        QFETCH(QSize, size);
        QFETCH(QString, device);
        QWidget window;
        auto* picture = bankShown(window, {"stride=64"}, qPrintable(device));
        const QRectF rect(QPointF(0, 0), QSizeF(size));
        const BankLayout layout = layoutBanks(picture->state(), rect);
        for (const QRectF& part : {layout.title, layout.laneRow, layout.grid, layout.strip, layout.words,
                                   layout.curesTitle, layout.playButton})
            QVERIFY(rect.contains(part) && part.width() > 0 && part.height() > 0);
        QVERIFY(!layout.grid.intersects(layout.words) && !layout.grid.intersects(layout.strip));
        QVERIFY(!layout.laneRow.intersects(layout.bankNames) && !layout.bankNames.intersects(layout.grid));
        QVERIFY(!layout.words.intersects(layout.curesTitle));
        for (const QRectF& cure : layout.cures)
            QVERIFY(rect.contains(cure) && !cure.intersects(layout.curesTitle) && !cure.intersects(layout.note));
        picture->resize(size);
        QVERIFY(!picture->grab().isNull());
    }

    void foreignDetailDrawsNothing()
    {
        QVERIFY(readBanks(Json()).empty());
        QVERIFY(readBanks(Json::parse(R"({"tile": 7, "request": [], "lanes": {"lane": 3}})")).empty());
        const Experiment* experiment = *findExperiment("bank-conflicts");
        const Json good =
            experiment->predict(*findDevice("nvidia-h200"), *resolve(experiment->schema(), std::vector<std::string>{}))
                ->detail;
        QVERIFY(!readBanks(good).empty());
        const auto broken = [&](const char* pointer, Json value) {
            Json detail = good;
            detail[Json::json_pointer(pointer)] = std::move(value);
            return readBanks(detail).empty();
        };
        QVERIFY(broken("/lanes/3/word", -4));
        QVERIFY(broken("/lanes/3/word", 1e300));
        QVERIFY(broken("/lanes/3/wavefront", 8)); // of 8
        QVERIFY(broken("/lanes/3", "lane"));
        QVERIFY(broken("/lanes", Json::array()));
        QVERIFY(broken("/tile/width", 0));
        QVERIFY(broken("/request/wavefronts", 1e9));
        BankPicture picture;
        picture.resize(480, 220);
        picture.setRequest({});
        QVERIFY(!picture.grab().isNull());
        QTest::keyClick(&picture, Qt::Key_Up);
        QTest::keyClick(&picture, Qt::Key_Space);
        QCOMPARE(picture.cursor(), -1);
        QVERIFY(!picture.isPlaying());
    }
};

QTEST_MAIN(TestBankPicture)
#include "tst_bank_picture.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// The cursor of a walk: where it rests and what it keeps when the walk becomes another one, keys,
// playing to the end, and that no step goes by too fast to be seen.
#include "app/pictures/common/player.h"

#include <QElapsedTimer>
#include <QKeyEvent>
#include <QSignalSpy>
#include <QTest>

using namespace memscape;

namespace {

bool key(Player& player, Qt::Key which, Qt::KeyboardModifiers modifiers = {})
{
    return player.takeKey(QKeyEvent(QEvent::KeyPress, which, modifiers));
}

} // namespace

class TestPlayer : public QObject
{
    Q_OBJECT

private slots:
    void withoutAWalkNothingMoves()
    {
        Player player;
        QSignalSpy moved(&player, &Player::moved);
        player.setCursor(5);
        player.setPlaying(true);
        for (const Qt::Key which : {Qt::Key_Space, Qt::Key_End, Qt::Key_Home, Qt::Key_Right, Qt::Key_PageDown})
            QVERIFY(key(player, which));
        QCOMPARE(player.cursor(), -1);
        QVERIFY(!player.isPlaying());
        QVERIFY(moved.isEmpty());
        player.setSteps(4, 2);
        player.setPlaying(true);
        player.setSteps(0, 0); // the walk is gone while it plays
        QVERIFY(!player.isPlaying());
        QCOMPARE(player.cursor(), -1);
    }

    void itRestsUntilItIsMoved()
    {
        Player player;
        player.setSteps(10, 7);
        QCOMPARE(player.cursor(), 7);
        player.setSteps(20, 3);
        QCOMPARE(player.cursor(), 3);
        player.setSteps(5, 9); // beyond the end: the end
        QCOMPARE(player.cursor(), 4);
        player.setSteps(5, -1);
        QCOMPARE(player.cursor(), 0);
    }

    void theShareIsKeptWhenTheWalkChanges()
    {
        Player player;
        QSignalSpy moved(&player, &Player::moved);
        player.setSteps(11, 0);
        player.setCursor(5);
        QCOMPARE(moved.count(), 1);
        player.setSteps(101, 0);
        QCOMPARE(player.cursor(), 50);
        player.setCursor(1000);
        QCOMPARE(player.cursor(), 100);
        player.setSteps(7, 0);
        QCOMPARE(player.cursor(), 6); // the end stays the end
        player.setSteps(1, 0);
        QCOMPARE(player.cursor(), 0);
        player.setSteps(9, 4);
        QCOMPARE(player.cursor(), 0);
        QCOMPARE(moved.count(), 2); // a new walk is no move
    }

    void keys()
    {
        Player player;
        player.setSteps(100, 0);
        const std::vector<std::tuple<Qt::Key, Qt::KeyboardModifiers, int>> presses{
            {Qt::Key_Right, {}, 1},
            {Qt::Key_Down, {}, 2},
            {Qt::Key_Right, Qt::ShiftModifier, 12},
            {Qt::Key_PageDown, {}, 22},
            {Qt::Key_PageUp, {}, 12},
            {Qt::Key_Up, {}, 11},
            {Qt::Key_Left, Qt::ShiftModifier, 1},
            {Qt::Key_Left, Qt::ShiftModifier, 0},
            {Qt::Key_End, {}, 99},
            {Qt::Key_Right, {}, 99},
            {Qt::Key_Home, {}, 0}};
        for (const auto& [which, modifiers, expected] : presses) {
            QVERIFY(key(player, which, modifiers));
            QCOMPARE(player.cursor(), expected);
        }
        QVERIFY(!key(player, Qt::Key_P));
        QVERIFY(!key(player, Qt::Key_Tab));
        key(player, Qt::Key_Space);
        QVERIFY(player.isPlaying());
        key(player, Qt::Key_Right); // stepping stops the play
        QVERIFY(!player.isPlaying());
    }

    void shortWalksAreSlow()
    {
        Player player;
        player.setSteps(3, 0);
        QSignalSpy playing(&player, &Player::playingChanged);
        QElapsedTimer clock;
        clock.start();
        player.setPlaying(true);
        QTRY_VERIFY(!player.isPlaying());
        QVERIFY2(clock.elapsed() >= 400,
                 qPrintable(QString::number(clock.elapsed()))); // two steps of 250 ms, by frames
        QCOMPARE(player.cursor(), 2);
        QCOMPARE(playing.count(), 2);
    }

    void theEndStopsAndStartsAgain()
    {
        Player player;
        player.setSteps(2, 1);
        player.setPlaying(true);
        QCOMPARE(player.cursor(), 0);
        QTRY_VERIFY(!player.isPlaying());
        QCOMPARE(player.cursor(), 1);
        player.setSteps(1, 0); // nowhere to go: it stops at its first frame
        player.setPlaying(true);
        QTRY_VERIFY(!player.isPlaying());
        QCOMPARE(player.cursor(), 0);
    }

    void itPlaysOnFromWhereItIsPut()
    {
        Player player;
        player.setSteps(1000, 0); // 9 ms a step
        player.setPlaying(true);
        QTRY_VERIFY(player.cursor() > 2);
        player.setCursor(500);
        QTRY_VERIFY(player.cursor() > 502);
        player.setSteps(100, 0); // half the way is half the way still, and it goes on from there
        QVERIFY(player.cursor() >= 49 && player.cursor() < 60);
        QVERIFY(player.isPlaying());
        QTRY_VERIFY(player.cursor() >= 52);
    }
};

QTEST_GUILESS_MAIN(TestPlayer)
#include "tst_player.moc"

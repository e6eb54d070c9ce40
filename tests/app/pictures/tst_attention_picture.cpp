// SPDX-License-Identifier: GPL-3.0-or-later
// The walk over attention's tiles: cells that a causal mask leaves, bytes that grow to the prediction's,
// what keys and mouse do to the cursor, and that nothing is drawn outside.
#include "app/pictures/attention/attention_picture.h"
#include "tests/support/picture_case.h"

#include <QSignalSpy>
#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

AttentionPicture* shown(QWidget& parent, const std::vector<std::string>& assignments)
{
    auto* picture = new AttentionPicture(&parent);
    picture->resize(900, 300);
    PictureCase("attention", assignments).show(*picture);
    return picture;
}

} // namespace

class TestAttentionPicture : public QObject
{
    Q_OBJECT

private slots:
    void aCausalWalkLeavesTheUpperHalf()
    {
        QWidget window;
        const auto* full = shown(window, {"sequence=4096", "causal=false"});
        const auto* half = shown(window, {"sequence=4096", "causal=true"});
        const AttentionState& state = half->state();
        QCOMPARE(int(full->state().steps.size()), full->state().rows * full->state().columns);
        int visible = 0;
        for (int row = 0; row < state.rows; ++row) {
            for (int column = 0; column < state.columns; ++column) {
                // Query q sees key k when k ≤ q: the last query of the cell and its first key.
                const double lastQuery = 4096.0 * (row + 1) / state.rows - 1;
                const double firstKey = 4096.0 * column / state.columns;
                visible += firstKey <= lastQuery;
            }
        }
        QCOMPARE(int(state.steps.size()), visible);
        QVERIFY(visible < state.rows * state.columns);
    }

    void bytesEndAtThePrediction()
    {
        QWidget window;
        const PictureCase values("attention", {"sequence=2048", "pass=forward"});
        AttentionPicture picture(&window);
        values.show(picture);
        const AttentionState& state = picture.state();
        const int last = int(state.steps.size()) - 1;
        double before = 0;
        for (int step = 0; step <= last; ++step) {
            QVERIFY(state.flashSoFar(step) >= before);
            before = state.flashSoFar(step);
        }
        const auto bytes = [&](const char* key) { return findFigure(values.prediction.figures, key)->number(); };
        QVERIFY(std::abs(state.flashSoFar(last) / bytes("flash_hbm_bytes") - 1) < 1e-9);
        QVERIFY(std::abs(state.standardSoFar(last) / bytes("standard_hbm_bytes") - 1) < 1e-9);
    }

    void keysAndMouseMoveTheCursor()
    {
        QWidget window;
        auto* picture = shown(window, {"sequence=4096", "causal=true"});
        const int last = int(picture->state().steps.size()) - 1;
        QTest::keyClick(picture, Qt::Key_Home);
        QCOMPARE(picture->cursor(), 0);
        QTest::keyClick(picture, Qt::Key_Right);
        QCOMPARE(picture->cursor(), 1);
        QTest::keyClick(picture, Qt::Key_End);
        QCOMPARE(picture->cursor(), last);
        QTest::keyClick(picture, Qt::Key_Up);
        QCOMPARE(picture->state().steps[std::size_t(picture->cursor())].row, picture->state().rows - 2);
        const AttentionLayout layout = picture->layoutNow();
        QSignalSpy moved(picture, &AttentionPicture::cursorMoved);
        QTest::mouseClick(picture, Qt::LeftButton, {}, layout.cell(3, 0).center().toPoint());
        QCOMPARE(moved.size(), qsizetype(1));
        QCOMPARE(picture->state().steps[std::size_t(picture->cursor())].row, 3);
        // A hidden cell: the last of its row that is seen.
        QTest::mouseClick(picture, Qt::LeftButton, {}, layout.cell(3, picture->state().columns - 1).center().toPoint());
        QCOMPARE(picture->state().steps[std::size_t(picture->cursor())].row, 3);
        QTest::keyClick(picture, Qt::Key_Space);
        QVERIFY(picture->isPlaying());
        QTest::mouseClick(picture, Qt::LeftButton, {}, layout.playButton.center().toPoint());
        QVERIFY(!picture->isPlaying());
    }

    void theCursorKeepsItsShare()
    {
        QWidget window;
        auto* picture = shown(window, {"sequence=4096"});
        QTest::keyClick(picture, Qt::Key_End);
        PictureCase("attention", {"sequence=1024"}).show(*picture);
        QCOMPARE(picture->cursor(), int(picture->state().steps.size()) - 1);
    }

    void nothingIsOutside_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::newRow("smallest") << QSize(480, 200);
        QTest::newRow("1280 × 800") << QSize(760, 290);
        QTest::newRow("wide") << QSize(1500, 420);
    }

    void nothingIsOutside()
    {
        QFETCH(QSize, size);
        QWidget window;
        auto* picture = shown(window, {"sequence=65536", "causal=true"});
        const QRectF rect(QPointF(0, 0), QSizeF(size));
        const AttentionLayout layout = layoutAttention(picture->state(), rect);
        for (const QRectF& part : {layout.title, layout.matrix, layout.words, layout.chip, layout.traffic})
            QVERIFY(rect.contains(part) && part.width() > 0 && part.height() > 0);
        QVERIFY(!layout.matrix.intersects(layout.words) && !layout.words.intersects(layout.chip));
        QVERIFY(!layout.chip.intersects(layout.traffic));
        picture->resize(size);
        QVERIFY(!picture->grab().isNull());
    }

    void theTitleNamesTheVersionThatRan()
    {
        const Json predicted = Json::parse(R"({"shape": {"queries": 64, "keys": 64, "heads": 1, "head_dim": 64},
        "flash": {"version": 8, "tile": {"queries": 64, "keys": 64}},
        "softmax": {"maximum": [1], "sum": [2], "rescale": [0]}})");
        QVERIFY(readAttention(predicted).title.endsWith("flash v8"));
        const Json measured = Json::parse(R"({"points": [{"flash": {"method": {"version": 7}}}, {"x": 3},
        {"flash": {"method": {"version": 7}}}, {"flash": {"method": {"version": 6}}}]})");
        QVERIFY(readAttention(predicted, measured).title.endsWith("flash v8, measured v7, v6"));
        QVERIFY(readAttention(predicted, Json::parse(R"({"points": 7})")).title.endsWith("flash v8"));
    }

    void foreignDetailDrawsNothing()
    {
        QVERIFY(readAttention(Json()).empty());
        QVERIFY(readAttention(Json::parse(R"({"shape": 7, "flash": [], "softmax": {"maximum": 3}})")).empty());
        const Json odd = Json::parse(R"({"shape": {"queries": 1e300, "keys": 10, "heads": -3}})");
        QVERIFY(readAttention(odd).empty());
        AttentionPicture picture;
        picture.resize(400, 200);
        picture.setWalk({});
        QVERIFY(!picture.grab().isNull());
        QTest::keyClick(&picture, Qt::Key_Up);
        QCOMPARE(picture.cursor(), -1);
    }

    void oneImplementationAlone()
    {
        QWidget window;
        for (const char* implementation : {"implementation=standard", "implementation=flash"}) {
            auto* picture = shown(window, {implementation});
            QVERIFY(!picture->state().empty());
            QVERIFY(!picture->summary().isEmpty());
            QVERIFY(!picture->grab().isNull());
        }
    }
};

QTEST_MAIN(TestAttentionPicture)
#include "tst_attention_picture.moc"

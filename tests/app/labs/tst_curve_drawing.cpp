// SPDX-License-Identifier: GPL-3.0-or-later
// A curve drawn by hand: strokes in any direction, corrections, and what is kept where it is asked for.
#include "app/labs/curve_drawing.h"

#include <QTest>

#include <cmath>

using namespace memscape;

class TestCurveDrawing : public QObject
{
    Q_OBJECT

private slots:
    void nothingIsDrawnAtFirst()
    {
        const CurveDrawing drawing({1, 10, 100});
        QVERIFY(drawing.isEmpty());
        for (const double y : drawing.values())
            QVERIFY(std::isnan(y));
    }

    void aStrokeRunsStraightInLogarithms()
    {
        CurveDrawing drawing({1, 10, 100});
        drawing.stroke(1, 2, 100, 200);
        const auto y = drawing.values();
        QVERIFY(std::abs(y[0] - 2) < 1e-9);
        QVERIFY(std::abs(y[1] - 20) < 1e-6);
        QVERIFY(std::abs(y[2] - 200) < 1e-6);
    }

    void fromRightToLeftIsTheSame()
    {
        CurveDrawing there({1, 10, 100}), back({1, 10, 100});
        there.stroke(1, 2, 100, 200);
        back.stroke(100, 200, 1, 2);
        for (std::size_t i = 0; i < 3; ++i)
            QVERIFY(std::abs(there.values()[i] - back.values()[i]) < 1e-9 * there.values()[i]);
    }

    void aSecondStrokeReplacesWhatItPassesOver()
    {
        CurveDrawing drawing({1, 10, 100});
        drawing.stroke(1, 2, 100, 2);
        drawing.stroke(5, 50, 20, 50);
        QVERIFY(std::abs(drawing.values()[0] - 2) < 1e-9);
        QVERIFY(std::abs(drawing.values()[1] - 50) < 1e-9);
        QVERIFY(std::abs(drawing.values()[2] - 2) < 1e-9);
    }

    void whatWasNotPassedIsMissing()
    {
        CurveDrawing drawing({1, 10, 100});
        drawing.stroke(0.1, 3, 12, 3); // from left of the axes
        QVERIFY(std::abs(drawing.values()[0] - 3) < 1e-9);
        QVERIFY(std::abs(drawing.values()[1] - 3) < 1e-9);
        QVERIFY(std::isnan(drawing.values()[2]));
    }

    void oneValueMovesAndTheOthersStay()
    {
        CurveDrawing drawing({100, 1, 10}); // asked in any order
        drawing.setValues({300, 1, 30});
        drawing.setValue(2, 5);
        const auto y = drawing.values();
        QVERIFY(std::abs(y[0] - 300) < 1e-6);
        QVERIFY(std::abs(y[1] - 1) < 1e-9);
        QVERIFY(std::abs(y[2] - 5) < 1e-6);
    }

    void valuesThatAreNoNumbersDrawNothing()
    {
        CurveDrawing drawing({1, 10});
        drawing.stroke(1, std::nan(""), 10, 4);
        drawing.stroke(std::numeric_limits<double>::infinity(), 1, 10, 4);
        QVERIFY(drawing.isEmpty());
        CurveDrawing none;
        none.stroke(1, 1, 2, 2);
        QVERIFY(none.values().empty());
    }

    void aStrokeThatNearlyReachesAPointCountsThere()
    {
        CurveDrawing drawing({1, 100});
        drawing.stroke(1.05, 2, 95, 8);
        QVERIFY(std::abs(drawing.values()[0] - 2) < 0.1 && std::abs(drawing.values()[1] - 8) < 0.1);
    }

    void oneXAlone()
    {
        CurveDrawing drawing({8});
        drawing.stroke(3, 7, 9, 7);
        QVERIFY(std::abs(drawing.values()[0] - 7) < 1e-9);
    }
};

QTEST_MAIN(TestCurveDrawing)
#include "tst_curve_drawing.moc"

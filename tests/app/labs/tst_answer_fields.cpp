// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of questions, by mouse and by keyboard alone: what they report is what LabAttempt takes.
#include "app/labs/answer_fields.h"
#include "app/labs/curve_board.h"
#include "tests/support/mouse.h"

#include <QButtonGroup>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

LabQuestion asked(LabQuestionKind kind, Unit unit = Unit::One)
{
    LabQuestion question;
    question.key = "key";
    question.ask = "What?";
    question.kind = kind;
    question.unit = unit;
    question.options = {{"a", "first"}, {"b", "second"}, {"c", "third"}};
    return question;
}

LabQuestion askedCurve()
{
    LabQuestion question = asked(LabQuestionKind::Curve, Unit::Second);
    question.options.clear();
    question.x = {"4KiB", "64KiB", "1MiB"};
    question.xLabel = "working set";
    question.xUnit = "B";
    question.yLabel = "latency";
    return question;
}

std::vector<LabValue> curvePlaces()
{
    return {labNumber(4096, Unit::Byte), labNumber(65536, Unit::Byte), labNumber(1 << 20, Unit::Byte)};
}

/// What a field reported last; null when nothing.
class Reports
{
public:
    explicit Reports(QuestionField* field)
    {
        QObject::connect(field, &QuestionField::answered, field, [this](const std::string&, const Json& given) {
            last = given;
            ++count;
        });
    }
    Json last;
    int count = 0;
};

} // namespace

class TestAnswerFields : public QObject
{
    Q_OBJECT

private slots:
    void aNumberIsReportedWhenItIsLeft()
    {
        const std::unique_ptr<QuestionField> made(
            makeQuestionField(asked(LabQuestionKind::Number, Unit::Byte), nullptr));
        auto* field = qobject_cast<NumberAnswer*>(made.get());
        Reports reports(field);
        QTest::keyClicks(field->edit(), "48 KiB");
        QCOMPARE(reports.count, 0);
        QTest::keyClick(field->edit(), Qt::Key_Return);
        QCOMPARE(reports.last, Json("48 KiB"));
        field->commit(); // nothing new
        QCOMPARE(reports.count, 1);
        const Json kept = 49152.0;
        field->display(&kept);
        QCOMPARE(field->edit()->text(), QString("48 KiB"));
    }

    void aLockedNumberIsReadOnly()
    {
        NumberAnswer field(asked(LabQuestionKind::Number), nullptr);
        const Json kept = "7";
        field.display(&kept);
        field.setState(true, true);
        Reports reports(&field);
        QTest::keyClicks(field.edit(), "1");
        field.commit();
        QCOMPARE(field.edit()->text(), QString("7"));
        QCOMPARE(reports.count, 0);
    }

    void aChoiceByItsWords()
    {
        ChoiceAnswer field(asked(LabQuestionKind::Choice), nullptr);
        Reports reports(&field);
        field.show();
        for (QLabel* label : field.findChildren<QLabel*>())
            if (label->text() == "second")
                QTest::mouseClick(label, Qt::LeftButton);
        QCOMPARE(reports.last, Json("b"));
        QVERIFY(field.options()->button(1)->isChecked());
        QTest::keyClick(field.options()->button(2), Qt::Key_Space);
        QCOMPARE(reports.last, Json("c"));
    }

    void aRankingByKeys()
    {
        RankingAnswer field(asked(LabQuestionKind::Ranking), nullptr);
        Reports reports(&field);
        field.list()->setCurrentRow(2);
        QTest::keyClick(field.list(), Qt::Key_Up, Qt::ControlModifier);
        QCOMPARE(reports.last, Json::array({"a", "c", "b"}));
        QTest::keyClick(field.list(), Qt::Key_Up, Qt::ControlModifier);
        QTest::keyClick(field.list(), Qt::Key_Up, Qt::ControlModifier); // it is at the top
        QCOMPARE(reports.last, Json::array({"c", "a", "b"}));
        QTest::keyClick(field.list(), Qt::Key_Down); // only goes
        QCOMPARE(reports.count, 2);
        QTest::keyClick(field.list(), Qt::Key_Down, Qt::ControlModifier);
        QCOMPARE(reports.last, Json::array({"c", "b", "a"}));
    }

    void aRankingDoesNotShowTheOrderOfItsAuthor()
    {
        LabQuestion question = asked(LabQuestionKind::Ranking);
        question.options = {{"ssd", "from the SSD"}, {"net", "over the network"}, {"hdd", "from a disk"}};
        RankingAnswer field(question, nullptr);
        Reports reports(&field);
        field.confirm();
        QCOMPARE(reports.last, Json::array({"hdd", "ssd", "net"}));
    }

    void aRankingByDragging()
    {
        RankingAnswer field(asked(LabQuestionKind::Ranking), nullptr);
        Reports reports(&field);
        // What a drop inside of the list does to its model.
        QVERIFY(field.list()->model()->moveRow({}, 0, {}, 3));
        QCOMPARE(reports.last, Json::array({"b", "c", "a"}));
    }

    void aRankingAsItStandsCountsWhenLocked()
    {
        RankingAnswer field(asked(LabQuestionKind::Ranking), nullptr);
        Reports reports(&field);
        field.display(nullptr);
        field.commit(); // leaving the step says nothing
        QCOMPARE(reports.count, 0);
        field.confirm();
        QCOMPARE(reports.last, Json::array({"a", "b", "c"}));
        const Json kept = Json::array({"c", "b", "a"});
        field.display(&kept);
        QCOMPARE(field.list()->item(0)->text(), QString("third"));
        QCOMPARE(reports.count, 1);
    }

    void aTextIsReportedAsItIsTyped()
    {
        TextAnswer field(asked(LabQuestionKind::Text), nullptr);
        Reports reports(&field);
        QTest::keyClicks(field.edit(), "ab");
        QCOMPARE(reports.last, Json("ab"));
        const Json kept = "kept";
        field.display(&kept);
        QCOMPARE(reports.count, 2); // showing is no answer
    }

    void aCurveByTyping()
    {
        CurveAnswerField field(askedCurve(), nullptr);
        Reports reports(&field);
        for (std::size_t i = 0; i < 3; ++i) {
            QCOMPARE(reports.count, 0);
            QTest::keyClicks(field.edit(i), QString("%1 ns").arg(i + 1));
            QTest::keyClick(field.edit(i), Qt::Key_Return);
        }
        QCOMPARE(reports.last, Json::array({"1 ns", "2 ns", "3 ns"}));
    }

    void aCurveByTheMouse()
    {
        CurveBoard board;
        board.setQuestion(askedCurve(), curvePlaces());
        board.resize(700, 500);
        board.show();
        QVERIFY(QTest::qWaitForWindowExposed(&board));
        std::vector<double> drawn;
        connect(&board, &CurveBoard::drawn, this, [&](const std::vector<double>& y) { drawn = y; });
        QWidget* canvas = board.plot()->findChild<QWidget*>();
        QTRY_VERIFY(board.plot()->replotCount() > 0);
        const double left = 80, right = canvas->width() - 30.0, low = canvas->height() * 0.7,
                     high = canvas->height() * 0.3;
        test::mouse(*canvas, QEvent::MouseButtonPress, {left, low}, Qt::LeftButton);
        for (int i = 1; i <= 20; ++i) {
            const double share = i / 20.0;
            test::mouse(*canvas, QEvent::MouseMove, {left + share * (right - left), low + share * (high - low)},
                        Qt::LeftButton);
        }
        QVERIFY(drawn.empty()); // not before the button is up
        test::mouse(*canvas, QEvent::MouseButtonRelease, {right, high}, Qt::NoButton);
        QCOMPARE(drawn.size(), std::size_t(3));
        QVERIFY2(drawn[0] < drawn[1] && drawn[1] < drawn[2] && drawn[0] > 0,
                 qPrintable(QString("%1 %2 %3").arg(drawn[0]).arg(drawn[1]).arg(drawn[2])));
        // A correction of the right end leaves the left one.
        const std::vector<double> before = drawn;
        test::drag(*canvas, {right - 20, low}, {right, low});
        QCOMPARE(drawn[0], before[0]);
        QVERIFY(drawn[2] < before[2]);
        board.setLocked(true);
        const std::vector<double> locked = board.values();
        test::drag(*canvas, {left, high}, {right, high});
        QCOMPARE(board.values(), locked);
    }

    void aCurveByTheKeyboard()
    {
        CurveBoard board;
        board.setQuestion(askedCurve(), curvePlaces());
        board.resize(700, 500);
        board.show();
        QVERIFY(QTest::qWaitForWindowExposed(&board));
        QTest::keyClick(board.plot(), Qt::Key_Up); // the first point appears
        const double first = board.values()[0];
        QVERIFY(std::isfinite(first));
        QTest::keyClick(board.plot(), Qt::Key_Up);
        QVERIFY(board.values()[0] > first);
        QTest::keyClick(board.plot(), Qt::Key_Right);
        QCOMPARE(board.point(), std::size_t(1));
        QTest::keyClick(board.plot(), Qt::Key_Down);
        QVERIFY(std::abs(board.values()[1] / board.values()[0] - 1) < 1e-6); // beside its neighbour
        QTest::keyClick(board.plot(), Qt::Key_Down);
        QVERIFY(board.values()[1] < board.values()[0]);
        const double coarse = board.values()[1];
        QTest::keyClick(board.plot(), Qt::Key_Down, Qt::ShiftModifier);
        QVERIFY(board.values()[1] < coarse && board.values()[1] > 0.97 * coarse);
        QVERIFY(std::isnan(board.values()[2]));
    }

    void theAxesTellNothingOfTheAnswer()
    {
        CurveBoard board;
        board.setQuestion(askedCurve(), curvePlaces());
        board.resize(700, 500);
        board.show();
        QVERIFY(QTest::qWaitForWindowExposed(&board));
        const PlotRange before = board.plot()->range();
        board.setValues({1e-9, 2e-9, 3e-9});
        QCOMPARE(board.plot()->range(), before);
        QCOMPARE(board.plot()->curves().size(), std::size_t(2)); // the line and its points
        board.setLocked(true);
        Series series;
        series.x.values = {4096, 65536, 1 << 20};
        series.y = {1e-9, 3e-9, 9e-9};
        board.setOthers(series, series);
        QCOMPARE(board.plot()->curves().size(), std::size_t(4));
    }
};

QTEST_MAIN(TestAnswerFields)
#include "tst_answer_fields.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// The form made from a schema: what is typed, dragged and chosen comes out as text that parses;
// what does not parse stays, with the reason under it.
#include "app/pages/fields/choice_field.h"
#include "app/pages/fields/number_field.h"
#include "app/pages/fields/parameter_form.h"
#include "app/pages/fields/parameter_section.h"
#include "core/experiment/experiment.h"

#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QSignalSpy>
#include <QSlider>
#include <QTest>
#include <QToolButton>
#include <QWheelEvent>

using namespace memscape;

namespace {

Schema schema()
{
    return {
        {"bytes",
         "array",
         "Size of the array.",
         ParameterKind::Integer,
         Unit::Byte,
         1024,
         0x1p40,
         Scale::Log2,
         {},
         "1MiB"},
        {"stride", "stride", "Distance.", ParameterKind::Integer, Unit::One, 0, 128, Scale::Log2, {}, "4", "elements"},
        {"operation",
         "operation",
         "What to do.",
         ParameterKind::Choice,
         Unit::One,
         0,
         0,
         Scale::Linear,
         {{"read", "read", ""}, {"write", "write", ""}},
         "read"},
        {"element",
         "element",
         "Type.",
         ParameterKind::Choice,
         Unit::One,
         0,
         0,
         Scale::Linear,
         {{"int8", "int8 (1 B)", ""},
          {"float16", "float16 (2 B)", ""},
          {"float32", "float32 (4 B)", ""},
          {"float64", "float64 (8 B)", ""}},
         "float32"},
        {"warm", "warm caches", "Keep them.", ParameterKind::Flag, Unit::One, 0, 0, Scale::Linear, {}, "false"},
        {"model", "model", "Which network.", ParameterKind::Text, Unit::One, 1, 0, Scale::Linear, {}, "gpt2"},
    };
}

Parameters standard()
{
    return *resolve(schema(), std::vector<std::string>{});
}

QLineEdit* edit(const ParameterForm& form, const char* key)
{
    return form.field(key)->findChild<QLineEdit*>();
}

void type(QLineEdit* line, const QString& text)
{
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
    QTest::keyClick(line, Qt::Key_Return);
}

} // namespace

class TestParameterForm : public QObject
{
    Q_OBJECT

private slots:
    void everyParameterHasAFieldWithNameAndHelp()
    {
        ParameterForm form(schema());
        for (const ParameterSpec& spec : schema()) {
            ParameterField* field = form.field(QString::fromStdString(spec.key));
            QVERIFY(field);
            QVERIFY(field->toolTip().contains(QString::fromStdString(spec.help)));
        }
        QCOMPARE(form.field("no such"), nullptr);
    }

    /// Who scrolls the panel behind the field that was set last changes nothing.
    void theWheelScrollsPastAFieldWithTheFocus()
    {
        ParameterForm form(schema());
        form.display(standard());
        form.show();
        form.activateWindow();
        QSignalSpy edited(&form, &ParameterForm::edited);
        const auto turn = [](QWidget* field) {
            field->setFocus();
            QTRY_VERIFY(field->hasFocus());
            const QPointF at = field->rect().center();
            QWheelEvent wheel(at, field->mapToGlobal(at), {}, {0, -360}, {}, {}, Qt::NoScrollPhase, false);
            QApplication::sendEvent(field, &wheel);
            QVERIFY(!wheel.isAccepted()); // the panel's
        };
        turn(form.field("element")->findChild<QComboBox*>());
        turn(form.field("stride")->findChild<QSlider*>());
        QCOMPARE(edited.count(), 0);
    }

    void aListAnnouncesItsLabelAndItsValue()
    {
        ParameterForm form(schema());
        form.display(standard());
        auto* list = form.field("element")->findChild<QComboBox*>();
        QVERIFY(list);
        QAccessibleInterface* told = QAccessible::queryAccessibleInterface(list);
        QCOMPARE(told->role(), QAccessible::ComboBox);
        QCOMPARE(told->text(QAccessible::Name), QString("element: float32 (4 B)"));
        QCOMPARE(told->text(QAccessible::Value), QString("float32 (4 B)"));
        QCOMPARE(told->text(QAccessible::Description), QString("Type."));
        QVERIFY(told->state().expandable && told->state().focusable);
        QCOMPARE(told->childCount(), 1);
        QCOMPARE(told->child(0)->object(), list->view());
        QCOMPARE(told->indexOfChild(told->child(0)), 0);
        list->setCurrentIndex(0);
        QCOMPARE(told->text(QAccessible::Name), QString("element: int8 (1 B)"));
    }

    void aSliderAnnouncesItsUnitAndItsStep()
    {
        ParameterForm form(schema());
        form.display(standard());
        auto* slider = form.field("bytes")->findChild<QSlider*>();
        QAccessibleInterface* told = QAccessible::queryAccessibleInterface(slider);
        QCOMPARE(told->text(QAccessible::Name), QString("array"));
        QCOMPARE(told->text(QAccessible::Description),
                 QString("1 MiB; the arrow keys go to 896 KiB and 1.25 MiB, between 1 KiB and 1 TiB. "
                         "Size of the array."));
        QAccessibleValueInterface* value = told->valueInterface();
        QVERIFY(value);
        QCOMPARE(value->currentValue().toDouble(), 0x1p20);
        QCOMPARE(value->minimumValue().toDouble(), 1024.0);
        QCOMPARE(value->maximumValue().toDouble(), 0x1p40);
        QCOMPARE(value->minimumStepSize().toDouble(), 0x1p18);
        QSignalSpy edits(&form, &ParameterForm::edited);
        value->setCurrentValue(0x1p21);
        QCOMPARE(edits.back()[1].toString(), QString("2097152"));
        QVERIFY(told->text(QAccessible::Description).startsWith("2 MiB; "));
        // A number without a unit names what it counts.
        auto* stride = form.field("stride")->findChild<QSlider*>();
        QVERIFY(
            QAccessible::queryAccessibleInterface(stride)->text(QAccessible::Description).startsWith("4 elements; "));
    }

    void whatMeansNothingOnADeviceIsLeftOut()
    {
        Schema both = schema();
        both[0].appliesTo = AppliesTo::Hosts;
        both[1].appliesTo = AppliesTo::Gpus;
        ParameterForm form(both);
        form.display(standard());
        form.setIdle({"stride"});
        QVERIFY(!form.field("bytes")->isHidden() && form.field("stride")->isHidden());
        form.setIdle({"bytes"});
        QVERIFY(form.field("bytes")->isHidden() && !form.field("stride")->isHidden());
        QVERIFY(!form.field("operation")->isHidden());
        Parameters swept = standard();
        swept.setSweep(Sweep{"bytes", {1024.0, 2048.0}});
        form.display(swept);
        QVERIFY(!form.field("bytes")->isHidden()); // or nothing says what the plot is over
    }

    void whatIsSetAndHasNoEffectIsNamed()
    {
        ParameterForm form(schema());
        Parameters now = standard();
        now.set("stride", 16.0);
        form.display(now);
        form.setIdle({"stride", "element"});
        QVERIFY(form.field("stride")->isHidden() && form.field("element")->isHidden());
        QCOMPARE(form.idleText(), QString("Set, but without effect here: stride 16 elements"));
        form.setIdle({"element"});
        QVERIFY(form.idleText().isEmpty());
        // The schema's own default is no choice of the user, also where a page opens with another.
        Parameters other = standard();
        other.set("stride", 32.0);
        form.setStandard(other);
        form.display(standard());
        form.setIdle({"stride"});
        QVERIFY(form.idleText().isEmpty());
    }

    void sectionsFoldAndTellWhatIsChanged()
    {
        Schema grouped = schema();
        setGroup(grouped, "details", {"element", "warm"});
        ParameterForm form(grouped);
        form.display(standard());
        form.show();
        QVERIFY(QTest::qWaitForWindowExposed(&form));
        QCOMPARE(form.sections().size(), std::size_t(1));
        ParameterSection* section = form.sections().front();
        QCOMPARE(section->title(), QString("Details"));
        QVERIFY(!section->isOpen() && !form.field("element")->isVisible() && form.field("stride")->isVisible());
        QCOMPARE(section->header()->accessibleName(), QString("Details, folded"));
        // The keyboard opens it.
        QSignalSpy folded(&form, &ParameterForm::folded);
        section->header()->setFocus();
        QTest::keyClick(section->header(), Qt::Key_Space);
        QVERIFY(section->isOpen() && form.field("element")->isVisible());
        QCOMPARE(folded.size(), 1);
        QCOMPARE(folded.front().at(0).toString(), QString("Details"));
        QCOMPARE(folded.front().at(1).toBool(), true);
        QCOMPARE(section->header()->accessibleName(), QString("Details, unfolded"));
        // A folded heading names what is not at its default.
        QTest::keyClick(section->header(), Qt::Key_Space);
        Parameters now = standard();
        now.set("element", std::string("float64"));
        now.set("warm", true);
        form.display(now);
        QCOMPARE(section->changedText(), QString("element float64 (8 B), warm caches"));
        QCOMPARE(section->header()->accessibleName(),
                 QString("Details, folded, 2 changed: element float64 (8 B), warm caches"));
        form.setStandard(now); // another device's defaults
        QVERIFY(section->changedText().isEmpty());
        // A section of nothing is not there.
        form.setIdle({"element", "warm"});
        QVERIFY(section->isHidden());
        form.setIdle({});
        QVERIFY(!section->isHidden());
    }

    void whatThePageSeesToIsNeverShown()
    {
        ParameterForm form(schema());
        Parameters now = standard();
        now.set("stride", 16.0);
        form.leaveOut("stride");
        form.display(now);
        form.setIdle({});
        QVERIFY(form.field("stride")->isHidden());
        form.setIdle({"stride"});
        QVERIFY(form.idleText().isEmpty());
    }

    void itShowsValuesForPeople()
    {
        ParameterForm form(schema());
        form.display(standard());
        QCOMPARE(edit(form, "bytes")->text(), "1 MiB");
        QCOMPARE(edit(form, "stride")->text(), "4 elements");
        QCOMPARE(form.field("element")->findChild<QComboBox*>()->currentText(), "float32 (4 B)");
        QVERIFY(!form.field("warm")->findChild<QCheckBox*>()->isChecked());
        QCOMPARE(edit(form, "model")->text(), "gpt2");
        Parameters swept = standard();
        swept.setSweep(Sweep{"model", {std::string("gpt2"), std::string("a,b")}});
        form.display(swept);
        QCOMPARE(edit(form, "model")->text(), "\"gpt2\",\"a,b\"");
    }

    void showingReportsNothing()
    {
        ParameterForm form(schema());
        QSignalSpy edited(&form, &ParameterForm::edited);
        form.display(standard());
        QCOMPARE(edited.size(), 0);
    }

    void typing_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("good");
        QTest::newRow("unit") << "bytes"
                              << "24 MiB" << true;
        QTest::newRow("bare number") << "bytes"
                                     << "4096" << true;
        QTest::newRow("sweep") << "stride"
                               << "1:128:x2" << true;
        QTest::newRow("list") << "stride"
                              << "1,2,5" << true;
        QTest::newRow("a word") << "stride"
                                << "many" << false;
        QTest::newRow("too large") << "stride"
                                   << "1e300" << false;
        QTest::newRow("out of range") << "stride"
                                      << "129" << false;
        QTest::newRow("negative") << "stride"
                                  << "-1" << false;
        QTest::newRow("fraction") << "stride"
                                  << "1.5" << false;
        QTest::newRow("not a number") << "bytes"
                                      << "nan" << false;
        QTest::newRow("wrong unit") << "bytes"
                                    << "5 ns" << false;
        QTest::newRow("a text") << "model"
                                << "from-scratch:hidden=1,layers=2" << true;
        QTest::newRow("several texts") << "model"
                                       << "\"gpt2\",\"bert-base\"" << true;
        QTest::newRow("an open quote") << "model"
                                       << "\"gpt2" << false;
        QTest::newRow("broken sweep") << "stride"
                                      << "1:2:3:4" << false;
    }
    void typing()
    {
        QFETCH(QString, key);
        QFETCH(QString, text);
        QFETCH(bool, good);
        ParameterForm form(schema());
        form.display(standard());
        form.show();
        QVERIFY(QTest::qWaitForWindowExposed(&form));
        QSignalSpy edited(&form, &ParameterForm::edited);
        type(edit(form, key.toLatin1()), text);
        QCOMPARE(edited.size(), good ? 1 : 0);
        QCOMPARE(form.field(key)->errorText().isEmpty(), good);
        if (good)
            QCOMPARE(edited.first().at(1).toString(), text);
        else
            QCOMPARE(edit(form, key.toLatin1())->text(), text); // stays for the person to mend
    }

    void escapeBringsTheLastGoodValueBack()
    {
        ParameterForm form(schema());
        form.display(standard());
        form.show();
        QVERIFY(QTest::qWaitForWindowExposed(&form));
        QLineEdit* line = edit(form, "stride");
        type(line, "many");
        QVERIFY(!form.field("stride")->errorText().isEmpty());
        QTest::keyClick(line, Qt::Key_Escape);
        QVERIFY(form.field("stride")->errorText().isEmpty());
        QCOMPARE(line->text(), "4");
    }

    void typingTheShownValueAgainForgetsWhatWasRefused()
    {
        ParameterForm form(schema());
        form.display(standard());
        form.show();
        QVERIFY(QTest::qWaitForWindowExposed(&form));
        for (const auto& [key, wrong, shown] : {std::tuple{"stride", "many", "4"}, {"model", "nosuchmodel", "gpt2"}}) {
            type(edit(form, key), wrong);
            QVERIFY2(!form.field(key)->errorText().isEmpty(), key);
            type(edit(form, key), shown);
            QVERIFY2(form.field(key)->errorText().isEmpty(), key);
        }
    }

    void leavingAFieldUntouchedChangesNothing()
    {
        ParameterForm form(schema());
        Parameters odd = standard();
        odd.set("bytes", 1048577.0); // shown as 1 MiB, which is not the same
        form.display(odd);
        form.show();
        QVERIFY(QTest::qWaitForWindowExposed(&form));
        QSignalSpy edited(&form, &ParameterForm::edited);
        edit(form, "bytes")->setFocus();
        QCOMPARE(edit(form, "bytes")->text(), "1048577");
        edit(form, "stride")->setFocus();
        QCOMPARE(edited.size(), 0);
    }

    void theSliderReportsStopsAndDrags()
    {
        ParameterForm form(schema());
        form.display(standard());
        QSignalSpy edited(&form, &ParameterForm::edited);
        auto* slider = form.field("stride")->findChild<QSlider*>();
        slider->setValue(slider->value() + 1);
        QCOMPARE(edited.size(), 1);
        QCOMPARE(edited.first().at(1).toString(), "5");
        QSignalSpy editing(&form, &ParameterForm::editing);
        slider->setSliderDown(true);
        slider->setSliderDown(false);
        QCOMPARE(editing.size(), 2);
        QCOMPARE(editing.first().first().toBool(), true);
        QCOMPARE(editing.last().first().toBool(), false);
    }

    void chipsAndListsReportKeys()
    {
        ParameterForm form(schema());
        form.display(standard());
        QSignalSpy edited(&form, &ParameterForm::edited);
        const auto chips = form.field("operation")->findChildren<QToolButton*>();
        QCOMPARE(chips.size(), 2);
        chips.at(1)->click();
        QCOMPARE(edited.last().at(1).toString(), "write");
        auto* list = form.field("element")->findChild<QComboBox*>();
        list->setCurrentIndex(3);
        emit list->activated(3);
        QCOMPARE(edited.last().at(1).toString(), "float64");
        form.field("warm")->findChild<QCheckBox*>()->click();
        QCOMPARE(edited.last().at(1).toString(), "true");
    }

    void aSweepIsShownAndEditable()
    {
        ParameterForm form(schema());
        Parameters swept = standard();
        swept.setSweep(Sweep{"stride", {1.0, 2.0, 4.0}});
        form.display(swept);
        QVERIFY(edit(form, "stride")->text().contains("3 values"));
        form.show();
        QVERIFY(QTest::qWaitForWindowExposed(&form));
        edit(form, "stride")->setFocus();
        QCOMPARE(edit(form, "stride")->text(), "1,2,4");
    }

    void choicesFitIntoTheInspector()
    {
        constexpr int room = 294; // of the inspector's 336 pixels, in the font of these tests
        for (const Experiment* experiment : experiments())
            for (const ParameterSpec& spec : experiment->schema())
                if (spec.kind == ParameterKind::Choice) {
                    const ChoiceField field(spec);
                    const int wide = field.minimumSizeHint().width();
                    QVERIFY2(
                        wide <= room || QFontMetrics(field.font()).averageCharWidth() > 8,
                        qPrintable(QString("%1 %2: %3").arg(experiment->id().c_str(), spec.key.c_str()).arg(wide)));
                }
    }

    void aSweptListIsAsWideAsAnother()
    {
        ParameterForm form(schema());
        form.display(standard());
        const int before = form.field("element")->sizeHint().width();
        Parameters swept = standard();
        swept.setSweep(Sweep{"element", {std::string("int8"), std::string("float16"), std::string("float32")}});
        form.display(swept);
        QCOMPARE(form.field("element")->sizeHint().width(), before);
    }
};

QTEST_MAIN(TestParameterForm)
#include "tst_parameter_form.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of a network's memory as a person uses them: see that it does not fit, take an advice
// as one step of the history, take it back, let the program look for what fits.
#include "app/pages/fields/model_field.h"
#include "app/pages/memory_extension.h"
#include "app/pictures/training-memory/moment_picture.h"
#include "app/pictures/training-memory/training_memory_picture.h"
#include "app/plots/part_colours.h"
#include "app/settings/theme.h"
#include "tests/support/memory_detail.h"
#include "tests/support/page_fixture.h"

#include <nlohmann/json.hpp>

#include <QApplication>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QUndoStack>

#include <algorithm>
#include <cmath>

using namespace memscape;

namespace {

constexpr auto memory = "training-memory";

TrainingMemoryPicture& budget(ExperimentPage& page)
{
    return *qobject_cast<TrainingMemoryPicture*>(page.picture());
}

std::optional<MemoryButton> buttonOf(TrainingMemoryPicture& picture, MemoryItem item, const QString& label = {})
{
    const TrainingMemoryState state = picture.state();
    for (const MemoryButton& button : picture.layoutNow().buttons) {
        const LeverCard* card = cardOf(state, button);
        if (button.item == item && (label.isEmpty() || (card && card->label == label)))
            return button;
    }
    return std::nullopt;
}

void click(TrainingMemoryPicture& picture, const MemoryButton& button)
{
    QTest::mouseClick(&picture, Qt::LeftButton, {}, button.rect.center().toPoint());
}

const MemoryExtension& memoryOf(const ExperimentPage& page)
{
    return *qobject_cast<MemoryExtension*>(page.extension());
}

double figure(const ExperimentPage& page, const char* key)
{
    const Figure* found = page.prediction() ? findFigure(page.prediction()->predicted->figures, key) : nullptr;
    return found ? found->number() : std::nan("");
}

} // namespace

class TestMemoryPage : public QObject
{
    Q_OBJECT

    std::unique_ptr<PageFixture> m_fixture;

    /// GPT-2 with a batch that is too much for a small GPU.
    std::unique_ptr<ExperimentPage> open(const std::string& id = {}, const char* batch = "64")
    {
        return m_fixture->openStepOfGpt2(id, batch);
    }

private slots:
    void init()
    {
        applyTheme(*qApp, QStringLiteral("dark"));
        m_fixture = std::make_unique<PageFixture>();
    }

    // GPT-2 knows 1024 positions: the page offers them instead of staying dead.
    void aSequenceBeyondThePositionsHasItsRemedy()
    {
        auto page = open();
        page->inspector()->form()->edited(QStringLiteral("sequence"), QStringLiteral("2048"));
        QTRY_VERIFY(page->findChild<QPushButton*>(QStringLiteral("noteAction")));
        auto* offer = page->findChild<QPushButton*>(QStringLiteral("noteAction"));
        QTRY_COMPARE(offer->text(), QStringLiteral("sequence: 1024 tokens"));
        QVERIFY(page->inspector()->form()->field("sequence")->errorText().contains("1024 positions"));
        offer->click();
        QCOMPARE(page->parameters().integer("sequence"), 1024);
        QTRY_VERIFY(page->upToDate() && figure(*page, "device_total") > 0);
    }

    // A refused combination is said at its field, proposes what would do, and moves nothing on the page.
    void aRefusalStandsAtItsFieldAndProposes()
    {
        auto page = open();
        ParameterForm& form = *page->inspector()->form();
        QVERIFY(page->setText("checkpointing", "block"));
        QTRY_VERIFY(page->upToDate() && page->prediction());
        const int height = page->inspector()->headlines()->height();
        form.edited(QStringLiteral("compile"), QStringLiteral("inductor"));
        QTRY_VERIFY(page->upToDate() && !page->prediction());
        QVERIFY2(form.field("compile")->errorText().contains("not modelled with checkpointing"),
                 qPrintable(form.field("compile")->errorText()));
        QVERIFY(form.field("checkpointing")->errorText().isEmpty());
        QVERIFY(page->header()->answer().startsWith("No answer: "));
        QVERIFY(page->inspector()->headlines()->isVisible());
        QCOMPARE(page->inspector()->headlines()->height(), height);
        QVERIFY2(page->inspector()->headlines()->texts().first().endsWith("no value"),
                 qPrintable(page->inspector()->headlines()->texts().first()));
        auto* offer = page->findChild<QPushButton*>(QStringLiteral("noteAction"));
        QCOMPARE(offer->text(), QStringLiteral("compile: Inductor, by layers"));
        offer->click();
        QTRY_VERIFY(page->upToDate() && page->prediction());
        QCOMPARE(page->parameters().choice("compile"), std::string("layers"));
        QVERIFY(form.field("compile")->errorText().isEmpty());
        QVERIFY(offer->isHidden() || !offer->text().startsWith("compile"));
    }

    // An L4 has no catalogued link: the page says what it lacks, and leads to the field that takes it.
    void aMissingLinkIsAskedFor()
    {
        auto page = open({}, "8");
        m_fixture->document.setDevice(memory, "nvidia-l4");
        QVERIFY(page->setText("data_parallel", "8"));
        QTRY_VERIFY(page->upToDate() && page->prediction());
        QVERIFY(std::isnan(figure(*page, "step_time")));
        const QString note = page->inspector()->noteText();
        QVERIFY2(note.contains("No time: the bandwidth between devices of this kind is not known"), qPrintable(note));
        for (const LeverCard& card : budget(*page).state().memory.levers)
            QVERIFY2(std::isnan(card.timeChange), qPrintable(card.label)); // not "the same time"
        page->activateWindow();
        auto* offer = page->findChild<QPushButton*>(QStringLiteral("noteAction"));
        QVERIFY(!offer->isHidden());
        offer->click();
        ParameterField* link = page->inspector()->form()->field("link_bandwidth");
        QVERIFY(link->isVisible());
        QTRY_VERIFY(link->isAncestorOf(QApplication::focusWidget()));
        QTest::keyClicks(QApplication::focusWidget(), "32GB/s");
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_VERIFY(page->upToDate() && figure(*page, "step_time") > 0);
        QVERIFY(!page->inspector()->noteText().contains("No time"));
    }

    // What the first line names is the largest part at the peak, as the bar shows it.
    void theAnswerNamesThePartAtThePeak()
    {
        auto page = open({}, "8");
        QTRY_VERIFY(page->upToDate() && page->prediction());
        const QString answer = page->header()->answer();
        const Figure& peak = *findFigure(page->prediction()->predicted->figures, "peak_allocated");
        double most = 0;
        for (const Json& part : page->prediction()->predicted->detail.at("parts"))
            most = std::max(most, part.at("bytes").get<double>());
        QVERIFY(most > 0 && most < peak.number());
        QVERIFY2(answer.contains(QString::fromStdString(quantityText(most, Unit::Byte))), qPrintable(answer));
    }

    void anUnknownArchitectureIsSaidByTheTitle()
    {
        auto page = open();
        QTemporaryDir folder;
        QFile file(folder.filePath(QStringLiteral("config.json")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(
            R"({"model_type": "frobnicator9", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                       "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 4096})");
        file.close();
        auto* caution = page->header()->findChild<QLabel*>(QStringLiteral("caution"));
        QVERIFY(caution != nullptr && caution->isHidden());
        page->inspector()->form()->edited(QStringLiteral("model"), file.fileName());
        QTRY_VERIFY(page->inspector()->noteText().contains(QStringLiteral("frobnicator9"))); // refused
        auto* offer = page->findChild<QPushButton*>(QStringLiteral("noteAction"));
        QTRY_COMPARE(offer->text(), QStringLiteral("unknown architecture: is like LLaMA"));
        offer->click();
        QTRY_VERIFY(!caution->isHidden());
        QVERIFY(caution->text().startsWith(QStringLiteral("The architecture \"frobnicator9\"")));
        page->inspector()->form()->edited(QStringLiteral("model"), QStringLiteral("gpt2"));
        QTRY_VERIFY(caution->isHidden());
    }

    void aLeverIsOneStepAndTakesItselfBack()
    {
        auto page = open();
        TrainingMemoryPicture& picture = budget(*page);
        QTRY_VERIFY(page->upToDate() && !picture.state().memory.levers.empty());
        QVERIFY(!picture.state().memory.fits);
        QCOMPARE(figure(*page, "fits"), 0.0);
        const LeverCard lever = picture.state().memory.levers.front();
        const Parameters before = page->parameters();
        const double total = figure(*page, "device_total");
        const int steps = m_fixture->document.undoStack()->count();

        click(picture, *buttonOf(picture, MemoryItem::Card, lever.label));
        QCOMPARE(m_fixture->document.undoStack()->count(), steps + 1);
        QCOMPARE(m_fixture->document.undoStack()->undoText(), lever.label);
        QTRY_VERIFY(page->upToDate());
        QVERIFY(std::abs(figure(*page, "device_total") - (total - lever.saving)) < 1.0); // as it was promised

        const auto applied = buttonOf(picture, MemoryItem::Applied, lever.label);
        QVERIFY(applied.has_value());
        click(picture, *applied);
        QCOMPARE(page->parameters(), before);
        QCOMPARE(m_fixture->document.undoStack()->count(), steps + 2);
        m_fixture->document.undoStack()->undo();
        m_fixture->document.undoStack()->undo();
        QCOMPARE(page->parameters(), before);
        QTRY_VERIFY(page->upToDate());
        QVERIFY(!buttonOf(picture, MemoryItem::Applied));
    }

    void theKeyboardReachesTheLevers()
    {
        auto page = open();
        TrainingMemoryPicture& picture = budget(*page);
        QTRY_VERIFY(page->upToDate() && !picture.state().memory.levers.empty());
        const int steps = m_fixture->document.undoStack()->count();
        picture.setFocus(Qt::TabFocusReason);
        for (const int key : {Qt::Key_Down, Qt::Key_Right, Qt::Key_Left, Qt::Key_Return})
            QTest::keyClick(&picture, Qt::Key(key));
        QCOMPARE(m_fixture->document.undoStack()->count(), steps + 1);
        QTRY_VERIFY(page->upToDate());
        QVERIFY(buttonOf(picture, MemoryItem::Applied));
    }

    void makeItFitDoes()
    {
        auto page = open();
        TrainingMemoryPicture& picture = budget(*page);
        QTRY_VERIFY(page->upToDate() && !picture.state().memory.levers.empty());
        const int steps = m_fixture->document.undoStack()->count();
        click(picture, *buttonOf(picture, MemoryItem::MakeItFit));
        QTRY_COMPARE_WITH_TIMEOUT(picture.state().view, TrainingMemoryView::Fit, 20000);
        const FitAnswer fit = *picture.state().memory.fit;
        QVERIFY(!fit.combinations.empty());
        QVERIFY(fit.tried > 1);
        QCOMPARE(m_fixture->document.undoStack()->count(), steps); // it only proposes
        click(picture, *buttonOf(picture, MemoryItem::Card));
        QCOMPARE(m_fixture->document.undoStack()->count(), steps + 1);
        QTRY_VERIFY(page->upToDate());
        QCOMPARE(figure(*page, "fits"), 1.0);
        QCOMPARE(picture.state().view, TrainingMemoryView::Levers);
        m_fixture->document.undoStack()->undo();
        QTRY_VERIFY(page->upToDate());
        QCOMPARE(figure(*page, "fits"), 0.0);
    }

    void aSearchCanBeGivenUp()
    {
        auto page = open();
        TrainingMemoryPicture& picture = budget(*page);
        QTRY_VERIFY(page->upToDate() && !picture.state().memory.levers.empty());
        picture.activate(*buttonOf(picture, MemoryItem::MakeItFit));
        if (const auto cancel = buttonOf(picture, MemoryItem::Cancel)) // it may have been quicker than we
            picture.activate(*cancel);
        QTRY_VERIFY(page->upToDate());
        QCOMPARE(picture.state().view, TrainingMemoryView::Levers);
    }

    void theTimelineIsThePeak()
    {
        auto page = open();
        QTRY_VERIFY(page->upToDate() && page->prediction());
        const MemoryTimeline& timeline = memoryOf(*page).timeline();
        QVERIFY(!timeline.event.empty());
        const std::vector<double> totals = timeline.totals();
        QVERIFY(timeline.outOfMemory.has_value());
        QVERIFY(timeline.phases.size() >= 3);
        double areas = 0;
        for (const Curve& curve : page->plot()->view()->curves())
            areas += curve.role == CurveRole::Area ? 1 : 0;
        QCOMPARE(areas, double(timeline.categories.size()));
        // Blocks are rounded up to 512 B each: the allocator's peak is not below the tensors'.
        QVERIFY(*std::ranges::max_element(totals) <= figure(*page, "peak_allocated"));
    }

    void outOfMemoryBeforeTheStepBeginsIsTold()
    {
        MemoryTimeline timeline;
        timeline.event = {100, 110, 120};
        timeline.categories = {{"weights", "weights", {60, 60, 60}}};
        timeline.capacity = 40;
        timeline.outOfMemory = OutOfMemoryPoint{30, "setup", "layers.7", "weight", 5};
        const MemoryPlot early = memoryPlot(timeline, ByteStyle::Binary);
        QCOMPARE(early.callouts.size(), std::size_t(1));
        QCOMPARE(early.callouts[0].x, 100.0); // in sight
        QCOMPARE(early.callouts[0].y, 40.0);  // on the line
        QVERIFY(early.callouts[0].title.contains("before the step"));
        timeline.outOfMemory->event = 110;
        const MemoryPlot later = memoryPlot(timeline, ByteStyle::Binary);
        QCOMPARE(later.callouts[0].x, 110.0);
        QVERIFY(!later.callouts[0].title.contains("before"));
        QVERIFY(memoryPlot({}, ByteStyle::Binary).callouts.empty());
    }

    void aStepThatCannotBeTakesItsDrawingAway()
    {
        auto page = open("step-timeline", "4");
        QTRY_VERIFY(page->upToDate() && page->prediction());
        const QString title = page->plot()->view()->title();
        QVERIFY(page->setText("model", "gpt2"));
        QVERIFY(page->setText("sequence", "2048")); // it has 1024 positions
        QTRY_VERIFY(page->upToDate() && !page->prediction());
        QVERIFY(page->inspector()->noteText().contains("at most 1024"));
        QVERIFY(page->plot()->view()->curves().empty());
        QVERIFY(page->setText("sequence", "128"));
        QTRY_VERIFY(page->upToDate() && page->prediction());
        QVERIFY(!page->plot()->view()->curves().empty());
        QCOMPARE(page->plot()->view()->title(), title);
    }

    void aPinnedStepLiesOverThisOne()
    {
        auto page = open("step-timeline", "4");
        QTRY_VERIFY(page->upToDate() && page->prediction());
        Record other = *page->prediction();
        other.pinned = true;
        m_fixture->document.addRecord(other);
        QVERIFY(page->setText("optimizer", "sgd")); // a step with other events
        QTRY_VERIFY(page->upToDate() && memoryOf(*page).timeline().event.size() > 1);
        const auto& now = memoryOf(*page).timeline().event;
        const auto& curves = page->plot()->view()->curves();
        const auto pinned = std::ranges::find(curves, CurveRole::Pinned, &Curve::role);
        QVERIFY(pinned != curves.end());
        QVERIFY(!pinned->x.empty());
        QVERIFY(pinned->x.front() >= now.front());
        QVERIFY(pinned->x.back() <= now.back());
    }

    void twoPagesShareTheirParameters()
    {
        auto page = open();
        auto steps =
            std::make_unique<ExperimentPage>(**findExperiment(memory), m_fixture->services(), nullptr, "step-timeline");
        QCOMPARE(steps->title(), QStringLiteral("Step timeline"));
        QVERIFY(qobject_cast<MomentPicture*>(steps->picture()));
        QVERIFY(steps->setText(QStringLiteral("batch"), QStringLiteral("8")));
        QCOMPARE(page->parameters().integer("batch"), 8);
        m_fixture->document.setPage("step-timeline");
        m_fixture->document.undoStack()->undo();
        QCOMPARE(m_fixture->document.page(),
                 "step-timeline"); // what was undone is to be seen there too
        QCOMPARE(page->parameters().integer("batch"), 64);
    }

    void aBrokenConfigurationIsToldInPlace()
    {
        auto page = open();
        QTemporaryDir folder;
        QFile file(folder.filePath(QStringLiteral("config.json")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(R"({"model_type":"llama","hidden_size":-4})");
        file.close();
        const Parameters before = page->parameters();
        page->proposeText(QStringLiteral("model"), file.fileName());
        QVERIFY(!page->inspector()->form()->field(QStringLiteral("model"))->errorText().isEmpty());
        QCOMPARE(page->parameters(), before);
    }

    void aFileIsOpenedByTheButton()
    {
        auto page = open();
        auto* field = qobject_cast<ModelField*>(page->inspector()->form()->field(QStringLiteral("model")));
        QVERIFY(field);
        field->askFile = [] { return QStringLiteral("gpt2-medium"); };
        QTest::mouseClick(field->findChild<QWidget*>(QStringLiteral("openModel")), Qt::LeftButton);
        QCOMPARE(page->parameters().text("model"), "gpt2-medium");
    }

    void figuresSayYesOrNo()
    {
        auto page = open();
        QTRY_VERIFY(page->upToDate());
        const FiguresModel& figures = *page->inspector()->figures()->figures();
        bool found = false;
        for (int row = 0; row < figures.rowCount(); ++row) {
            if (figures.index(row, 0).data(FiguresModel::KeyRole).toString() != QLatin1String("fits"))
                continue;
            found = true;
            QCOMPARE(figures.index(row, FiguresModel::PredictedColumn).data().toString(), QStringLiteral("no"));
        }
        QVERIFY(found);
    }

    void aSingleGpuHasNoFullestRankAndSendsNothing()
    {
        auto page = open();
        const auto keys = [&] {
            QStringList names;
            for (const FigureRow& row : page->inspector()->figures()->figures()->rows())
                names << row.key;
            return names;
        };
        QTRY_VERIFY(page->upToDate() && keys().contains("step_time"));
        QVERIFY(!keys().contains("fullest_rank") && !keys().contains("communication"));
        QVERIFY(page->setText("pipeline_parallel", "2"));
        QTRY_VERIFY(page->upToDate() && keys().contains("fullest_rank") && keys().contains("communication"));
    }

    void nothingMeasuresItYetAndThePageSaysWhy()
    {
        auto page = open();
        QVERIFY(!page->header()->measureButton()->isEnabled());
        QVERIFY(page->header()->measureButton()->toolTip().contains(QStringLiteral("PyTorch")));
    }

    void unitsFollowTheSwitch()
    {
        auto page = open();
        QTRY_VERIFY(page->upToDate());
        m_fixture->settings.setByteStyle(ByteStyle::Decimal);
        QTRY_VERIFY(page->upToDate());
        QVERIFY(budget(*page).layoutNow().neededText.contains(QStringLiteral(" GB")));
        m_fixture->settings.setByteStyle(ByteStyle::Binary);
        QTRY_VERIFY(page->upToDate());
        QVERIFY(budget(*page).layoutNow().neededText.contains(QStringLiteral(" GiB")));
        QVERIFY(!budget(*page).layoutNow().neededText.contains(QStringLiteral(" GB")));
    }

    void aMeasuredTraceLiesOnItsPhases()
    {
        const MemoryTimeline predicted = readTimeline(memoryDetail()["timeline"]);
        MemoryTimeline measured = predicted;
        measured.phases[0].begin = 0;
        measured.phases[0].end = 300;
        measured.phases[1].begin = 301;
        measured.phases[1].end = 400;
        Curve curve;
        curve.x = {0, 150, 300, 301, 400};
        curve.y = {1, 2, 3, 2, 1};
        const Curve aligned = alignedCurve(curve, measured, predicted);
        QCOMPARE(aligned.x, (std::vector<double>{10, 20, 30, 31, 50}));
        QCOMPARE(aligned.y, curve.y);
    }

    void partsReadOnTheirColours()
    {
        for (const Theme* theme : {&lightTheme(), &darkTheme()}) {
            for (const char* key :
                 {"weights", "master_weights", "gradients", "optimizer_state", "activations", "temporary",
                  "communication", "key_value_cache", "workspace", "input", "reserved_unused", "context", "unknown"}) {
                const QColor colour = partColour(*theme, partIndex(key));
                QVERIFY2(contrast(textOn(colour), colour) >= 4.5, key);
            }
        }
    }
};

QTEST_MAIN(TestMemoryPage)
#include "tst_memory_page.moc"

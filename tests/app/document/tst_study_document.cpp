// SPDX-License-Identifier: GPL-3.0-or-later
// Edits as a person makes them: what changes, which signals are sent, what one undo takes back.
#include "app/document/study_document.h"
#include "tests/support/sample_study.h"

#include <QTest>
#include <QUndoStack>

#include <algorithm>

using namespace memscape;

namespace {

/// Counts events by their place in the variant and keeps the last.
struct Listener
{
    explicit Listener(StudyDocument& document)
    {
        QObject::connect(&document, &StudyDocument::changed, &document,
                         [this](const ChangeEvent& event) { events.push_back(event); });
    }
    template <typename Event> int count() const
    {
        return static_cast<int>(
            std::ranges::count_if(events, [](const auto& event) { return std::holds_alternative<Event>(event); }));
    }
    std::vector<ChangeEvent> events;
};

} // namespace

class TestStudyDocument : public QObject
{
    Q_OBJECT
private slots:
    void aNewStudyHasDefaultsAndNoFile()
    {
        const StudyDocument document;
        QVERIFY(document.fileName().isEmpty());
        QVERIFY(!document.isModified());
        QVERIFY(!document.isReadOnly());
        QCOMPARE(document.parameters("stride"), sample::parameters());
        QVERIFY(document.device("stride").empty());
        QVERIFY(document.viewSetting("stride", "logX").is_null());
        QVERIFY(document.parameters("no-such-experiment").values().empty());
    }

    void oneParameterIsOneStep()
    {
        StudyDocument document;
        Listener listener(document);
        document.setParameter("stride", "stride", 5.0);
        QCOMPARE(document.parameters("stride").integer("stride"), 5);
        QCOMPARE(document.parameters("hierarchy"), StudyDocument().parameters("hierarchy"));
        QCOMPARE(listener.count<ParametersChanged>(), 1);
        QCOMPARE(listener.count<ModifiedChanged>(), 1);
        QVERIFY(document.isModified());
        QVERIFY(document.undoStack()->undoText().contains(QStringLiteral("stride")));
        document.undoStack()->undo();
        QCOMPARE(document.parameters("stride"), sample::parameters());
        QVERIFY(!document.isModified());
        QCOMPARE(listener.count<ParametersChanged>(), 2);
    }

    void settingWhatItIsAlreadyIsNoStep()
    {
        StudyDocument document;
        Listener listener(document);
        document.setParameters("stride", document.parameters("stride"), QStringLiteral("x"));
        document.setDevice("stride", "");
        document.setViewSetting("stride", "logX", Json());
        QCOMPARE(document.undoStack()->count(), 0);
        QVERIFY(listener.events.empty());
    }

    void aDragIsOneStepAndVanishesWhenItEndsWhereItBegan()
    {
        StudyDocument document;
        document.setParameter("stride", "stride", 2.0);
        const int drag = document.newGesture();
        for (double stride : {3.0, 8.0, 64.0, 32.0})
            document.setParameter("stride", "stride", stride, drag);
        QCOMPARE(document.undoStack()->count(), 2);
        document.undoStack()->undo();
        QCOMPARE(document.parameters("stride").integer("stride"), 2);
        document.undoStack()->redo();
        QCOMPARE(document.parameters("stride").integer("stride"), 32);

        const int there = document.newGesture();
        document.setParameter("stride", "stride", 64.0, there);
        document.setParameter("stride", "stride", 32.0, there);
        QCOMPARE(document.undoStack()->count(), 2);
        QCOMPARE(document.parameters("stride").integer("stride"), 32);
    }

    void aDragFromAndToWhereAPageOpensLeavesNothing()
    {
        StudyDocument document;
        const double opened = double(document.parameters("stride").integer("stride"));
        const int drag = document.newGesture();
        for (const double stride : {opened * 2, opened * 4, opened})
            document.setParameter("stride", "stride", stride, drag);
        QCOMPARE(document.undoStack()->count(), 0);
        QVERIFY(!document.isModified());
        document.setParameter("stride", "stride", opened * 2, drag); // the same drag goes on
        QVERIFY(document.isModified());
        document.undoStack()->undo();
        QCOMPARE(double(document.parameters("stride").integer("stride")), opened);
    }

    void twoDragsAndTwoParametersStayApart()
    {
        StudyDocument document;
        document.setParameter("stride", "stride", 2.0, document.newGesture());
        const int second = document.newGesture();
        document.setParameter("stride", "stride", 3.0, second);
        document.setParameter("stride", "offset", 1.0, second);
        document.setParameter("stride", "offset", 2.0); // typed, not dragged
        document.setParameter("stride", "offset", 3.0);
        QCOMPARE(document.undoStack()->count(), 5);
    }

    void aSweptParameterThatIsGivenAValueIsSweptNoLonger()
    {
        StudyDocument document;
        document.setSweep("stride", Sweep{"stride", {1.0, 2.0, 4.0}});
        QVERIFY(document.parameters("stride").sweep().has_value());
        document.setParameter("stride", "element", std::string("float64"));
        QVERIFY(document.parameters("stride").sweep().has_value());
        document.setParameter("stride", "stride", 8.0);
        QVERIFY(!document.parameters("stride").sweep().has_value());
        document.undoStack()->undo();
        QCOMPARE(document.parameters("stride").sweep()->values.size(), 3u);
    }

    void recordsAreAddedNamedPinnedAndDeleted()
    {
        StudyDocument document;
        Listener listener(document);
        for (const char* name : {"a", "b", "c"})
            document.addRecord(sample::record(name));
        const auto names = [&] {
            std::string text;
            for (const Record& record : document.records())
                text += record.name + (record.pinned ? "!" : "") + record.note;
            return text;
        };
        QCOMPARE(names(), std::string("abc"));
        document.setRecordPinned(1, true);
        document.setRecordNote(1, "?");
        document.renameRecord(0, "A");
        QCOMPARE(names(), std::string("Ab!?c"));
        document.removeRecord(1);
        QCOMPARE(names(), std::string("Ac"));
        QCOMPARE(listener.count<RecordAdded>(), 3);
        QCOMPARE(listener.count<RecordRenamed>(), 1);
        QCOMPARE(listener.count<RecordChanged>(), 2);
        QCOMPARE(listener.count<RecordRemoved>(), 1);
        document.undoStack()->undo();
        QCOMPARE(names(), std::string("Ab!?c"));
        document.undoStack()->setIndex(3);
        QCOMPARE(names(), std::string("abc"));
    }

    void oneRecordOfAnExperimentIsTheBaseline()
    {
        StudyDocument document;
        for (const char* name : {"a", "b", "c"})
            document.addRecord(sample::record(name));
        Record elsewhere = sample::record("other");
        elsewhere.experiment = "hierarchy";
        document.addRecord(elsewhere);
        const auto baseline = [&](const char* experiment) {
            const auto index = baselineOf(document.records(), experiment);
            return index ? int(*index) : -1;
        };
        QCOMPARE(baseline("stride"), -1);
        document.setBaseline(3, true);
        document.setBaseline(0, true);
        const int before = document.undoStack()->count();
        document.setBaseline(1, true);
        QCOMPARE(document.undoStack()->count(), before + 1); // one step, though two records change
        QVERIFY(!document.records()[0].baseline);
        QCOMPARE(baseline("stride"), 1);
        QCOMPARE(baseline("hierarchy"), 3); // another experiment keeps its own
        document.undoStack()->undo();
        QCOMPARE(baseline("stride"), 0);
        document.setBaseline(0, false);
        QCOMPARE(baseline("stride"), -1);
        document.setBaseline(7, true);
        QCOMPARE(document.undoStack()->count(), before + 1);
    }

    void foreignIndicesDoNothing()
    {
        StudyDocument document;
        document.removeRecord(0);
        document.renameRecord(7, "x");
        document.setRecordNote(7, "x");
        document.setRecordPinned(7, true);
        document.addRecords({}, QStringLiteral("nothing"));
        QCOMPARE(document.undoStack()->count(), 0);
    }

    void severalRecordsAreOneStep()
    {
        StudyDocument document;
        document.addRecord(sample::record("first"));
        document.addRecords({sample::record("x"), sample::record("y")}, QStringLiteral("Import 2 records"));
        QCOMPARE(document.undoStack()->undoText(), QStringLiteral("Import 2 records"));
        document.undoStack()->undo();
        QCOMPARE(document.records().size(), 1u);
        document.undoStack()->redo();
        QCOMPARE(document.records().at(2).name, std::string("y"));
    }

    void undoingShowsThePageItHappenedOn()
    {
        StudyDocument document;
        document.setPage("stride");
        document.setParameter("stride", "stride", 5.0);
        document.setPage("hierarchy");
        QVERIFY(document.page() == "hierarchy");
        Listener listener(document);
        document.undoStack()->undo();
        QVERIFY(document.page() == "stride");
        QCOMPARE(listener.count<PageChanged>(), 1);
    }

    void lookingAtAnotherPageIsNoModification()
    {
        StudyDocument document;
        document.setPage("hierarchy");
        QVERIFY(!document.isModified());
        QCOMPARE(document.undoStack()->count(), 0);
        QVERIFY(document.study().view["page"] == Json("hierarchy"));
    }
};

QTEST_GUILESS_MAIN(TestStudyDocument)
#include "tst_study_document.moc"

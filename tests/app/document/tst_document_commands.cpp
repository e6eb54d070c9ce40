// SPDX-License-Identifier: GPL-3.0-or-later
// The property that undo stands on: after any edits, undo all gives the bytes of the start, redo
// all the bytes of the end, and so does every place between.
#include "app/document/study_document.h"
#include "tests/support/sample_study.h"

#include <QTest>
#include <QUndoStack>

#include <random>

using namespace memscape;

namespace {

class Editor
{
public:
    Editor(StudyDocument& document, unsigned seed)
        : m_document(document)
        , m_random(seed)
    { }

    void edit()
    {
        const std::string page = pick(2) == 0 ? "stride" : "hierarchy";
        const std::string text = std::to_string(pick(4));
        const auto index = static_cast<std::size_t>(pick(6)); // now and then beyond the end
        const int gesture = pick(2) == 0 ? 0 : 1 + pick(2);
        switch (pick(11)) {
        case 0: m_document.setParameter("stride", "stride", 1.0 + pick(3), gesture); break;
        case 1: m_document.setParameter("stride", "element", pickElement(), gesture); break;
        case 2: m_document.setParameter("hierarchy", "working_set", 4096.0 * (1 + pick(3)), gesture); break;
        case 3:
            m_document.setSweep("stride", pick(2) == 0 ? std::optional<Sweep>() : Sweep{"stride", {1.0, 2.0}});
            break;
        case 4: m_document.setDevice(page, "device-" + text); break;
        case 5:
            m_document.setViewSetting(pick(3) == 0 ? "" : page, "logX", pick(3) == 0 ? Json() : Json(pick(2) == 0));
            break;
        case 6: m_document.addRecords({sample::record(text), sample::record("r" + text)}, QStringLiteral("two")); break;
        case 7: m_document.removeRecord(index); break;
        case 8: m_document.renameRecord(index, text); break;
        case 9: m_document.setRecordNote(index, text, gesture); break;
        default: m_document.setRecordPinned(index, pick(2) == 0);
        }
    }

private:
    int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(m_random); }
    std::string pickElement() { return pick(2) == 0 ? "float32" : "float64"; }

    StudyDocument& m_document;
    std::mt19937 m_random;
};

/// The page that is shown is no part of the history: the same one for every comparison.
std::string textOf(StudyDocument& document)
{
    document.setPage("stride");
    return document.text();
}

} // namespace

class TestCommands : public QObject
{
    Q_OBJECT
private slots:
    void undoAllIsTheStartRedoAllIsTheEnd_data()
    {
        QTest::addColumn<unsigned>("seed");
        for (unsigned seed = 1; seed <= 10; ++seed)
            QTest::addRow("seed %u", seed) << seed;
    }
    void undoAllIsTheStartRedoAllIsTheEnd()
    {
        QFETCH(unsigned, seed);
        StudyDocument document;
        document.addRecord(sample::record("already there"));
        document.undoStack()->clear();
        const std::string start = textOf(document);

        Editor editor(document, seed);
        for (int i = 0; i < 40; ++i)
            editor.edit();
        const std::string end = textOf(document);
        QVERIFY(end != start);

        QUndoStack& history = *document.undoStack();
        std::vector<std::string> states; // from the newest back
        while (history.canUndo()) {
            states.push_back(textOf(document));
            history.undo();
        }
        QCOMPARE(textOf(document), start);
        QVERIFY(!document.isModified());
        for (auto state = states.rbegin(); state != states.rend(); ++state) {
            history.redo();
            QCOMPARE(textOf(document), *state);
        }
        QCOMPARE(textOf(document), end);
    }

    void editsInTheMiddleOfTheHistoryKeepTheProperty()
    {
        StudyDocument document;
        const std::string start = textOf(document);
        Editor editor(document, 7);
        for (int round = 0; round < 10; ++round) {
            for (int i = 0; i < 10; ++i)
                editor.edit();
            document.undoStack()->setIndex(document.undoStack()->index() / 2);
        }
        document.undoStack()->setIndex(0);
        QCOMPARE(textOf(document), start);
    }

    void savingInTheMiddleOfADragKeepsBothHalves()
    {
        StudyDocument document;
        const int drag = document.newGesture();
        document.setParameter("stride", "stride", 2.0, drag);
        document.undoStack()->setClean();
        document.setParameter("stride", "stride", 3.0, drag);
        QVERIFY(document.isModified());
        document.undoStack()->undo();
        QVERIFY(!document.isModified());
        QCOMPARE(document.parameters("stride").integer("stride"), 2);
    }
};

QTEST_GUILESS_MAIN(TestCommands)
#include "tst_document_commands.moc"

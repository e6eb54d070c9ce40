// SPDX-License-Identifier: GPL-3.0-or-later
// Opening, saving, two windows on one file, and what other programs do to it meanwhile.
#include "app/document/study_document.h"
#include "core/base/file.h"
#include "tests/support/sample_study.h"

#include <QDir>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <unistd.h>

using namespace memscape;

class TestStudyFile : public QObject
{
    Q_OBJECT
    QTemporaryDir m_folder;

    QString path(const char* name) const { return m_folder.filePath(QLatin1String(name)); }
    static std::string contentOf(const QString& path) { return readFile(path.toStdString()).value_or("(none)"); }
    static void write(const QString& path, const std::string& content)
    {
        sample::mustWork(writeFileAtomically(path.toStdString(), content));
    }
    /// A saved study with one record.
    QString savedStudy(const char* name) const
    {
        StudyDocument document;
        document.addRecord(sample::record("saved"));
        sample::mustWork(document.saveAs(path(name)));
        return path(name);
    }

private slots:
    void saveAsThenOpenGivesTheSame()
    {
        StudyDocument written;
        written.addRecord(sample::record("one"));
        QCOMPARE(written.save().error().code, std::string("document.untitled"));
        QVERIFY(written.saveAs(path("one.memscape")));
        QVERIFY(!written.isModified());
        QCOMPARE(written.displayName(), QStringLiteral("one.memscape"));
        QCOMPARE(contentOf(path("one.memscape")), written.text());

        written.renameRecord(0, "two");
        QVERIFY(written.isModified());
        QVERIFY(written.save());
        QVERIFY(!written.isModified());
        const std::string text = written.text();
        written.newStudy(); // gives the lock back
        QVERIFY(written.records().empty());

        StudyDocument read;
        QVERIFY(read.open(path("one.memscape")));
        QVERIFY(!read.isReadOnly());
        QVERIFY(!read.isModified());
        QCOMPARE(read.text(), text);
    }

    void aFailedOpenLeavesTheStudyAsItIs_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QByteArray>("code");
        QTest::newRow("empty") << QByteArray() << QByteArray("json.syntax");
        QTest::newRow("not JSON") << QByteArray("\x7f"
                                                "ELF")
                                  << QByteArray("json.syntax");
        QTest::newRow("truncated") << QByteArray("{\"format\": \"memscape-study\", \"ver") << QByteArray("json.syntax");
        QTest::newRow("foreign") << QByteArray(R"({"model_type": "llama"})") << QByteArray("document.format");
        QTest::newRow("another document")
            << QByteArray(R"({"format": "memscape-device", "version": 1})") << QByteArray("document.format");
        QTest::newRow("wrong type") << QByteArray(R"({"format": "memscape-study", "version": 1, "records": {}})")
                                    << QByteArray("json.type");
        QTest::newRow("deep") << QByteArray(100000, '[') << QByteArray("json.limit");
    }
    void aFailedOpenLeavesTheStudyAsItIs()
    {
        QFETCH(QByteArray, content);
        QFETCH(QByteArray, code);
        write(path("bad.memscape"), content.toStdString());
        StudyDocument document;
        document.setDevice("stride", "mine");
        const std::string before = document.text();
        const auto opened = document.open(path("bad.memscape"));
        QVERIFY(!opened);
        QCOMPARE(QByteArray::fromStdString(opened.error().code), code);
        QVERIFY(opened.error().text().find("bad.memscape") != std::string::npos);
        QCOMPARE(document.text(), before);
        QVERIFY(document.fileName().isEmpty());
        QVERIFY(document.isModified());
        QCOMPARE(document.open(path("nowhere.memscape")).error().code, std::string("file.missing"));
    }

    void aRecordOpensAsAnUntitledStudyOfOne()
    {
        QVERIFY(writeRecord(path("record.json").toStdString(), sample::record("r")));
        const std::string before = contentOf(path("record.json"));
        StudyDocument document;
        QVERIFY(document.open(path("record.json")));
        QCOMPARE(document.records().size(), 1u);
        QVERIFY(document.fileName().isEmpty());
        QCOMPARE(document.save().error().code, std::string("document.untitled"));
        QCOMPARE(contentOf(path("record.json")), before);
    }

    void aNewerStudyIsReadOnlyButCanBeCopied()
    {
        write(path("newer.memscape"),
              R"({"format": "memscape-study", "version": 99, "title": "later", "records": [], "view": {}})");
        StudyDocument document;
        QVERIFY(document.open(path("newer.memscape")));
        QVERIFY(document.isReadOnly());
        QCOMPARE(document.save().error().code, std::string("document.newer"));
        QVERIFY(!document.save().error().hint.empty());
        QVERIFY(document.saveAs(path("copy.memscape")));
        QVERIFY(!document.isReadOnly());
        document.setDevice("stride", "now");
        QVERIFY(document.save());
        QVERIFY(contentOf(path("newer.memscape")).find("99") != std::string::npos);
    }

    void aSecondWindowReadsOnlyAndIsToldWhoHasIt()
    {
        const QString file = savedStudy("shared.memscape");
        auto first = std::make_unique<StudyDocument>();
        QVERIFY(first->open(file));
        StudyDocument second;
        QVERIFY(second.open(file));
        QVERIFY(!first->isReadOnly());
        QVERIFY(second.isReadOnly());
        QCOMPARE(second.readOnlyReason()->code, std::string("document.locked"));
        QVERIFY(second.readOnlyReason()->message.find(std::to_string(::getpid())) != std::string::npos);
        second.setDevice("stride", "second");
        QCOMPARE(second.save().error().code, std::string("document.locked"));
        QCOMPARE(second.saveAs(file).error().code, std::string("document.locked"));
        // Under a link it is the same file.
        QVERIFY(QFile::link(file, path("link.memscape")));
        StudyDocument third;
        QVERIFY(third.open(path("link.memscape")));
        QVERIFY(third.isReadOnly());
        // Three ways out: another name, taking it over, the first window closes.
        QVERIFY(second.saveAs(path("second.memscape")));
        QVERIFY(!second.isReadOnly());
        third.editAnyway();
        third.setDevice("stride", "third");
        QVERIFY(third.save());
        first.reset();
        StudyDocument fourth;
        QVERIFY(fourth.open(file));
        QVERIFY(!fourth.isReadOnly());
    }

    void noLockFileStaysBehind()
    {
        const QString file = savedStudy("clean.memscape");
        {
            StudyDocument document;
            QVERIFY(document.open(file));
            QVERIFY(document.reload());
            QVERIFY(!document.isReadOnly());
            QVERIFY(document.saveAs(path("clean2.memscape")));
        }
        const QStringList locks =
            QDir(m_folder.path()).entryList({QStringLiteral(".clean*.lock")}, QDir::Files | QDir::Hidden);
        QCOMPARE(locks, QStringList());
    }

    void anotherProgramsChangeIsNoticedAndNotOverwritten()
    {
        const QString file = savedStudy("disk.memscape");
        StudyDocument document;
        QVERIFY(document.open(file));
        document.setDevice("stride", "mine");
        QSignalSpy changed(&document, &StudyDocument::changed);
        const std::string theirs = R"({"format": "memscape-study", "version": 1, "title": "theirs", "records": []})";
        write(file, theirs);
        QTRY_VERIFY(document.changedOnDisk());
        QVERIFY(!changed.isEmpty());
        const auto saved = document.save();
        QVERIFY(!saved);
        QCOMPARE(saved.error().code, std::string("document.changed"));
        QCOMPARE(contentOf(file), theirs);
        QVERIFY(document.isModified());

        QVERIFY(document.save(StudyDocument::Overwrite::Yes));
        QVERIFY(!document.changedOnDisk());
        QCOMPARE(contentOf(file), document.text());

        write(file, theirs);
        QTRY_VERIFY(document.changedOnDisk());
        QVERIFY(document.reload());
        QVERIFY(!document.changedOnDisk());
        QCOMPARE(document.title(), std::string("theirs"));
        QVERIFY(!document.isModified());
    }

    void aTouchedOrRestoredFileAsksNothing()
    {
        const QString file = savedStudy("touched.memscape");
        StudyDocument document;
        QVERIFY(document.open(file));
        const std::string ours = contentOf(file);
        write(file, "something else");
        QTRY_VERIFY(document.changedOnDisk());
        write(file, ours);
        QTRY_VERIFY(!document.changedOnDisk());
        document.setDevice("stride", "x");
        QVERIFY(document.save());
    }

    void aFileThatIsGoneIsToldAndSavedAgain()
    {
        const QString file = savedStudy("gone.memscape");
        StudyDocument document;
        QVERIFY(document.open(file));
        QVERIFY(QFile::remove(file));
        QTRY_VERIFY(document.changedOnDisk());
        document.setDevice("stride", "again");
        QVERIFY(document.save());
        QCOMPARE(contentOf(file), document.text());
        QTest::qWait(250);
        QVERIFY(!document.changedOnDisk());
    }

    void ourOwnSavesAreNotForeignChanges()
    {
        const QString file = savedStudy("own.memscape");
        StudyDocument document;
        QVERIFY(document.open(file));
        for (int i = 0; i < 5; ++i) {
            document.setDevice("stride", std::to_string(i));
            QVERIFY(document.save());
            QTest::qWait(60);
            QVERIFY(!document.changedOnDisk());
        }
    }

    void whatMayNotBeWrittenIsReadOnly()
    {
        if (::geteuid() == 0)
            QSKIP("root may write everything");
        const QString file = savedStudy("locked.memscape");
        QVERIFY(QFile::setPermissions(file, QFile::ReadOwner));
        StudyDocument document;
        QVERIFY(document.open(file));
        QCOMPARE(document.save().error().code, std::string("file.permission"));
    }

    void aFailedSaveKeepsEverything()
    {
        StudyDocument document;
        document.setDevice("stride", "kept");
        QVERIFY(!document.saveAs(path("no-such-folder/x.memscape")));
        QVERIFY(!document.saveAs(m_folder.path())); // a folder
        QVERIFY(QFile::exists(QStringLiteral("/dev/full")));
        QCOMPARE(document.saveAs(QStringLiteral("/dev/full")).error().code, std::string("file.space"));
        QVERIFY(document.isModified());
        QVERIFY(document.fileName().isEmpty());
        QVERIFY(document.saveAs(path("kept.memscape")));
    }
};

QTEST_GUILESS_MAIN(TestStudyFile)
#include "tst_study_file.moc"

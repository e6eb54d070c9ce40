// SPDX-License-Identifier: GPL-3.0-or-later
// Opening, dropping and saving through the window: good files, broken ones, foreign ones, and what
// the banner says about them.
#include "app/labs/answer_fields.h"
#include "app/labs/lab_page.h"
#include "app/labs/step_pane.h"
#include "core/base/file.h"
#include "core/report/report.h"
#include "tests/support/page_fixture.h"
#include "tests/support/quiet_window.h"

#include <QDir>
#include <QDropEvent>
#include <QFile>
#include <QImage>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QUndoStack>

#include <unistd.h>

using namespace memscape;

namespace {

void writeFile(const QString& path, const QByteArray& content)
{
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
}

} // namespace

class TestStudyFiles : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_window = std::make_unique<MainWindow>(quietWindow());
        m_window->showPage("stride");
        m_window->files().askSave = [] { return SaveAnswer::Discard; };
    }

    void saveAndOpenAgain()
    {
        const QString file = path("study.memscape");
        m_window->files().askSaveName = [&] { return file; };
        QVERIFY(m_window->page()->setText("stride", "16"));
        m_window->document().addRecord(sampleRecord("stride", {}));
        QVERIFY(m_window->files().save());
        QVERIFY(!m_window->isWindowModified());
        QVERIFY(m_window->windowTitle().contains("study.memscape"));
        QVERIFY(m_window->settings().recentFiles().contains(file));
        m_window->files().newStudy();
        QVERIFY(m_window->document().records().empty());
        QVERIFY(m_window->files().openPath(file));
        QCOMPARE(m_window->document().records().size(), std::size_t(1));
        QCOMPARE(m_window->page()->parameters().number("stride"), 16.0);
    }

    void answersToALabOpenOnItsPageAndStayWhenTheWindowGoes()
    {
        const auto lab = findLab("cache-size");
        const QString file = path("ada.mlab");
        QVERIFY(writeFileAtomically(file.toStdString(), jsonText(LabAttempt(*lab, "Ada").toJson())));
        m_window->settings().setStudent("Grace"); // an earlier run left Ada
        QVERIFY(m_window->files().openPath(file));
        auto* page = qobject_cast<LabPage*>(m_window->tool());
        QVERIFY(page && page->session());
        QVERIFY(!m_window->isWindowModified()); // nothing of a lab is the study's
        QVERIFY(page->session()->isCopy());     // another student's, until this one works on it
        for (QPushButton* one : page->findChildren<QPushButton*>())
            if (one->text() == "Work on it as Ada")
                QTimer::singleShot(0, one, &QPushButton::click);
        QTRY_COMPARE(page->session()->path(), file);
        page->showStep("guess");
        m_window->show();
        qobject_cast<NumberAnswer*>(page->steps()->field("ratio"))->edit()->setText("80");
        m_window->close(); // while it stands in its line
        m_window.reset();
        const auto kept = readLabAnswers(*lab, file);
        QVERIFY2(kept, kept ? "" : kept.error().text().c_str());
        QCOMPARE(*kept->attempt.given(*(*lab)->question("ratio")), Json("80"));
    }

    void aStudyThatGrowsHeavyIsSaidOnce()
    {
        const QString file = path("heavy.memscape");
        m_window->files().askSaveName = [&] { return file; };
        Record record = sampleRecord("stride", {});
        record.name = "with a long note";
        record.note = std::string(100'000, 'x');
        m_window->document().setHeavyBytes(100'000);
        m_window->document().addRecord(std::move(record));
        QVERIFY(m_window->files().save());
        const auto said = [&] { return m_window->banner().texts(); };
        QCOMPARE(said().size(), 1);
        QVERIFY2(said().first().contains("with a long note") && said().first().contains("KiB"),
                 qPrintable(said().first()));
        m_window->banner().closeTopic("size"); // as the user does
        m_window->document().setRecordPinned(0, true);
        QVERIFY(m_window->files().save());
        QVERIFY2(said().isEmpty(), qPrintable(said().join(u'\n')));
        m_window->files().newStudy();
        QVERIFY(m_window->files().openPath(file));
        QCOMPARE(said().size(), 1);
        m_window->document().removeRecord(0);
        QVERIFY(m_window->files().save());
        QVERIFY(said().isEmpty());
    }

    void theExampleIsAStudyOfAnotherMachine()
    {
        m_window->document().addRecord(sampleRecord("stride", {}));
        m_window->files().openExample();
        QCOMPARE(m_window->page()->experiment().id(), m_window->document().records().front().experiment);
        const auto& records = m_window->document().records();
        QVERIFY(!records.empty());
        QVERIFY(m_window->document().fileName().isEmpty());
        for (const Record& record : records) {
            QVERIFY(record.measured && record.predicted);
            const DeviceEntry* entry = m_window->devices().find(record.device.id);
            QVERIFY2(entry, record.device.id.c_str());
            QVERIFY(entry->source == DeviceSource::Record || record.device.id == "cpu");
            QVERIFY(m_window->showPage(QString::fromStdString(record.experiment)));
            QCOMPARE(m_window->page()->deviceId(), record.device.id);
        }
        QVERIFY(m_window->banner().texts().isEmpty());
        QCOMPARE(QString::fromStdString(m_window->page()->deviceId()).isEmpty(), false);
    }

    void aRecordOfAnotherMachinesCpuIsNotTakenForThisOne()
    {
        Record record = sampleRecord("stride", {});
        record.device.id = "cpu";
        record.device.name = "Some other processor";
        const QString file = path("other.json");
        QVERIFY(writeRecord(file.toStdString(), record));
        QVERIFY(m_window->files().openPath(file));
        QCOMPARE(m_window->document().records().back().device.id, std::string("cpu of Some other processor"));
        QCOMPARE(m_window->page()->deviceId(), std::string("cpu of Some other processor"));
        m_window->page()->updateNow();
        QTRY_VERIFY(m_window->page()->header()->measureButton()->toolTip().contains("machine of a record"));
        record.device = describeHost();
        QVERIFY(writeRecord(file.toStdString(), record));
        QVERIFY(m_window->files().openPath(file));
        QCOMPARE(m_window->document().records().back().device.id, std::string("cpu"));
        // Virtual machines of one name have different processors.
        ++record.device.units;
        QVERIFY(writeRecord(file.toStdString(), record));
        QVERIFY(m_window->files().openPath(file));
        QCOMPARE(m_window->document().records().back().device.id, "cpu of " + record.device.name);
    }

    void brokenFilesLeaveTheStudyAloneAndSayWhy_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("not JSON") << QByteArray("hello");
        QTest::newRow("truncated") << QByteArray("{\"format\": \"memscape-study\", \"records\": [");
        QTest::newRow("foreign") << QByteArray("{\"model_type\": \"llama\"}");
        QTest::newRow("wrong type") << QByteArray("{\"format\": \"memscape-study\", \"version\": 1, \"records\": 7}");
        QTest::newRow("nested") << QByteArray(100000, '[');
    }
    void brokenFilesLeaveTheStudyAloneAndSayWhy()
    {
        QFETCH(QByteArray, content);
        m_window->document().addRecord(sampleRecord("stride", {}));
        const QString file = path("broken.memscape");
        writeFile(file, content);
        QVERIFY(!m_window->files().openPath(file));
        QCOMPARE(m_window->document().records().size(), std::size_t(1));
        QCOMPARE(m_window->banner().texts().size(), 1);
        QVERIFY2(m_window->banner().texts().first().contains("broken.memscape"),
                 qPrintable(m_window->banner().texts().first()));
    }

    void aMissingFileIsAMessage()
    {
        QVERIFY(!m_window->files().openPath(path("nowhere.memscape")));
        QCOMPARE(m_window->banner().texts().size(), 1);
    }

    void aRecordIsAddedToTheStudyThatIsOpen()
    {
        const QString file = path("run.json");
        QVERIFY(writeRecord(file.toStdString(), sampleRecord("hierarchy", {})));
        m_window->document().addRecord(sampleRecord("stride", {}));
        drop({file});
        QCOMPARE(m_window->document().records().size(), std::size_t(2));
        QCOMPARE(m_window->page()->experiment().id(), "hierarchy"); // where it can be seen
        m_window->document().undoStack()->undo();
        QCOMPARE(m_window->document().records().size(), std::size_t(1));
    }

    void aRecordThatIsOpenedAloneShowsItsOwnParameters()
    {
        const QString file = path("run.json");
        QVERIFY(writeRecord(file.toStdString(), sampleRecord("stride", {"element=float64"})));
        QVERIFY(m_window->files().openPath(file));
        QCOMPARE(m_window->page()->parameters().choice("element"), "float64");
        QCOMPARE(m_window->page()->deviceId(), "nvidia-h200");
        QVERIFY(!m_window->isWindowModified());
    }

    void recordsThatWereExportedTogetherShowTheFirstOne()
    {
        const QString file = path("compared.json");
        const std::vector<Record> both{sampleRecord("hierarchy", {"working_set=8MiB"}),
                                       sampleRecord("hierarchy", {"working_set=64MiB"})};
        QVERIFY(writeFileAtomically(file.toStdString(), reportJson(both, "Hierarchy")));
        QVERIFY(m_window->files().openPath(file));
        QVERIFY(m_window->page());
        QCOMPARE(m_window->page()->experiment().id(), std::string("hierarchy"));
        QCOMPARE(m_window->page()->parameters().number("working_set"), 8.0 * 1024 * 1024);
        QVERIFY(!m_window->isWindowModified());
    }

    void ofFilesThatCannotBeOpenedTheNewestIsSaid()
    {
        const auto errors = [&] { return m_window->banner().texts(); };
        for (const char* name : {"first.json", "second.json"}) {
            writeFile(path(name), {});
            QVERIFY(!m_window->files().openPath(path(name)));
        }
        QCOMPARE(errors().size(), 1);
        QVERIFY2(errors().front().contains("second.json"), qPrintable(errors().front()));
        m_window->document().addRecord(sampleRecord("stride", {}));
        m_window->files().askSaveName = [&] { return path("good.memscape"); };
        QVERIFY(m_window->files().save());
        QVERIFY(m_window->files().openPath(path("good.memscape")));
        QVERIFY2(errors().isEmpty(), qPrintable(errors().join(' ')));
    }

    void aDeviceFileJoinsTheDevices()
    {
        const QString file = path("mine.json");
        Device device = *findDevice("nvidia-h200");
        device.name = "My GPU";
        writeFile(file, QByteArray::fromStdString(jsonText(deviceToJson(device))));
        drop({file});
        QVERIFY2(m_window->banner().texts().isEmpty(), qPrintable(m_window->banner().texts().join(u'\n')));
        QVERIFY(m_window->devices().find(file.toStdString()));
        QCOMPARE(m_window->page()->deviceId(), file.toStdString());
        m_window->settings().setDeviceFiles({});
    }

    /// Its fault is shown with its place, and the page keeps the device that it has.
    void aBrokenDeviceFileChangesNothing()
    {
        const QString file = path("broken.json");
        const std::string before = m_window->page()->deviceId();
        writeFile(file, R"({"format":"memscape-device","version":1,"id":7})");
        drop({file});
        QCOMPARE(m_window->banner().texts().size(), 1);
        QVERIFY2(m_window->banner().texts().first().contains("id"), qPrintable(m_window->banner().texts().first()));
        QCOMPARE(m_window->page()->deviceId(), before);
        QVERIFY(!m_window->devices().find(file.toStdString()));
        QVERIFY(m_window->settings().deviceFiles().isEmpty());
    }

    void whatWasDiscardedComesBack()
    {
        {
            StudyDocument left;
            left.addRecord(sampleRecord("stride", {}));
            Autosave autosave(&left);
            QVERIFY(autosave.saveNow());
            QFile::copy(autosave.path(),
                        path("kept.json")); // a kill leaves it; a clean end does not
            QDir().mkpath(recoveryFolder());
        }
        QVERIFY(QFile::copy(path("kept.json"), recoveryFolder() + "/kept.json"));
        Autosave autosave(&m_window->document());
        m_window->files().offerRecovery(autosave);
        const auto press = [&](const char* text) {
            for (auto* button : m_window->banner().findChildren<QPushButton*>()) {
                if (button->text() == text)
                    return button->click(), true;
            }
            return false;
        };
        QVERIFY(press("Discard"));
        QVERIFY(recoverableStudies().empty());
        QVERIFY(press("Undo"));
        QCOMPARE(recoverableStudies().size(), std::size_t(1));
        QVERIFY(press("Recover"));
        QCOMPARE(m_window->document().records().size(), std::size_t(1));
    }

    void aFailedSaveIsForgottenOnceItIsSaved()
    {
        QString file = QStringLiteral("/dev/full"); // a disk without room
        m_window->files().askSaveName = [&] { return file; };
        QVERIFY(m_window->page()->setText("stride", "16"));
        QVERIFY(!m_window->files().save());
        QVERIFY(m_window->document().isModified());
        QCOMPARE(m_window->page()->parameters().number("stride"), 16.0);
        QCOMPARE(m_window->banner().texts().size(), 1);
        file = path("elsewhere.memscape");
        QVERIFY(m_window->files().save());
        QVERIFY(m_window->banner().texts().isEmpty());
    }

    void aFailedSaveGoesWithItsStudy()
    {
        m_window->files().askSaveName = [] { return QStringLiteral("/dev/full"); };
        QVERIFY(m_window->page()->setText("stride", "16"));
        QVERIFY(!m_window->files().save());
        m_window->files().newStudy();
        QVERIFY(m_window->banner().texts().isEmpty());
    }

    void aStudyThatIsDroppedIsOpened()
    {
        const QString file = path("dropped.memscape");
        Study study;
        study.title = "from elsewhere";
        study.records = {sampleRecord("stride", {})};
        QVERIFY(writeStudy(file.toStdString(), study));
        drop({file});
        QCOMPARE(m_window->document().title(), "from elsewhere");
        QCOMPARE(m_window->document().records().size(), std::size_t(1));
        const QString broken = path("broken.memscape");
        writeFile(broken, "{\"format\": \"memscape-study\", \"records\": [");
        drop({broken, file});
        QCOMPARE(m_window->banner().texts().size(), 1);
        QCOMPARE(m_window->document().title(), "from elsewhere");
    }

    void aPictureIsNoBrokenStudy()
    {
        const QString picture = path("page.png");
        QVERIFY(QImage(2, 2, QImage::Format_RGB32).save(picture));
        QVERIFY(!m_window->files().openPath(picture));
        const QString said = m_window->banner().texts().join(u'\n');
        QVERIFY2(said.contains("page.png") && said.contains("as JSON") && !said.contains("not valid"),
                 qPrintable(said));
    }

    void aFileThatIsGoneLeavesTheRecentOnes()
    {
        const QString file = path("gone.memscape");
        m_window->settings().addRecentFile(file);
        QVERIFY(!m_window->files().openPath(file));
        QVERIFY(!m_window->settings().recentFiles().contains(file));
    }

    void cancellingKeepsEverything()
    {
        m_window->files().askSave = [] { return SaveAnswer::Cancel; };
        QVERIFY(m_window->page()->setText("stride", "16"));
        m_window->files().newStudy();
        QCOMPARE(m_window->page()->parameters().number("stride"), 16.0);
        m_window->files().askSaveName = [] { return QString(); };
        QVERIFY(!m_window->files().save());
        QVERIFY(m_window->document().isModified());
    }

    void noPermissionIsABannerWithSaveAs()
    {
        if (geteuid() == 0)
            QSKIP("root may write everywhere");
        m_window->files().askSaveName = [] { return QString("/proc/no.memscape"); };
        QVERIFY(m_window->page()->setText("stride", "16"));
        QVERIFY(!m_window->files().save());
        QCOMPARE(m_window->banner().texts().size(), 1);
    }

    void exportsWriteFilesAndFailuresShow()
    {
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
        m_window->document().setDevice("stride", "nvidia-h200");
        m_window->document().addRecord(sampleRecord("stride", {}));
        QTRY_VERIFY(m_window->page()->prediction() && m_window->page()->upToDate());
        QString next;
        m_window->exporter().askName = [&](const QString&, const QString&, const QString&) { return next; };
        ExperimentPage& page = *m_window->page();
        const auto written = [&](const char* name, const std::function<void()>& run) {
            next = path(name);
            run();
            return QFile(next).size() > 100;
        };
        for (const char* name : {"plot.png", "plot.svg", "plot.pdf"})
            QVERIFY2(written(name, [&] { m_window->exporter().plot(page); }), name);
        for (const char* name : {"page.png", "page.svg", "page.pdf"})
            QVERIFY2(written(name, [&] { m_window->exporter().page(page); }), name);
        QVERIFY(written("data.csv", [&] { m_window->exporter().csv(page); }));
        QVERIFY(written("data.json", [&] { m_window->exporter().json(page); }));
        QVERIFY(written("study.html", [&] { m_window->exporter().report(); }));
        QVERIFY(readRecord(path("data.json").toStdString()));
        const std::size_t known = m_window->document().records().size();
        QVERIFY(m_window->files().openPath(path("page.png"))); // it keeps what it shows
        QCOMPARE(m_window->document().records().size(), known + 1);
        QCOMPARE(m_window->document().records().back().experiment, page.experiment().id());
        next = path("no/such/folder/data.csv");
        const auto before = m_window->banner().texts();
        m_window->exporter().csv(page);
        QVERIFY(m_window->banner().texts() != before);
    }

private:
    QString path(const QString& name) const { return m_folder->filePath(name); }

    void drop(const QStringList& files)
    {
        QMimeData data;
        QList<QUrl> urls;
        for (const QString& file : files)
            urls << QUrl::fromLocalFile(file);
        data.setUrls(urls);
        QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(m_window.get(),
                                    &enter); // Qt delivers a drop where a drag entered
        QVERIFY(enter.isAccepted());
        QDropEvent event(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(m_window.get(), &event);
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<MainWindow> m_window;
};

QTEST_MAIN(TestStudyFiles)
#include "tst_study_files.moc"

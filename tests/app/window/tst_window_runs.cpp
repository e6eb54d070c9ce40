// SPDX-License-Identifier: GPL-3.0-or-later
// Measurements and calibrations in the whole window, with a worker of the tests: stopped, crashed, refused, forced,
// closed in the middle of one, and what the banner offers then.
#include "app/pages/records/record_text.h"
#include "app/window/worker_dialog.h"
#include "core/base/file.h"
#include "core/device/catalogue.h"
#include "core/experiment/document.h"
#include "tests/support/quiet_window.h"

#include <QFile>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>

#include <filesystem>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

WindowOptions withWorker(const QString& mode)
{
    return windowWithWorker({FAKE_WORKER, mode});
}

} // namespace

class TestWindowRuns : public QObject
{
    Q_OBJECT

private slots:
    void withoutAWorkerThePageSaysSo()
    {
        MainWindow window(quietWindow());
        window.showPage("stride");
        window.document().setDevice("stride", "cpu");
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTRY_VERIFY(window.page()->upToDate());
        QVERIFY(window.page()->prediction()); // predictions need no worker
        QVERIFY(!window.page()->header()->measureButton()->isEnabled());
        QVERIFY(!window.page()->inspector()->noteText().isEmpty());
    }

    void measureAndStop()
    {
        MainWindow window(withWorker("slow"));
        openOnCpu(window);
        window.page()->header()->measureButton()->click();
        QVERIFY(window.runs().current());
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current()->points.empty(), 10000);
        QCOMPARE(window.page()->header()->measureButton()->text(), "Stop");
        window.actions().at("run.stop").trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 3000);
        QCOMPARE(window.document().records().size(), std::size_t(1)); // what there was is kept
        QCOMPARE(window.page()->header()->measureButton()->text(), "Measure");
        window.actions().at("edit.undo").trigger();
        QCOMPARE(window.document().records().size(), std::size_t(0));
    }

    void aRunIsOfItsOwnDeviceWhenThePageTurnsToAnother()
    {
        MainWindow window(withWorker("slow"));
        openOnCpu(window);
        window.page()->measure();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current()->points.empty(), 10000);
        const auto measured = [&] {
            window.page()->updateNow();
            const auto& curves = window.page()->plot()->view()->curves();
            return std::ranges::count_if(curves, [](const Curve& curve) { return curve.role == CurveRole::Measured; });
        };
        QVERIFY(measured() > 0);
        window.document().setDevice("stride", "nvidia-h200");
        QTRY_COMPARE(measured(), 0); // these points are the CPU's
        window.runs().stop();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 3000);
        QCOMPARE(window.document().records().front().device.id, std::string("cpu"));
    }

    void aDeviceThatIsNotThereSaysWhy()
    {
        MainWindow window(withWorker("slow"));
        openOnCpu(window);
        window.document().setDevice("stride", "cuda:0");
        window.page()->updateNow();
        QTRY_VERIFY2(window.page()->inspector()->noteText().contains("no driver"), // as the worker says
                     qPrintable(window.page()->inspector()->noteText()));
        QVERIFY(!window.page()->prediction());
    }

    void aCrashKeepsThePointsAndSaysWhat()
    {
        MainWindow window(withWorker("crash"));
        openOnCpu(window);
        window.page()->measure();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 15000);
        QCOMPARE(window.document().records().size(), std::size_t(1));
        QVERIFY(!window.banner().texts().isEmpty());
        window.page()->measure();
        QVERIFY(window.runs().current());
        QVERIFY(window.banner().texts().isEmpty()); // it was about the run before
    }

    void whatDoesNotFitIsTriedWhenForced()
    {
        MainWindow window(withWorker("refuse"));
        openOnCpu(window);
        const auto tryButton = [&] { return bannerButton(window, "Try anyway"); };
        window.page()->measure();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 15000);
        QCOMPARE(window.document().records().size(), std::size_t(0)); // nothing was tried
        QVERIFY(tryButton());
        tryButton()->click();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 15000);
        QCOMPARE(window.document().records().size(), std::size_t(1));
        QVERIFY(!tryButton());    // the refusal is answered
        window.page()->measure(); // forcing one run does not force the next
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 15000);
        QVERIFY(tryButton());
    }

    void aWorkerThatIsGivenUpCanBeRestartedWhereItIsSaid()
    {
        MainWindow window(withWorker("crash-idle"));
        openOnCpu(window);
        const auto restart = [&] { return bannerButton(window, "Restart workers"); };
        QTRY_VERIFY_WITH_TIMEOUT(restart(), 30000);
        QVERIFY2(window.banner().texts().join(' ').contains("ended by itself 6 times in a row"),
                 qPrintable(window.banner().texts().join(' ')));
        QCOMPARE(window.devices().worker({})->state(), WorkerClient::State::Failed);
        restart()->click();
        QTRY_VERIFY(window.devices().worker({})->state() != WorkerClient::State::Failed);
    }

    void closingInTheMiddleOfARunEndsTheWorker()
    {
        auto window = std::make_unique<MainWindow>(withWorker("slow"));
        window->files().askSave = [] { return SaveAnswer::Discard; };
        openOnCpu(*window);
        window->page()->measure();
        QTRY_VERIFY_WITH_TIMEOUT(!window->runs().current()->points.empty(), 10000);
        const qint64 pid = window->devices().worker({})->processId();
        QVERIFY(pid > 0);
        QVERIFY(!window->close()); // not before its points are a record
        QTRY_VERIFY_WITH_TIMEOUT(!window->isVisible(), 5000);
        QCOMPARE(window->document().records().size(), std::size_t(1));
        window.reset();
        QTRY_VERIFY_WITH_TIMEOUT(!QFile::exists(QString("/proc/%1/stat").arg(pid)) || isZombie(pid), 3000);
    }

    /// Cancel lets the run go on; Alt+F4 pressed twice asks once.
    void closingDuringARunAsksBeforeItStops()
    {
        QTemporaryDir folder;
        const QString file = folder.filePath("half.memscape");
        MainWindow window(withWorker("slow"));
        int asked = 0;
        window.files().askSave = [&] {
            ++asked;
            window.close(); // again while the question stands
            return SaveAnswer::Cancel;
        };
        openOnCpu(window);
        window.page()->measure();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current()->points.empty(), 10000);
        QVERIFY(!window.close());
        QCOMPARE(asked, 1);
        QVERIFY(window.isVisible());
        QVERIFY(window.runs().current() && !window.runs().current()->stopping);
        QVERIFY(window.document().records().empty());

        window.files().askSave = [] { return SaveAnswer::Save; };
        window.files().askSaveName = [&] { return file; };
        QVERIFY(!window.close()); // not before its points are a record
        QVERIFY(!window.close());
        QTRY_VERIFY_WITH_TIMEOUT(!window.isVisible(), 5000);
        const auto study = readStudy(file.toStdString());
        QVERIFY(study);
        QCOMPARE(study->records.size(), std::size_t(1));
        QCOMPARE(incompleteText(study->records.front()), QString("stopped"));
    }

    void aCalibrationOfAnotherMachineIsKeptUnderItsName()
    {
        QTemporaryDir folder;
        const QString file = folder.filePath("device.json");
        Device device = *findDevice("nvidia-h200");
        device.basis = "calibrated";
        device.calibration.emplace();
        device.calibration->grade = "A";
        QVERIFY(writeFileAtomically(file.toStdString(), deviceToJson(device).dump()));
        MainWindow window(quietWindow());
        window.showPage("stride");
        window.devices().setWorkers({{"lab", QString("\"%1\" result %2").arg(FAKE_WORKER, file)}});
        QTRY_VERIFY(window.devices().find("lab/cpu") && window.devices().find("lab/cpu")->measurable());
        window.runs().calibrate("lab/cpu");
        QTRY_VERIFY(!window.runs().current());
        QVERIFY2(std::filesystem::exists(calibrationPath("lab/cpu")), qPrintable(window.banner().texts().join('\n')));
        QVERIFY(!std::filesystem::exists(calibrationPath("cpu"))); // this machine's is another
        std::filesystem::remove(calibrationPath("lab/cpu"));
    }

    void gradeDReplacesNothingUnlessForced()
    {
        std::filesystem::remove(calibrationPath("lab/cpu"));
        QTemporaryDir folder;
        MainWindow window(quietWindow());
        calibrateAs(window, folder.filePath("device.json"), "D");
        QVERIFY(!std::filesystem::exists(calibrationPath("lab/cpu")));
        QVERIFY2(window.banner().texts().join('\n').contains("grade D"),
                 qPrintable(window.banner().texts().join('\n')));
        QVERIFY(bannerButton(window, "Try again"));
        QPushButton* anyway = bannerButton(window, "Use anyway");
        QVERIFY(anyway);
        anyway->click();
        QVERIFY(std::filesystem::exists(calibrationPath("lab/cpu")));
        QVERIFY(window.devices().find("lab/cpu")->calibrated());
        window.runs().forgetCalibration("lab/cpu");
        QVERIFY(!std::filesystem::exists(calibrationPath("lab/cpu")));
    }

    void aBusyMachineIsToldOfBeforeItIsMeasured()
    {
        WindowOptions options = withWorker("slow");
        HostLoad load{9.9, 6, 2};
        options.load = [&] { return load; };
        MainWindow window(options);
        openOnCpu(window);
        window.page()->measure();
        QVERIFY(!window.runs().current()); // not started
        QVERIFY2(window.banner().texts().join('\n').contains("Machine busy (load 9.9 on 2 cores)"),
                 qPrintable(window.banner().texts().join('\n')));
        QPushButton* wait = bannerButton(window, "Wait");
        QVERIFY(wait && bannerButton(window, "Measure anyway"));
        window.actions().at("view.message").trigger(); // F6: the keyboard comes to it
        QCOMPARE(window.focusWidget(), static_cast<QWidget*>(wait));
        wait->click();
        QVERIFY(window.runs().isWaiting());
        QVERIFY(!window.runs().current());
        load = {0.2, 0, 2};
        QTRY_VERIFY_WITH_TIMEOUT(window.runs().current(), 10000);
        QVERIFY(!window.runs().isWaiting());
        window.runs().stop();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 10000);

        load = {9.9, 6, 2};
        window.page()->measure();
        bannerButton(window, "Measure anyway")->click();
        QVERIFY(window.runs().current());
        window.runs().stop();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 10000);
        window.page()->measure(); // the answer holds for this page
        QVERIFY(window.runs().current());
        window.runs().stop();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 10000);
        window.page()->calibrate(); // which predictions stand on: asked all the same
        QVERIFY(!window.runs().current());
    }

    void whatWasNeverMeasuredHereSaysSoAndOffersCalibration()
    {
        MainWindow window(withWorker("ok"));
        openOnCpu(window);
        window.page()->updateNow();
        QVERIFY(window.page()->header()->caution().isEmpty());
        window.page()->measure();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 10000);
        window.page()->updateNow();
        QVERIFY2(window.page()->header()->caution().contains("processor of this kind"),
                 qPrintable(window.page()->header()->caution()));
        emit window.page()->header()->findChild<QLabel*>("caution")->linkActivated("calibrate");
        QVERIFY(window.runs().current());
        QCOMPARE(window.runs().current()->experiment, std::string("calibrate"));
        window.runs().stop();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 10000);
    }

    void onlyTheSelectedPointCanBeMeasured()
    {
        MainWindow window(withWorker("slow"));
        openOnCpu(window);
        window.page()->updateNow();
        window.page()->measurePoint();
        QVERIFY(window.runs().current());
        const auto& sweep = window.runs().current()->parameters.sweep();
        QVERIFY(sweep);
        QCOMPARE(sweep->values.size(), std::size_t(1));
        QCOMPARE(std::get<double>(sweep->values.front()), window.page()->parameters().number(sweep->key));
        window.runs().stop();
        QTRY_VERIFY_WITH_TIMEOUT(!window.runs().current(), 10000);
    }

    void aCommandThatLeadsNowhereIsToldOf()
    {
        MainWindow window(quietWindow());
        window.showPage("stride");
        const auto add = [&](const char* name, const QString& command) {
            QTimer::singleShot(0, &window, [&, name, command] {
                auto* dialog = window.findChild<WorkerDialog*>();
                QVERIFY(dialog);
                const auto lines = dialog->findChildren<QLineEdit*>();
                lines[0]->setText(name);
                lines[1]->setText(command);
                dialog->accept();
            });
            window.actions().at("run.addWorker").trigger();
        };
        add("nowhere", "no-such-program-here worker");
        QTRY_VERIFY(window.banner().texts().join(' ').contains("nowhere does not answer"));
        add("lab", QString("\"%1\" ok").arg(FAKE_WORKER));
        QTRY_VERIFY(window.banner().texts().join(' ').contains("lab is connected"));
        window.settings().setWorkers({});
    }

private:
    /// A window whose "lab" worker answers a calibration with a device of this grade.
    void calibrateAs(MainWindow& window, const QString& file, const std::string& grade)
    {
        Device device = *findDevice("nvidia-h200");
        device.basis = "calibrated";
        device.calibration.emplace();
        device.calibration->time = "2026-01-01T00:00:00Z";
        device.calibration->grade = grade;
        QVERIFY(writeFileAtomically(file.toStdString(), deviceToJson(device).dump()));
        if (!window.devices().find("lab/cpu")) {
            window.showPage("stride");
            window.devices().setWorkers({{"lab", QString("\"%1\" result %2").arg(FAKE_WORKER, file)}});
        }
        QTRY_VERIFY(window.devices().find("lab/cpu") && window.devices().find("lab/cpu")->measurable());
        window.runs().calibrate("lab/cpu");
        QTRY_VERIFY(!window.runs().current());
    }

    static QPushButton* bannerButton(MainWindow& window, const QString& text)
    {
        for (QPushButton* button : window.banner().findChildren<QPushButton*>()) {
            if (button->text() == text)
                return button;
        }
        return nullptr;
    }

    static void openOnCpu(MainWindow& window)
    {
        window.showPage("stride");
        window.document().setDevice("stride", "cpu");
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTRY_VERIFY_WITH_TIMEOUT(window.runs().obstacle("cpu").isEmpty(), 10000);
        QTRY_VERIFY(window.page()->upToDate());
        QTRY_VERIFY(window.page()->header()->measureButton()->isEnabled());
    }

    static bool isZombie(qint64 pid)
    {
        QFile file(QString("/proc/%1/stat").arg(pid));
        return file.open(QIODevice::ReadOnly) && file.readAll().contains(") Z");
    }
};

QTEST_MAIN(TestWindowRuns)
#include "tst_window_runs.moc"

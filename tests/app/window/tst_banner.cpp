// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/banner.h"

#include <QApplication>
#include <QClipboard>
#include <QPushButton>
#include <QStackedWidget>
#include <QTest>
#include <QToolButton>

using namespace memscape;

class TestBanner : public QObject
{
    Q_OBJECT

private slots:
    void anErrorShowsMessagePlaceAndHint()
    {
        Banner banner;
        banner.showError({"json.type", "expected a number, found \"12 GB\"", "predicted.figures.peak.value",
                          "give bytes as a number"});
        QCOMPARE(banner.texts(),
                 QStringList{"predicted.figures.peak.value: expected a number, "
                             "found \"12 GB\"\nGive bytes as a number"});
    }

    /// Errors are written to follow a place; without one they begin a line, as every sentence does.
    void anErrorWithoutAPlaceIsASentence()
    {
        Banner banner;
        banner.showError({"worker.crashed", "the worker crashed", {}, "a new one is started"});
        QCOMPARE(banner.texts(), QStringList{"The worker crashed\nA new one is started"});
    }

    void detailsGoToTheClipboard()
    {
        Banner banner;
        banner.showError({"worker.crashed", "the worker crashed"}, "stderr: segmentation fault");
        QPushButton* copy = nullptr;
        for (QPushButton* button : banner.findChildren<QPushButton*>()) {
            if (button->text() == "Copy details")
                copy = button;
        }
        QVERIFY(copy);
        copy->click();
        QVERIFY(QApplication::clipboard()->text().contains("worker.crashed"));
        QVERIFY(QApplication::clipboard()->text().contains("segmentation fault"));
        QCOMPARE(banner.texts().size(), 1); // copying does not close it
    }

    void theSameMessageIsCountedNotRepeated()
    {
        Banner banner;
        for (int i = 0; i < 5; ++i)
            banner.showNotice("clock sagged");
        QCOMPARE(banner.texts().size(), 1);
        QVERIFY(banner.texts().first().contains("5"));
    }

    void atMostThreeStand()
    {
        Banner banner;
        for (int i = 0; i < 6; ++i)
            banner.showNotice(QString::number(i));
        QCOMPARE(banner.texts(), (QStringList{"3", "4", "5"}));
    }

    void aMessageAboutAPageWaitsForIt()
    {
        Banner banner;
        banner.setPage("stride");
        banner.put({BannerKind::Warning, "passes differ", {}, {}, {}, "run", "hierarchy"});
        banner.put({BannerKind::Problem, "the disk is full"});
        QCOMPARE(banner.texts(), QStringList{"the disk is full"});
        banner.setPage("hierarchy");
        QCOMPARE(banner.texts(), (QStringList{"passes differ", "the disk is full"}));
        banner.closeTopic("run");
        QCOMPARE(banner.texts(), QStringList{"the disk is full"});
    }

    void newsLieOverThePageThatEndsAboveWhatStays()
    {
        QStackedWidget window;
        window.resize(900, 600);
        auto* page = new QWidget;
        window.addWidget(page);
        Banner banner(&window);
        window.show();
        QVERIFY(banner.isHidden());
        const QRect before = page->geometry();
        banner.showNotice("wrote plot.png");
        QVERIFY(banner.isVisible());
        QTest::qWait(20);
        QCOMPARE(page->geometry(), before);
        banner.put({BannerKind::Warning, QString("a long message ").repeated(30)});
        QTRY_VERIFY(page->geometry().bottom() < banner.geometry().top());
        QVERIFY(window.rect().contains(banner.geometry()));
        QVERIFY(banner.geometry().bottom() > 560 && banner.width() < 800);
        for (const QSize size : {QSize(400, 300), QSize(1500, 900)}) {
            window.resize(size);
            QTRY_VERIFY(window.rect().contains(banner.geometry()));
            QVERIFY(banner.geometry().bottom() > size.height() - 40);
        }
        for (QToolButton* close : banner.findChildren<QToolButton*>())
            close->click();
        QTRY_VERIFY(banner.isHidden());
        QTRY_COMPARE(page->geometry(), window.rect());
    }

    void aTopicReplacesItself()
    {
        Banner banner;
        banner.put({BannerKind::Warning, "first", {}, {}, {}, "disk"});
        banner.put({BannerKind::Warning, "second", {}, {}, {}, "disk"});
        QCOMPARE(banner.texts(), QStringList{"second"});
        banner.closeTopic("disk");
        QVERIFY(banner.texts().isEmpty());
    }

    void aStateAndWhatFailsForItAreOneMessage()
    {
        Banner banner; // a study that may not be written is opened, and saving it is tried twice
        banner.put(
            {BannerKind::Warning, "lab.memscape may not be written", "save under another name", {}, {}, "readonly"});
        for (int i = 0; i < 2; ++i)
            banner.put(
                {BannerKind::Problem, "lab.memscape may not be written", "save under another name", {}, {}, "save"});
        QCOMPARE(banner.texts(), QStringList{"lab.memscape may not be written\nSave under another name"});
    }

    void anActionRunsOnceAndCloses()
    {
        Banner banner;
        int runs = 0;
        banner.put({BannerKind::Warning, "changed", {}, {}, {{"Reload", [&] { ++runs; }}}, {}});
        banner.findChild<QPushButton*>()->click();
        QCOMPARE(runs, 1);
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        QVERIFY(banner.texts().isEmpty());
    }
};

QTEST_MAIN(TestBanner)
#include "tst_banner.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/settings/window_session.h"

#include <QDockWidget>
#include <QFile>
#include <QMainWindow>
#include <QTemporaryDir>
#include <QTest>

#include <memory>

using namespace memscape;

class TestSession : public QObject
{
    Q_OBJECT
    QTemporaryDir m_folder;
    QString path(const char* name) const { return m_folder.filePath(QLatin1String(name)); }

    /// A window with one dock, "inspector", on the right.
    static std::unique_ptr<QMainWindow> makeWindow()
    {
        auto window = std::make_unique<QMainWindow>();
        auto* dock = new QDockWidget(window.get());
        dock->setObjectName(QStringLiteral("inspector"));
        window->addDockWidget(Qt::RightDockWidgetArea, dock);
        window->resize(900, 600);
        return window;
    }

private slots:
    void theWindowComesBackAsItWas()
    {
        {
            const auto window = makeWindow();
            window->addDockWidget(Qt::LeftDockWidgetArea, window->findChild<QDockWidget*>(QStringLiteral("inspector")));
            window->resize(640, 480);
            WindowSession(path("a.ini")).saveWindow(*window);
        }
        const auto window = makeWindow();
        QVERIFY(WindowSession(path("a.ini")).restoreWindow(*window));
        QCOMPARE(window->size(), QSize(640, 480));
        QCOMPARE(window->dockWidgetArea(window->findChild<QDockWidget*>()), Qt::LeftDockWidgetArea);
    }

    void aLayoutOfAnotherVersionIsLeftOut()
    {
        const auto window = makeWindow();
        window->addDockWidget(Qt::LeftDockWidgetArea, window->findChild<QDockWidget*>());
        QSettings(path("old.ini"), QSettings::IniFormat)
            .setValue("window/docks", window->saveState(WindowSession::layoutVersion + 1));
        const auto fresh = makeWindow();
        QVERIFY(!WindowSession(path("old.ini")).restoreWindow(*fresh));
        QCOMPARE(fresh->dockWidgetArea(fresh->findChild<QDockWidget*>()), Qt::RightDockWidgetArea);
    }

    void resettingForgetsTheLayoutAndKeepsTheRest()
    {
        WindowSession session(path("reset.ini"));
        session.saveWindow(*makeWindow());
        session.setLastStudy(QStringLiteral("/s/a.memscape"));
        session.resetLayout();
        const auto window = makeWindow();
        QVERIFY(!session.restoreWindow(*window));
        QCOMPARE(session.lastStudy(), QStringLiteral("/s/a.memscape"));
    }

    void viewsArePerStudyAndPage()
    {
        const QVariantMap zoom{{QStringLiteral("x"), 1.5}, {QStringLiteral("y"), 2}};
        {
            WindowSession session(path("views.ini"));
            session.setPageView(QStringLiteral("/s/a.memscape"), QStringLiteral("stride"), zoom);
        }
        const WindowSession session(path("views.ini"));
        QCOMPARE(session.pageView(QStringLiteral("/s/a.memscape"), QStringLiteral("stride")), zoom);
        QVERIFY(session.pageView(QStringLiteral("/s/a.memscape"), QStringLiteral("hierarchy")).isEmpty());
        QVERIFY(session.pageView(QStringLiteral("/s/b.memscape"), QStringLiteral("stride")).isEmpty());
    }

    void brokenFilesGiveDefaults_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("binary") << QByteArray("\0\1\2\3[window\n\xff\xff", 15);
        QTest::newRow("foreign bytes") << QByteArray(
            "[window]\ngeometry=@ByteArray(nonsense)\ndocks=@ByteArray(\\0\\0)\n");
        QTest::newRow("hostile variant") << QByteArray(
            "[window]\ngeometry=@Variant(\\0\\0\\0\\x9\\x7f\\xff\\xff\\xff)\n"
            "docks=@Rect(1 2 3 4)\n[views]\nx=@Variant()\n");
    }
    void brokenFilesGiveDefaults()
    {
        QFETCH(QByteArray, content);
        QFile file(path("broken.ini"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(content);
        file.close();
        WindowSession session(path("broken.ini"));
        const auto window = makeWindow();
        QVERIFY(!session.restoreWindow(*window));
        QCOMPARE(window->size(), QSize(900, 600));
        QVERIFY(session.lastStudy().isEmpty());
    }
};

QTEST_MAIN(TestSession)
#include "tst_window_session.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/settings/settings.h"

#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace memscape;

class TestSettings : public QObject
{
    Q_OBJECT
    QTemporaryDir m_folder;
    QString path(const char* name) const { return m_folder.filePath(QLatin1String(name)); }
    static void write(const QString& path, const QByteArray& content)
    {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(content);
    }

private slots:
    void defaultsOfAnEmptyFile()
    {
        const Settings settings(path("none.ini"));
        QCOMPARE(settings.theme(), ThemeChoice::System);
        QCOMPARE(settings.byteStyle(), ByteStyle::Binary);
        QCOMPARE(settings.fontZoom(), 100);
        QCOMPARE(settings.reducedMotion(), false);
        QVERIFY(settings.recentFiles().isEmpty());
        QVERIFY(settings.workers().empty());
        QVERIFY(settings.python().isEmpty());
        QCOMPARE(settings.exportDefaults(), ExportDefaults{});
        QVERIFY(settings.shortcut(QStringLiteral("file.save")).isNull());
    }

    void everythingIsReadBackByTheNextStart()
    {
        const std::vector<SavedWorker> workers{
            {QStringLiteral("lab-gpu"), QStringLiteral("ssh lab-gpu memscape-cli worker")},
            {QStringLiteral("Ünï \"quoted\", %"), QStringLiteral("srun --x=\"a b\" w")}};
        const ExportDefaults exported{QStringLiteral("svg"), {800, 500}, true, QStringLiteral("/tmp/a, b")};
        {
            Settings settings(path("all.ini"));
            settings.setTheme(ThemeChoice::Dark);
            settings.setByteStyle(ByteStyle::Decimal);
            settings.setFontZoom(150);
            settings.setReducedMotion(true);
            settings.setWorkers(workers);
            settings.setPython(QStringLiteral(" /opt/a b/bin/python3 "));
            settings.setExportDefaults(exported);
            settings.setDeviceFiles({QStringLiteral("/a.json"), QStringLiteral("/a.json")});
            settings.setShortcut(QStringLiteral("file.save"), QStringLiteral("Ctrl+Alt+S"));
            settings.setShortcut(QStringLiteral("file.open"), QStringLiteral(""));
        }
        const Settings settings(path("all.ini"));
        QCOMPARE(settings.theme(), ThemeChoice::Dark);
        QCOMPARE(settings.byteStyle(), ByteStyle::Decimal);
        QCOMPARE(settings.fontZoom(), 150);
        QCOMPARE(settings.reducedMotion(), true);
        QCOMPARE(settings.workers(), workers);
        QCOMPARE(settings.python(), QStringLiteral("/opt/a b/bin/python3"));
        QCOMPARE(settings.exportDefaults(), exported);
        QCOMPARE(settings.deviceFiles(), QStringList{QStringLiteral("/a.json")});
        QCOMPARE(settings.shortcut(QStringLiteral("file.save")), QStringLiteral("Ctrl+Alt+S"));
        QVERIFY(!settings.shortcut(QStringLiteral("file.open")).isNull()); // removed on purpose
    }

    void fewerWorkersLeaveNoTrace()
    {
        Settings settings(path("workers.ini"));
        settings.setWorkers({{QStringLiteral("a"), QStringLiteral("x")}, {QStringLiteral("b"), QStringLiteral("y")}});
        settings.setWorkers({{QStringLiteral("b"), QStringLiteral("y")}});
        QCOMPARE(settings.workers().size(), 1u);
        settings.setWorkers({});
        QVERIFY(settings.workers().empty());
    }

    void recentFilesAreNewestFirstWithoutDoublesAndLimited()
    {
        Settings settings(path("recent.ini"));
        for (int index = 0; index < 20; ++index)
            settings.addRecentFile(QStringLiteral("/s/%1.memscape").arg(index));
        settings.addRecentFile(QStringLiteral("/s/15.memscape"));
        QCOMPARE(settings.recentFiles().size(), Settings::recentLimit);
        QCOMPARE(settings.recentFiles().at(0), QStringLiteral("/s/15.memscape"));
        QCOMPARE(settings.recentFiles().at(1), QStringLiteral("/s/19.memscape"));
        QCOMPARE(settings.recentFiles().count(QStringLiteral("/s/15.memscape")), 1);
        settings.removeRecentFile(QStringLiteral("/s/15.memscape"));
        QCOMPARE(settings.recentFiles().at(0), QStringLiteral("/s/19.memscape"));
        settings.clearRecentFiles();
        QVERIFY(settings.recentFiles().isEmpty());
    }

    void changesAreToldOnceAndOnlyWhenTheyAreOnes()
    {
        Settings settings(path("signals.ini"));
        QSignalSpy changed(&settings, &Settings::changed);
        settings.setTheme(ThemeChoice::Dark);
        settings.setTheme(ThemeChoice::Dark);
        settings.setFontZoom(120);
        settings.setFontZoom(120);
        settings.clearRecentFiles();
        QCOMPARE(changed.size(), 2);
        QCOMPARE(changed.at(0).at(0).value<Settings::Key>(), Settings::Key::Theme);
        QCOMPARE(changed.at(1).at(0).value<Settings::Key>(), Settings::Key::FontZoom);
    }

    void foreignValuesReadAsDefaults_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("wrong words") << QByteArray(
            "version=1\n[view]\ntheme=mauve\nbytes=7\nzoom=large\nreducedMotion=perhaps\n"
            "[export]\nformat=exe\nsize=1x1\n[files]\nrecent=@Invalid()\n");
        QTest::newRow("huge") << QByteArray("version=1\n[view]\nzoom=99999999999999999999\n"
                                            "[export]\nsize=1000000x1000000\n"
                                            "[workers]\nsize=3\n");
        QTest::newRow("variants") << QByteArray("[view]\nzoom=@Variant(\\0\\0\\0\\x7f)\n"
                                                "theme=@ByteArray(\\xff)\n");
        QTest::newRow("binary") << QByteArray("\x7f"
                                              "ELF\0\1\2\xff\xfe[[[\n=\n]",
                                              15);
        QTest::newRow("truncated") << QByteArray("[view\nzoom=la");
    }
    void foreignValuesReadAsDefaults()
    {
        QFETCH(QByteArray, content);
        write(path("foreign.ini"), content);
        const Settings settings(path("foreign.ini"));
        QCOMPARE(settings.theme(), ThemeChoice::System);
        QCOMPARE(settings.byteStyle(), ByteStyle::Binary);
        QCOMPARE(settings.fontZoom(), 100);
        QCOMPARE(settings.reducedMotion(), false);
        QCOMPARE(settings.exportDefaults(), ExportDefaults{});
        QVERIFY(settings.recentFiles().isEmpty());
        QVERIFY(settings.workers().empty());
    }

    void aBrokenFileIsKeptBeside()
    {
        const QByteArray broken("[view\ntheme=dark\n");
        write(path("broken.ini"), broken);
        const Settings settings(path("broken.ini"));
        QFile kept(path("broken.ini.broken"));
        QVERIFY(kept.open(QIODevice::ReadOnly));
        QCOMPARE(kept.readAll(), broken);
    }

    void theVersionIsStampedButANewerOneIsLeftAlone()
    {
        write(path("old.ini"), "[view]\ntheme=dark\n");
        {
            const Settings settings(path("old.ini"));
            QCOMPARE(settings.theme(), ThemeChoice::Dark);
        }
        QCOMPARE(QSettings(path("old.ini"), QSettings::IniFormat).value("version").toInt(), Settings::version);

        write(path("newer.ini"), "version=99\nshape=round\n[view]\ntheme=dark\n");
        {
            Settings settings(path("newer.ini"));
            QCOMPARE(settings.theme(), ThemeChoice::Dark);
            settings.setTheme(ThemeChoice::Light);
        }
        const QSettings newer(path("newer.ini"), QSettings::IniFormat);
        QCOMPARE(newer.value("version").toInt(), 99);
        QCOMPARE(newer.value("shape").toString(), QStringLiteral("round"));
    }

    void unfoldedSectionsAreRemembered()
    {
        {
            Settings settings(path("folds.ini"));
            QVERIFY(!settings.isUnfolded("a/Details"));
            settings.setUnfolded("a/Details", true);
            settings.setUnfolded("b/Details", true);
            settings.setUnfolded("b/Details", false);
        }
        const Settings settings(path("folds.ini"));
        QVERIFY(settings.isUnfolded("a/Details"));
        QVERIFY(!settings.isUnfolded("b/Details"));
    }
};

QTEST_GUILESS_MAIN(TestSettings)
#include "tst_settings.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/launch_options.h"

#include <QTest>

using namespace memscape;
using Mode = LaunchOptions::Mode;

class TestLaunchOptions : public QObject
{
    Q_OBJECT

private slots:
    void files()
    {
        const auto options = parseLaunch({"a.memscape", "b.json"});
        QVERIFY(options);
        QCOMPARE(options->mode, Mode::Window);
        QCOMPARE(options->files, (QStringList{"a.memscape", "b.json"}));
    }

    void textNeedsNothing()
    {
        QCOMPARE(parseLaunch({"--help"})->mode, Mode::Text);
        QVERIFY(parseLaunch({"--help"})->text.contains("--screenshot"));
        QVERIFY(parseLaunch({"--version"})->text.startsWith("memscape "));
    }

    void render()
    {
        const auto options = parseLaunch({"--render", "r.json", "-o", "r.svg", "--size", "800x600", "--theme", "dark"});
        QVERIFY(options);
        QCOMPARE(options->mode, Mode::Render);
        QCOMPARE(options->record, "r.json");
        QCOMPARE(options->size, QSize(800, 600));
        QCOMPARE(options->theme, "dark");
    }

    void screenshotTakesParameters()
    {
        const auto options = parseLaunch(
            {"--screenshot", "stride", "-o", "s.png", "stride=4", "element=float32", "--device", "nvidia-h200"});
        QVERIFY(options);
        QCOMPARE(options->mode, Mode::Screenshot);
        QCOMPARE(options->values, (QStringList{"stride=4", "element=float32"}));
        QCOMPARE(options->device, "nvidia-h200");
    }

    void qtOptionsAreLeftToQt()
    {
        const auto options = parseLaunch({"-platform", "offscreen", "a.memscape"});
        QVERIFY(options);
        QCOMPARE(options->files, QStringList{"a.memscape"});
    }

    void wrong_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("code");
        QTest::newRow("unknown option") << QStringList{"--frobnicate"} << "usage.syntax";
        QTest::newRow("no output") << QStringList{"--render", "r.json"} << "usage.output";
        QTest::newRow("unknown kind") << QStringList{"--render", "r.json", "-o", "r.gif"} << "usage.output";
        QTest::newRow("screenshots are pixels")
            << QStringList{"--screenshot", "stride", "-o", "r.svg"} << "usage.output";
        QTest::newRow("both") << QStringList{"--render", "r", "--screenshot", "s", "-o", "r.png"} << "usage.modes";
        QTest::newRow("theme") << QStringList{"--theme", "pink"} << "usage.theme";
        QTest::newRow("size") << QStringList{"--size", "wide"} << "usage.size";
        QTest::newRow("output of nothing") << QStringList{"-o", "x.png"} << "usage.output";
        QTest::newRow("value missing") << QStringList{"--render"} << "usage.syntax";
    }
    void wrong()
    {
        QFETCH(QStringList, arguments);
        QFETCH(QString, code);
        const auto options = parseLaunch(arguments);
        QVERIFY(!options);
        QCOMPARE(QString::fromStdString(options.error().code), code);
        QCOMPARE(exitCodeFor(options.error()), ExitCode::BadInput);
    }

    void sizes_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QSize>("size");
        QTest::newRow("plain") << "1600x1000" << QSize(1600, 1000);
        QTest::newRow("capital") << "1600X1000" << QSize(1600, 1000);
        QTest::newRow("too small") << "10x10" << QSize();
        QTest::newRow("too large") << "100000x100" << QSize();
        QTest::newRow("negative") << "-5x100" << QSize();
        QTest::newRow("three") << "100x100x100" << QSize();
        QTest::newRow("empty") << "" << QSize();
    }
    void sizes()
    {
        QFETCH(QString, text);
        QFETCH(QSize, size);
        const auto parsed = parseSize(text);
        QCOMPARE(parsed.has_value(), size.isValid());
        if (parsed)
            QCOMPARE(*parsed, size);
    }
};

QTEST_GUILESS_MAIN(TestLaunchOptions)
#include "tst_launch_options.moc"

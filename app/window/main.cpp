// SPDX-License-Identifier: GPL-3.0-or-later
// memscape: the window. Looks at its arguments before it makes a Qt application, so that --help and
// --version answer and --render and --screenshot draw where there is no display, and so that a
// missing display is a message and an exit code, not an abort inside Qt.
#include "app/window/launch_options.h"
#include "app/window/main_window.h"
#include "app/window/pictures_mode.h"
#include "core/base/out_of_memory.h"
#include "core/experiment/record.h"

#include <QApplication>

#include <cstdio>

namespace {

using namespace memscape;

int finish(const Result<void>& result)
{
    if (result)
        return int(ExitCode::Done);
    std::fprintf(stderr, "memscape: %s\n", result.error().text().c_str());
    return int(exitCodeFor(result.error()));
}

Error noDisplay()
{
    return {"usage.display",
            "there is no display to open a window on",
            {},
            "set DISPLAY or WAYLAND_DISPLAY (ssh -X), use memscape-cli, which needs none, draw "
            "pictures with --render or --screenshot, or run packaging/run, which measures and "
            "writes an HTML report"};
}

QtMessageHandler messagesBefore = nullptr;

/// Without a screen Qt says this of every window whose size is set; nothing else is kept back.
void withoutSizeHints(QtMsgType type, const QMessageLogContext& context, const QString& text)
{
    if (text != QStringLiteral("This plugin does not support propagateSizeHints()"))
        messagesBefore(type, context, text);
}

void describe(QApplication& application)
{
    application.setApplicationName(QStringLiteral("memscape"));
    application.setApplicationVersion(QString::fromStdString(programVersion()));
    application.setDesktopFileName(QStringLiteral("io.github.memscape.Memscape"));
}

int openWindow(QApplication& application, const LaunchOptions& options)
{
    WindowOptions window;
    window.theme = options.theme;
    window.load = [] { return readHostLoad(); };
    MainWindow main(window);
    if (options.resetLayout)
        main.session().resetLayout();
    const bool reopen = options.files.isEmpty() && !options.newWindow;
    main.restore(reopen);
    if (options.resetLayout)
        main.restoreDefaultLayout();
    if (options.size.isValid())
        main.resize(options.size);
    else
        main.shrinkToScreen();
    main.show();
    main.files().openPaths(options.files);
    return application.exec();
}

} // namespace

int main(int argc, char** argv)
{
    endClearlyWithoutMemory("memscape");
    QStringList arguments;
    for (int i = 1; i < argc; ++i)
        arguments << QString::fromLocal8Bit(argv[i]);
    const auto options = parseLaunch(arguments);
    if (!options)
        return finish(fail(options.error()));
    if (options->mode == LaunchOptions::Mode::Text) {
        std::fputs(options->text.toUtf8().constData(), stdout);
        return int(ExitCode::Done);
    }
    const bool picture = options->mode != LaunchOptions::Mode::Window;
    if (picture) {
        qputenv("QT_QPA_PLATFORM", "offscreen");
        messagesBefore = qInstallMessageHandler(withoutSizeHints);
    } else if (!displayAvailable() && !arguments.contains(QStringLiteral("-platform")))
        return finish(fail(noDisplay()));

    QApplication application(argc, argv);
    describe(application);
    if (options->mode == LaunchOptions::Mode::Render)
        return finish(renderRecord(*options));
    if (options->mode == LaunchOptions::Mode::Screenshot)
        return finish(screenshotPage(*options));
    return openWindow(application, *options);
}

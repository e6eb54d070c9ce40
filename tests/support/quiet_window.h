// SPDX-License-Identifier: GPL-3.0-or-later
// Options of a window for a test: it starts nothing, saves nothing and asks nothing of the machine.
#pragma once

#include "app/window/main_window.h"

#include <QTest>

#include <memory>

namespace memscape {

inline WindowOptions quietWindow()
{
    WindowOptions options;
    options.workerCommand = {};
    options.startWorkers = false;
    options.autosave = false;
    options.remember = false;
    return options;
}

/// Shown in its usual size, with an empty study that nothing asks about.
inline std::unique_ptr<MainWindow> shownWindow()
{
    auto window = std::make_unique<MainWindow>(quietWindow());
    window->restore(false);
    window->files().askSave = [] { return SaveAnswer::Discard; };
    window->resize(1280, 800);
    window->show();
    if (!QTest::qWaitForWindowExposed(window.get()))
        qWarning("the window was not exposed");
    return window;
}

/// With a worker that is started by this command when the window is shown.
inline WindowOptions windowWithWorker(const QStringList& command)
{
    WindowOptions options = quietWindow();
    options.workerCommand = command;
    options.startWorkers = true;
    return options;
}

} // namespace memscape

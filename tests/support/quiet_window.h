// SPDX-License-Identifier: GPL-3.0-or-later
// Options of a window for a test: it starts nothing, saves nothing and asks nothing of the machine.
#pragma once

#include "app/window/main_window.h"

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

/// With a worker that is started by this command when the window is shown.
inline WindowOptions windowWithWorker(const QStringList& command)
{
    WindowOptions options = quietWindow();
    options.workerCommand = command;
    options.startWorkers = true;
    return options;
}

} // namespace memscape

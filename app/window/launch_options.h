// SPDX-License-Identifier: GPL-3.0-or-later
// What `memscape` was asked to do, read before any Qt application exists: --help and --version must
// answer where there is no display, and --render and --screenshot must choose the offscreen
// platform before Qt chooses one for us.
#pragma once

#include "core/base/result.h"

#include <QSize>
#include <QString>
#include <QStringList>

namespace memscape {

struct LaunchOptions
{
    enum class Mode { Window, Text, Render, Screenshot };

    Mode mode = Mode::Window;
    QString text;       ///< Text: what to print (help, version)
    QStringList files;  ///< Window: studies, records or devices to open
    QString record;     ///< Render: the record or study
    QString page;       ///< Screenshot: an experiment's id
    QStringList values; ///< Screenshot: KEY=VALUE
    QString output;
    QSize size;     ///< invalid: the mode's own
    QString theme;  ///< "light", "dark" or empty
    QString device; ///< Screenshot: which device
    bool resetLayout = false;
    bool newWindow = false;
};

/// `arguments` without the program's name. Errors: usage.* (exit code 2), with what would be right.
Result<LaunchOptions> parseLaunch(const QStringList& arguments);

/// "1600x1000"; usage.size beyond 64 to 16384 a side.
Result<QSize> parseSize(const QString& text);

/// True when a window could be opened: a display is named, or the platform was chosen by hand.
bool displayAvailable();

} // namespace memscape

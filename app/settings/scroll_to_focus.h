// SPDX-License-Identifier: GPL-3.0-or-later
// A scroll area follows the keyboard from one of its widgets to the next, not into the first.
#pragma once

#include <QApplication>
#include <QScrollArea>

namespace memscape {

/// What is reached with Tab inside of `area` scrolls into view.
inline void scrollToFocus(QScrollArea* area)
{
    QObject::connect(qApp, &QApplication::focusChanged, area, [area](QWidget*, QWidget* now) {
        if (now && area->widget() && area->widget()->isAncestorOf(now))
            area->ensureWidgetVisible(now, 0, 24);
    });
}

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// A column of widgets that scrolls up and down.
#pragma once

#include <QApplication>
#include <QScrollArea>

namespace memscape {

/// `content` fills the width of `area`, without a frame; what is reached with Tab inside of it scrolls into view.
inline void scrollColumn(QScrollArea* area, QWidget* content)
{
    area->setWidget(content);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    area->setFocusPolicy(Qt::NoFocus);
    QObject::connect(qApp, &QApplication::focusChanged, area, [area](QWidget*, QWidget* now) {
        if (now && area->widget() && area->widget()->isAncestorOf(now))
            area->ensureWidgetVisible(now, 0, 24);
    });
}

} // namespace memscape

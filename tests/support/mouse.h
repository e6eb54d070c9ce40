// SPDX-License-Identifier: Apache-2.0
// What a mouse does to a widget.
#pragma once

#include <QApplication>
#include <QMouseEvent>

namespace memscape::test {

/// An event of the left button at a place of the widget; `buttons` are held down.
inline void mouse(QWidget& widget, QEvent::Type type, QPointF at, Qt::MouseButtons buttons)
{
    QMouseEvent event(type, at, widget.mapToGlobal(at), Qt::LeftButton, buttons, Qt::NoModifier);
    QApplication::sendEvent(&widget, &event);
}

/// From one place to another with the left button held.
inline void drag(QWidget& widget, QPointF from, QPointF to)
{
    mouse(widget, QEvent::MouseButtonPress, from, Qt::LeftButton);
    mouse(widget, QEvent::MouseMove, to, Qt::LeftButton);
    mouse(widget, QEvent::MouseButtonRelease, to, Qt::NoButton);
}

} // namespace memscape::test

// SPDX-License-Identifier: GPL-3.0-or-later
// Our own line icons (resources/icons/*.svg), drawn in the theme's colours: an icon of a dark theme
// must not be black. Widgets that got their icon here are recoloured when the theme changes.
#pragma once

#include <QColor>
#include <QIcon>
#include <QString>

class QAbstractButton;
class QAction;

namespace memscape {

/// The icon in one colour, sharp at any size; null when there is no such icon.
QIcon themedIcon(const QString& name, const QColor& colour);
/// In the colour of dim text, faint while disabled.
QIcon themedIcon(const QString& name);

void setThemedIcon(QAbstractButton* button, const QString& name);
void setThemedIcon(QAction* action, const QString& name);

/// Makes the icons of the library known; called once by the program that starts the application.
void initIcons();

} // namespace memscape

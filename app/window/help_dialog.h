// SPDX-License-Identifier: GPL-3.0-or-later
// Help pages: Markdown from resources/help, the list of shortcuts made from the actions, what an
// experiment models and leaves out.
#pragma once

#include "app/window/actions.h"
#include "core/experiment/experiment.h"

#include <QString>

class QWidget;

namespace memscape {

QString startHelp();
QString shortcutsHelp(const Actions& actions);
QString experimentHelp(const Experiment& experiment);
QString aboutHelp();

/// Shows Markdown in a window of its own that does not block the program.
void showHelp(QWidget* parent, const QString& title, const QString& markdown);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// Help pages: the chapters of resources/help, the list of shortcuts made from the actions, what an
// experiment models, leaves out and was checked against.
#pragma once

#include "app/window/actions.h"
#include "core/experiment/experiment.h"

#include <QString>

class QWidget;

namespace memscape {

/// A chapter of resources/help as Markdown: "start", "measuring", "pytorch", "accuracy", "claims", "glossary".
QString helpChapter(const QString& name);
QString shortcutsHelp(const Actions& actions);
QString experimentHelp(const Experiment& experiment);
QString aboutHelp();

/// Shows Markdown in a window of its own that does not block the program.
void showHelp(QWidget* parent, const QString& title, const QString& markdown);

} // namespace memscape

// SPDX-License-Identifier: GPL-3.0-or-later
// What the command palette finds: enabled actions, experiments, records, devices. Gathered anew
// each time it opens.
#pragma once

#include <QIcon>
#include <QList>
#include <QString>

#include <functional>

namespace memscape {

struct PaletteEntry
{
    QString text;   ///< "Save as…", "Go to: Access patterns"
    QString detail; ///< one sentence, or where it is
    QString shortcut;
    QIcon icon;
    std::function<void()> run;
};

/// Entries that match what was typed, best first; all in their order while nothing is typed.
/// `recent` are texts of entries used lately, newest first: they win among equals.
QList<PaletteEntry> rankedEntries(const QList<PaletteEntry>& entries, const QString& typed, const QStringList& recent);

} // namespace memscape
